/* The SQLite dialect: connections, the statement cache, and what its result codes mean to us. */
#include "store/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/analyse.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number
#define CACHE_SLOTS 512 /* power of two; statements beyond three quarters of it are not kept */

struct stmt {
	struct db *db;
	sqlite3_stmt *handle;
	char *sql; /* as the caller wrote it */
	uint64_t hash;
	bool in_use;
	bool is_cached;
};

struct db {
	sqlite3 *handle;
	struct stmt *cache[CACHE_SLOTS];
	struct stmt *near[CACHE_SLOTS]; /* what the text at an address was last time: spares hashing it */
	size_t cached;
	int64_t deadline;
	int wal_frames;
	int64_t frames_written;
	enum outcome worst;
};

static enum outcome outcome_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
		return DB_OK;
	case SQLITE_ROW:
		return DB_ROW;
	case SQLITE_DONE:
		return DB_DONE;
	case SQLITE_FULL:
		return DB_FULL;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return DB_READONLY;
	case SQLITE_INTERRUPT:
		return DB_TIMEOUT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return DB_BUSY;
	case SQLITE_IOERR:
		/* ext4 reports a full disk to a WAL write as an I/O error at times. */
		return code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_FSYNC ||
				code == SQLITE_IOERR_SHMSIZE
			? DB_FULL
			: DB_FATAL;
	default:
		return DB_FATAL;
	}
}

void db_note_outcome(struct db *db, enum outcome outcome)
{
	if (outcome == DB_FULL || outcome == DB_READONLY)
		db->worst = outcome;
}

enum outcome db_worst(struct db *db)
{
	return db->worst;
}

void db_clear_worst(struct db *db)
{
	db->worst = DB_OK;
}

static enum outcome result(struct db *db, int code)
{
	enum outcome outcome =
		outcome_of(code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE
				? code
				: sqlite3_extended_errcode(db->handle));

	db_note_outcome(db, outcome);
	return outcome;
}

int db_fail(struct db *db, enum outcome outcome, const char *doing, struct failure *f)
{
	db_note_outcome(db, outcome);
	log_line(outcome == DB_TIMEOUT ? LOG_WARN : LOG_ERROR, "store", doing,
		{"cause", LOG_TEXT(sqlite3_errmsg(db->handle))},
		{"code", LOG_INT(sqlite3_extended_errcode(db->handle))});
	switch (outcome) {
	case DB_FULL:
		return fail(f, FAIL_STORAGE_FULL, "The disk that holds the store is full; nothing was changed.");
	case DB_READONLY:
		return fail(f, FAIL_STORAGE_FULL, "The store cannot be written; nothing was changed.");
	case DB_TIMEOUT:
		(void)fail(f, FAIL_UNAVAILABLE, "This took too long; narrow it down.");
		f->retry_after_ms = 1000;
		return -1;
	case DB_BUSY:
		(void)fail(f, FAIL_UNAVAILABLE, "The store is busy.");
		f->retry_after_ms = 1000;
		return -1;
	default:
		return fail(f, FAIL_INTERNAL, "The store failed; the cause is in the server's log.");
	}
}

static int on_wal(void *context, sqlite3 *handle, const char *name, int frames)
{
	struct db *db = context;

	(void)handle;
	(void)name;
	/* The log starts over from its beginning after a checkpoint. */
	db->frames_written += frames > db->wal_frames ? frames - db->wal_frames : frames;
	db->wal_frames = frames;
	return SQLITE_OK;
}

static int on_progress(void *context)
{
	const struct db *db = context;

	return db->deadline != 0 && clock_mono_ms() > db->deadline;
}

/* What a transition touches lies all over the file: of 100,000 items it read six pages anew each time with 8 MB. */
static enum outcome set_writer_cache(struct db *db)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "PRAGMA cache_size = -%d", LIMIT_WRITER_CACHE_KB);
	return db_exec(db, text);
}

static enum outcome configure(struct db *db, enum db_mode mode)
{
	enum outcome outcome;

	(void)sqlite3_extended_result_codes(db->handle, 1);
	(void)sqlite3_busy_timeout(db->handle, 5000);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	/* The schema stays trusted: it is ours alone, and its triggers feed the search tables, which SQLite does
	 * not count as innocuous. */
	if (mode == DB_CREATE && db_exec(db, "PRAGMA page_size = " TEXT_OF(PAGE_BYTES)) != DB_OK)
		return DB_FATAL;
	outcome = db_exec(db, "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;"
			      " PRAGMA cache_size = -8192; PRAGMA recursive_triggers = OFF");
	if (outcome != DB_OK)
		return outcome;
	if (mode == DB_READ) {
		/* The whole file, as far as SQLite goes: a search of a million notes reads all over it, and what is not
		 * mapped is copied through the small page cache. */
		sqlite3_progress_handler(db->handle, 1000, on_progress, db);
		return db_exec(db, "PRAGMA query_only = ON; PRAGMA mmap_size = 2147418112");
	}
	/* FULL comes first: wal_file.c rests on it. */
	outcome = db_exec(db, "PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL;"
			      " PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = -1");
	if (outcome == DB_OK)
		outcome = set_writer_cache(db);
	/* After the pragma: setting wal_autocheckpoint takes the hook away. */
	(void)sqlite3_wal_hook(db->handle, on_wal, db);
	return outcome;
}

/* Nobody asks the library how much it has allocated, and counting takes a lock for every allocation. */
static void configure_library(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* refused when it runs already: then it counts */
	wal_file_register();
	map_file_register();
}

int db_open(const char *path, enum db_mode mode, struct db **out, struct failure *f)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct db *db = calloc(1, sizeof(*db));
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
	enum outcome outcome;

	if (db == NULL)
		abort();
	(void)pthread_once(&once, configure_library);
	if (mode == DB_CREATE)
		flags |= SQLITE_OPEN_CREATE;
	outcome = sqlite3_open_v2(path, &db->handle, flags, mode == DB_READ ? MAP_FILE_VFS : WAL_FILE_VFS) == SQLITE_OK
		? DB_OK
		: DB_FATAL;
	if (outcome == DB_OK)
		outcome = result(db, analyse_register(db->handle));
	if (outcome == DB_OK)
		outcome = configure(db, mode);
	if (outcome != DB_OK) {
		(void)db_fail(db, outcome, "open the database", f);
		db_close(db);
		return -1;
	}
	*out = db;
	return 0;
}

static void stmt_destroy(struct stmt *stmt)
{
	(void)sqlite3_finalize(stmt->handle);
	free(stmt->sql);
	free(stmt);
}

void db_close(struct db *db)
{
	if (db == NULL)
		return;
	for (size_t i = 0; i < CACHE_SLOTS; i++)
		if (db->cache[i] != NULL)
			stmt_destroy(db->cache[i]);
	(void)sqlite3_close(db->handle);
	free(db);
}

/* $n is a name to SQLite, numbered by its first appearance; ?n is the position we mean. */
static char *positional(const char *sql)
{
	char *text = strdup(sql);

	if (text == NULL)
		abort();
	for (char *p = text; *p != '\0'; p++)
		if (*p == '$' && p[1] >= '0' && p[1] <= '9')
			*p = '?';
	return text;
}

/* Eight bytes a step: a transition looks up twenty texts of some 300 bytes, and byte by byte that alone took
 * longer than its shorter statements. */
static uint64_t hash_of(const char *sql)
{
	uint64_t hash = 1469598103934665603U;
	uint64_t word;
	size_t left = strlen(sql);

	for (; left >= sizeof(word); sql += sizeof(word), left -= sizeof(word)) {
		memcpy(&word, sql, sizeof(word));
		hash = (hash ^ word) * 1099511628211U;
		hash ^= hash >> 32;
	}
	for (; left > 0; sql++, left--)
		hash = (hash ^ (unsigned char)*sql) * 1099511628211U;
	return hash ^ hash >> 32;
}

/* NULL and *code filled when the text cannot be prepared. */
static struct stmt *prepare(struct db *db, const char *sql, uint64_t hash, int *code)
{
	struct stmt *stmt = calloc(1, sizeof(*stmt));
	char *text = positional(sql);

	if (stmt == NULL)
		abort();
	*code = sqlite3_prepare_v3(db->handle, text, -1, SQLITE_PREPARE_PERSISTENT, &stmt->handle, NULL);
	free(text);
	if (*code != SQLITE_OK) {
		free(stmt);
		return NULL;
	}
	stmt->db = db;
	stmt->hash = hash;
	stmt->sql = strdup(sql);
	if (stmt->sql == NULL)
		abort();
	return stmt;
}

static struct stmt *find_by_text(struct db *db, const char *sql, int *code)
{
	uint64_t hash = hash_of(sql);
	size_t slot = hash & (CACHE_SLOTS - 1);
	struct stmt *stmt;

	for (; db->cache[slot] != NULL; slot = (slot + 1) & (CACHE_SLOTS - 1)) {
		stmt = db->cache[slot];
		if (stmt->hash == hash && !stmt->in_use && strcmp(stmt->sql, sql) == 0) {
			stmt->in_use = true;
			return stmt;
		}
	}
	stmt = prepare(db, sql, hash, code);
	if (stmt == NULL)
		return NULL;
	stmt->in_use = true;
	if (db->cached < CACHE_SLOTS / 4 * 3) {
		stmt->is_cached = true;
		db->cache[slot] = stmt;
		db->cached++;
	}
	return stmt;
}

static struct stmt *find_or_prepare(struct db *db, const char *sql, int *code)
{
	struct stmt **near = &db->near[(uintptr_t)sql / 32 & (CACHE_SLOTS - 1)];
	struct stmt *stmt;

	if (*near != NULL && !(*near)->in_use && strcmp((*near)->sql, sql) == 0) {
		(*near)->in_use = true;
		return *near;
	}
	stmt = find_by_text(db, sql, code);
	if (stmt != NULL && stmt->is_cached)
		*near = stmt;
	return stmt;
}

struct stmt *db_prepare(struct db *db, const char *sql, struct failure *f)
{
	int code;
	struct stmt *stmt = find_or_prepare(db, sql, &code);

	if (stmt == NULL)
		(void)db_fail(db, result(db, code), sql, f);
	return stmt;
}

void stmt_release(struct stmt *stmt)
{
	if (stmt == NULL)
		return;
	if (!stmt->is_cached) {
		stmt_destroy(stmt);
		return;
	}
	/* What is bound stays until it is bound anew, which every use does before its first step. */
	(void)sqlite3_reset(stmt->handle);
	stmt->in_use = false;
}

struct db *stmt_db(struct stmt *stmt)
{
	return stmt->db;
}

/* Parameters beyond what the text uses are a mistake of ours. */
static void bound(int code)
{
	assert(code == SQLITE_OK);
	(void)code;
}

int stmt_parameters(const struct stmt *stmt)
{
	return sqlite3_bind_parameter_count(stmt->handle);
}

void stmt_bind_int(struct stmt *stmt, int at, int64_t value)
{
	bound(sqlite3_bind_int64(stmt->handle, at, value));
}

/* Without a copy unless asked for: see private.h. */
static sqlite3_destructor_type holding(bool copies)
{
	return copies ? SQLITE_TRANSIENT : SQLITE_STATIC;
}

void stmt_bind_text(struct stmt *stmt, int at, struct str value, bool copies)
{
	bound(value.p == NULL ? sqlite3_bind_null(stmt->handle, at)
			      : sqlite3_bind_text64(stmt->handle, at, value.p, value.n, holding(copies), SQLITE_UTF8));
}

void stmt_bind_bytes(struct stmt *stmt, int at, struct str value, bool copies)
{
	bound(value.p == NULL ? sqlite3_bind_null(stmt->handle, at)
			      : sqlite3_bind_blob64(stmt->handle, at, value.p, value.n, holding(copies)));
}

enum outcome stmt_step(struct stmt *stmt)
{
	return result(stmt->db, sqlite3_step(stmt->handle));
}

int64_t stmt_int(struct stmt *stmt, int column)
{
	return sqlite3_column_int64(stmt->handle, column);
}

double stmt_real(struct stmt *stmt, int column)
{
	return sqlite3_column_double(stmt->handle, column);
}

bool stmt_is_null(struct stmt *stmt, int column)
{
	return sqlite3_column_type(stmt->handle, column) == SQLITE_NULL;
}

/* As bytes: asked for as text, SQLite first makes a copy that ends with a zero. */
struct str stmt_text(struct stmt *stmt, int column)
{
	const char *p = sqlite3_column_blob(stmt->handle, column);

	if (p == NULL)
		return stmt_is_null(stmt, column) ? STR_NONE : STR("");
	return (struct str){p, (size_t)sqlite3_column_bytes(stmt->handle, column)};
}

struct str stmt_bytes(struct stmt *stmt, int column)
{
	const char *p = sqlite3_column_blob(stmt->handle, column);

	return (struct str){p, p == NULL ? 0 : (size_t)sqlite3_column_bytes(stmt->handle, column)};
}

int64_t db_changes(struct db *db)
{
	return sqlite3_changes64(db->handle);
}

int64_t db_total_changes(struct db *db)
{
	return sqlite3_total_changes64(db->handle);
}

enum outcome db_exec(struct db *db, const char *sql)
{
	return result(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

enum outcome db_run(struct db *db, const char *sql)
{
	int code;
	struct stmt *stmt = find_or_prepare(db, sql, &code);
	enum outcome outcome;

	if (stmt == NULL)
		return result(db, code);
	outcome = stmt_step(stmt);
	stmt_release(stmt);
	return outcome == DB_DONE ? DB_OK : outcome;
}

bool db_transaction_lost(struct db *db)
{
	return sqlite3_get_autocommit(db->handle) != 0;
}

void db_keep_log(struct db *db)
{
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void db_give_back(struct db *db)
{
	(void)sqlite3_db_release_memory(db->handle);
	(void)malloc_trim(0); /* freed page by page, it stays with the process otherwise */
}

void db_deadline(struct db *db, int64_t mono_ms)
{
	db->deadline = mono_ms;
}

enum outcome db_checkpoint(struct db *db, bool restart, int *frames, int *moved)
{
	return result(db,
		sqlite3_wal_checkpoint_v2(db->handle, NULL,
			restart ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, frames, moved));
}

enum outcome db_commit_unsynced(struct db *db, bool *owes_sync)
{
	enum outcome outcome;

	wal_file_defer(db->handle, true);
	outcome = db_run(db, "COMMIT");
	*owes_sync = wal_file_defer(db->handle, false);
	return outcome;
}

int64_t db_wal_frames(struct db *db)
{
	return db->wal_frames;
}

int64_t db_frames_written(struct db *db)
{
	return db->frames_written;
}

int db_check_search(struct db *db, struct arena *arena, void (*found)(void *, struct str), void *context,
	struct failure *f)
{
	static const char *const indexes[] = {"item_fts_text", "item_fts_grams", "note_fts_text", "note_fts_grams"};
	int findings = 0;

	for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
		/* rank 1: against the texts too, not only within the index */
		char *sql = arena_printf(arena, "INSERT INTO %s (%s, rank) VALUES ('integrity-check', 1)",
			indexes[i], indexes[i]);
		int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL) & 0xff;

		if (code == SQLITE_OK)
			continue;
		if (code != SQLITE_CORRUPT)
			return db_fail(db, outcome_of(code), "check the search index", f);
		found(context, str_printf(arena, "search index %s does not match its texts", indexes[i]));
		findings++;
	}
	return findings;
}

int db_integrity(struct db *db, struct arena *arena, void (*found)(void *, struct str), void *context,
	struct failure *f)
{
	static const char *const pragmas[] = {"PRAGMA integrity_check(20)", "PRAGMA foreign_key_check"};
	int findings = 0;

	for (size_t i = 0; i < 2; i++) {
		sqlite3_stmt *stmt;

		if (sqlite3_prepare_v2(db->handle, pragmas[i], -1, &stmt, NULL) != SQLITE_OK)
			return db_fail(db, DB_FATAL, pragmas[i], f);
		while (sqlite3_step(stmt) == SQLITE_ROW) {
			struct str line = str_of((const char *)sqlite3_column_text(stmt, 0));

			if (i == 0 && str_eq(line, STR("ok")))
				continue;
			found(context, str_printf(arena, "%s: %.*s", i == 0 ? "pages" : "foreign key of", STRF(line)));
			findings++;
		}
		(void)sqlite3_finalize(stmt);
	}
	return findings;
}

const char *store_engine(struct arena *arena, bool *out_has_search)
{
	sqlite3 *handle = NULL;

	*out_has_search = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
		sqlite3_exec(handle, "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'trigram')", NULL, NULL, NULL) ==
			SQLITE_OK;
	(void)sqlite3_close(handle);
	return arena_printf(arena, "SQLite %s", sqlite3_libversion());
}

int store_backup(const char *database, const char *file, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *partial = arena_printf(arena, "%s.XXXXXX", file);
	sqlite3 *from = NULL;
	sqlite3 *to = NULL;
	sqlite3_backup *backup = NULL;
	int code = SQLITE_ERROR;
	int fd = mkstemp(partial); /* a name of its own: whatever else lies there stays */

	if (fd < 0)
		return fail(f, FAIL_CANNOT_CREATE, "The backup could not be written to %s: %s.", file,
			errno == ENOSPC ? "the disk is full" : "its directory takes no file");
	(void)close(fd);
	if (sqlite3_open_v2(database, &from, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
		sqlite3_open_v2(partial, &to, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
		(void)sqlite3_busy_timeout(from, 5000);
		backup = sqlite3_backup_init(to, "main", from, "main");
	}
	if (backup != NULL) {
		/* All pages in one step: a snapshot, so that writers cannot make it start over. */
		code = sqlite3_backup_step(backup, -1);
		(void)sqlite3_backup_finish(backup);
	}
	if (code == SQLITE_DONE)
		code = sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) == SQLITE_OK
			? SQLITE_DONE
			: SQLITE_ERROR;
	(void)sqlite3_close(to);
	(void)sqlite3_close(from);
	if (code == SQLITE_DONE && rename(partial, file) == 0)
		return 0;
	(void)remove(partial);
	log_line(LOG_ERROR, "store", "backup failed", {"code", LOG_INT(code)});
	return fail(f, FAIL_CANNOT_CREATE, "The backup could not be written to %s.", file);
}
