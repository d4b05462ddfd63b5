/* server/stand_in.h - the tools when there is no server behind them: they are listed as ever, and each call says
 * why it cannot run. Clients hide what a program writes to stderr, and show a tool's answer. */
#ifndef DAIS_SERVER_STAND_IN_H
#define DAIS_SERVER_STAND_IN_H

#include "base/failure.h"

struct stand_in;

/* `profile` as in the hello of a local connection, or absent. `write` gets whole lines, during stand_in_feed(). */
struct stand_in *stand_in_create(struct str profile, void (*write)(void *context, struct str line), void *context);
/* Answer this line (with its newline); `why` is what calls are told. */
void stand_in_feed(struct stand_in *stand_in, struct str line, const struct failure *why);
void stand_in_destroy(struct stand_in *stand_in); /* accepts NULL */

#endif
