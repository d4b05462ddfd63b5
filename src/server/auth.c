/* Who is behind an HTTP exchange. Authentication comes before routing: a stranger learns nothing about which
 * paths exist. */
#include "server/private.h"

#include "threads/threads.h"

#include "base/clock.h"

/* After this many failures of one peer within the window, 429. */
#define FAILURES 10
#define WINDOW_MS 60000
#define PEERS 256

/* A small table by hash of the address: a collision shares a counter, which errs on the safe side. */
static struct {
	pthread_mutex_t lock;
	struct {
		int64_t since; /* monotonic */
		int count;
	} peers[PEERS];
} throttle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t peer_slot(struct http_exchange *x)
{
	struct str peer = http_peer(x);
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < peer.n; i++)
		hash = (hash ^ (unsigned char)peer.p[i]) * 16777619U;
	return hash % PEERS;
}

bool auth_is_throttled(struct server *server, struct http_exchange *x)
{
	size_t slot = peer_slot(x);
	bool is_throttled;

	(void)server;
	/* All local agents share the loopback address: one with a stale token must not lock out the rest. */
	if (http_peer_is_loopback(x))
		return false;
	(void)pthread_mutex_lock(&throttle.lock);
	is_throttled = throttle.peers[slot].count >= FAILURES &&
		clock_mono_ms() - throttle.peers[slot].since < WINDOW_MS;
	(void)pthread_mutex_unlock(&throttle.lock);
	return is_throttled;
}

static int refuse(struct server *server, struct http_exchange *x, struct failure *f, const char *why)
{
	size_t slot = peer_slot(x);
	int64_t now = clock_mono_ms();

	atomic_fetch_add(&server->auth_failures, 1);
	(void)pthread_mutex_lock(&throttle.lock);
	if (now - throttle.peers[slot].since >= WINDOW_MS) {
		throttle.peers[slot].since = now;
		throttle.peers[slot].count = 0;
	}
	throttle.peers[slot].count++;
	(void)pthread_mutex_unlock(&throttle.lock);
	return fail(f, FAIL_UNAUTHENTICATED, "%s", why);
}

/* The credential after "Bearer ": the scheme in any case, at least one blank. */
static bool bearer_of(struct str header, struct str *out)
{
	struct str scheme = {header.p, header.n < 6 ? header.n : 6};

	if (!str_eq_nocase(scheme, STR("bearer")) || header.n < 8 || header.p[6] != ' ')
		return false;
	*out = str_trim((struct str){header.p + 6, header.n - 6});
	return out->n > 0;
}

/* The value of our cookie, or absent. */
static struct str session_of(struct str header)
{
	static const char name[] = "dais_session=";
	const char *at = header.n == 0 ? NULL : memmem(header.p, header.n, name, sizeof(name) - 1);
	struct str value;

	if (at == NULL || (at != header.p && at[-1] != ' ' && at[-1] != ';'))
		return STR_NONE;
	value.p = at + sizeof(name) - 1;
	for (value.n = 0; value.p + value.n < header.p + header.n && value.p[value.n] != ';';)
		value.n++;
	return value;
}

/* ---- tokens seen lately: a call would otherwise begin with a snapshot of its own ----
 *
 * Invariants
 * (1) An entry counts only while no token was made or revoked since before it was read: auth_forget() raises
 *     the generation after such a change is on disk.
 * (2) Expiry is compared on every use. Seat tokens are never kept: runs close. */
#define CACHE_SLOTS 256

static struct {
	pthread_mutex_t lock;
	struct entry {
		unsigned char digest[32];
		uint64_t generation; /* 0: empty */
		void *caller;	     /* kept copy */
	} slots[CACHE_SLOTS];
	_Atomic uint64_t generation;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1};

void auth_forget(void)
{
	atomic_fetch_add(&cache.generation, 1);
}

void auth_finish(void)
{
	for (size_t i = 0; i < CACHE_SLOTS; i++) {
		if (cache.slots[i].caller != NULL)
			server_mcp_handlers.caller_release(cache.slots[i].caller);
		cache.slots[i] = (struct entry){.generation = 0};
	}
}

static bool cache_find(const unsigned char digest[32], struct str surface, struct arena *arena, struct caller *out)
{
	struct entry *entry = &cache.slots[digest[0]];
	bool found;

	(void)pthread_mutex_lock(&cache.lock);
	found = entry->generation == atomic_load(&cache.generation) && bytes_equal(entry->digest, digest, 32);
	if (found) {
		const struct caller *kept = entry->caller;

		found = kept->expires_at == 0 || kept->expires_at > clock_wall_ms(); /* (2) */
		if (found)
			server_caller_copy(arena, kept, out);
	}
	(void)pthread_mutex_unlock(&cache.lock);
	if (!found)
		return false;
	out->surface = surface;
	return true;
}

static void cache_keep(const unsigned char digest[32], uint64_t generation, struct caller *caller)
{
	struct entry *entry = &cache.slots[digest[0]];
	void *copy = server_mcp_handlers.caller_keep(caller);
	void *old;

	(void)pthread_mutex_lock(&cache.lock);
	old = entry->caller;
	memcpy(entry->digest, digest, 32);
	entry->generation = generation;
	entry->caller = copy;
	(void)pthread_mutex_unlock(&cache.lock);
	if (old != NULL)
		server_mcp_handlers.caller_release(old);
}

SQL(SQL_AGENT_ROOT, "SELECT p.root_n FROM thread t JOIN project p ON p.n = t.project_n WHERE t.n = $1 AND t.deleted_at IS NULL");

/* An agent that dais started: its own thread, and the work of its own project. */
static int caller_of_agent(struct server *server, struct arena *arena, const struct thread_scope *scope, struct str surface,
	struct caller *out, struct failure *f)
{
	int64_t *root = ARENA_NEW(arena, int64_t);
	struct snapshot s;
	int rc;

	if (snapshot_begin(server->store, arena, &s, f) != 0)
		return -1;
	rc = query_int(&s, root, f, SQL_AGENT_ROOT, "i", scope->thread_n);
	snapshot_end(&s);
	if (rc < 0)
		return -1;
	*out = (struct caller){.profile = PROFILE_FULL,
		.surface = surface,
		.capabilities = CAP_READ | CAP_WRITE_ITEMS | CAP_WRITE_NOTES | CAP_ADVANCE | CAP_MANAGE_DEPENDENCIES | CAP_ORCHESTRATION,
		.roots = root,
		.root_count = rc == 1 ? 1 : 0,
		.thread_n = scope->thread_n,
		.instance_id = str_dup(arena, str_of(scope->instance_id))};
	out->actor.id = str_printf(arena, "agent:%lld", (long long)scope->thread_n);
	out->actor.kind = PRINCIPAL_AGENT;
	out->actor.verification = VERIFICATION_UNCHECKED;
	req_id_generate(out->req_id);
	out->actor.req_id = out->req_id;
	return 0;
}

static int caller_of_token(struct server *server, struct arena *arena, struct str token, struct str surface,
	struct caller *out, struct failure *f)
{
	uint64_t generation = atomic_load(&cache.generation); /* (1): before the row is read */
	bool may_keep = !str_starts(token, STR("dst_"));
	unsigned char digest[32];
	struct thread_scope scope;
	struct snapshot s;
	int rc;

	if (threads_scope(server->threads, token, &scope))
		return caller_of_agent(server, arena, &scope, surface, out, f);
	sha256(token.p, token.n, digest);
	if (may_keep && cache_find(digest, surface, arena, out))
		return 0;
	if (snapshot_begin(server->store, arena, &s, f) != 0)
		return -1;
	rc = caller_from_token(&s, token, surface, out, f);
	snapshot_end(&s);
	if (rc == 0 && may_keep)
		cache_keep(digest, generation, out);
	return rc;
}

static int caller_of_session(struct server *server, struct arena *arena, struct str session, struct caller *out,
	struct failure *f)
{
	struct snapshot s;
	int rc;

	if (snapshot_begin(server->store, arena, &s, f) != 0)
		return -1;
	rc = caller_from_session(&s, session, out, f);
	snapshot_end(&s);
	return rc;
}

int authenticate(struct server *server, struct http_exchange *x, struct caller *out, struct failure *f)
{
	struct str surface = str_starts(http_path(x), STR("/mcp")) ? STR("mcp") : STR("rest");
	size_t count = 0;
	struct str header = http_header(x, "Authorization", &count);
	struct str cookie = session_of(http_header(x, "Cookie", NULL));
	struct str token = STR_NONE;
	int rc;

	if (server->is_open_mode && !(bearer_of(header, &token) && str_starts(token, STR("dst_")))) {
		caller_local(out, surface);
		out->is_local = false;
		return 0;
	}
	if (count > 1)
		return refuse(server, x, f, "The Authorization header came more than once.");
	if (count == 1 && !bearer_of(header, &token))
		return refuse(server, x, f, "The Authorization header must be: Bearer TOKEN.");
	if (token.n == 0 && cookie.n == 0)
		return refuse(server, x, f, "A bearer token is needed; make one with: dais token create");
	rc = token.n > 0 ? caller_of_token(server, http_arena(x), token, surface, out, f)
			 : caller_of_session(server, http_arena(x), cookie, out, f);
	if (rc != 0 && f->code == FAIL_UNAUTHENTICATED)
		return refuse(server, x, f, "The credential is not valid.");
	return rc;
}
