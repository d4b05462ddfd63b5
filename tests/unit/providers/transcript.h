/* A conversation with an agent as text: what a driver is given, and what it must say and write.
 *
 *   # anything                  a comment
 *   config {…}                  first: kind, and what else agent_config holds
 *   begin                       the session begins
 *   < LINE                      the agent writes this line
 *   ! {"order":…}               the engine orders
 *   @ MS                        so much time passes; a tick when one is due
 *   exit {"code":…,"stderr":…}  the program has ended
 *   > {…}                       the driver writes a line that has these members
 *   = {"event":…}               the driver tells an event that has these members
 *
 * A line in which the secret is to be put has the member "secret"; the end of stdin and the call for the ladder are told
 * as the events ends-stdin and kills, behind the others.
 *
 * All that the driver writes and tells must be expected, each kind in its order. */
#ifndef TESTS_TRANSCRIPT_H
#define TESTS_TRANSCRIPT_H

#include "base/json.h"
#include "providers/provider.h"

struct transcript;

/* Read the file; aborts with a message when it cannot be understood. */
struct transcript *transcript_read(const char *path);
void transcript_free(struct transcript *t);
size_t transcript_inputs(const struct transcript *t);

/* When the state is saved, loaded into a new agent, and that one goes on. */
enum transcript_cut { CUT_NEVER, CUT_ONCE, CUT_ALWAYS };

/* Everything written and told, one a line, in `said`; with `checks`, also compared with what is expected: 0, or -1 with
 * what is wrong in `problem`. `at`: the input after which CUT_ONCE cuts. */
int transcript_run(const struct transcript *t, enum transcript_cut cut, size_t at, bool checks, struct buf *said,
	struct buf *problem);

#endif
