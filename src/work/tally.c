/* Counts by role of direct children and of whole projects: kept by every change, never recounted. */
#include "work/work.h"

static const char *const names[ROLE_COUNT] = {"queue", "work", "review", "blocked", "terminal"};

size_t tally_index(enum role role)
{
	switch (role) {
	case ROLE_QUEUE:
		return 0;
	case ROLE_WORK:
		return 1;
	case ROLE_REVIEW:
		return 2;
	case ROLE_BLOCKED:
		return 3;
	default:
		return 4;
	}
}

SQL(SQL_CHILD_TALLY, "SELECT queue, work, review, blocked, terminal FROM child_tally WHERE item_n = $1");
SQL(SQL_ROOT_TALLY, "SELECT queue, work, review, blocked, terminal FROM root_tally WHERE root_n = $1");

static int load(struct snapshot *s, const char *sql, int64_t n, struct tally *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	memset(out, 0, sizeof(*out));
	if (query(s, &q, f, sql, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	for (int i = 0; i < ROLE_COUNT && rc == 1; i++)
		out->by_role[i] = col_int(&q, i);
	return rc < 0 ? -1 : 0;
}

int tally_children(struct snapshot *s, int64_t item_n, struct tally *out, struct failure *f)
{
	return load(s, SQL_CHILD_TALLY, item_n, out, f);
}

int tally_root(struct snapshot *s, int64_t root_n, struct tally *out, struct failure *f)
{
	return load(s, SQL_ROOT_TALLY, root_n, out, f);
}

int64_t tally_sum(const struct tally *tally)
{
	int64_t sum = 0;

	for (int i = 0; i < ROLE_COUNT; i++)
		sum += tally->by_role[i];
	return sum;
}

void tally_write(struct json_writer *w, const char *key, const struct tally *tally)
{
	jw_kobject(w, key);
	for (int i = 0; i < ROLE_COUNT; i++)
		jw_kint_opt(w, names[i], tally->by_role[i]);
	jw_object_end(w);
}

SQL(SQL_CHILD_TALLY_ADD,
	"INSERT INTO child_tally (item_n, queue, work, review, blocked, terminal)"
	" VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (item_n) DO UPDATE SET"
	" queue = child_tally.queue + excluded.queue, work = child_tally.work + excluded.work,"
	" review = child_tally.review + excluded.review, blocked = child_tally.blocked + excluded.blocked,"
	" terminal = child_tally.terminal + excluded.terminal");
SQL(SQL_ROOT_TALLY_ADD,
	"INSERT INTO root_tally (root_n, queue, work, review, blocked, terminal)"
	" VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (root_n) DO UPDATE SET"
	" queue = root_tally.queue + excluded.queue, work = root_tally.work + excluded.work,"
	" review = root_tally.review + excluded.review, blocked = root_tally.blocked + excluded.blocked,"
	" terminal = root_tally.terminal + excluded.terminal");

static int add(struct tx *tx, const char *sql, int64_t n, const int64_t *d, struct failure *f)
{
	return tx_run(tx, f, sql, "iiiiii", n, d[0], d[1], d[2], d[3], d[4]) < 0 ? -1 : 0;
}

int tally_add(struct tx *tx, int64_t parent_n, int64_t root_n, enum role role, int delta, struct failure *f)
{
	int64_t change[ROLE_COUNT] = {0};

	change[tally_index(role)] = delta;
	if (parent_n != 0 && add(tx, SQL_CHILD_TALLY_ADD, parent_n, change, f) != 0)
		return -1;
	return add(tx, SQL_ROOT_TALLY_ADD, root_n, change, f);
}

int tally_shift(struct tx *tx, int64_t root_n, const struct tally *counts, int sign, struct failure *f)
{
	int64_t change[ROLE_COUNT];

	for (int i = 0; i < ROLE_COUNT; i++)
		change[i] = sign * counts->by_role[i];
	return add(tx, SQL_ROOT_TALLY_ADD, root_n, change, f);
}

int tally_move(struct tx *tx, int64_t parent_n, int64_t root_n, enum role from, enum role to, struct failure *f)
{
	int64_t change[ROLE_COUNT] = {0};

	change[tally_index(from)]--;
	change[tally_index(to)]++;
	if (parent_n != 0 && add(tx, SQL_CHILD_TALLY_ADD, parent_n, change, f) != 0)
		return -1;
	return add(tx, SQL_ROOT_TALLY_ADD, root_n, change, f);
}
