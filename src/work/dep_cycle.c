/* The search for cycles of BLOCKS edges.
 *
 * Breadth first, each item once, so that stacked diamonds (2^n paths) cost n steps. A second search runs
 * backwards in step with the first: an edge between two far ends of a large graph is mostly harmless, and then
 * whichever side runs dry first has proven it. Once the two have met a cycle is certain and only the forward
 * search goes on, to find the path that is shortest and, among equals, lowest by ids. */
#include "work/deps.h"

#include "base/limits.h"
#include "work/int_map.h"

/* All by the indexes of edges. Most items block one other: its id need not be looked up to put it in order. */
SQL(SQL_BLOCKED, "SELECT to_n FROM dep WHERE from_n = $1 AND type = 0 LIMIT 2");
SQL(SQL_BLOCKED_BY_ID,
	"SELECT d.to_n FROM dep d JOIN item i ON i.n = d.to_n WHERE d.from_n = $1 AND d.type = 0 ORDER BY i.id");
SQL(SQL_BLOCKERS_OF, "SELECT from_n FROM dep WHERE to_n = $1 AND type = 0");

struct walk {
	struct arena *arena;
	struct int_map seen; /* item to its index in queue */
	struct visit {
		int64_t n;
		size_t from; /* index of the visit that found it */
	} *queue;
	size_t count, room, next;
};

static void visit(struct walk *walk, int64_t n, size_t from)
{
	if (int_map_find(&walk->seen, n) != NULL)
		return;
	if (walk->count == walk->room) {
		size_t more = walk->room == 0 ? 64 : walk->room * 2;

		walk->queue = arena_grow(walk->arena, walk->queue, walk->room * sizeof(*walk->queue),
			more * sizeof(*walk->queue));
		walk->room = more;
	}
	int_map_add(&walk->seen, n, (int64_t)walk->count);
	walk->queue[walk->count++] = (struct visit){n, from};
}

static void walk_init(struct walk *walk, struct arena *arena, int64_t start)
{
	*walk = (struct walk){.arena = arena};
	int_map_init(&walk->seen, arena);
	visit(walk, start, 0);
}

/* Expands one item: 1 when it reached `goal`, 0, or -1. */
static int step(struct walk *walk, struct snapshot *s, const char *sql, int64_t goal, struct failure *f)
{
	size_t from = walk->next++;
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, sql, "i", walk->queue[from].n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		visit(walk, col_int(&q, 0), from);
		if (col_int(&q, 0) == goal)
			return 1;
	}
	return rc;
}

static int step_forward(struct walk *walk, struct snapshot *s, int64_t goal, struct failure *f)
{
	size_t from = walk->next;
	AUTO(query_endp) struct query q = {0};
	int64_t only;
	int rc;

	if (query(s, &q, f, SQL_BLOCKED, "i", walk->queue[from].n) != 0)
		return -1;
	rc = query_next(&q, f);
	only = rc == 1 ? col_int(&q, 0) : 0;
	if (rc == 1)
		rc = query_next(&q, f);
	if (rc != 0)
		return rc < 0 ? -1 : step(walk, s, SQL_BLOCKED_BY_ID, goal, f);
	walk->next++;
	if (only != 0)
		visit(walk, only, from);
	return only != 0 && only == goal;
}

/* Whether what the backward step just added was seen by the forward walk. */
static bool have_met(const struct walk *forward, const struct walk *backward, size_t added_from)
{
	for (size_t i = added_from; i < backward->count; i++)
		if (int_map_find(&forward->seen, backward->queue[i].n) != NULL)
			return true;
	return false;
}

/* from, to, …, from: the forward walk began at `to`. */
static void read_path(const struct walk *walk, int64_t from_n, int64_t **out, size_t *out_count)
{
	size_t at = (size_t)*int_map_find(&walk->seen, from_n);
	size_t n = 2; /* both ends */
	int64_t *path;

	for (size_t i = at; i != 0; i = walk->queue[i].from)
		n++;
	path = ARENA_ARRAY(walk->arena, int64_t, n);
	*out = path;
	*out_count = n;
	for (path[0] = from_n; n > 1; at = walk->queue[at].from)
		path[--n] = walk->queue[at].n;
}

int dep_cycle(struct snapshot *s, int64_t from_n, int64_t to_n, int64_t **out_path, size_t *out_count,
	struct failure *f)
{
	struct walk forward;
	struct walk backward;
	bool is_certain = false;
	int rc = 0;

	walk_init(&forward, s->arena, to_n);
	walk_init(&backward, s->arena, from_n);
	while (rc == 0) {
		size_t before = backward.count;

		if (forward.next == forward.count)
			return 0;
		rc = step_forward(&forward, s, from_n, f);
		if (rc != 0 || is_certain)
			continue;
		if (backward.next == backward.count)
			return 0;
		rc = step(&backward, s, SQL_BLOCKERS_OF, 0, f);
		is_certain = have_met(&forward, &backward, before);
	}
	if (rc < 0)
		return -1;
	read_path(&forward, from_n, out_path, out_count);
	return 1;
}

SQL(SQL_ITEM_NAME, "SELECT id, root_n FROM item WHERE n = $1");

/* null for an item of a project that the caller may not read. */
static int write_step(struct json_writer *w, struct snapshot *s, struct call *call, int64_t n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	char text[ID_TEXT_SIZE];
	int rc;

	if (query(s, &q, f, SQL_ITEM_NAME, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc < 0)
		return -1;
	if (rc == 0 || !caller_reads_root(call->caller, col_int(&q, 1))) {
		jw_null(w);
		return 0;
	}
	id_format(col_id(&q, 0), text);
	jw_text(w, text);
	return 0;
}

int fail_cycle(struct snapshot *s, struct call *call, const int64_t *path, size_t n, struct failure *f)
{
	size_t shown = n <= LIMIT_CYCLE_PATH ? n : LIMIT_CYCLE_PATH;
	struct json_writer w;
	struct buf text;

	buf_init(&text, f->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (size_t i = 0; i < shown; i++) {
		/* Too long to show: the first half and the last, so that it still reads as closed. */
		size_t at = i < shown / 2 || n == shown ? i : n - (shown - i);

		if (write_step(&w, s, call, path[at], f) != 0)
			return -1;
	}
	jw_array_end(&w);
	(void)fail(f, FAIL_CYCLE_DETECTED, "The edge would close a cycle of %zu items.", n - 1);
	fail_detail_raw(f, "path", buf_str(&text));
	if (shown == n)
		return -1;
	fail_detail_int(f, "pathLength", (int64_t)n);
	fail_detail_int(f, "pathOmitted", (int64_t)(n - shown));
	return -1;
}
