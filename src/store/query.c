/* Queries and statements as the rooms above write them. */
#include "store/private.h"

#include "base/limits.h"

#include <assert.h>

static struct {
	void (*seen)(void *context, const char *sql);
	void *context;
} watch; /* set before threads start, by tests */

void store_watch(void (*seen)(void *context, const char *sql), void *context)
{
	watch.seen = seen;
	watch.context = context;
}

static struct stmt *prepare(struct db *db, const char *sql, struct failure *f)
{
	if (watch.seen != NULL)
		watch.seen(watch.context, sql);
	return db_prepare(db, sql, f);
}

/* `copies`: the statement outlives the call that binds, so what it was given may be gone before it. Ids come by
 * value and are copied either way. */
static void bind_all(struct stmt *stmt, bool copies, const char *types, va_list args)
{
	int at = 1;

	for (; *types != '\0'; types++, at++) {
		switch (*types) {
		case 'i':
			stmt_bind_int(stmt, at, va_arg(args, int64_t));
			break;
		case 's':
			stmt_bind_text(stmt, at, va_arg(args, struct str), copies);
			break;
		case 'z':
			stmt_bind_text(stmt, at, str_of(va_arg(args, const char *)), copies);
			break;
		case 'b': {
			struct id id = va_arg(args, struct id);

			stmt_bind_bytes(stmt, at, (struct str){(const char *)id.b, sizeof(id.b)}, true);
			break;
		}
		case 'x':
			stmt_bind_bytes(stmt, at, va_arg(args, struct str), copies);
			break;
		case 'o': {
			const int64_t *value = va_arg(args, const int64_t *);

			if (value == NULL)
				stmt_bind_text(stmt, at, STR_NONE, false);
			else
				stmt_bind_int(stmt, at, *value);
			break;
		}
		default:
			assert(!"a letter of query()");
		}
	}
	assert(at - 1 == stmt_parameters(stmt));
}

int query(struct snapshot *s, struct query *q, struct failure *f, const char *sql, const char *types, ...)
{
	va_list args;

	q->snapshot = s;
	q->stmt = prepare(s->db, sql, f);
	if (q->stmt == NULL)
		return -1;
	va_start(args, types);
	bind_all(q->stmt, true, types, args);
	va_end(args);
	return 0;
}

int query_next(struct query *q, struct failure *f)
{
	enum outcome outcome = stmt_step(q->stmt);

	if (outcome == DB_ROW)
		return 1;
	if (outcome == DB_DONE)
		return 0;
	return db_fail(q->snapshot->db, outcome, "read", f);
}

void query_end(struct query *q)
{
	stmt_release(q->stmt);
	q->stmt = NULL;
}

void query_endp(struct query *q)
{
	query_end(q);
}

int64_t col_int(const struct query *q, int column)
{
	return stmt_int(q->stmt, column);
}

double col_real(const struct query *q, int column)
{
	return stmt_real(q->stmt, column);
}

bool col_is_null(const struct query *q, int column)
{
	return stmt_is_null(q->stmt, column);
}

struct str col_str(const struct query *q, int column)
{
	return str_dup(q->snapshot->arena, stmt_text(q->stmt, column));
}

struct str col_view(const struct query *q, int column)
{
	return stmt_text(q->stmt, column);
}

struct id col_id(const struct query *q, int column)
{
	struct str bytes = stmt_bytes(q->stmt, column);
	struct id id = {0};

	if (bytes.n == sizeof(id.b))
		memcpy(id.b, bytes.p, sizeof(id.b));
	return id;
}

bool col_equals(const struct query *q, int column, struct str expected)
{
	struct str bytes = stmt_bytes(q->stmt, column);

	return bytes.n == expected.n && bytes_equal(bytes.p, expected.p, expected.n);
}

int query_int(struct snapshot *s, int64_t *out, struct failure *f, const char *sql, const char *types, ...)
{
	struct query q = {.snapshot = s, .stmt = prepare(s->db, sql, f)};
	va_list args;
	int rc;

	if (q.stmt == NULL)
		return -1;
	va_start(args, types);
	bind_all(q.stmt, false, types, args);
	va_end(args);
	rc = query_next(&q, f);
	if (rc == 1 && col_is_null(&q, 0))
		rc = 0;
	if (rc == 1)
		*out = col_int(&q, 0);
	query_end(&q);
	return rc;
}

void sql_init(struct sql *sql, struct arena *arena)
{
	buf_init(&sql->text, arena, SIZE_MAX);
	sql->arena = arena;
	sql->count = 0;
}

void sql_add(struct sql *sql, const char *fragment)
{
	buf_add_str(&sql->text, str_of(fragment));
}

/* Lists have hundreds of parameters, and printf would be a third of what such a statement costs. */
static void add_number(struct buf *text, int n)
{
	if (n >= 10)
		add_number(text, n / 10);
	buf_add_char(text, (char)('0' + n % 10));
}

static struct sql_param *param(struct sql *sql, char type)
{
	struct sql_param *p = &sql->params[sql->count++];

	assert(sql->count <= (int)(sizeof(sql->params) / sizeof(sql->params[0])));
	buf_add_char(&sql->text, '$');
	add_number(&sql->text, sql->count);
	p->type = type;
	return p;
}

void sql_int(struct sql *sql, int64_t value)
{
	param(sql, 'i')->number = value;
}

void sql_str(struct sql *sql, struct str value)
{
	param(sql, 's')->text = value;
}

void sql_id(struct sql *sql, struct id value)
{
	param(sql, 'x')->text =
		(struct str){arena_copy(sql->arena, value.b, sizeof(value.b)), sizeof(value.b)};
}

static void bind_params(struct stmt *stmt, bool copies, const struct sql_param *params, int count)
{
	for (int i = 0; i < count; i++) {
		const struct sql_param *p = &params[i];

		if (p->type == 'i')
			stmt_bind_int(stmt, i + 1, p->number);
		else if (p->type == 's')
			stmt_bind_text(stmt, i + 1, p->text, copies);
		else if (p->type == 'n')
			stmt_bind_text(stmt, i + 1, STR_NONE, false);
		else
			stmt_bind_bytes(stmt, i + 1, p->text, copies);
	}
	assert(count == stmt_parameters(stmt));
}

int query_sql(struct snapshot *s, struct query *q, struct failure *f, const struct sql *sql)
{
	q->snapshot = s;
	q->stmt = prepare(s->db, str_z(s->arena, buf_str(&sql->text)), f);
	if (q->stmt == NULL)
		return -1;
	bind_params(q->stmt, true, sql->params, sql->count);
	return 0;
}

/* Rows changed, or -1; the statement is given back. */
static int64_t run_all(struct tx *tx, struct stmt *stmt, const char *sql, struct failure *f)
{
	struct db *db = tx->snapshot.db;
	enum outcome outcome;

	do {
		outcome = stmt_step(stmt);
	} while (outcome == DB_ROW);
	if (outcome != DB_DONE)
		(void)db_fail(db, outcome, sql, f);
	stmt_release(stmt);
	return outcome == DB_DONE ? db_changes(db) : -1;
}

int64_t tx_run(struct tx *tx, struct failure *f, const char *sql, const char *types, ...)
{
	struct stmt *stmt = prepare(tx->snapshot.db, sql, f);
	va_list args;

	if (stmt == NULL)
		return -1;
	va_start(args, types);
	bind_all(stmt, false, types, args);
	va_end(args);
	return run_all(tx, stmt, sql, f);
}

int64_t tx_run_params(struct tx *tx, struct failure *f, const char *sql, const struct sql_param *params, int count)
{
	struct stmt *stmt = prepare(tx->snapshot.db, sql, f);

	if (stmt == NULL)
		return -1;
	bind_params(stmt, false, params, count);
	return run_all(tx, stmt, sql, f);
}
