/* bridge/private.h - what the files of this room share. */
#ifndef DAIS_BRIDGE_PRIVATE_H
#define DAIS_BRIDGE_PRIVATE_H

#include "base/json.h"
#include "bridge/bridge.h"

#include <curl/curl.h>
#include <sys/types.h>

/* ---- child.c: the server that we start ---- */

struct child {
	pid_t pid;
	int out; /* its stdout */
	char url[64];
	char password[64];
	struct buf line; /* what it wrote of a line */
	bool is_listening;
};

int child_start(struct child *child, const char *const *argv, struct failure *f);
/* Read what it wrote. False: its stdout is closed. */
bool child_hear(struct child *child);
/* Ask it to end, then end it. */
void child_end(struct child *child);

/* ---- transfer.c: requests and the stream ---- */

struct transfers;

struct transfers *transfers_create(const struct child *child);
void transfers_destroy(struct transfers *all);
CURLM *transfers_multi(struct transfers *all);
void transfers_open_stream(struct transfers *all);
/* One line of our input. */
void transfers_ask(struct transfers *all, struct str line);
/* Answer what is done; open the stream anew when it broke. */
void transfers_settle(struct transfers *all);

/* Write a line to our stdout; ends the program when nobody reads it. */
void bridge_say(struct buf *line);

#endif
