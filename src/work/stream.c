/* Candidates in order: a merge over index ranges, each read in small batches from where it stopped. */
#include "work/stream.h"

/* by item_ready; the key of the last row is where the next batch begins */
SQL(SQL_READY,
	"SELECT " CANDIDATE_COLUMNS " FROM item WHERE root_n = $1 AND role = $2 AND parent_n IS NOT NULL"
	" AND (priority, complexity, created_at, n) > ($3, $4, $5, $6) AND priority <= $7"
	" ORDER BY priority, complexity, created_at, n LIMIT $8");
SQL(SQL_READY_OLDEST,
	"SELECT " CANDIDATE_COLUMNS " FROM item WHERE root_n = $1 AND role = $2 AND parent_n IS NOT NULL"
	" AND priority = $3 AND complexity = $4 AND (created_at, n) > ($5, $6)"
	" ORDER BY created_at, n LIMIT $7");
SQL(SQL_READY_NEWEST,
	"SELECT " CANDIDATE_COLUMNS " FROM item WHERE root_n = $1 AND role = $2 AND parent_n IS NOT NULL"
	" AND priority = $3 AND complexity = $4 AND (created_at, n) < ($5, $6)"
	" ORDER BY created_at DESC, n DESC LIMIT $7");
SQL(SQL_READY_GROUP,
	"SELECT priority, complexity FROM item WHERE root_n = $1 AND role = $2 AND parent_n IS NOT NULL"
	" AND (priority, complexity) > ($3, $4) ORDER BY priority, complexity LIMIT 1");
/* by item_root_ready */
SQL(SQL_ROOT_READY,
	"SELECT " CANDIDATE_COLUMNS " FROM item WHERE parent_n IS NULL AND role = $1"
	" AND (priority, complexity, created_at, n) > ($2, $3, $4, $5) AND priority <= $6"
	" ORDER BY priority, complexity, created_at, n LIMIT $7");
SQL(SQL_ROOT_READY_OLDEST,
	"SELECT " CANDIDATE_COLUMNS " FROM item WHERE parent_n IS NULL AND role = $1"
	" AND priority = $2 AND complexity = $3 AND (created_at, n) > ($4, $5) ORDER BY created_at, n LIMIT $6");
SQL(SQL_ROOT_READY_NEWEST,
	"SELECT " CANDIDATE_COLUMNS " FROM item WHERE parent_n IS NULL AND role = $1"
	" AND priority = $2 AND complexity = $3 AND (created_at, n) < ($4, $5)"
	" ORDER BY created_at DESC, n DESC LIMIT $6");
SQL(SQL_ROOT_READY_GROUP,
	"SELECT priority, complexity FROM item WHERE parent_n IS NULL AND role = $1"
	" AND (priority, complexity) > ($2, $3) ORDER BY priority, complexity LIMIT 1");

void candidate_read(const struct query *q, struct candidate *out)
{
	*out = (struct candidate){
		.n = col_int(q, 0),
		.parent_n = col_int(q, 1),
		.root_n = col_int(q, 2),
		.role = (enum role)col_int(q, 3),
		.priority = col_int(q, 4),
		.complexity = col_int(q, 5),
		.created_at = col_int(q, 6),
		.claim_by = col_int(q, 7),
		.claim_until = col_int(q, 8),
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
	rc = rc != 0 ? rc : cmp_int(a->created_at, b->created_at);
	rc = rc != 0 ? rc : cmp_int(a->n, b->n);
	return order == SELECT_NEWEST ? -rc : rc;
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

static int open_batch(struct streams *streams, const struct stream *stream, const struct candidate *from,
	struct query *q, struct failure *f)
{
	bool is_newest = streams->order == SELECT_NEWEST;
	int64_t role = stream->role;
	int64_t limit = (int64_t)stream->batch;

	if (streams->order == SELECT_BY_PRIORITY) {
		int64_t last = stream->priority < 0 ? PRIORITY_LOW : stream->priority;

		if (stream->root_n == 0)
			return query(streams->s, q, f, SQL_ROOT_READY, "iiiiiii", role, from->priority,
				from->complexity, from->created_at, from->n, last, limit);
		return query(streams->s, q, f, SQL_READY, "iiiiiiii", stream->root_n, role, from->priority,
			from->complexity, from->created_at, from->n, last, limit);
	}
	if (stream->root_n == 0)
		return query(streams->s, q, f, is_newest ? SQL_ROOT_READY_NEWEST : SQL_ROOT_READY_OLDEST,
			"iiiiii", role, stream->priority, stream->complexity, from->created_at, from->n, limit);
	return query(streams->s, q, f, is_newest ? SQL_READY_NEWEST : SQL_READY_OLDEST, "iiiiiii",
		stream->root_n, role, stream->priority, stream->complexity, from->created_at, from->n, limit);
}

static int refill(struct streams *streams, struct stream *stream, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct candidate from =
		stream->count > 0 ? stream->rows[stream->count - 1] : start_of(streams, stream);
	size_t room = stream->batch;
	int rc;

	if (open_batch(streams, stream, &from, &q, f) != 0)
		return -1;
	if (stream->count < room) /* the first time, or the batch grew */
		stream->rows = ARENA_ARRAY(streams->s->arena, struct candidate, room);
	stream->count = 0;
	stream->at = 0;
	while ((rc = query_next(&q, f)) == 1)
		candidate_read(&q, &stream->rows[stream->count++]);
	stream->is_ended = stream->count < room;
	/* The first row is often enough; who reads on reads more. */
	stream->batch = STREAM_BATCH;
	return rc;
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

/* Oldest and newest: one range per priority and complexity that occur. */
static int add_groups(struct streams *streams, int64_t root_n, enum role role, unsigned priorities,
	struct failure *f)
{
	struct stream range = {.root_n = root_n, .role = role, .priority = -1};

	for (;;) {
		AUTO(query_endp) struct query q = {0};
		int64_t wanted = role;
		int rc;

		rc = root_n == 0 ? query(streams->s, &q, f, SQL_ROOT_READY_GROUP, "iii", wanted,
					   range.priority, range.complexity)
				 : query(streams->s, &q, f, SQL_READY_GROUP, "iiii", root_n, wanted,
					   range.priority, range.complexity);
		if (rc != 0 || (rc = query_next(&q, f)) != 1)
			return rc;
		range.priority = col_int(&q, 0);
		range.complexity = col_int(&q, 1);
		if ((priorities & 1u << range.priority) && add(streams, &range, f) != 0)
			return -1;
	}
}

int streams_add(struct streams *streams, int64_t root_n, enum role role, unsigned priorities, struct failure *f)
{
	static const unsigned every = 7;

	if (streams->order != SELECT_BY_PRIORITY)
		return add_groups(streams, root_n, role, priorities, f);
	if ((priorities & every) == every)
		return add(streams, &(struct stream){.root_n = root_n, .role = role, .priority = -1}, f);
	for (int64_t priority = PRIORITY_HIGH; priority <= PRIORITY_LOW; priority++)
		if ((priorities & 1u << priority) &&
			add(streams, &(struct stream){.root_n = root_n, .role = role, .priority = priority},
				f) != 0)
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
