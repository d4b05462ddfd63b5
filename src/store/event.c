/* The event log, principals and sequences: rows that every mutation makes. */
#include "store/private.h"

#include "base/log.h"

#include <assert.h>

static const struct event_info table[] = {
#define EVENT(name, number, wire, stream, data) {EVENT_##name, wire, stream},
#include "store/event.def"
#undef EVENT
};

const struct actor actor_system = {
	.id = {"system", 6}, .kind = PRINCIPAL_SYSTEM, .verification = VERIFICATION_ABSENT, .req_id = ""};

const struct event_info *event_info(int type)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if ((int)table[i].type == type)
			return &table[i];
	return NULL;
}

const struct event_info *event_find(struct str wire)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (str_eq(wire, str_of(table[i].wire)))
			return &table[i];
	return NULL;
}

const char *principal_kind_name(enum principal_kind kind)
{
	static const char *const names[] = {"local", "user", "agent", "seat", "system"};

	return names[kind];
}

const char *verification_name(enum verification verification)
{
	static const char *const names[] = {"absent", "unchecked", "verified", "rejected", "unavailable"};

	return names[verification];
}

SQL(SQL_EVENT_ADD,
	"INSERT INTO event (seq, id, at, type, root_n, item_n, entity_id, actor_n, verification, run_n, seat,"
	" req_id, prev_seq, thread_n, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)");

static int add(struct tx *tx, enum event_type type, int64_t root_n, int64_t item_n, struct id entity,
	int64_t prev_seq, int64_t thread_n, struct str data, struct failure *f)
{
	struct store *store = tx->snapshot.store;
	int64_t actor_n;
	struct id id;

	if (tx_actor(tx, &actor_n, f) != 0)
		return -1;
	id_generate(&id);
	if (tx_run(tx, f, SQL_EVENT_ADD, "ibiiiobiiossoos", store->next_seq, id, tx->snapshot.now,
		    (int64_t)type, root_n, item_n == 0 ? NULL : &item_n, entity, actor_n,
		    (int64_t)tx->actor->verification, tx->actor->run_n == 0 ? NULL : &tx->actor->run_n,
		    tx->actor->seat, str_of(tx->actor->req_id), prev_seq == 0 ? NULL : &prev_seq,
		    thread_n == 0 ? NULL : &thread_n, data.n == 0 ? STR("{}") : data) < 0)
		return -1;
	store->next_seq++;
	return 0;
}

int event_add(struct tx *tx, enum event_type type, int64_t root_n, int64_t item_n, struct id entity,
	struct str data, struct failure *f)
{
	assert(type != EVENT_ITEM_TRANSITIONED);
	return add(tx, type, root_n, item_n, entity, 0, 0, data, f);
}

int event_add_transition(struct tx *tx, int64_t root_n, int64_t item_n, struct id entity, int64_t *moved_seq,
	struct str data, struct failure *f)
{
	int64_t seq = tx->snapshot.store->next_seq;

	if (add(tx, EVENT_ITEM_TRANSITIONED, root_n, item_n, entity, *moved_seq, 0, data, f) != 0)
		return -1;
	*moved_seq = seq;
	return 0;
}

int event_add_thread(struct tx *tx, enum event_type type, int64_t thread_n, struct str data, struct failure *f)
{
	return add(tx, type, 0, 0, (struct id){0}, 0, thread_n, data, f);
}

SQL(SQL_PRINCIPAL_FIND, "SELECT n FROM principal WHERE id = $1");
SQL(SQL_PRINCIPAL_ADD, "INSERT INTO principal (n, id, kind, parent) VALUES ($1, $2, $3, $4)");

int principal_find(struct snapshot *s, struct str id, int64_t *out, struct failure *f)
{
	int rc = query_int(s, out, f, SQL_PRINCIPAL_FIND, "s", id);

	if (rc == 0)
		*out = 0;
	return rc < 0 ? -1 : 0;
}

int tx_principal(struct tx *tx, const struct actor *actor, int64_t *out, struct failure *f)
{
	if (principal_find(&tx->snapshot, actor->id, out, f) != 0)
		return -1;
	if (*out != 0)
		return 0;
	if (tx_next(tx, SEQ_principal, out, f) != 0)
		return -1;
	tx->snapshot.store->has_new_principals = true;
	return tx_run(tx, f, SQL_PRINCIPAL_ADD, "isis", *out, actor->id, (int64_t)actor->kind,
		       actor->parent) < 0
		? -1
		: 0;
}

/* Who wrote lately: the writer need not ask for the number of a principal with every change. Rows that an undone
 * transaction has made are forgotten with it. */
static struct known_actor *known_actor(struct store *store, struct str id)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < id.n; i++)
		hash = (hash ^ (unsigned char)id.p[i]) * 16777619U;
	return &store->known_actors[hash % KNOWN_ACTORS];
}

void forget_new_principals(struct store *store)
{
	if (store->has_new_principals)
		memset(store->known_actors, 0, sizeof(store->known_actors));
	store->has_new_principals = false;
}

int tx_actor(struct tx *tx, int64_t *out, struct failure *f)
{
	struct str id = tx->actor->id;
	struct known_actor *known = known_actor(tx->snapshot.store, id);

	if (tx->actor_n == 0 && known->n != 0 && str_eq(str_of(known->id), id))
		tx->actor_n = known->n;
	if (tx->actor_n == 0) {
		if (tx_principal(tx, tx->actor, &tx->actor_n, f) != 0)
			return -1;
		if (id.n < sizeof(known->id)) {
			memcpy(known->id, id.p, id.n);
			known->id[id.n] = '\0';
			known->n = tx->actor_n;
		}
	}
	*out = tx->actor_n;
	return 0;
}

/* Events outlive their item: the number of a deleted one is never given again. */
SQL(SQL_MAX_item,
	"SELECT max(n) FROM (SELECT max(n) AS n FROM item UNION ALL"
	" SELECT CAST(value AS BIGINT) AS n FROM meta WHERE key = 'retired_item') AS seen");
SQL(SQL_RETIRE_ITEMS,
	"INSERT INTO meta (key, value) VALUES ('retired_item', CAST($1 AS TEXT))"
	" ON CONFLICT (key) DO UPDATE SET value = excluded.value");
#define SEQUENCE(table) SQL(SQL_MAX_##table, "SELECT max(n) FROM " #table);
#include "store/sequence.def"
#undef SEQUENCE

int tx_next(struct tx *tx, enum sequence sequence, int64_t *out, struct failure *f)
{
	static const char *const newest[SEQ_COUNT] = {
		[SEQ_item] = SQL_MAX_item,
#define SEQUENCE(table) [SEQ_##table] = SQL_MAX_##table,
#include "store/sequence.def"
#undef SEQUENCE
	};
	int64_t *last = &tx->snapshot.store->sequences[sequence];

	/* Numbers of work that was undone are skipped, not reused: other code may have kept them. */
	if (*last == 0 && query_int(&tx->snapshot, last, f, newest[sequence], "") < 0)
		return -1;
	*out = ++*last;
	return 0;
}

int tx_retire_items(struct tx *tx, struct failure *f)
{
	int64_t *last = &tx->snapshot.store->sequences[SEQ_item];

	if (*last == 0 && query_int(&tx->snapshot, last, f, SQL_MAX_item, "") < 0)
		return -1;
	return tx_run(tx, f, SQL_RETIRE_ITEMS, "i", *last) < 0 ? -1 : 0;
}

static struct write *write_of(struct tx *tx)
{
	return (struct write *)tx;
}

static int savepoint(struct tx *tx, const char *const *texts, const char *doing, struct failure *f)
{
	enum outcome outcome = db_run(tx->snapshot.db, texts[write_of(tx)->depth]);

	return outcome == DB_OK ? 0 : db_fail(tx->snapshot.db, outcome, doing, f);
}

static const char *const release_texts[MAX_MARKS] = {"RELEASE s0", "RELEASE s1", "RELEASE s2", "RELEASE s3",
	"RELEASE s4", "RELEASE s5", "RELEASE s6", "RELEASE s7"};

int tx_mark(struct tx *tx, struct failure *f)
{
	static const char *const texts[MAX_MARKS] = {"SAVEPOINT s0", "SAVEPOINT s1", "SAVEPOINT s2",
		"SAVEPOINT s3", "SAVEPOINT s4", "SAVEPOINT s5", "SAVEPOINT s6", "SAVEPOINT s7"};
	struct write *write = write_of(tx);

	assert(write->depth < MAX_MARKS);
	if (savepoint(tx, texts, "savepoint", f) != 0)
		return -1;
	write->marks[write->depth++] =
		(struct mark){.next_seq = tx->snapshot.store->next_seq, .actor_n = tx->actor_n};
	return 0;
}

void tx_mark_bare(struct tx *tx)
{
	struct write *write = write_of(tx);

	assert(write->depth == 0);
	write->marks[write->depth++] = (struct mark){.next_seq = tx->snapshot.store->next_seq,
		.actor_n = tx->actor_n,
		.is_bare = true,
		.changes = db_total_changes(tx->snapshot.db)};
}

int tx_keep(struct tx *tx, struct failure *f)
{
	struct write *write = write_of(tx);

	assert(write->depth > 0);
	write->depth--;
	return write->marks[write->depth].is_bare ? 0 : savepoint(tx, release_texts, "release", f);
}

static int undo_bare(struct tx *tx, const struct mark *mark, struct failure *f)
{
	if (db_total_changes(tx->snapshot.db) == mark->changes)
		return 0;
	write_of(tx)->is_broken = true;
	log_line(LOG_ERROR, "store", "a call changed something and then failed: its batch is undone");
	return fail(f, FAIL_UNAVAILABLE, "The store had to undo this batch; repeat the call.");
}

int tx_undo(struct tx *tx, struct failure *f)
{
	static const char *const back[MAX_MARKS] = {"ROLLBACK TO s0", "ROLLBACK TO s1", "ROLLBACK TO s2",
		"ROLLBACK TO s3", "ROLLBACK TO s4", "ROLLBACK TO s5", "ROLLBACK TO s6", "ROLLBACK TO s7"};
	struct write *write = write_of(tx);

	assert(write->depth > 0);
	write->depth--;
	forget_new_principals(tx->snapshot.store);
	tx->snapshot.store->next_seq = write->marks[write->depth].next_seq;
	tx->actor_n = write->marks[write->depth].actor_n;
	if (write->marks[write->depth].is_bare)
		return undo_bare(tx, &write->marks[write->depth], f);
	return savepoint(tx, back, "undo", f) != 0 ? -1 : savepoint(tx, release_texts, "release", f);
}
