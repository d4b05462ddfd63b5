/* Rows as one table describes them: to and from SQL, and into events. */
#include "threads/row.h"

#include "threads/wait.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum column_kind { KIND_INT, KIND_REF, KIND_TEXT, KIND_OPT, KIND_JSON, KIND_ROW, KIND_END };

struct column {
	const char *name;
	enum column_kind kind;
	int event; /* of KIND_ROW */
};

/* All tables, one after the other. */
static const struct column columns[] = {
#define ROW(table, event) {#table, KIND_ROW, EVENT_##event},
#define INT(column) {#column, KIND_INT, 0},
#define REF(column) {#column, KIND_REF, 0},
#define TEXT(column) {#column, KIND_TEXT, 0},
#define OPT(column) {#column, KIND_OPT, 0},
#define JSON(column) {#column, KIND_JSON, 0},
#define END(table) {NULL, KIND_END, 0},
#include "threads/row.def"
};

/* A struct NAME_row is n and its columns in order; all are 8 or 16 bytes wide, so nothing stands between them. */
#define ROW(table, event) _Static_assert(sizeof(struct table##_row) == sizeof(int64_t)
#define INT(column) + sizeof(int64_t)
#define REF(column) + sizeof(int64_t)
#define TEXT(column) + sizeof(struct str)
#define OPT(column) + sizeof(struct str)
#define JSON(column) + sizeof(struct str)
#define END(table) , #table);
#include "threads/row.def"

static const enum sequence sequences[ROW_TABLES] = {
#define ROW(table, event) SEQ_##table,
#include "threads/row.def"
};

#define MAX_COLUMNS 32

struct table {
	const char *name;
	enum event_type event;
	const struct column *columns;
	int count;
	char keys[MAX_COLUMNS][32]; /* names in JSON */
	char get[800], put[2400], find[80];
};

static struct table tables[ROW_TABLES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* created_at → createdAt */
static void camel_case(const char *name, char out[32])
{
	size_t n = 0;

	for (; *name != '\0'; name++) {
		assert(n < 31);
		if (*name == '_') {
			name++;
			out[n++] = (char)(*name - 'a' + 'A');
		} else {
			out[n++] = *name;
		}
	}
	out[n] = '\0';
}

static void write_sql(struct table *table)
{
	FILE *get = fmemopen(table->get, sizeof(table->get), "w");
	FILE *put = fmemopen(table->put, sizeof(table->put), "w");

	if (get == NULL || put == NULL)
		abort();
	(void)fprintf(get, "SELECT n");
	(void)fprintf(put, "INSERT INTO %s (n", table->name);
	for (int i = 0; i < table->count; i++) {
		(void)fprintf(get, ", %s", table->columns[i].name);
		(void)fprintf(put, ", %s", table->columns[i].name);
	}
	(void)fprintf(get, " FROM %s WHERE n = $1", table->name);
	(void)fprintf(put, ") VALUES ($1");
	for (int i = 0; i < table->count; i++)
		(void)fprintf(put, ", $%d", i + 2);
	(void)fprintf(put, ") ON CONFLICT (n) DO UPDATE SET ");
	for (int i = 0; i < table->count; i++)
		(void)fprintf(put, "%s%s = excluded.%s", i == 0 ? "" : ", ", table->columns[i].name, table->columns[i].name);
	if (fclose(get) != 0 || fclose(put) != 0 || table->get[sizeof(table->get) - 2] != '\0'
		|| table->put[sizeof(table->put) - 2] != '\0')
		abort();
	(void)snprintf(table->find, sizeof(table->find), "SELECT n FROM %s WHERE id = $1", table->name);
}

static void describe(void)
{
	struct table *table = tables;

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const struct column *column = &columns[i];

		if (column->kind == KIND_ROW) {
			*table = (struct table){.name = column->name, .event = (enum event_type)column->event, .columns = column + 1};
		} else if (column->kind == KIND_END) {
			write_sql(table);
			table++;
		} else {
			assert(table->count < MAX_COLUMNS);
			camel_case(column->name, table->keys[table->count++]);
		}
	}
}

static const struct table *table_of(enum row_table table)
{
	(void)pthread_once(&once, describe);
	return &tables[table];
}

const char *row_table_name(enum row_table table)
{
	return table_of(table)->name;
}

const char *const *row_columns(enum row_table table, struct arena *arena)
{
	const struct table *t = table_of(table);
	const char **names = ARENA_ARRAY(arena, const char *, (size_t)t->count + 1);

	for (int i = 0; i < t->count; i++)
		names[i] = t->columns[i].name;
	return names;
}

static bool is_number(const struct column *column)
{
	return column->kind == KIND_INT || column->kind == KIND_REF;
}

/* Where a column stands in a row, given the one before; the first is row + n. */
static char *next_of(char *at, const struct column *column)
{
	return at + (is_number(column) ? sizeof(int64_t) : sizeof(struct str));
}

int row_get(struct snapshot *s, enum row_table which, int64_t n, void *row, struct failure *f)
{
	const struct table *table = table_of(which);
	AUTO(query_endp) struct query q = {0};
	char *at = (char *)row + sizeof(int64_t);
	int rc;

	if (query(s, &q, f, table->get, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	*(int64_t *)row = n;
	for (int i = 0; i < table->count; at = next_of(at, &table->columns[i]), i++) {
		if (is_number(&table->columns[i]))
			*(int64_t *)(void *)at = col_int(&q, i + 1);
		else
			*(struct str *)(void *)at = col_str(&q, i + 1);
	}
	return 1;
}

int row_need(struct snapshot *s, enum row_table which, int64_t n, void *row, struct failure *f)
{
	int rc = row_get(s, which, n, row, f);

	if (rc == 0)
		return fail(f, FAIL_INTERNAL, "A row of %s is missing.", table_of(which)->name);
	return rc < 0 ? -1 : 0;
}

int row_find(struct snapshot *s, enum row_table which, struct str id, int64_t *out, struct failure *f)
{
	return query_int(s, out, f, table_of(which)->find, "s", id);
}

/* ---- writing ---- */

static struct sql_param param_of(const struct column *column, const char *at)
{
	if (is_number(column)) {
		int64_t number = *(const int64_t *)(const void *)at;

		return (struct sql_param){.type = column->kind == KIND_REF && number == 0 ? 'n' : 'i', .number = number};
	}
	return (struct sql_param){.type = 's', .text = *(const struct str *)(const void *)at};
}

static void write_column(struct json_writer *w, const struct column *column, const char *key, const struct sql_param *param)
{
	if (param->type == 'n' || (param->type == 's' && param->text.p == NULL))
		return;
	if (param->type == 'i')
		jw_kint(w, key, param->number);
	else if (column->kind == KIND_JSON)
		jw_kraw(w, key, param->text);
	else
		jw_kstr(w, key, param->text);
}

static int store_row(struct tx *tx, const struct table *table, const struct sql_param *params, struct failure *f)
{
	return tx_run_params(tx, f, table->put, params, table->count + 1) < 0 ? -1 : 0;
}

int row_put(struct tx *tx, enum row_table which, void *row, int64_t thread_n, struct failure *f)
{
	const struct table *table = table_of(which);
	struct sql_param params[MAX_COLUMNS + 1];
	char *at = (char *)row + sizeof(int64_t);
	int64_t *n = row;
	struct json_writer w;
	struct buf data;

	if (*n == 0 && tx_next(tx, sequences[which], n, f) != 0)
		return -1;
	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kint(&w, "n", *n);
	params[0] = (struct sql_param){.type = 'i', .number = *n};
	for (int i = 0; i < table->count; at = next_of(at, &table->columns[i]), i++) {
		params[i + 1] = param_of(&table->columns[i], at);
		write_column(&w, &table->columns[i], table->keys[i], &params[i + 1]);
	}
	jw_object_end(&w);
	if (store_row(tx, table, params, f) != 0)
		return -1;
	waiters_mark(thread_n);
	return event_add_thread(tx, table->event, thread_n, buf_str(&data), f);
}

/* ---- rebuilding ---- */

static struct sql_param param_from(struct arena *arena, const struct column *column, const json_t *value)
{
	if (value == NULL)
		return (struct sql_param){.type = column->kind == KIND_INT ? 'i' : is_number(column) ? 'n' : 's'};
	if (is_number(column))
		return (struct sql_param){.type = 'i', .number = json_integer_value(value)};
	return (struct sql_param){.type = 's',
		.text = column->kind == KIND_JSON ? json_compact(arena, value) : json_str(value)};
}

int row_replay(struct tx *tx, enum row_table which, const json_t *data, struct failure *f)
{
	const struct table *table = table_of(which);
	struct sql_param params[MAX_COLUMNS + 1];

	params[0] = (struct sql_param){.type = 'i', .number = json_integer_value(json_object_get(data, "n"))};
	for (int i = 0; i < table->count; i++)
		params[i + 1] = param_from(tx->snapshot.arena, &table->columns[i], json_object_get(data, table->keys[i]));
	return store_row(tx, table, params, f);
}
