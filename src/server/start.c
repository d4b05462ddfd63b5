/* The order in which the server comes up and goes down. */
#include "server/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "work/advance.h"
#include "server/providers.h"
#include "threads/threads.h"
#include "threads/wait.h"
#include "work/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int state_socket(struct arena *arena, const char *state_dir, const char **out, struct failure *f)
{
	struct sockaddr_un address;
	char *path = arena_printf(arena, "%s/dais.sock", state_dir);

	if (strlen(path) >= sizeof(address.sun_path))
		return fail(f, FAIL_CANNOT_CREATE,
			"The path %s is too long for a socket (%zu bytes, at most %zu); use a shorter --state.", path,
			strlen(path), sizeof(address.sun_path) - 1);
	*out = path;
	return 0;
}

const char *state_database(struct arena *arena, const char *state_dir, struct str store)
{
	if (str_starts(store, STR("sqlite:")) && store.n > strlen("sqlite:"))
		return arena_printf(arena, "%.*s", (int)(store.n - strlen("sqlite:")), store.p + strlen("sqlite:"));
	return arena_printf(arena, "%s/dais.db", state_dir);
}

int state_make_dir(const char *path, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *copy = arena_copy(arena, path, strlen(path));
	struct stat st;

	for (char *p = copy + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(copy, 0700); /* what matters is whether the last one exists */
		*p = '/';
	}
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return fail(f, errno == EACCES || errno == EROFS ? FAIL_NOT_PERMITTED : FAIL_CANNOT_CREATE,
			"The state directory %s cannot be made: %s.", path,
			errno == EACCES	      ? "not permitted"
				: errno == EROFS  ? "the file system is read-only"
				: errno == ENOSPC ? "the disk is full"
						  : strerror(errno));
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return fail(f, FAIL_CANNOT_CREATE, "%s is not a directory.", path);
	return 0;
}

/* ---- what is checked before anything is touched ---- */

static bool is_loopback(struct str listen)
{
	return str_starts(listen, STR("127.")) || str_starts(listen, STR("[::1]")) ||
		str_starts(listen, STR("localhost:"));
}

static int check_settings(const struct settings *settings, struct failure *f)
{
	struct str store = settings_text(settings, SETTING_STORE);
	const struct str *listen;
	size_t n = settings_list(settings, SETTING_LISTEN, &listen);

	for (size_t i = 0; i < n; i++)
		if (http_check_listen(listen[i], f) != 0)
			return -1;
	if (!str_eq(store, STR("sqlite")) && !str_starts(store, STR("sqlite:")))
		return fail(f, FAIL_BAD_CONFIGURATION, "store must be sqlite or sqlite:FILE, got \"%.*s\".",
			STRF(store));
	if ((settings_text(settings, SETTING_TLS_CERT).n > 0) != (settings_text(settings, SETTING_TLS_KEY).n > 0))
		return fail(f, FAIL_BAD_CONFIGURATION, "tls.cert and tls.key go together.");
	if (!str_eq(settings_text(settings, SETTING_AUTH_MODE), STR("none")))
		return 0;
	if (!settings_bool(settings, SETTING_AUTH_ALLOW_UNAUTHENTICATED))
		return fail(f, FAIL_BAD_CONFIGURATION,
			"auth.mode none also needs auth.allow_unauthenticated: true, so that nobody opens it by accident.");
	for (size_t i = 0; i < n; i++)
		if (!is_loopback(listen[i]))
			return fail(f, FAIL_BAD_CONFIGURATION,
				"auth.mode none is for loopback only, but listen has %.*s.", STRF(listen[i]));
	return 0;
}

/* ---- the global rules: .dais/config.yaml, or the older place ---- */

static const char *find_rules(struct arena *arena, const struct settings *settings)
{
	static const char *const places[] = {".dais/config.yaml", ".taskorchestrator/config.yaml"};
	struct str dir = settings_text(settings, SETTING_CONFIG_DIR);

	for (size_t i = 0; i < 2; i++) {
		char *path = arena_printf(arena, "%.*s/%s", STRF(dir), places[i]);

		if (access(path, F_OK) == 0)
			return path;
	}
	return NULL;
}

static int read_text(struct arena *arena, const char *path, struct str *out, struct failure *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf text;
	char bytes[16384];
	ssize_t n;

	if (fd < 0)
		return fail(f, FAIL_CONFIG_INVALID, "%s cannot be read.", path);
	buf_init(&text, arena, LIMIT_CONFIG_BYTES + 1);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0 && !text.overflow)
		buf_add(&text, bytes, (size_t)n);
	(void)close(fd);
	if (n < 0)
		return fail(f, FAIL_CONFIG_INVALID, "%s cannot be read.", path);
	if (text.overflow || text.n > LIMIT_CONFIG_BYTES)
		return fail(f, FAIL_CONFIG_INVALID, "%s is longer than %d bytes.", path, LIMIT_CONFIG_BYTES);
	*out = buf_str(&text);
	return 0;
}

/* Text that can be used; without a file *out has no path. */
static int read_rules(struct arena *arena, const struct settings *settings, struct config_import *out, struct failure *f)
{
	struct rules_doc *doc;
	struct warnings unsaid; /* the import says them */

	*out = (struct config_import){.path = find_rules(arena, settings)};
	if (out->path == NULL)
		return 0;
	warnings_init(&unsaid, arena, LIMIT_CONFIG_WARNINGS + 1);
	if (read_text(arena, out->path, &out->yaml, f) != 0 ||
		rules_parse(out->yaml, str_of(out->path), true, &unsaid, &doc, f) != 0)
		return -1;
	rules_doc_unref(doc);
	return 0;
}

static int import_rules(struct server *server, struct config_import *import, struct arena *arena, struct failure *f)
{
	if (import->path == NULL)
		return 0; /* the stored copy stays in force */
	return store_write(server->store, config_import_global, import, &actor_system, arena, f);
}

/* ---- the admin token of the first start ---- */

struct first_token {
	struct str id, token;
};

static int make_admin(struct tx *tx, void *arg, struct failure *f)
{
	struct first_token *first = arg;
	struct token_info wanted = {
		.id = STR("admin"), .description = STR("made at the first start"), .capabilities = CAP_ALL};

	return token_create(tx, &wanted, &first->id, &first->token, f);
}

static int write_private(const char *path, struct str text, struct failure *f)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok;

	if (fd < 0)
		return fail(f, FAIL_CANNOT_CREATE, "%s cannot be written.", path);
	ok = write(fd, text.p, text.n) == (ssize_t)text.n && write(fd, "\n", 1) == 1 && fsync(fd) == 0;
	(void)close(fd);
	return ok ? 0 : fail(f, FAIL_CANNOT_CREATE, "%s cannot be written.", path);
}

SQL(SQL_ADMIN_EXISTS, "SELECT 1 FROM token WHERE id = 'admin'");

static int ensure_admin(struct server *server, struct arena *arena, struct failure *f)
{
	char *path = arena_printf(arena, "%s/admin.token", server->state_dir);
	struct first_token first;
	struct snapshot s;
	int64_t one;
	int rc;

	if (server->is_open_mode)
		return 0;
	if (snapshot_begin(server->store, arena, &s, f) != 0)
		return -1;
	rc = query_int(&s, &one, f, SQL_ADMIN_EXISTS, "");
	snapshot_end(&s);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	(void)unlink(path); /* of a database that is gone */
	if (store_write(server->store, make_admin, &first, &actor_system, arena, f) != 0)
		return -1;
	return write_private(path, first.token, f);
}

/* ---- secrets of cursors and request states: kept, so that they survive a restart ---- */

static int load_key(struct server *server, struct arena *arena, unsigned char key[32], struct failure *f)
{
	char *path = arena_printf(arena, "%s/mcp.key", server->state_dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, key, 32);

	if (fd >= 0)
		(void)close(fd);
	if (n == 32)
		return 0;
	random_bytes(key, 32);
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail(f, FAIL_CANNOT_CREATE, "%s cannot be written.", path);
	n = write(fd, key, 32);
	(void)close(fd);
	return n == 32 ? 0 : fail(f, FAIL_CANNOT_CREATE, "%s cannot be written.", path);
}

/* ---- parts ---- */

/* A server that stops in order takes its socket away and folds the write-ahead log into the database. A socket
 * that was left, and no log beside the database, mean that somebody removed the log after a crash. */
static bool has_lost_its_log(struct arena *arena, const char *socket_path, const char *database)
{
	struct stat st;

	return socket_path != NULL && lstat(socket_path, &st) == 0 && S_ISSOCK(st.st_mode) && stat(database, &st) == 0 && st.st_size > 0 &&
		access(arena_printf(arena, "%s-wal", database), F_OK) != 0;
}

static int open_store(struct server *server, struct arena *arena, const char *socket_path, struct failure *f)
{
	struct store_options options = {
		.path = state_database(arena, server->state_dir, settings_text(server->settings, SETTING_STORE)),
		.readers = (unsigned)settings_int(server->settings, SETTING_STORE_READERS),
		.may_create = true,
		.is_exclusive = true,
	};
	bool has_lost = has_lost_its_log(arena, socket_path, options.path);

	if (store_open(&options, &server->store, f) != 0)
		return -1;
	if (has_lost)
		log_line(LOG_WARN, "store",
			"the write-ahead log of the last run is missing; what came after its last checkpoint is lost",
			{"missing", LOG_TEXT(arena_printf(arena, "%s-wal", options.path))});
	return 0;
}

static void make_guard(struct server *server)
{
	struct http_guard_options options = {
		.loopback_origins = true,
		.refuses_origins = true,
		.methods = "GET, POST, DELETE, OPTIONS",
		.request_headers = "Content-Type, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, "
				   "Mcp-Method, Mcp-Name, Last-Event-ID, Idempotency-Key, If-Match, If-None-Match, X-Dais-Workspace, "
				   "traceparent, tracestate",
		.request_header_prefix = "mcp-param-",
		.exposed_headers = "Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Req-Id, ETag",
		.max_age_s = 600,
	};

	options.host_count = settings_list(server->settings, SETTING_ALLOWED_HOSTS, &options.hosts);
	options.origin_count = settings_list(server->settings, SETTING_CORS_ORIGINS, &options.origins);
	server->guard = http_guard_create(&options);
}

static int make_mcp(struct server *server, struct arena *arena, struct failure *f)
{
	struct mcp_settings settings = {
		.handlers = &server_mcp_handlers,
		.app = server,
		.server_info = STR(SERVER_INFO),
		.key_count = 1,
		.offers_tasks = true,
		.max_wait_ms = settings_int(server->settings, SETTING_MCP_MAX_WAIT_MS),
	};

	if (load_key(server, arena, settings.keys[0], f) != 0)
		return -1;
	server->mcp = mcp_server_create(&settings);
	return 0;
}

static const char *text_or_null(struct arena *arena, struct str text)
{
	return text.n == 0 ? NULL : str_z(arena, text);
}

static int open_http(struct server *server, struct arena *arena, struct failure *f)
{
	const struct settings *s = server->settings;
	static const struct str any_port = {"127.0.0.1:0", sizeof("127.0.0.1:0") - 1};
	struct http_options options = {
		.tls_cert_file = text_or_null(arena, settings_text(s, SETTING_TLS_CERT)),
		.tls_key_file = text_or_null(arena, settings_text(s, SETTING_TLS_KEY)),
		.threads = (unsigned)settings_int(s, SETTING_HTTP_THREADS),
		.max_connections = (unsigned)settings_int(s, SETTING_HTTP_CONNECTIONS),
		.on_head = app_head,
		.on_request = app_request,
		.on_refuse = app_refuse,
		.app = server,
	};

	options.listen_count = settings_list(s, SETTING_LISTEN, &options.listen);
	server->listen_count = options.listen_count;
	if (options.listen_count == 0)
		return fail(f, FAIL_BAD_CONFIGURATION, "listen has no address.");
	if (http_open(&options, &server->http, f) == 0)
		return 0;
	if (!server->may_move || f->code != FAIL_CANNOT_CREATE)
		return -1;
	log_line(LOG_WARN, "server", "the default port is taken; another one is picked", {"reason", LOG_STRV(f->message)});
	failure_init(f, f->arena);
	options.listen = &any_port;
	options.listen_count = 1;
	return http_open(&options, &server->http, f);
}

/* ---- agents ---- */

/* git says where a work tree is by its real path. The directory is there by now. */
static const char *real_directory(struct server *server)
{
	char *path = realpath(server->state_dir, NULL);
	const char *copy = arena_printf(server->arena, "%s", path == NULL ? server->state_dir : path);

	free(path);
	return copy;
}

static int open_threads(struct server *server, struct failure *f)
{
	struct threads_options options = {
		.store = server->store,
		.directory = arena_printf(server->arena, "%s/agents", server->state_dir),
		.data = real_directory(server),
		.environment = (const char *const *)environ,
		.runs = settings_int(server->settings, SETTING_LIMITS_RUNS),
		.runs_per_project = settings_int(server->settings, SETTING_LIMITS_RUNS_PER_PROJECT),
		.runs_per_batch = settings_int(server->settings, SETTING_LIMITS_RUNS_PER_BATCH),
		.bounds = {.start = settings_int(server->settings, SETTING_AGENTS_START_MS),
			.stall = settings_int(server->settings, SETTING_AGENTS_STALL_MS),
			.turn = settings_int(server->settings, SETTING_AGENTS_TURN_MS),
			.interrupt = settings_int(server->settings, SETTING_AGENTS_INTERRUPT_MS),
			.idle = settings_int(server->settings, SETTING_AGENTS_IDLE_MS),
			.drain = settings_int(server->settings, SETTING_AGENTS_DRAIN_MS)},
	};
	struct providers providers;

	if (providers_load(server->settings, server->arena, &providers, f) != 0)
		return -1;
	options.instances = providers.all;
	options.instance_count = providers.count;
	if (threads_start(&options, &server->threads, f) != 0)
		return -1;
	tools_use_threads(server->tools, server->threads);
	return 0;
}

/* Agents call the first listener, by its loopback address. */
static void serve_agents(struct server *server)
{
	threads_serve(server->threads, str_printf(server->arena, "%.*s/mcp", STRF(server_url(server, 0))));
}

static int open_parts(struct server *server, struct arena *arena, struct failure *f)
{
	const char *socket_path = NULL;
	char *dir = str_z(arena, settings_text(server->settings, SETTING_CONFIG_DIR));
	struct config_import rules;

	/* The rules are read before the store is opened: a bad file migrates nothing. */
	if (check_settings(server->settings, f) != 0 || read_rules(arena, server->settings, &rules, f) != 0 ||
		state_make_dir(server->state_dir, f) != 0 || state_socket(arena, server->state_dir, &socket_path, f) != 0 ||
		open_store(server, arena, socket_path, f) != 0 ||
		open_http(server, arena, f) != 0 || local_open(server, socket_path, &server->local, f) != 0)
		return -1;
	lease_set_enforced(settings_bool(server->settings, SETTING_LEASES_ENFORCED));
	server->rules = rules_create();
	make_guard(server);
	/* Before the hub: from its first event on it tells MCP clients what changed. */
	if (make_mcp(server, arena, f) != 0)
		return -1;
	server->hub = stream_hub_create(server, f);
	if (server->hub == NULL || import_rules(server, &rules, arena, f) != 0 || ensure_admin(server, arena, f) != 0)
		return -1;
	server->tools = tools_create(server->store, server->rules, dir);
	server->call_log = call_log_create(server);
	if (open_threads(server, f) != 0 || sweeper_start(server, &server->sweeper, f) != 0)
		return -1;
	atomic_store(&server->is_ready, true);
	if (http_start(server->http, f) != 0 || local_start(server->local, f) != 0)
		return -1;
	serve_agents(server);
	return 0;
}

int server_start(const struct server_options *options, struct server **out, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		abort();
	server->arena = arena_create();
	server->settings = options->settings;
	server->may_move = options->may_move;
	server->state_dir = strdup(options->state_dir);
	if (server->state_dir == NULL)
		abort();
	server->started_at = clock_mono_ms();
	server->is_open_mode = str_eq(settings_text(options->settings, SETTING_AUTH_MODE), STR("none"));
	if (open_parts(server, arena, f) != 0) {
		server_stop(server);
		return -1;
	}
	if (server->is_open_mode)
		log_line(LOG_WARN, "server", "SECURITY: nobody needs a token (auth.mode none)",
			{"listen", LOG_STRV(server_url(server, 0))});
	*out = server;
	return 0;
}

size_t server_url_count(const struct server *server)
{
	return server->listen_count;
}

struct str server_url(const struct server *server, size_t i)
{
	return http_url(server->http, i);
}

static int make_code(struct tx *tx, void *arg, struct failure *f)
{
	return sign_in_create(tx, arg, f);
}

struct str server_sign_in_link(struct server *server, struct arena *arena)
{
	struct failure f;
	struct str code;

	if (server->is_open_mode)
		return STR_NONE;
	failure_init(&f, arena);
	if (store_write(server->store, make_code, &code, &actor_system, arena, &f) != 0)
		return STR_NONE;
	return str_printf(arena, "%.*s/signin?code=%.*s", STRF(server_url(server, 0)), STRF(code));
}

void server_reload(struct server *server)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct config_import rules;
	struct failure f;

	failure_init(&f, arena);
	if (read_rules(arena, server->settings, &rules, &f) == 0 && import_rules(server, &rules, arena, &f) == 0)
		log_line(LOG_INFO, "server", "rules reloaded");
	else
		log_line(LOG_ERROR, "server", "rules not reloaded; the earlier ones stay in force",
			{"reason", LOG_STRV(f.message)});
}

#define STOP_MS 3000

void server_stop(struct server *server)
{
	if (server == NULL)
		return;
	atomic_store(&server->is_ready, false);
	if (server->mcp != NULL)
		mcp_server_stop(server->mcp);
	stream_hub_stop(server->hub);
	waiters_expire();
	http_stop(server->http, STOP_MS);
	local_stop(server->local);
	sweeper_stop(server->sweeper);
	call_log_stop(server->call_log);
	threads_drain(server->threads);
	threads_stop(server->threads);
	store_close(server->store); /* answers every queued call; the last commit is on disk */
	http_close(server->http);
	mcp_server_destroy(server->mcp);
	stream_hub_destroy(server->hub);
	http_guard_destroy(server->guard);
	tools_destroy(server->tools);
	rules_destroy(server->rules);
	auth_finish();
	free(server->state_dir);
	arena_destroy(server->arena);
	free(server);
}
