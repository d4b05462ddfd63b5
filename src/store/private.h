/* store/private.h - inside the store: connections, statements, and what the writer keeps. */
#ifndef DAIS_STORE_PRIVATE_H
#define DAIS_STORE_PRIVATE_H

#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct migration {
	int number;
	const char *name;
	const char *sql;
};
extern const struct migration migrations[];
extern const size_t migration_count;

/* What a database operation came to; the dialect maps its library's codes to these. */
enum outcome { DB_OK, DB_ROW, DB_DONE, DB_FULL, DB_READONLY, DB_TIMEOUT, DB_BUSY, DB_FATAL };

enum db_mode { DB_READ, DB_WRITE, DB_CREATE };

/* ---- dialect: sqlite.c ---- */
int db_open(const char *path, enum db_mode mode, struct db **out, struct failure *f);
void db_close(struct db *db);
/* Cached by text; a statement in use is prepared again. NULL with *f filled. */
struct stmt *db_prepare(struct db *db, const char *sql, struct failure *f);
void stmt_release(struct stmt *stmt);
/* Each of these is bound between db_prepare and the first step: the last use's values are still there. */
int stmt_parameters(const struct stmt *stmt);
void stmt_bind_int(struct stmt *stmt, int at, int64_t value);
/* Absent = NULL. Without `copies` the bytes stay where they are until the statement is released. */
void stmt_bind_text(struct stmt *stmt, int at, struct str value, bool copies);
void stmt_bind_bytes(struct stmt *stmt, int at, struct str value, bool copies);
enum outcome stmt_step(struct stmt *stmt);
struct db *stmt_db(struct stmt *stmt);
int64_t stmt_int(struct stmt *stmt, int column);
double stmt_real(struct stmt *stmt, int column);
bool stmt_is_null(struct stmt *stmt, int column);
struct str stmt_text(struct stmt *stmt, int column); /* valid until the next step */
struct str stmt_bytes(struct stmt *stmt, int column);
int64_t db_changes(struct db *db); /* by the last statement */
int64_t db_total_changes(struct db *db); /* since the connection was opened */
/* Run fixed text without parameters or rows. */
enum outcome db_exec(struct db *db, const char *sql);
/* The same for one statement, which is kept prepared: for what every batch or read begins and ends with. */
enum outcome db_run(struct db *db, const char *sql);
/* The connection lost its transaction (the library rolled it back by itself). */
bool db_transaction_lost(struct db *db);
/* When this connection closes, what the log holds stays there: the database is left as it was found. */
void db_keep_log(struct db *db);
/* Memory that the connection keeps only to be faster. */
void db_give_back(struct db *db);
/* Reads past this moment of the monotonic clock end with DB_TIMEOUT; 0: no deadline. */
void db_deadline(struct db *db, int64_t mono_ms);
/* Log the library's text and fill *f by what the outcome means for a caller. Returns -1. */
int db_fail(struct db *db, enum outcome outcome, const char *doing, struct failure *f);
void db_note_outcome(struct db *db, enum outcome outcome);
enum outcome db_worst(struct db *db); /* DB_FULL or DB_READONLY seen since the last clear */
void db_clear_worst(struct db *db);

/* wal_file.c: the VFS of connections that write, by this name. */
#define WAL_FILE_VFS "dais"
void wal_file_register(void);
struct sqlite3;
/* Whether syncs of the log of this connection hand the bytes to the system and leave the disk to somebody else, who
 * then owes it: true when one did since the last call. The first sync of a file and of each new header are always
 * for the disk, since frames of a new generation may not reach it before their header. */
bool wal_file_defer(struct sqlite3 *handle, bool defers);

/* map_file.c: the VFS of connections that read, by this name. */
#define MAP_FILE_VFS "dais-read"
void map_file_register(void);

/* COMMIT that leaves the sync of the log to the caller when it can: *owes_sync. */
enum outcome db_commit_unsynced(struct db *db, bool *owes_sync);
/* Passive checkpoint; frames in the log and frames moved. */
enum outcome db_checkpoint(struct db *db, bool restart, int *frames, int *moved);
int64_t db_wal_frames(struct db *db); /* length of the log after the last commit */
int64_t db_frames_written(struct db *db); /* since the connection was opened */
/* Search tables against their texts: asked by an INSERT that changes nothing, so inside a write transaction. */
int db_check_search(struct db *db, struct arena *arena, void (*found)(void *, struct str), void *context,
	struct failure *f);
int db_integrity(struct db *db, struct arena *arena, void (*found)(void *, struct str), void *context,
	struct failure *f);

/* ---- check_threads.c: part of store_check ---- */
int check_threads(struct snapshot *s, void (*found)(void *context, struct str line), void *context, struct failure *f);

/* ---- file.c: what stands before SQL ---- */
struct store_lock;
/* Header of the file read without SQLite: refuses other programs' and newer databases untouched. */
int file_check(const char *path, bool may_create, bool *out_is_new, struct failure *f);
int file_lock(const char *path, struct store_lock **out, struct failure *f);
void file_unlock(struct store_lock *lock);
int64_t file_free_bytes(const char *path);
int reserve_make(const char *database, struct failure *f);
void reserve_release(const char *database);

int migrate(struct db *db, const char *path, bool is_new, struct failure *f);

/* ---- the store ---- */
/* Of a new database. Each page that a commit touches goes into the log whole: with half the usual size a
 * transition writes half the bytes (15.7 KB instead of 29.9 alone, 5.9 instead of 10.4 in a batch of 64). */
#define PAGE_BYTES 2048
#define APPLICATION_ID 0x44414953 /* "DAIS" */
#define MAX_FOLLOWERS 8
#define MAX_READ_CONNECTIONS 16

struct follower {
	void (*wake)(void *context, int64_t newest);
	void *context;
};

/* The writer's memory of principals by their ids. */
#define KNOWN_ACTORS 64
struct known_actor {
	char id[128];
	int64_t n; /* 0: an empty place */
};

struct store {
	char *path;
	struct store_lock *lock;
	struct db *writer_db; /* owner: writer thread */
	unsigned reader_count;

	pthread_t writer, durable, checkpointer, readers[8];
	bool has_writer, has_durable, has_checkpointer;
	unsigned readers_started;

	pthread_mutex_t queue_lock;
	pthread_cond_t queue_more;
	struct store_job *queue_head, **queue_tail; /* guarded by queue_lock */
	atomic_size_t queue_length; /* of what waits, taken or not */
	bool is_closing;
	struct store_job *taken; /* owner: writer thread; of the queue, not run yet */

	/* Committed, not answered; guarded by queue_lock. */
	pthread_cond_t batch_more, settled;
	struct batch *batches, **batches_tail;
	int batch_count;
	int unsettled;	 /* batches whose COMMIT has begun and that are not on the disk */
	atomic_bool is_disk_busy; /* set under queue_lock: a batch waits for its sync, or is being synced */
	bool is_answering;	  /* the durable thread has batches in hand */
	bool durable_closing;
	int log_fd; /* of the write-ahead log, -1: none */

	pthread_mutex_t read_lock;
	pthread_cond_t read_more;
	struct store_read *read_head, **read_tail;
	size_t read_length;
	bool read_closing;

	pthread_mutex_t pool_lock;
	pthread_cond_t pool_more;
	struct db *pool[MAX_READ_CONNECTIONS]; /* idle read connections */
	unsigned pool_idle, pool_made;

	pthread_mutex_t checkpoint_lock;
	pthread_cond_t checkpoint_more;
	bool checkpoint_due, checkpoint_closing;

	struct follower followers[MAX_FOLLOWERS];
	size_t follower_count;

	_Atomic int64_t newest;	  /* last event that is on the disk */
	int64_t next_seq;	  /* owner: writer thread */
	int64_t committed;	  /* owner: writer thread; last committed event */
	int64_t checkpoint_asked_at; /* owner: writer thread; length of the log then */
	int64_t last_now;	  /* owner: writer thread; never runs backwards */
	struct known_actor known_actors[KNOWN_ACTORS]; /* owner: writer thread */
	bool has_new_principals; /* owner: writer thread; made since the last commit */
	int64_t sequences[SEQ_COUNT]; /* owner: writer thread; last handed out, 0: unknown */

	atomic_bool is_full;
	_Atomic int64_t full_checked_at; /* monotonic */
	_Atomic int64_t commits, calls, wal_frames, busy_us;
};

/* Undo stack of what SQL does not know. */
struct mark {
	int64_t next_seq;
	int64_t actor_n;
	bool is_bare; /* without a savepoint: to be undone only while nothing was changed since */
	int64_t changes;
};
#define MAX_MARKS 8

/* A transaction as the writer holds it; struct tx is its first member. */
struct write {
	struct tx tx;
	struct store *store;
	struct mark marks[MAX_MARKS];
	int depth;
	bool is_broken; /* something could not be undone alone */
};

/* What one COMMIT holds, or was to hold. */
struct batch {
	struct batch *next;
	struct arena *arena; /* of the batch itself */
	struct store_job *first;
	struct failure *failure; /* of all, NULL: committed */
	int64_t newest;		 /* its last event, 0: none */
	bool owes_sync;		 /* its frames of the log were handed to the system, not synced */
};

/* ---- durable.c ---- */
int durable_open(struct store *store, struct failure *f);
void durable_close(struct store *store);
void *durable_main(void *store);
/* Before each COMMIT. */
void durable_begin(struct store *store);
/* After it: sync what is owed, answer, wake followers, free; here, or on the durable thread. */
void durable_settle(struct store *store, struct batch *batches);
void durable_hand_over(struct store *store, struct batch *batch);
/* Returns when event `seen` is on the disk; UNAVAILABLE when that takes longer than a read may. Not for the durable
 * thread. */
int durable_wait(struct store *store, int64_t seen, struct failure *f);

int write_begin(struct store *store, struct write *write, struct failure *f);
/* With `owes_sync` the frames may be handed to the system only; *owes_sync says whether the disk still lacks them. */
int write_commit(struct store *store, struct write *write, bool *owes_sync, struct failure *f);
void write_rollback(struct store *store, struct write *write);
/* event.c */
void forget_new_principals(struct store *store);
void tx_mark_bare(struct tx *tx);
void *writer_main(void *store);
void *reader_main(void *store);
void *checkpointer_main(void *store);

#endif
