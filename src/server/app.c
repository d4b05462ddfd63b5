/* HTTP: the order of checks, and the table of routes. */
#include "server/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

enum route_kind { ROUTE_MCP, ROUTE_OPS, ROUTE_PLAIN };

/* What one exchange carries from its head to its request. */
struct visit {
	const struct route *route;
	struct caller caller;
	enum profile profile; /* of the MCP endpoint */
	bool is_signed_in;
	int64_t started_us;
	char req_id[REQ_ID_SIZE];
};

struct route {
	const char *method; /* NULL: the MCP endpoint sees to it */
	const char *path;
	bool is_prefix; /* one more segment follows */
	bool is_public;
	enum route_kind kind;
	enum profile profile;
	void (*serve)(struct server *server, struct http_exchange *x, struct visit *visit);
};

static void serve_health(struct server *server, struct http_exchange *x, struct visit *visit)
{
	(void)visit;
	meta_health(server, x);
}

static void serve_ready(struct server *server, struct http_exchange *x, struct visit *visit)
{
	(void)visit;
	meta_ready(server, x);
}

static void serve_info(struct server *server, struct http_exchange *x, struct visit *visit)
{
	meta_info(server, x, &visit->caller);
}

static void serve_metrics(struct server *server, struct http_exchange *x, struct visit *visit)
{
	(void)visit;
	meta_metrics(server, x);
}

static void serve_events(struct server *server, struct http_exchange *x, struct visit *visit)
{
	stream_open(server, x, &visit->caller);
}

static void serve_page(struct server *server, struct http_exchange *x, struct visit *visit)
{
	page_status(server, x, visit->is_signed_in);
}

static void serve_sign_in(struct server *server, struct http_exchange *x, struct visit *visit);
static void serve_ops(struct server *server, struct http_exchange *x, struct visit *visit);

static const struct route routes[] = {
	{NULL, "/mcp", false, false, ROUTE_MCP, PROFILE_FULL, NULL},
	{NULL, "/mcp/work", false, false, ROUTE_MCP, PROFILE_WORK, NULL},
	{NULL, "/mcp/knowledge", false, false, ROUTE_MCP, PROFILE_KNOWLEDGE, NULL},
	{NULL, "/mcp/threads", false, false, ROUTE_MCP, PROFILE_THREADS, NULL},
	{NULL, "/mcp/director", false, false, ROUTE_MCP, PROFILE_DIRECTOR, NULL},
	{"POST", "/api/v1/ops/", true, false, ROUTE_OPS, PROFILE_FULL, serve_ops},
	{"GET", "/api/v1/health", false, true, ROUTE_PLAIN, PROFILE_FULL, serve_health},
	{"GET", "/api/v1/ready", false, true, ROUTE_PLAIN, PROFILE_FULL, serve_ready},
	{"GET", "/api/v1/info", false, false, ROUTE_PLAIN, PROFILE_FULL, serve_info},
	{"GET", "/api/v1/events", false, false, ROUTE_PLAIN, PROFILE_FULL, serve_events},
	{"GET", "/metrics", false, false, ROUTE_PLAIN, PROFILE_FULL, serve_metrics},
	{"GET", "/signin", false, true, ROUTE_PLAIN, PROFILE_FULL, serve_sign_in},
	{"GET", "/", false, true, ROUTE_PLAIN, PROFILE_FULL, serve_page},
};

/* ---- answers ---- */

void reply_json(struct server *server, struct http_exchange *x, int status, struct str body, const char *req_id)
{
	struct http_field fields[4 + HTTP_GUARD_FIELDS] = {
		{"Content-Type", STR("application/json; charset=utf-8")},
		{"Cache-Control", STR("no-store")},
	};
	size_t n = 2;

	if (req_id != NULL && req_id[0] != '\0')
		fields[n++] = (struct http_field){"X-Req-Id", str_of(req_id)};
	n += http_guard_fields(server->guard, x, fields + n);
	http_reply(x, status, fields, n, body);
}

static void reply_failure_as(struct server *server, struct http_exchange *x, struct failure *f, int status,
	const char *header, struct str value, const char *req_id)
{
	struct http_field fields[6 + HTTP_GUARD_FIELDS] = {
		{"Content-Type", STR("application/json; charset=utf-8")},
		{"Cache-Control", STR("no-store")},
	};
	size_t n = 2;
	struct buf out;
	struct json_writer w;

	buf_init(&out, http_arena(x), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kbool(&w, "ok", false);
	jw_key(&w, "error");
	failure_write(f, &w);
	jw_kobject(&w, "meta");
	jw_ktext(&w, "reqId", req_id == NULL ? "" : req_id);
	jw_object_end(&w);
	jw_object_end(&w);
	if (req_id != NULL && req_id[0] != '\0')
		fields[n++] = (struct http_field){"X-Req-Id", str_of(req_id)};
	if (header != NULL)
		fields[n++] = (struct http_field){header, value};
	if (f->retry_after_ms > 0)
		fields[n++] = (struct http_field){"Retry-After",
			str_printf(http_arena(x), "%lld", (long long)((f->retry_after_ms + 999) / 1000))};
	n += http_guard_fields(server->guard, x, fields + n);
	http_reply(x, status, fields, n, buf_str(&out));
}

void reply_failure(struct server *server, struct http_exchange *x, struct failure *f, const char *req_id)
{
	reply_failure_as(server, x, f, failure_info(f->code)->http_status, NULL, STR_NONE, req_id);
}

/* ---- the head: who, where, may they ---- */

static bool is_mcp_path(struct str path)
{
	return str_eq(path, STR("/mcp")) || str_starts(path, STR("/mcp/"));
}

/* A trailing slash is the same endpoint: clients do not follow redirects on POST. */
static struct str without_slash(struct str path)
{
	if (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	return path;
}

static const struct route *route_of(struct str path)
{
	struct str plain = without_slash(path);

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		struct str known = str_of(routes[i].path);

		if (routes[i].is_prefix ? str_starts(path, known) && memchr(path.p + known.n, '/', path.n - known.n) == NULL
					: str_eq(plain, known))
			return &routes[i];
	}
	return NULL;
}

static int refuse_guard(struct server *server, struct http_exchange *x, const char *what, struct failure *f,
	struct visit *visit)
{
	if (is_mcp_path(http_path(x))) {
		mcp_http_refuse(server->guard, x, 403, str_printf(http_arena(x), "%s is not allowed.", what));
		return -1;
	}
	(void)fail(f, FAIL_FORBIDDEN, "This %s is not allowed.", what);
	fail_detail_str(f, "required",
		strcmp(what, "Host") == 0 ? STR("host_not_allowed") : STR("origin_not_allowed"));
	reply_failure(server, x, f, visit->req_id);
	return -1;
}

static int refuse_stranger(struct server *server, struct http_exchange *x, struct failure *f, struct visit *visit)
{
	bool gave_one = http_header(x, "Authorization", NULL).p != NULL;
	struct str challenge =
		gave_one ? STR("Bearer realm=\"dais\", error=\"invalid_token\"") : STR("Bearer realm=\"dais\"");

	if (f->code != FAIL_UNAUTHENTICATED) {
		reply_failure(server, x, f, visit->req_id);
		return -1;
	}
	if (is_mcp_path(http_path(x))) {
		struct http_field fields[3 + HTTP_GUARD_FIELDS] = {
			{"Content-Type", STR("application/json")},
			{"WWW-Authenticate", challenge},
		};
		size_t n = 2 + http_guard_fields(server->guard, x, fields + 2);

		http_reply(x, 401, fields, n,
			STR("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"A bearer token is needed; make one with: dais token create\"}}"));
		return -1;
	}
	reply_failure_as(server, x, f, 401, "WWW-Authenticate", challenge, visit->req_id);
	return -1;
}

static int refuse_throttled(struct server *server, struct http_exchange *x, struct failure *f, struct visit *visit)
{
	(void)fail(f, FAIL_UNAVAILABLE, "Too many failed sign-ins from this address.");
	f->retry_after_ms = 60000;
	reply_failure_as(server, x, f, 429, NULL, STR_NONE, visit->req_id);
	return -1;
}

static int refuse_path(struct server *server, struct http_exchange *x, struct failure *f, struct visit *visit)
{
	(void)fail(f, FAIL_NOT_FOUND, "There is no such path.");
	reply_failure(server, x, f, visit->req_id);
	return -1;
}

static int check_method(struct server *server, struct http_exchange *x, struct visit *visit, struct failure *f)
{
	struct str allowed = str_of(visit->route->method);

	if (str_eq(http_method(x), allowed) ||
		(str_eq(allowed, STR("GET")) && str_eq(http_method(x), STR("HEAD"))))
		return 0;
	(void)fail_field(f, STR("method"), STR_NONE, "this path takes %.*s", STRF(allowed));
	reply_failure_as(server, x, f, 405, "Allow", allowed, visit->req_id);
	return -1;
}

/* POST of JSON: an absent Content-Type is accepted, any other than JSON is not. */
static int check_media(struct server *server, struct http_exchange *x, struct visit *visit, struct failure *f)
{
	struct str type = http_header(x, "Content-Type", NULL);
	struct str encoding = http_header(x, "Content-Encoding", NULL);
	const char *semicolon = type.p == NULL ? NULL : memchr(type.p, ';', type.n);

	if (semicolon != NULL)
		type.n = (size_t)(semicolon - type.p);
	if ((type.p == NULL || str_eq_nocase(str_trim(type), STR("application/json"))) &&
		(encoding.p == NULL || str_eq_nocase(encoding, STR("identity"))))
		return 0;
	(void)fail_field(f, STR("content-type"), type, "must be application/json, not compressed");
	reply_failure_as(server, x, f, 415, NULL, STR_NONE, visit->req_id);
	return -1;
}

static int head_of_route(struct server *server, struct http_exchange *x, struct visit *visit, struct failure *f,
	size_t *max_body)
{
	if (visit->route == NULL)
		return refuse_path(server, x, f, visit);
	if (visit->route->kind == ROUTE_MCP) {
		visit->caller.profile = visit->route->profile;
		return mcp_http_head(server->mcp, server->guard, x, max_body);
	}
	if (check_method(server, x, visit, f) != 0)
		return -1;
	*max_body = visit->route->kind == ROUTE_OPS ? LIMIT_OPS_BODY_BYTES : 0;
	return visit->route->kind == ROUTE_OPS ? check_media(server, x, visit, f) : 0;
}

int app_head(struct http_exchange *x, void *app, size_t *max_body)
{
	struct server *server = app;
	struct arena *arena = http_arena(x);
	struct visit *visit = ARENA_NEW(arena, struct visit);
	struct failure f;

	failure_init(&f, arena);
	req_id_generate(visit->req_id);
	visit->started_us = clock_mono_us();
	http_set_data(x, visit);
	switch (http_guard_check(server->guard, x)) {
	case HTTP_GUARD_PASS:
		break;
	case HTTP_GUARD_HOST:
		return refuse_guard(server, x, "Host", &f, visit);
	case HTTP_GUARD_ORIGIN:
		return refuse_guard(server, x, "Origin", &f, visit);
	case HTTP_GUARD_PREFLIGHT:
		http_guard_preflight(server->guard, x);
		return -1;
	}
	visit->route = route_of(http_path(x));
	if (visit->route != NULL && visit->route->is_public) {
		/* The page looks different to who is signed in, but is for everybody. */
		visit->is_signed_in = http_header(x, "Cookie", NULL).p != NULL &&
			authenticate(server, x, &visit->caller, &f) == 0;
		visit->is_signed_in = visit->is_signed_in || server->is_open_mode;
		failure_init(&f, arena);
	} else if (str_starts(http_path(x), STR("/.well-known/")) || str_eq(http_path(x), STR("/register")) ||
		str_eq(http_path(x), STR("/authorize")) || str_eq(http_path(x), STR("/token")) ||
		str_eq(http_path(x), STR("/sse"))) {
		/* Clients probe these after a 401 and choke on anything but a plain 404. */
		return refuse_path(server, x, &f, visit);
	} else {
		if (auth_is_throttled(server, x))
			return refuse_throttled(server, x, &f, visit);
		if (authenticate(server, x, &visit->caller, &f) != 0)
			return refuse_stranger(server, x, &f, visit);
		/* One id for the answer's header, the events and the call log. */
		memcpy(visit->caller.req_id, visit->req_id, REQ_ID_SIZE);
		visit->caller.actor.req_id = visit->caller.req_id;
	}
	return head_of_route(server, x, visit, &f, max_body);
}

void app_request(struct http_exchange *x, void *app)
{
	struct server *server = app;
	struct visit *visit = http_data(x);

	if (visit->route->kind == ROUTE_MCP) {
		struct mcp_caller caller = mcp_caller_of(http_arena(x), &visit->caller);

		mcp_http_request(server->mcp, server->guard, x, &caller);
		return;
	}
	visit->route->serve(server, x, visit);
}

/* MCP clients read JSON-RPC errors only. */
bool app_refuse(struct http_exchange *x, void *app, int status, const char *reason)
{
	struct server *server = app;

	if (!is_mcp_path(http_path(x)))
		return false;
	mcp_http_refuse(server->guard, x, status, str_printf(http_arena(x), "Refused: %s.", reason));
	return true;
}

/* ---- POST /api/v1/ops/{tool} ---- */

struct posted {
	struct tool_call call;
	struct http_exchange *x;
	struct server *server;
	struct visit *visit;
	struct str operation;
};

static void ops_done(struct tool_call *call)
{
	struct posted *posted = (struct posted *)call;
	struct http_exchange *x = posted->x;
	struct server *server = posted->server;
	int64_t us = clock_mono_us() - posted->visit->started_us;
	struct http_field fields[5 + HTTP_GUARD_FIELDS] = {
		{"Content-Type", STR("application/json; charset=utf-8")},
		{"Cache-Control", STR("no-store")},
		{"X-Req-Id", str_of(call->caller.req_id)},
	};
	size_t n = 3;

	server_count(server, call, us);
	call_log_add(server->call_log, call, posted->operation, us, http_body(x).n);
	if (call->is_replayed)
		fields[n++] = (struct http_field){"Idempotent-Replayed", STR("true")};
	if (call->retry_after_ms > 0)
		fields[n++] = (struct http_field){"Retry-After",
			str_printf(call->arena, "%lld", (long long)((call->retry_after_ms + 999) / 1000))};
	n += http_guard_fields(server->guard, x, fields + n);
	http_reply(x, call->http_status, fields, n, call->envelope);
	http_release(x);
}

/* The header form of idempotencyKey; both given and different is a fault. */
static int take_header_key(struct http_exchange *x, json_t *args, struct failure *f)
{
	struct str header = http_header(x, "Idempotency-Key", NULL);
	struct str body = json_member_str(args, "idempotencyKey");

	if (header.p == NULL)
		return 0;
	if (json_object_get(args, "idempotencyKey") != NULL)
		return str_eq(header, body)
			? 0
			: fail_field(f, STR("idempotencyKey"), STR_NONE, "differs from the header Idempotency-Key");
	(void)json_object_set_new(args, "idempotencyKey", json_stringn(header.p, header.n));
	return 0;
}

static json_t *read_args(struct http_exchange *x, struct failure *f)
{
	struct str body = str_trim(http_body(x));
	struct json_error error;
	json_t *args = body.n == 0 ? json_object() : json_read(body, &error);

	if (args == NULL) {
		(void)fail_field(f, STR("body"), STR_NONE, "%s", error.text);
		return NULL;
	}
	if (!json_is_object(args)) {
		(void)fail_field(f, STR("body"), STR_NONE, "expected an object, got %s", json_type_name(args));
		json_decref(args);
		return NULL;
	}
	return args;
}

static void serve_ops(struct server *server, struct http_exchange *x, struct visit *visit)
{
	struct str path = http_path(x);
	struct str name = {path.p + strlen("/api/v1/ops/"), path.n - strlen("/api/v1/ops/")};
	const struct tool *tool = tool_find(name);
	struct posted *posted;
	struct failure f;
	json_t *args;

	failure_init(&f, http_arena(x));
	if (tool == NULL) {
		(void)refuse_path(server, x, &f, visit);
		return;
	}
	args = read_args(x, &f);
	if (args != NULL)
		arena_at_end(http_arena(x), (void (*)(void *))json_decref, args);
	if (args == NULL || take_header_key(x, args, &f) != 0) {
		reply_failure(server, x, &f, visit->req_id);
		return;
	}
	posted = ARENA_NEW(http_arena(x), struct posted);
	posted->x = x;
	posted->server = server;
	posted->visit = visit;
	posted->operation = server_operation(http_arena(x), args);
	posted->call.arena = http_arena(x);
	posted->call.caller = visit->caller;
	posted->call.caller.actor.req_id = posted->call.caller.req_id;
	posted->call.tool = tool;
	posted->call.args = args;
	posted->call.done = ops_done;
	http_keep(x);
	tools_call(server->tools, &posted->call);
}

/* ---- GET /signin?code=… ---- */

struct redeeming {
	struct str code, session;
};

static int redeem(struct tx *tx, void *arg, struct failure *f)
{
	struct redeeming *redeeming = arg;

	return sign_in_redeem(tx, redeeming->code, &redeeming->session, f);
}

/* Browsers name HTML; programs send nothing, or anything. */
static bool accepts_page(struct http_exchange *x)
{
	struct str accept = http_header(x, "Accept", NULL);

	return accept.p != NULL && memmem(accept.p, accept.n, "text/html", strlen("text/html")) != NULL;
}

static void serve_sign_in(struct server *server, struct http_exchange *x, struct visit *visit)
{
	struct arena *arena = http_arena(x);
	struct redeeming redeeming = {.code = http_query_value(x, "code")};
	struct http_field fields[4] = {
		{"Location", STR("/")}, {"Cache-Control", STR("no-store")}, {"Referrer-Policy", STR("no-referrer")}};
	struct failure f;

	failure_init(&f, arena);
	if (redeeming.code.n == 0)
		redeeming.code = STR("-");
	if (store_write(server->store, redeem, &redeeming, &actor_system, arena, &f) != 0) {
		if (f.code == FAIL_UNAUTHENTICATED && accepts_page(x))
			page_link_ended(x, failure_info(f.code)->http_status);
		else
			reply_failure(server, x, &f, visit->req_id);
		return;
	}
	fields[3] = (struct http_field){"Set-Cookie",
		str_printf(arena, "dais_session=%.*s; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200",
			STRF(redeeming.session))};
	http_reply(x, 303, fields, 4, STR(""));
}
