/* Export and import: one walk over transfer_tables in each direction. */
#include "store/transfer.h"

#include "store/private.h"
#include "store/transfer_table.h"

#include <assert.h>
#include <ctype.h>

#define MAX_TABLES 48

/* ---- out ---- */

static const char *select_text(struct arena *arena, const struct transfer_table *table)
{
	struct buf sql;

	buf_init(&sql, arena, SIZE_MAX);
	buf_add_str(&sql, STR("SELECT "));
	for (const struct transfer_column *c = table->columns; c->name != NULL; c++)
		buf_printf(&sql, "%s%s", c == table->columns ? "" : ", ", c->name);
	buf_printf(&sql, " FROM %s ORDER BY %s", table->name, table->order);
	return str_z(arena, buf_str(&sql));
}

static void write_column(struct json_writer *w, struct stmt *stmt, int at, const struct transfer_column *column)
{
	struct id id;
	char text[ID_TEXT_SIZE];

	if (column->kind == TRANSFER_SECRET || stmt_is_null(stmt, at))
		return;
	switch (tolower(column->kind)) {
	case TRANSFER_INT:
		jw_kint(w, column->name, stmt_int(stmt, at));
		return;
	case TRANSFER_ID:
		memcpy(id.b, stmt_bytes(stmt, at).p, sizeof(id.b)); /* 16 bytes: every id was made by id_generate */
		id_format(id, text);
		jw_ktext(w, column->name, text);
		return;
	default:
		jw_kstr(w, column->name, stmt_text(stmt, at));
	}
}

struct exporting {
	struct snapshot *s;
	int (*write)(void *context, struct str line, struct failure *f);
	void *context;
	struct buf line;
	int64_t rows;
};

static int put_line(struct exporting *exporting, struct failure *f)
{
	buf_add_char(&exporting->line, '\n');
	return exporting->write(exporting->context, buf_str(&exporting->line), f);
}

static int put_row(struct exporting *exporting, const struct transfer_table *table, struct stmt *stmt,
	struct failure *f)
{
	struct json_writer w;
	int at = 0;

	exporting->line.n = 0;
	json_writer_init(&w, &exporting->line);
	jw_object_begin(&w);
	jw_ktext(&w, "in", table->name);
	for (const struct transfer_column *c = table->columns; c->name != NULL; c++)
		write_column(&w, stmt, at++, c);
	jw_object_end(&w);
	exporting->rows++;
	return put_line(exporting, f);
}

static int put_table(struct exporting *exporting, const struct transfer_table *table, struct failure *f)
{
	struct db *db = exporting->s->db;
	struct stmt *stmt = db_prepare(db, select_text(exporting->s->arena, table), f);
	enum outcome outcome = DB_ROW;
	int rc = 0;

	if (stmt == NULL)
		return -1;
	while (rc == 0 && (outcome = stmt_step(stmt)) == DB_ROW)
		rc = put_row(exporting, table, stmt, f);
	stmt_release(stmt);
	return rc == 0 && outcome != DB_DONE ? db_fail(db, outcome, table->name, f) : rc;
}

static int put_control(struct exporting *exporting, struct failure *f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int put_control(struct exporting *exporting, struct failure *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	exporting->line.n = 0;
	buf_add_str(&exporting->line, str_of(arena_vprintf(exporting->s->arena, fmt, args)));
	va_end(args);
	return put_line(exporting, f);
}

int transfer_export(struct snapshot *s, int (*write)(void *context, struct str line, struct failure *f),
	void *context, struct failure *f)
{
	struct exporting exporting = {.s = s, .write = write, .context = context};
	int rc;

	db_deadline(s->db, 0);
	buf_init(&exporting.line, NULL, SIZE_MAX);
	rc = put_control(&exporting, f, "{\"dais\":\"export\",\"schema\":%d,\"version\":\"" DAIS_VERSION "\"}",
		store_schema_version());
	for (size_t i = 0; rc == 0 && i < transfer_table_count; i++)
		rc = put_table(&exporting, &transfer_tables[i], f);
	if (rc == 0)
		rc = put_control(&exporting, f, "{\"end\":true,\"rows\":%lld}", (long long)exporting.rows);
	buf_finish(&exporting.line);
	return rc;
}

/* ---- in ---- */

struct importing {
	struct tx *tx;
	struct transfer_source *source;
	const char *insert[MAX_TABLES]; /* text by table, made when the first row comes */
	int64_t line, rows;
};

static const char *insert_text(struct arena *arena, const struct transfer_table *table)
{
	struct buf sql;
	int count = 0;

	buf_init(&sql, arena, SIZE_MAX);
	buf_printf(&sql, "INSERT INTO %s (", table->name);
	for (const struct transfer_column *c = table->columns; c->name != NULL; c++)
		buf_printf(&sql, "%s%s", count++ == 0 ? "" : ", ", c->name);
	buf_add_str(&sql, STR(") VALUES ("));
	for (int i = 1; i <= count; i++)
		buf_printf(&sql, "%s$%d", i == 1 ? "" : ", ", i);
	buf_add_char(&sql, ')');
	return str_z(arena, buf_str(&sql));
}

static int fail_line(const struct importing *importing, struct failure *f, const char *what)
{
	return fail(f, FAIL_INVALID_REQUEST, "Line %lld %s; nothing was imported.", (long long)importing->line, what);
}

static int fail_column(const struct importing *importing, const struct transfer_column *column, struct failure *f)
{
	return fail(f, FAIL_INVALID_REQUEST, "Line %lld: %s must be %s; nothing was imported.",
		(long long)importing->line, column->name,
		tolower(column->kind) == TRANSFER_INT	? "a whole number"
			: tolower(column->kind) == TRANSFER_ID ? "a UUID"
							       : "text without U+0000");
}

/* 1: bound, 0: this value does not fit the column */
static int bind_value(struct stmt *stmt, int at, const struct transfer_column *column, const json_t *value)
{
	struct str text = json_str(value);
	struct id_prefix prefix;

	switch (tolower(column->kind)) {
	case TRANSFER_INT:
		if (!json_is_integer(value))
			return 0;
		stmt_bind_int(stmt, at, json_integer_value(value));
		return 1;
	case TRANSFER_ID:
		if (text.p == NULL || !id_prefix_parse(text, &prefix) || prefix.digits != 32)
			return 0;
		stmt_bind_bytes(stmt, at, (struct str){(const char *)prefix.low.b, sizeof(prefix.low.b)}, true);
		return 1;
	default:
		if (text.p == NULL || memchr(text.p, '\0', text.n) != NULL)
			return 0;
		stmt_bind_text(stmt, at, text, true);
		return 1;
	}
}

static int bind_row(struct importing *importing, const struct transfer_table *table, struct stmt *stmt,
	const json_t *row, struct failure *f)
{
	size_t used = 1; /* "in" */
	int at = 1;

	for (const struct transfer_column *c = table->columns; c->name != NULL; c++, at++) {
		const json_t *value = json_object_get(row, c->name);
		unsigned char secret[32];

		if (c->kind == TRANSFER_SECRET) {
			random_bytes(secret, sizeof(secret));
			stmt_bind_bytes(stmt, at, (struct str){(const char *)secret, sizeof(secret)}, true);
			continue;
		}
		if (value == NULL && isupper(c->kind)) {
			stmt_bind_text(stmt, at, STR_NONE, false);
			continue;
		}
		if (value == NULL || bind_value(stmt, at, c, value) == 0)
			return fail_column(importing, c, f);
		used++;
	}
	return used == json_object_size(row) ? 0 : fail_line(importing, f, "has a member that its table does not know");
}

static int take_row(struct importing *importing, size_t table_index, const json_t *row, struct failure *f)
{
	const struct transfer_table *table = &transfer_tables[table_index];
	struct db *db = importing->tx->snapshot.db;
	enum outcome outcome = DB_DONE;
	struct stmt *stmt;

	if (importing->insert[table_index] == NULL)
		importing->insert[table_index] = insert_text(importing->tx->snapshot.arena, table);
	stmt = db_prepare(db, importing->insert[table_index], f);
	if (stmt == NULL)
		return -1;
	if (bind_row(importing, table, stmt, row, f) != 0) {
		stmt_release(stmt);
		return -1;
	}
	outcome = stmt_step(stmt);
	if (outcome != DB_DONE)
		(void)db_fail(db, outcome, table->name, f);
	stmt_release(stmt);
	importing->rows++;
	if (outcome == DB_FATAL)
		return fail_line(importing, f,
			"cannot be stored: it repeats a row, refers to one that is missing, or holds what cannot be");
	return outcome == DB_DONE ? 0 : -1;
}

static int find_table(const json_t *row, size_t *out)
{
	struct str name = json_member_str(row, "in");

	for (size_t i = 0; i < transfer_table_count; i++) {
		if (str_eq(name, str_of(transfer_tables[i].name))) {
			*out = i;
			return 0;
		}
	}
	return -1;
}

static int check_header(const struct importing *importing, const json_t *header, struct failure *f)
{
	const json_t *schema = json_object_get(header, "schema");

	if (!str_eq(json_member_str(header, "dais"), STR("export")) || !json_is_integer(schema))
		return fail_line(importing, f, "is not the header of an export of dais");
	if (json_integer_value(schema) > store_schema_version())
		return fail(f, FAIL_SCHEMA_NEWER, "The file has schema version %lld, this dais knows %d.",
			(long long)json_integer_value(schema), store_schema_version());
	return 0;
}

/* 1: the last line was seen and is right */
static int take_line(struct importing *importing, struct str text, struct failure *f)
{
	struct json_error error;
	json_auto_t *row = json_read(text, &error);
	size_t table;

	importing->line++;
	if (!json_is_object(row))
		return fail_line(importing, f, "is not an object in JSON");
	if (importing->line == 1)
		return check_header(importing, row, f);
	if (json_object_get(row, "end") != NULL) {
		if (json_integer_value(json_object_get(row, "rows")) != importing->rows)
			return fail_line(importing, f, "counts other rows than the file has");
		return 1;
	}
	if (find_table(row, &table) != 0)
		return fail_line(importing, f, "names no table that can be imported");
	return take_row(importing, table, row, f);
}

static int take_all(struct importing *importing, struct failure *f)
{
	struct transfer_source *source = importing->source;
	struct str text;
	int rc = 0;
	int ended = 0;

	while ((rc = source->next(source->context, &text, f)) == 1) {
		if (ended == 1) {
			importing->line++;
			return fail_line(importing, f, "comes after the end");
		}
		ended = take_line(importing, text, f);
		if (ended < 0)
			return -1;
	}
	if (rc < 0)
		return -1;
	return ended == 1 ? 0
			  : fail(f, FAIL_INVALID_REQUEST,
				    "The file is cut off after line %lld: its last line must count the rows; nothing was "
				    "imported.",
				    (long long)importing->line);
}

SQL(SQL_ANY_ITEM, "SELECT 1 FROM item LIMIT 1");
/* What the first start of a server may have left: the import of the global rules (type 18, no project). */
SQL(SQL_ANY_HISTORY, "SELECT 1 FROM event WHERE seq > $1 AND (type <> 18 OR root_n <> 0) LIMIT 1");

static int check_empty(struct tx *tx, struct failure *f)
{
	int64_t one;
	int items = query_int(&tx->snapshot, &one, f, SQL_ANY_ITEM, "");
	int events = items < 0 ? -1 : query_int(&tx->snapshot, &one, f, SQL_ANY_HISTORY, "i", EVENT_FIRST_SEQ);

	if (items < 0 || events < 0)
		return -1;
	if (items > 0 || events > 0)
		return fail(f, FAIL_CANNOT_CREATE,
			"The database holds items or history already; import fills an empty one only.");
	return 0;
}

SQL(SQL_CLEAR_IDEMPOTENCY, "DELETE FROM idempotency");

/* What an empty database holds makes room for the same rows of the file. */
static int clear(struct tx *tx, struct failure *f)
{
	for (size_t i = transfer_table_count; i-- > 0;)
		if (tx_run(tx, f, arena_printf(tx->snapshot.arena, "DELETE FROM %s", transfer_tables[i].name), "") < 0)
			return -1;
	return tx_run(tx, f, SQL_CLEAR_IDEMPOTENCY, "") < 0 ? -1 : 0;
}

#define COUNTS \
	"sum(CASE WHEN role = 0 THEN 1 ELSE 0 END), sum(CASE WHEN role = 1 THEN 1 ELSE 0 END)," \
	" sum(CASE WHEN role = 2 THEN 1 ELSE 0 END), sum(CASE WHEN role = -1 THEN 1 ELSE 0 END)," \
	" sum(CASE WHEN role = 3 THEN 1 ELSE 0 END)"
SQL(SQL_COUNT_CHILDREN,
	"INSERT INTO child_tally (item_n, queue, work, review, blocked, terminal) SELECT parent_n, " COUNTS
	" FROM item WHERE parent_n IS NOT NULL GROUP BY parent_n");
SQL(SQL_COUNT_ROOTS,
	"INSERT INTO root_tally (root_n, queue, work, review, blocked, terminal) SELECT root_n, " COUNTS
	" FROM item GROUP BY root_n");

struct findings {
	struct arena *arena;
	struct str first;
};

static void found(void *context, struct str line)
{
	struct findings *findings = context;

	if (findings->first.p == NULL)
		findings->first = str_dup(findings->arena, line);
}

/* Events of the file may be of items that it does not hold any more. */
SQL(SQL_RETIRE_ITEMS,
	"INSERT INTO meta (key, value) SELECT 'retired_item', CAST(max(item_n) AS TEXT) FROM event WHERE item_n IS NOT NULL"
	" HAVING count(*) > 0 ON CONFLICT (key) DO UPDATE SET value = excluded.value");

/* A file can be well-formed and still say what no sequence of calls could have made. */
static int check_whole(struct tx *tx, struct failure *f)
{
	struct findings findings = {.arena = tx->snapshot.arena};
	int count = store_check(&tx->snapshot, found, &findings, f);

	if (count > 0)
		return fail(f, FAIL_INVALID_REQUEST, "The file contradicts itself: %.*s; nothing was imported.",
			STRF(findings.first));
	return count;
}

int transfer_import(struct tx *tx, void *source, struct failure *f)
{
	struct importing importing = {.tx = tx, .source = source};

	assert(transfer_table_count <= MAX_TABLES);
	if (check_empty(tx, f) != 0 || clear(tx, f) != 0 || take_all(&importing, f) != 0 ||
		tx_run(tx, f, SQL_COUNT_CHILDREN, "") < 0 || tx_run(tx, f, SQL_COUNT_ROOTS, "") < 0 ||
		tx_run(tx, f, SQL_RETIRE_ITEMS, "") < 0 || check_whole(tx, f) != 0)
		return -1;
	importing.source->rows = importing.rows;
	return 0;
}
