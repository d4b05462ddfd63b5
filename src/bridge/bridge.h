/* bridge/bridge.h - an agent that is a server of its own, made to look like a program that speaks lines: the door of the room.
 *
 * A driver of agents does no I/O but lines. OpenCode is reached by HTTP: this program, which runs under an attempt host like any
 * agent, starts it on a free port of the loopback with a password that nobody else has, and ends with it.
 *
 *   in   {"id":ID,"method":M,"path":P,"body":VALUE?}
 *   out  {"ready":true}                             it listens, and its stream of events is open
 *        {"id":ID,"status":N,"body":VALUE?}         status 0: no answer
 *        {"event":VALUE}                            of the stream, as it came
 *        {"lost":REASON}                            the stream broke; {"ready":true} comes again
 *
 * The end of its input ends it and the server. */
#ifndef DAIS_BRIDGE_BRIDGE_H
#define DAIS_BRIDGE_BRIDGE_H

#include "base/failure.h"

/* Be the bridge of `argv`, the program and its first arguments; the exit code. -1 with *f: it does not start. */
int bridge_opencode(const char *const *argv, struct failure *f);

#endif
