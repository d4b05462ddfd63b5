/* Who works next. One place begins runs: it looks at every thread whose queue could move, and at all limits. */
#include "threads/engine.h"

#include "threads/places.h"

/* Runs that hold a place; agents that dais did not start hold none, nor do runs that are prepared. */
SQL(SQL_ACTIVE,
	"SELECT r.instance_id, t.project_n, t.root_n, t.n FROM thread_run r JOIN thread t ON t.n = r.thread_n"
	" WHERE r.status IN (2, 3, 4) AND r.status < 5 AND t.kind = 0");
/* The first run of each queue whose thread is free, wakes before all else. */
SQL(SQL_WAITING,
	"SELECT r.n, r.instance_id, t.project_n, t.root_n, r.requested_at, t.n FROM thread_run r JOIN thread t ON t.n = r.thread_n"
	" WHERE r.status = 1 AND r.status < 5 AND r.is_held = 0 AND t.archived_at IS NULL AND t.deleted_at IS NULL"
	" AND NOT EXISTS (SELECT 1 FROM thread_run b WHERE b.thread_n = r.thread_n AND b.status IN (0, 2, 3, 4) AND b.status < 5)"
	" AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.thread_n = r.thread_n AND e.type IN (5, 6))"
	" ORDER BY r.thread_n, r.is_wake DESC, r.queue_position, r.ordinal");

struct place {
	struct str instance;
	int64_t project_n, root_n, thread_n;
};

struct waiting {
	struct place place;
	int64_t run_n, requested_at;
	bool is_gone;
};

struct board {
	struct place *active;
	size_t active_count, active_room;
	struct waiting *waiting;
	size_t waiting_count, waiting_room;
};

static struct place *active_add(struct arena *arena, struct board *board)
{
	if (board->active_count == board->active_room) {
		size_t room = board->active_room * 2 + 16;

		board->active = arena_grow(arena, board->active, board->active_room * sizeof(struct place), room * sizeof(struct place));
		board->active_room = room;
	}
	return &board->active[board->active_count++];
}

static int read_active(struct snapshot *s, struct board *board, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_ACTIVE, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (places_is_lent(col_int(&q, 3)))
			continue;
		*active_add(s->arena, board) =
			(struct place){col_str(&q, 0), col_int(&q, 1), col_int(&q, 2), col_int(&q, 3)};
	}
	return rc;
}

static int read_waiting(struct snapshot *s, struct board *board, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_WAITING, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct place place = {col_str(&q, 1), col_int(&q, 2), col_int(&q, 3), col_int(&q, 5)};

		if (board->waiting_count > 0 && board->waiting[board->waiting_count - 1].place.thread_n == place.thread_n)
			continue;
		if (board->waiting_count == board->waiting_room) {
			size_t room = board->waiting_room * 2 + 16;

			board->waiting = arena_grow(s->arena, board->waiting, board->waiting_room * sizeof(struct waiting),
				room * sizeof(struct waiting));
			board->waiting_room = room;
		}
		board->waiting[board->waiting_count++] =
			(struct waiting){.place = place, .run_n = col_int(&q, 0), .requested_at = col_int(&q, 4)};
	}
	return rc;
}

/* Active runs that share something with this one. */
struct shares {
	int64_t all, instance, project, batch;
};

static struct shares shares_of(const struct board *board, const struct place *place)
{
	struct shares shares = {.all = (int64_t)board->active_count};

	for (size_t i = 0; i < board->active_count; i++) {
		shares.instance += str_eq(board->active[i].instance, place->instance);
		shares.project += board->active[i].project_n == place->project_n;
		shares.batch += board->active[i].root_n == place->root_n;
	}
	return shares;
}

static bool has_room(int64_t used, int64_t limit)
{
	return limit == 0 || used < limit;
}

static bool may_begin(const struct shares *shares, const struct place *place)
{
	return has_room(shares->all, places_runs()) && has_room(shares->instance, places_of_instance(place->instance))
		&& has_room(shares->project, places_of_project()) && has_room(shares->batch, places_of_batch());
}

/* Fair: whose tree of threads has the fewest runs comes first, then who waits longest. */
static struct waiting *choose(const struct board *board)
{
	struct waiting *best = NULL;
	int64_t best_batch = 0;

	for (size_t i = 0; i < board->waiting_count; i++) {
		struct waiting *waiting = &board->waiting[i];
		struct shares shares;

		if (waiting->is_gone)
			continue;
		shares = shares_of(board, &waiting->place);
		if (!may_begin(&shares, &waiting->place))
			continue;
		if (best == NULL || shares.batch < best_batch
			|| (shares.batch == best_batch && waiting->requested_at < best->requested_at)) {
			best = waiting;
			best_batch = shares.batch;
		}
	}
	return best;
}

int schedule(struct tx *tx, struct failure *f)
{
	struct board board = {0};
	struct waiting *next;

	if (read_active(&tx->snapshot, &board, f) != 0)
		return -1;
	if (!has_room((int64_t)board.active_count, places_runs()))
		return 0;
	if (read_waiting(&tx->snapshot, &board, f) != 0)
		return -1;
	while ((next = choose(&board)) != NULL) {
		struct thread_run_row run;

		if (NEED(&tx->snapshot, thread_run, next->run_n, &run, f) != 0 || run_start(tx, &run, f) != 0)
			return -1;
		next->is_gone = true;
		*active_add(tx->snapshot.arena, &board) = next->place;
	}
	return 0;
}
