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
	"UPDATE child_tally SET queue = queue + $2, work = work + $3, review = review + $4, blocked = blocked + $5,"
	" terminal = terminal + $6 WHERE item_n = $1");
SQL(SQL_CHILD_TALLY_INSERT,
	"INSERT INTO child_tally (item_n, queue, work, review, blocked, terminal) VALUES ($1, $2, $3, $4, $5, $6)");
SQL(SQL_ROOT_TALLY_ADD,
	"UPDATE root_tally SET queue = queue + $2, work = work + $3, review = review + $4, blocked = blocked + $5,"
	" terminal = terminal + $6 WHERE root_n = $1");
SQL(SQL_ROOT_TALLY_INSERT,
	"INSERT INTO root_tally (root_n, queue, work, review, blocked, terminal) VALUES ($1, $2, $3, $4, $5, $6)");

/* The row is there but for the first time, and an upsert costs twice the update. */
static const struct counts {
	const char *add, *insert;
} of_children = {
	SQL_CHILD_TALLY_ADD,
	SQL_CHILD_TALLY_INSERT,
}, of_root = {
	SQL_ROOT_TALLY_ADD,
	SQL_ROOT_TALLY_INSERT,
};

static int add(struct tx *tx, const struct counts *counts, int64_t n, const int64_t *d, struct failure *f)
{
	int64_t changed = tx_run(tx, f, counts->add, "iiiiii", n, d[0], d[1], d[2], d[3], d[4]);

	if (changed == 0)
		changed = tx_run(tx, f, counts->insert, "iiiiii", n, d[0], d[1], d[2], d[3], d[4]);
	return changed < 0 ? -1 : 0;
}

int tally_add(struct tx *tx, int64_t parent_n, int64_t root_n, enum role role, int delta, struct failure *f)
{
	int64_t change[ROLE_COUNT] = {0};

	change[tally_index(role)] = delta;
	if (parent_n != 0 && add(tx, &of_children, parent_n, change, f) != 0)
		return -1;
	return add(tx, &of_root, root_n, change, f);
}

int tally_shift(struct tx *tx, int64_t root_n, const struct tally *counts, int sign, struct failure *f)
{
	int64_t change[ROLE_COUNT];

	for (int i = 0; i < ROLE_COUNT; i++)
		change[i] = sign * counts->by_role[i];
	return add(tx, &of_root, root_n, change, f);
}

int tally_move(struct tx *tx, int64_t parent_n, int64_t root_n, enum role from, enum role to, struct failure *f)
{
	int64_t change[ROLE_COUNT] = {0};

	change[tally_index(from)]--;
	change[tally_index(to)]++;
	if (parent_n != 0 && add(tx, &of_children, parent_n, change, f) != 0)
		return -1;
	return add(tx, &of_root, root_n, change, f);
}
