/* threads/loop.h - inside the part that acts: one thread, one libuv loop, one object for each live session. */
#ifndef DAIS_THREADS_LOOP_H
#define DAIS_THREADS_LOOP_H

#include "agents/agents.h"
#include "threads/credential.h"
#include "threads/engine.h"
#include "threads/threads.h"

#include <pthread.h>

struct threads {
	struct store *store;
	char *directory;
	const struct provider_instance *instances;
	size_t instance_count;
	const char *const *environment;
	struct credentials *credentials;
	struct agent_bounds bounds;

	pthread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t timer;

	pthread_mutex_t lock; /* of what stands up to the next blank line */
	pthread_cond_t changed;
	struct batch *done; /* batches that were stored, newest first */
	char *mcp_url;	    /* NULL: agents are not started yet */
	bool is_stopping, is_draining;
	bool is_recovered;
	size_t session_count;
	struct look *looks; /* see background.c */
	int64_t last_ticket;

	struct helper *helper;
	char *data;

	struct work *works;	  /* of the loop's thread, as all below: see background.c */
	struct session *sessions;
	size_t recovering, in_flight;
};

/* One change on its way to the store, with what is to follow it. */
struct batch {
	struct batch *next;
	struct threads *threads;
	struct session *session; /* NULL: of none */
	struct arena *arena;
	struct store_job job;
	struct failure f;
	int rc;
	int (*run)(struct tx *tx, void *arg, struct failure *f);
	void *arg;
	void (*then)(struct batch *batch); /* on the loop's thread; frees the batch */
	/* of sessions */
	struct agent_out out;
	struct ingest in;
	int64_t opened_at; /* monotonic ms */
	bool is_text_only;
	size_t text_bytes;
	int64_t heard; /* bytes of lines */
	int tries;
};

struct batch *batch_create(struct threads *threads, struct session *session);
void batch_destroy(struct batch *batch);
/* Store it; `then` follows. `run` as of store_job. */
void batch_submit(struct batch *batch, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg,
	void (*then)(struct batch *batch));

struct session {
	struct session *next;
	struct threads *threads;
	int64_t n, thread_n;
	const struct provider_instance *instance;
	struct provider_session_row row; /* as it was opened; in `life` */
	struct arena *life;
	char *directory;
	struct agent *agent;
	struct host *host;
	struct batch *open;   /* collects what is heard */
	struct batch *saving; /* is on its way to the store */
	struct agent_exit exit;
	struct str token; /* wiped when the host has it */
	int64_t offset;		/* behind the newest line that the agent heard */
	int64_t confirmed, confirmed_stored;
	int64_t interrupt_due;	/* monotonic ms, 0: none */
	int64_t idle_since;	/* the same; as are these */
	int64_t created_at, heard_at, turn_at;
	const char *why; /* it was ended by us: cause of the end that its driver is told; NULL: not so */
	bool starts_over; /* the last server died while it opened: its turn begins in another one */
	bool is_host_ready, is_begun, is_opened, has_turn, has_exited, is_lost, has_heard_exit, is_ending, is_recovering;
};

/* ---- loop.c ---- */
int64_t loop_now(const struct threads *threads); /* monotonic ms */
/* Ask for a tick at this time at the latest. */
void loop_due(struct threads *threads, int64_t at);
void loop_recovered(struct threads *threads);

/* ---- bring.c ---- */
/* The files that a driver brings along are in `folder`, whole. */
int files_bring(const char *folder, const struct agent_file *files, size_t count, struct failure *f);

/* ---- session.c ---- */
struct session *session_of_thread(struct threads *threads, int64_t thread_n);
struct session *session_create(struct threads *threads, const struct provider_session_row *row,
	const struct provider_instance *instance);
void session_destroy(struct session *session);
/* Go on with whatever can be done: lines, orders, the end. */
void session_advance(struct session *session);
/* Its timers. */
void session_tick(struct session *session, int64_t now);
void session_end(struct session *session);
/* The same, and its driver is told this cause of struct agent_exit. */
void session_end_for(struct session *session, const char *why);
extern const struct host_handlers session_handlers;

/* ---- order.c ---- */
/* Takes one order that can be given now: 1 it is in the batch, 0 none, -1 failure. */
int order_take(struct session *session, struct batch *batch, struct failure *f);

/* Of an agent that has ended, with its files. */
void directory_remove(const char *directory);

/* ---- stray.c ---- */
/* After sessions_recover: ends every agent that belongs to no session. It counts as recovering meanwhile, since its number
 * may be given again. */
int strays_end(struct threads *threads, struct failure *f);

/* ---- open.c ---- */
/* Looks for threads with orders: opens sessions for those that need one, lets the others go on. */
void orders_look(struct threads *threads);
/* Connects to what outlived the last server. */
int sessions_recover(struct threads *threads, struct failure *f);

#endif
