/* Candidates in order: a merge over index ranges, each read in small batches from where it stopped. */
#include "work/stream.h"

/* The key of the last row is where the next batch begins. Newest first, the rows of one moment are sorted by id as
 * they come; everything else comes in the order of its index. */
#define BY_PRIORITY \
	" AND (priority, complexity, created_at, id) > ($1, $2, $3, $4) AND priority <= $5" \
	" ORDER BY priority, complexity, created_at, id LIMIT $6"
#define BY_OLDEST \
	" AND priority = $1 AND complexity = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5"
#define BY_NEWEST \
	" AND priority = $1 AND complexity = $2 AND created_at <= $3 AND (created_at < $3 OR id > $4)" \
	" ORDER BY created_at DESC, id LIMIT $5"
#define GROUP " AND priority = $1 AND complexity > $2 ORDER BY complexity LIMIT 1"
#define CANDIDATES "SELECT " CANDIDATE_COLUMNS " FROM item WHERE "

/* by item_ready */
SQL(SQL_READY, CANDIDATES "role = $7 AND root_n = $8 AND root_n <> n AND role <> 3" BY_PRIORITY);
SQL(SQL_READY_OLDEST, CANDIDATES "role = $6 AND root_n = $7 AND root_n <> n AND role <> 3" BY_OLDEST);
SQL(SQL_READY_NEWEST, CANDIDATES "role = $6 AND root_n = $7 AND root_n <> n AND role <> 3" BY_NEWEST);
SQL(SQL_READY_GROUP, "SELECT complexity FROM item WHERE role = $3 AND root_n = $4 AND root_n <> n AND role <> 3" GROUP);
/* by item_root_ready */
SQL(SQL_ROOT_READY, CANDIDATES "parent_n IS NULL AND role = $7 AND role <> 3" BY_PRIORITY);
SQL(SQL_ROOT_READY_OLDEST, CANDIDATES "parent_n IS NULL AND role = $6 AND role <> 3" BY_OLDEST);
SQL(SQL_ROOT_READY_NEWEST, CANDIDATES "parent_n IS NULL AND role = $6 AND role <> 3" BY_NEWEST);
SQL(SQL_ROOT_READY_GROUP, "SELECT complexity FROM item WHERE parent_n IS NULL AND role = $3 AND role <> 3" GROUP);
/* by item_queue */
SQL(SQL_QUEUE, CANDIDATES "role = 0" BY_PRIORITY);
SQL(SQL_QUEUE_OLDEST, CANDIDATES "role = 0" BY_OLDEST);
SQL(SQL_QUEUE_NEWEST, CANDIDATES "role = 0" BY_NEWEST);
SQL(SQL_QUEUE_GROUP, "SELECT complexity FROM item WHERE role = 0" GROUP);

static const struct {
	const char *by_order[3]; /* by enum select_order */
	const char *group;
	int places; /* parameters behind the common ones: none, role, or role and root_n */
} ranges[] = {
	[STREAM_PROJECT] = {{SQL_READY, SQL_READY_OLDEST, SQL_READY_NEWEST}, SQL_READY_GROUP, 2},
	[STREAM_ROOTS] = {{SQL_ROOT_READY, SQL_ROOT_READY_OLDEST, SQL_ROOT_READY_NEWEST}, SQL_ROOT_READY_GROUP, 1},
	[STREAM_QUEUE] = {{SQL_QUEUE, SQL_QUEUE_OLDEST, SQL_QUEUE_NEWEST}, SQL_QUEUE_GROUP, 0},
};

void candidate_read(const struct query *q, struct candidate *out)
{
	*out = (struct candidate){
		.n = col_int(q, 0),
		.id = col_id(q, 1),
		.parent_n = col_int(q, 2),
		.root_n = col_int(q, 3),
		.role = (enum role)col_int(q, 4),
		.priority = col_int(q, 5),
		.complexity = col_int(q, 6),
		.created_at = col_int(q, 7),
		.claim_by = col_int(q, 8),
		.claim_until = col_int(q, 9),
	};
}

static int cmp_int(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

int candidate_cmp(enum select_order order, const struct candidate *a, const struct candidate *b)
{
	int rc = 0;

	if (order == SELECT_BY_PRIORITY) {
		rc = cmp_int(a->priority, b->priority);
		rc = rc != 0 ? rc : cmp_int(a->complexity, b->complexity);
	}
	if (rc == 0)
		rc = order == SELECT_NEWEST ? cmp_int(b->created_at, a->created_at)
					    : cmp_int(a->created_at, b->created_at);
	return rc != 0 ? rc : id_cmp(a->id, b->id);
}

/* ---- one range ---- */

/* Where the range begins when nothing of it was read. */
static struct candidate start_of(const struct streams *streams, const struct stream *stream)
{
	struct candidate start = {.priority = stream->priority, .created_at = INT64_MIN};

	if (streams->order == SELECT_NEWEST)
		start.created_at = INT64_MAX;
	return start;
}

/* Types of the parameters, of which `range` has the first so many. */
static const char *types_of(const struct stream *range, const char *const by_places[3])
{
	return by_places[ranges[range->of].places];
}

static int open_range(struct streams *streams, const struct stream *stream, const struct candidate *from,
	int64_t limit, struct query *q, struct failure *f)
{
	static const char *const types[] = {"iiibii", "iiibiii", "iiibiiii"};
	static const char *const types_by_time[] = {"iiibi", "iiibii", "iiibiii"};
	const char *sql = ranges[stream->of].by_order[streams->order];
	int64_t role = stream->role;

	if (streams->order == SELECT_BY_PRIORITY)
		return query(streams->s, q, f, sql, types_of(stream, types), from->priority, from->complexity,
			from->created_at, from->id, stream->priority < 0 ? (int64_t)PRIORITY_LOW : stream->priority,
			limit, role, stream->root_n);
	return query(streams->s, q, f, sql, types_of(stream, types_by_time), stream->priority, stream->complexity,
		from->created_at, from->id, limit, role, stream->root_n);
}

static void close_range(struct streams *streams, struct stream *stream)
{
	if (!stream->is_open)
		return;
	query_end(&stream->query);
	stream->is_open = false;
	streams->open_count--;
}

/* Behind the last row that was read; the first row alone when nothing was. */
static int start_range(struct streams *streams, struct stream *stream, struct failure *f)
{
	struct candidate from =
		stream->count > 0 ? stream->rows[stream->count - 1] : start_of(streams, stream);
	bool may_stay = stream->count > 0 && streams->open_count < STREAMS_OPEN;
	int64_t limit = may_stay ? LIMIT_SELECT_SCAN + 1 : (int64_t)stream->batch;

	if (open_range(streams, stream, &from, limit, &stream->query, f) != 0)
		return -1;
	stream->is_open = true;
	streams->open_count++;
	return 0;
}

/* The first row is often enough; who reads on reads more. */
static int refill(struct streams *streams, struct stream *stream, struct failure *f)
{
	bool is_first = stream->count == 0;
	int rc = 1;

	if (!stream->is_open && start_range(streams, stream, f) != 0)
		return -1;
	if (stream->count < stream->batch)
		stream->rows = ARENA_ARRAY(streams->s->arena, struct candidate, stream->batch);
	stream->count = 0;
	stream->at = 0;
	while (stream->count < stream->batch && (rc = query_next(&stream->query, f)) == 1)
		candidate_read(&stream->query, &stream->rows[stream->count++]);
	stream->is_ended = stream->count < stream->batch;
	if (is_first || stream->is_ended || streams->open_count > STREAMS_OPEN)
		close_range(streams, stream);
	stream->batch = STREAM_BATCH;
	return rc < 0 ? -1 : 0;
}

void streams_finish(struct streams *streams)
{
	for (size_t i = 0; i < streams->n; i++)
		close_range(streams, streams->heap[i]);
}

/* ---- the merge ---- */

static const struct candidate *head(const struct stream *stream)
{
	return &stream->rows[stream->at];
}

static bool is_before(const struct streams *streams, size_t a, size_t b)
{
	return candidate_cmp(streams->order, head(streams->heap[a]), head(streams->heap[b])) < 0;
}

static void swap(struct streams *streams, size_t a, size_t b)
{
	struct stream *kept = streams->heap[a];

	streams->heap[a] = streams->heap[b];
	streams->heap[b] = kept;
}

static void sift_down(struct streams *streams, size_t at)
{
	for (;;) {
		size_t first = at;
		size_t left = 2 * at + 1;

		if (left < streams->n && is_before(streams, left, first))
			first = left;
		if (left + 1 < streams->n && is_before(streams, left + 1, first))
			first = left + 1;
		if (first == at)
			return;
		swap(streams, at, first);
		at = first;
	}
}

static void insert(struct streams *streams, struct stream *stream)
{
	size_t at = streams->n;

	if (streams->n == streams->room) {
		size_t room = streams->room == 0 ? 16 : streams->room * 2;

		streams->heap = arena_grow(streams->s->arena, streams->heap,
			streams->room * sizeof(struct stream *), room * sizeof(struct stream *));
		streams->room = room;
	}
	streams->heap[streams->n++] = stream;
	for (; at > 0 && is_before(streams, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(streams, at, (at - 1) / 2);
}

/* Open one range; an empty one is forgotten. */
static int add(struct streams *streams, const struct stream *range, struct failure *f)
{
	struct stream *stream = ARENA_NEW(streams->s->arena, struct stream);

	*stream = *range;
	stream->batch = 1;
	if (refill(streams, stream, f) != 0)
		return -1;
	if (stream->count > 0)
		insert(streams, stream);
	return 0;
}

/* The next complexity that occurs: 1, 0 none, -1 failure. */
static int next_complexity(struct streams *streams, const struct stream *range, int64_t *out, struct failure *f)
{
	static const char *const types[] = {"ii", "iii", "iiii"};
	int64_t role = range->role;

	return query_int(streams->s, out, f, ranges[range->of].group, types_of(range, types), range->priority,
		range->complexity, role, range->root_n);
}

/* Oldest and newest: one range per priority and complexity that occur. */
static int add_groups(struct streams *streams, const struct stream *of, unsigned priorities, struct failure *f)
{
	for (int64_t priority = PRIORITY_HIGH; priority <= PRIORITY_LOW; priority++) {
		struct stream range = *of;
		int rc = (priorities & 1u << priority) != 0;

		range.priority = priority;

		while (rc == 1 && (rc = next_complexity(streams, &range, &range.complexity, f)) == 1)
			if (add(streams, &range, f) != 0)
				return -1;
		if (rc < 0)
			return -1;
	}
	return 0;
}

int streams_add(struct streams *streams, enum stream_of of, int64_t root_n, enum role role, unsigned priorities,
	struct failure *f)
{
	static const unsigned every = 7;
	struct stream range = {.of = of, .root_n = root_n, .role = role, .priority = -1};

	if (streams->order != SELECT_BY_PRIORITY)
		return add_groups(streams, &range, priorities, f);
	if ((priorities & every) == every)
		return add(streams, &range, f);
	for (range.priority = PRIORITY_HIGH; range.priority <= PRIORITY_LOW; range.priority++)
		if ((priorities & 1u << range.priority) && add(streams, &range, f) != 0)
			return -1;
	return 0;
}

static int cmp_for_sort(const void *a, const void *b, void *order)
{
	return candidate_cmp(*(enum select_order *)order, a, b);
}

int streams_add_list(struct streams *streams, struct candidate *list, size_t n, struct failure *f)
{
	struct stream *stream = ARENA_NEW(streams->s->arena, struct stream);

	(void)f;
	if (n == 0)
		return 0;
	qsort_r(list, n, sizeof(*list), cmp_for_sort, &streams->order);
	*stream = (struct stream){.rows = list, .count = n, .is_ended = true};
	insert(streams, stream);
	return 0;
}

int streams_next(struct streams *streams, struct candidate *out, struct failure *f)
{
	struct stream *top;

	if (streams->n == 0)
		return 0;
	top = streams->heap[0];
	*out = *head(top);
	top->at++;
	if (top->at == top->count && !top->is_ended && refill(streams, top, f) != 0)
		return -1;
	if (top->at >= top->count)
		streams->heap[0] = streams->heap[--streams->n];
	sift_down(streams, 0);
	return 1;
}
