/* store/store.h - how to read and how to change anything: the door of the store.
 *
 * One writer thread runs mutations from a bounded queue, many per commit, each under its own
 * savepoint; another one syncs the log while the writer runs the next, and a caller is answered after
 * the log that holds its change is on disk. A mutation is a
 * short synchronous function of (struct tx *, arguments): it does no other I/O, waits for nothing and
 * calls nobody. Reads run on snapshot connections with a deadline. Every change appends its events in
 * the same transaction; followers are woken after the commit. SQL is written in the subset that
 * SQLite 3.40 and PostgreSQL 15 share, with $1, $2 … as parameters; DDL lives in store/migrations. */
#ifndef DAIS_STORE_STORE_H
#define DAIS_STORE_STORE_H

#include "base/failure.h"
#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct store;
struct db;   /* one connection */
struct stmt; /* one prepared statement of it */

/* SQL text that is known to the tests: tests/unit/store/test_sql.c walks all of it. */
#define SQL(name, text) \
	static const char name[] __attribute__((section("dais_sql"), used)) = text

/* ---- who is recorded as the author of a change ---- */

enum principal_kind { PRINCIPAL_LOCAL, PRINCIPAL_USER, PRINCIPAL_AGENT, PRINCIPAL_SEAT, PRINCIPAL_SYSTEM };
const char *principal_kind_name(enum principal_kind kind);
enum verification {
	VERIFICATION_ABSENT,
	VERIFICATION_UNCHECKED,
	VERIFICATION_VERIFIED,
	VERIFICATION_REJECTED,
	VERIFICATION_UNAVAILABLE,
};
const char *verification_name(enum verification verification);

struct actor {
	struct str id; /* local, api:<id>, seat:<8 hex>, system */
	enum principal_kind kind;
	struct str parent; /* seats: who opened the run */
	enum verification verification;
	struct str subject; /* verified subject, or absent */
	const char *req_id; /* of the call, "" for the server's own work */
	int64_t run_n;	    /* 0: none */
	struct str seat;    /* absent: none */
};

extern const struct actor actor_system;

/* ---- opening ---- */

struct store_options {
	const char *path; /* SQLite file */
	unsigned readers; /* 0: 2 */
	bool may_create;
	bool is_exclusive; /* the server: lock the database, start the writer and checkpointer */
};

/* Opens, checks and migrates. STATE_OWNED (with the pid) when another server has it, SCHEMA_NEWER for
 * the database of a newer dais or of another program (file untouched), CANNOT_CREATE, NOT_PERMITTED. */
int store_open(const struct store_options *options, struct store **out, struct failure *f);
/* Finishes queued mutations, checkpoints, closes. Accepts NULL. */
void store_close(struct store *store);

/* ---- reading ---- */

struct snapshot {
	struct store *store;
	struct db *db;
	struct arena *arena; /* results live here */
	int64_t now;	     /* UTC ms, one value for the whole snapshot or transaction */
};

/* A read snapshot on a pooled connection; any thread. UNAVAILABLE when none is free in time. */
int snapshot_begin(struct store *store, struct arena *arena, struct snapshot *out, struct failure *f);
void snapshot_end(struct snapshot *snapshot);
/* From now on its reads have no deadline: for the command line, where nobody else waits. */
void snapshot_patient(struct snapshot *s);
/* A snapshot shows what is committed; its last changes may still be on their way to the disk. Before it is used to
 * tell a caller anything: whether all that it shows is on the disk (1, 0, -1 failure), and the same, waiting for the
 * disk. Both must be the first that is asked of the snapshot. */
int snapshot_is_settled(struct snapshot *s, struct failure *f);
int snapshot_settle(struct snapshot *s, struct failure *f);

struct query {
	struct snapshot *snapshot;
	struct stmt *stmt;
};

/* Start a query. `types` has one letter per parameter: i int64_t, s struct str (absent = NULL), z
 * const char * (NULL = NULL), b struct id, x struct str as bytes, o const int64_t * (NULL = NULL).
 * Then query_next until it is not 1 (0: end, -1: failure), and always query_end. */
int query(struct snapshot *s, struct query *q, struct failure *f, const char *sql, const char *types, ...);
int query_next(struct query *q, struct failure *f);
void query_end(struct query *q);
void query_endp(struct query *q); /* for AUTO */
int64_t col_int(const struct query *q, int column); /* NULL reads as 0 */
bool col_is_null(const struct query *q, int column);
double col_real(const struct query *q, int column);
struct str col_str(const struct query *q, int column); /* copied; NULL is absent */
struct str col_view(const struct query *q, int column); /* not copied: good until the next query_next or query_end */
struct id col_id(const struct query *q, int column);   /* NULL is zero */
/* Bytes of a column against `expected`, in constant time. */
bool col_equals(const struct query *q, int column, struct str expected);
/* The first row's integer: 1 found, 0 no row or NULL, -1 failure. */
int query_int(struct snapshot *s, int64_t *out, struct failure *f, const char *sql, const char *types, ...);

/* SQL built from fixed fragments, for listings with optional filters. Fragments come from the code,
 * values only through parameters. */
struct sql {
	struct buf text;
	struct arena *arena;
	struct sql_param {
		char type; /* as above */
		int64_t number;
		struct str text;
	} params[200];
	int count;
};
void sql_init(struct sql *sql, struct arena *arena);
void sql_add(struct sql *sql, const char *fragment);
/* Append the next $n bound to a value. */
void sql_int(struct sql *sql, int64_t value);
void sql_str(struct sql *sql, struct str value);
void sql_id(struct sql *sql, struct id value);
int query_sql(struct snapshot *s, struct query *q, struct failure *f, const struct sql *sql);
/* For tests, before the store is opened: be told, on whatever thread, the text of each statement that is used. */
void store_watch(void (*seen)(void *context, const char *sql), void *context);

/* ---- changing ---- */

struct tx {
	struct snapshot snapshot; /* reads inside the transaction */
	const struct actor *actor;
	int64_t actor_n; /* row of the actor; filled by tx_actor */
};

/* Rows changed, or -1. */
int64_t tx_run(struct tx *tx, struct failure *f, const char *sql, const char *types, ...);
/* The same with parameters from a list: type i, s, x as above, n NULL. */
int64_t tx_run_params(struct tx *tx, struct failure *f, const char *sql, const struct sql_param *params, int count);
/* Fresh primary keys, cheap: the writer is alone. `table` names its sequence. */
enum sequence {
	SEQ_item,
#define SEQUENCE(table) SEQ_##table,
#include "store/sequence.def"
#undef SEQUENCE
	SEQ_COUNT,
};
int tx_next(struct tx *tx, enum sequence sequence, int64_t *out, struct failure *f);
/* Before items are deleted: no number of SEQ_item that was given so far is given again. */
int tx_retire_items(struct tx *tx, struct failure *f);
/* Row of the acting principal, made on first sight. */
int tx_actor(struct tx *tx, int64_t *out, struct failure *f);
int tx_principal(struct tx *tx, const struct actor *actor, int64_t *out, struct failure *f);
/* Row of a principal that may not exist: 0 then. */
int principal_find(struct snapshot *s, struct str id, int64_t *out, struct failure *f);

/* Nested savepoints: mark, then keep or undo, in reverse order. Undo also takes back events. */
int tx_mark(struct tx *tx, struct failure *f);
int tx_keep(struct tx *tx, struct failure *f);
int tx_undo(struct tx *tx, struct failure *f);

enum event_type {
#define EVENT(name, number, wire, stream, data) EVENT_##name = (number),
#include "store/event.def"
#undef EVENT
};
struct event_info {
	enum event_type type;
	const char *wire;
	const char *stream; /* NULL: audit only */
};
const struct event_info *event_info(int type); /* NULL when unknown */
const struct event_info *event_find(struct str wire);

/* First sequence number is EVENT_FIRST_SEQ + 1. */
#define EVENT_FIRST_SEQ INT64_C(1000000000000)

/* Append one event by tx->actor. `data` is a JSON object. root_n, item_n may be 0. */
int event_add(struct tx *tx, enum event_type type, int64_t root_n, int64_t item_n, struct id entity,
	struct str data, struct failure *f);
/* Append a transition. *moved_seq is item.moved_seq: before, the transition that this one follows (0: none); after, its
 * own number, which the caller stores. */
int event_add_transition(struct tx *tx, int64_t root_n, int64_t item_n, struct id entity, int64_t *moved_seq,
	struct str data, struct failure *f);
/* Append one event about a thread. */
int event_add_thread(struct tx *tx, enum event_type type, int64_t thread_n, struct str data, struct failure *f);

struct store_job {
	/* On the writer thread, under a savepoint: 0 keeps the changes, -1 undoes them. */
	int (*run)(struct tx *tx, void *arg, struct failure *f);
	/* What run() refuses it refuses before its first change. A savepoint, which copies each page before it is
	 * changed, is spared then; a failure after a change all the same undoes the whole batch. */
	bool fails_clean;
	/* On the durable or the writer thread, one of all at a time: after the commit is on disk (rc 0), or after
	 * the undo or a failed commit (rc -1, f filled). May not block. */
	void (*done)(void *arg, int rc, struct failure *f);
	void *arg;
	const struct actor *actor;
	struct arena *arena;  /* of the request */
	bool may_use_reserve; /* frees space or ends work: still admitted when the disk is full */
	/* the store's own */
	struct store_job *next;
	struct failure failure;
	int rc;
};

/* Queue a mutation; the job must live until done() is called. -1 and UNAVAILABLE when the queue is
 * full or the store is closing, STORAGE_FULL while the disk is full; done() is not called then. */
int store_submit(struct store *store, struct store_job *job, struct failure *f);
/* The same, waiting: for start-up, the command line and tests. Never on the writer or the durable thread. */
int store_write(struct store *store, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg,
	const struct actor *actor, struct arena *arena, struct failure *f);

struct store_read {
	/* On a reader thread, on a settled snapshot that ends afterwards. */
	void (*run)(struct snapshot *s, void *arg);
	/* Instead of run, when no snapshot could be had. */
	void (*refuse)(void *arg, struct failure *f);
	void *arg;
	struct arena *arena;
	struct store_read *next;
};
int store_read_submit(struct store *store, struct store_read *read, struct failure *f);

/* ---- following the event log ---- */

/* Called like done(), before it, when events of a commit are on disk, with the newest number. May not
 * block. At most 8 followers, added before the first write. */
void store_follow(struct store *store, void (*wake)(void *context, int64_t newest), void *context);
int64_t store_newest(const struct store *store);

/* ---- searching ---- */

/* Characters of the tokens in the index of parts of words; what it is to be asked is written by work/search_sqlite.c. */
#define GRAM_CHARS 5

/* ---- care ---- */

struct store_facts {
	int64_t schema_version;
	int64_t database_bytes, wal_bytes, free_disk_bytes, page_bytes;
	int64_t queue_depth, commits, calls, wal_frames, busy_us;
	bool is_full;
};
int store_facts(struct store *store, struct store_facts *out, struct failure *f);
/* Online copy to a new file (0600), made under another name and renamed when it is complete. */
int store_backup(const char *database, const char *file, struct failure *f);
/* Integrity of pages, keys and our own invariants. Each finding is one line for people;
 * their number is returned, -1 on failure. */
int store_check(struct snapshot *s, void (*found)(void *context, struct str line), void *context,
	struct failure *f);
/* The same for the search index against the texts. SQLite checks that under the lock of a writer, so it is not done
 * beside a running server, which would wait: STATE_OWNED then; and no server can start meanwhile. Rolled back: the
 * file is not changed. For large databases it takes about as long as to index them. */
int store_check_search(struct store *store, struct arena *arena, void (*found)(void *context, struct str line),
	void *context, struct failure *f);
/* "SQLite 3.40.1"; whether it has what search needs (FTS5 with the trigram tokenizer). */
const char *store_engine(struct arena *arena, bool *out_has_search);
/* Highest schema version this program knows. */
int store_schema_version(void);

#endif
