/* threads/threads.h - durable conversations with agents: the door of the room.
 *
 * Changes are functions of a transaction (threads/engine.h); this is the part that acts: one thread with a loop that owns
 * the attempt hosts, hands orders to agents and puts on record what they say. It is told of new orders by
 * threads_wake(), which whoever commits a change of a thread calls afterwards. */
#ifndef DAIS_THREADS_THREADS_H
#define DAIS_THREADS_THREADS_H

#include "providers/provider.h"
#include "store/store.h"

struct threads;

/* How long agents may take, in ms; 0: no limit (idle: none at all, drain: they are not ended). */
struct agent_bounds {
	int64_t start, stall, turn, interrupt, idle, drain;
};

struct threads_options {
	struct store *store;
	const char *directory; /* of the attempt hosts: made 0700 when it is missing */
	const char *data;      /* where work trees and scratch folders go: absolute */
	const struct provider_instance *instances; /* these three outlive the engine */
	size_t instance_count;
	const char *const *environment; /* NAME=value of the server, NULL at the end */
	int64_t runs, runs_per_project, runs_per_batch; /* at once; 0: no limit */
	struct agent_bounds bounds;
};

/* Finds the agents that outlived the last server and goes on with them; returns when each has answered or is known to
 * be dead, and what died is on record. */
int threads_start(const struct threads_options *options, struct threads **out, struct failure *f);
/* Where agents find this server: http://127.0.0.1:PORT/mcp. Before it is called none is started. */
void threads_serve(struct threads *threads, struct str mcp_url);
/* Something was committed: look for orders. Any thread. */
void threads_wake(struct threads *threads);
/* The agents go on without us. Accepts NULL. */
void threads_stop(struct threads *threads);
/* Before threads_stop: ends every agent in an orderly way, for as long as the bounds say. */
void threads_drain(struct threads *threads);

const struct provider_instance *threads_instance(const struct threads *threads, struct str id);
const struct provider_instance *threads_instances(const struct threads *threads, size_t *out_count);

/* ---- credentials of agents: in memory, and in that of their attempt hosts ---- */

struct thread_scope {
	int64_t thread_n, session_n;
	char instance_id[65];
};

/* Whose credential this is. Constant time; false for none of ours. Any thread. */
bool threads_scope(struct threads *threads, struct str token, struct thread_scope *out);

#endif
