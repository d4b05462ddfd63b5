/* A state directory with any number of items, made in bulk: fill STATE ITEMS OUT
 *
 * The schema is made by the store itself; the rows are written past it, in large transactions without syncs,
 * since a million calls would take an hour. What must agree (counts by role, search tables by their triggers,
 * events) is written as the program writes it, and `dais doctor` has to find nothing afterwards.
 *
 * A project is a root, nine features and up to 990 tasks in triples: a task of type `bench` that waits in the
 * queue with its three notes filled (so every gate has something to look at), one that is done and blocked
 * it, and one that it blocks. OUT gets bench.txt (ids of those), any.txt (ids of all), roots.txt, features.txt
 * and queries.txt (for the search). */
#include "bench/fill_text.h"

#include "base/clock.h"
#include "base/id.h"
#include "store/analyse.h"
#include "store/store.h"

#include <sqlite3.h>
#include <stdlib.h>

#define FEATURES 9
#define PROJECT_ITEMS 1000
#define COMMIT_ITEMS 50000

enum { BLOCKED = -1, QUEUE, WORK, REVIEW, TERMINAL };

struct row {
	int64_t n, parent_n, root_n, at;
	struct id id;
	int depth, role, priority, complexity;
	const char *type;
};

static sqlite3 *db;
static sqlite3_stmt *add_item, *add_text, *add_note, *add_body, *add_dep, *add_event, *add_child_tally, *add_root_tally;
static FILE *bench_out, *any_out, *roots_out, *features_out;
static int64_t next_item = 1, next_note = 1, next_dep = 1, next_seq = EVENT_FIRST_SEQ + 1, started_at;
static int64_t wanted;

static void check(int code)
{
	if (code == SQLITE_OK || code == SQLITE_DONE)
		return;
	(void)fprintf(stderr, "fill: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void exec(const char *sql)
{
	check(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

static sqlite3_stmt *statement(const char *sql)
{
	sqlite3_stmt *stmt;

	check(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL));
	return stmt;
}

static void run(sqlite3_stmt *stmt)
{
	check(sqlite3_step(stmt));
	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt);
}

static void set_int(sqlite3_stmt *stmt, int at, int64_t value)
{
	check(sqlite3_bind_int64(stmt, at, value));
}

static void set_id(sqlite3_stmt *stmt, int at, struct id id)
{
	check(sqlite3_bind_blob(stmt, at, id.b, 16, SQLITE_TRANSIENT));
}

static void set_text(sqlite3_stmt *stmt, int at, struct str text)
{
	check(sqlite3_bind_text(stmt, at, text.p, (int)text.n, SQLITE_TRANSIENT));
}

static void prepare(void)
{
	add_item = statement("INSERT INTO item (n, id, parent_n, root_n, depth, role, prev_role, priority, complexity,"
			     " version, created_at, modified_at, role_changed_at)"
			     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?10, ?10)");
	add_text = statement("INSERT INTO item_text (n, title, type, summary, created_by) VALUES (?1, ?2, ?3, ?4, 1)");
	add_note = statement("INSERT INTO note (n, id, item_n, key, role, version, chars, is_filled, created_at,"
			     " modified_at, actor_n, verification) VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, 1, ?7, ?7, 1, 0)");
	add_body = statement("INSERT INTO note_body (n, body) VALUES (?1, ?2)");
	add_dep = statement("INSERT INTO dep (n, id, from_n, to_n, type, threshold, created_at, created_by)"
			    " VALUES (?1, ?2, ?3, ?4, 0, 3, ?5, 1)");
	add_event = statement("INSERT INTO event (seq, id, at, type, root_n, item_n, entity_id, actor_n, verification,"
			      " req_id, data) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, 1, 0, '', '{}')");
	add_child_tally = statement("INSERT INTO child_tally (item_n, queue, work, review, blocked, terminal)"
				    " SELECT parent_n, sum(role = 0), sum(role = 1), sum(role = 2), sum(role = -1), sum(role = 3)"
				    " FROM item WHERE parent_n IS NOT NULL GROUP BY parent_n");
	add_root_tally = statement("INSERT INTO root_tally (root_n, queue, work, review, blocked, terminal)"
				   " SELECT root_n, sum(role = 0), sum(role = 1), sum(role = 2), sum(role = -1), sum(role = 3)"
				   " FROM item GROUP BY root_n");
}

static void write_id(FILE *out, struct id id)
{
	char text[ID_TEXT_SIZE];

	id_format(id, text);
	(void)fprintf(out, "%s\n", text);
}

static void put_texts(const struct row *row)
{
	struct buf title;
	struct buf summary;

	buf_init(&title, NULL, 1024);
	buf_init(&summary, NULL, 1024);
	text_add(&title, 5);
	text_add(&summary, 10);
	set_int(add_text, 1, row->n);
	set_text(add_text, 2, buf_str(&title));
	if (row->type != NULL)
		set_text(add_text, 3, str_of(row->type));
	set_text(add_text, 4, buf_str(&summary));
	run(add_text);
	buf_finish(&title);
	buf_finish(&summary);
}

static void put_event(const struct row *row)
{
	struct id id;

	id_generate(&id);
	set_int(add_event, 1, next_seq++);
	set_id(add_event, 2, id);
	set_int(add_event, 3, row->at);
	set_int(add_event, 4, row->root_n);
	set_int(add_event, 5, row->n);
	set_id(add_event, 6, row->id);
	run(add_event);
}

static struct row put_item(const struct row *parent, int role, const char *type)
{
	struct row row = {.n = next_item++, .role = role, .type = type};

	row.parent_n = parent == NULL ? 0 : parent->n;
	row.root_n = parent == NULL ? row.n : parent->root_n;
	row.depth = parent == NULL ? 0 : parent->depth + 1;
	row.at = started_at - (wanted - row.n) * 100;
	row.priority = (int)(row.n * 7 % 3);
	row.complexity = (int)(row.n * 11 % 11) + 1;
	id_generate(&row.id);
	set_int(add_item, 1, row.n);
	set_id(add_item, 2, row.id);
	if (parent != NULL)
		set_int(add_item, 3, row.parent_n);
	set_int(add_item, 4, row.root_n);
	set_int(add_item, 5, row.depth);
	set_int(add_item, 6, role);
	if (role == BLOCKED)
		set_int(add_item, 7, QUEUE);
	set_int(add_item, 8, row.priority);
	set_int(add_item, 9, row.complexity);
	set_int(add_item, 10, row.at);
	run(add_item);
	put_texts(&row);
	put_event(&row);
	write_id(any_out, row.id);
	return row;
}

static void put_notes(const struct row *row)
{
	static const char *const keys[] = {"plan", "done", "findings"};

	for (int role = QUEUE; role <= REVIEW; role++) {
		struct buf body;
		struct id id;

		buf_init(&body, NULL, 4096);
		text_add(&body, 36);
		id_generate(&id);
		set_int(add_note, 1, next_note);
		set_id(add_note, 2, id);
		set_int(add_note, 3, row->n);
		set_text(add_note, 4, str_of(keys[role]));
		set_int(add_note, 5, role);
		set_int(add_note, 6, (int64_t)body.n);
		set_int(add_note, 7, row->at);
		run(add_note);
		set_int(add_body, 1, next_note++);
		set_text(add_body, 2, buf_str(&body));
		run(add_body);
		buf_finish(&body);
	}
}

static void put_dep(const struct row *from, const struct row *to)
{
	struct id id;

	id_generate(&id);
	set_int(add_dep, 1, next_dep++);
	set_id(add_dep, 2, id);
	set_int(add_dep, 3, from->n);
	set_int(add_dep, 4, to->n);
	set_int(add_dep, 5, to->at);
	run(add_dep);
}

static void put_triple(const struct row *feature)
{
	static const int roles[] = {QUEUE, QUEUE, QUEUE, QUEUE, QUEUE, WORK, BLOCKED, REVIEW};
	struct row bench = put_item(feature, QUEUE, "bench");
	struct row before = put_item(feature, TERMINAL, NULL);
	struct row after = put_item(feature, roles[bench.n % 8], NULL);

	put_notes(&bench);
	put_dep(&before, &bench);
	put_dep(&bench, &after);
	write_id(bench_out, bench.id);
}

static void put_project(void)
{
	struct row root = put_item(NULL, WORK, NULL);
	int64_t end = root.n + PROJECT_ITEMS;
	struct row features[FEATURES];

	write_id(roots_out, root.id);
	for (int i = 0; i < FEATURES; i++) {
		features[i] = put_item(&root, WORK, NULL);
		write_id(features_out, features[i].id);
	}
	for (int i = 0; next_item < end && next_item <= wanted; i++)
		put_triple(&features[i % FEATURES]);
}

static FILE *open_out(const char *dir, const char *name)
{
	char path[4096];
	FILE *out;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "we");
	if (out == NULL) {
		perror(path);
		exit(1);
	}
	return out;
}

static void make_schema(const char *path)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct store_options options = {.path = path, .may_create = true, .is_exclusive = true};
	struct store *store;
	struct failure f;

	failure_init(&f, arena);
	if (store_open(&options, &store, &f) != 0) {
		(void)fprintf(stderr, "fill: %.*s\n", STRF(f.message));
		exit(1);
	}
	store_close(store);
}

static void close_all(FILE *queries)
{
	text_write_queries(queries, 3000);
	if (fclose(queries) != 0 || fclose(bench_out) != 0 || fclose(any_out) != 0 || fclose(roots_out) != 0 ||
		fclose(features_out) != 0) {
		perror("fill");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	char path[4096];
	int64_t committed = 0;

	if (argc != 4 || (wanted = strtoll(argv[2], NULL, 10)) < 20) {
		(void)fprintf(stderr, "usage: fill STATE ITEMS OUT\n");
		return 64;
	}
	(void)snprintf(path, sizeof(path), "%s/dais.db", argv[1]);
	make_schema(path);
	bench_out = open_out(argv[3], "bench.txt");
	any_out = open_out(argv[3], "any.txt");
	roots_out = open_out(argv[3], "roots.txt");
	features_out = open_out(argv[3], "features.txt");
	started_at = clock_wall_ms();
	text_seed(7);
	check(sqlite3_open(path, &db));
	check(analyse_register(db));
	exec("PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
	     "PRAGMA cache_size = -1000000; PRAGMA foreign_keys = OFF");
	prepare();
	exec("BEGIN; INSERT INTO principal (n, id, kind) VALUES (1, 'system', 4)");
	while (next_item <= wanted) {
		put_project();
		if (next_item - committed > COMMIT_ITEMS) {
			exec("COMMIT; BEGIN");
			committed = next_item;
		}
	}
	run(add_child_tally);
	run(add_root_tally);
	exec("COMMIT; PRAGMA journal_mode = WAL");
	check(sqlite3_close_v2(db));
	close_all(open_out(argv[3], "queries.txt"));
	return 0;
}
