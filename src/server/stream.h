/* server/stream.h - inside the server: readers of the event log, over HTTP or the Unix socket. */
#ifndef DAIS_SERVER_STREAM_H
#define DAIS_SERVER_STREAM_H

#include "server/private.h"

#define MAX_ROOTS 16
#define MAX_TYPES 32

struct subscriber {
	struct subscriber *next;
	struct http_exchange *x; /* NULL: a local one */
	void (*write)(void *context, struct str line);
	void *context;
	struct arena *arena;
	struct caller caller;
	int64_t roots[MAX_ROOTS]; /* asked for; 0 of them: all that the caller reads */
	size_t root_count;
	int64_t project_n; /* of an agent that dais started: project.n of its thread */
	struct str types[MAX_TYPES];
	size_t type_count;
	int64_t sent; /* newest event that was looked at for this stream */
	struct str greeting; /* control events that go first */
	atomic_bool *is_gone; /* of a stream: in the exchange's arena, which the hang-up callback outlives never */
};

/* A subscriber of its own memory, not yet of the hub's; the caller fills in what it wants. */
struct subscriber *subscriber_create(const struct caller *caller);
void subscriber_destroy(struct subscriber *sub);
/* From now on it is the hub's. */
void stream_hub_add(struct stream_hub *hub, struct subscriber *sub);

/* Lines of JSON, one event each, for a program on this machine: every type, with its data. `write` must not
 * block; it is called on the hub's thread until local_unsubscribe returns. */
struct subscriber *local_subscribe(struct stream_hub *hub, const struct caller *caller, int64_t since,
	void (*write)(void *context, struct str line), void *context);
void local_unsubscribe(struct stream_hub *hub, struct subscriber *subscriber);

#endif
