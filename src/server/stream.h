/* server/stream.h - inside the server: readers of the event log, over HTTP or the Unix socket. */
#ifndef DAIS_SERVER_STREAM_H
#define DAIS_SERVER_STREAM_H

#include "server/private.h"

struct subscriber;

/* Lines of JSON, one event each, for a program on this machine: every type, with its data. `write` must not
 * block; it is called on the hub's thread until local_unsubscribe returns. `since` 0: from now on. */
struct subscriber *local_subscribe(struct stream_hub *hub, const struct caller *caller, int64_t since,
	void (*write)(void *context, struct str line), void *context);
void local_unsubscribe(struct stream_hub *hub, struct subscriber *subscriber);

#endif
