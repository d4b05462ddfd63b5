/* script/script.h - an agent program that does what a file says: the door of the room.
 *
 * It speaks the Agent Client Protocol on stdin and stdout like any other agent, and nothing in the server knows that
 * it is scripted. So everything that starts, feeds, watches, stops and recovers agents can be tested, shown and
 * measured without an account and without a model. docs/scripted-agent.md is the manual of the scenario file. */
#ifndef DAIS_SCRIPT_SCRIPT_H
#define DAIS_SCRIPT_SCRIPT_H

#include "base/failure.h"
#include "base/str.h"

/* Read a scenario and forget it: FAIL_BAD_CONFIGURATION says FILE:LINE:COLUMN and what is wrong. */
int scenario_check(const char *path, struct failure *f);

/* Be the agent until stdin ends; the exit code. -1 with *f when the scenario cannot be used. Takes over the process:
 * its stdin, its stdout, and threads. */
int script_agent_main(const char *scenario, struct failure *f);

/* Every step, a line or two each, for --help. */
void script_write_steps(struct buf *out);

#endif
