#include "cli/relay.h"

#include "base/limits.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char *copy_line(struct str line)
{
	char *copy = malloc(line.n + 2);

	if (copy == NULL)
		abort();
	memcpy(copy, line.p, line.n);
	copy[line.n] = '\n';
	copy[line.n + 1] = '\0';
	return copy;
}

static void keep_line(char **slot, struct str line)
{
	free(*slot);
	*slot = copy_line(line);
}

void relay_init(struct relay *relay)
{
	buf_init(&relay->from_client, NULL, SIZE_MAX);
	buf_init(&relay->from_server, NULL, SIZE_MAX);
	buf_init(&relay->to_client, NULL, SIZE_MAX);
	buf_init(&relay->to_server, NULL, SIZE_MAX);
}

static void pending_drop(struct relay *relay, size_t i)
{
	free(relay->pending[i].id);
	free(relay->pending[i].line);
	relay->pending[i] = relay->pending[--relay->pending_count];
}

void relay_finish(struct relay *relay)
{
	buf_finish(&relay->from_client);
	buf_finish(&relay->from_server);
	buf_finish(&relay->to_client);
	buf_finish(&relay->to_server);
	while (relay->pending_count > 0)
		pending_drop(relay, 0);
	for (size_t i = 0; i < relay->subscription_count; i++)
		free(relay->subscriptions[i]);
	free(relay->subscriptions);
	free(relay->initialize);
	free(relay->initialized);
	free(relay->initialize_id);
	free(relay->log_level);
	stand_in_destroy(relay->stand_in);
	arena_destroy(relay->why_arena);
	if (relay->socket >= 0)
		(void)close(relay->socket);
	(void)close(relay->out_fd);
}

/* {"jsonrpc":"2.0","id":…,"error":{…}}; an absent id is left out. */
static void answer_error(struct relay *relay, const char *id, int code, struct str message)
{
	struct json_writer w;

	json_writer_init(&w, &relay->to_client);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	if (id != NULL)
		jw_kraw(&w, "id", str_of(id));
	jw_kobject(&w, "error");
	jw_kint(&w, "code", code);
	jw_kstr(&w, "message", message);
	jw_object_end(&w);
	jw_object_end(&w);
	buf_add_char(&relay->to_client, '\n');
}

/* May this call be sent twice? Reads may, and whatever the server recognises by its key. */
static bool is_repeatable(const json_t *message, struct str method)
{
	const json_t *params = json_object_get(message, "params");
	struct str name = json_member_str(params, "name");

	if (!str_eq(method, STR("tools/call")))
		return true;
	return str_ends(name, STR("_read")) ||
		json_member_str(json_object_get(params, "arguments"), "idempotencyKey").n > 0;
}

static void remember_subscription(struct relay *relay, struct str line)
{
	char **grown = realloc(relay->subscriptions, (relay->subscription_count + 1) * sizeof(*grown));

	if (grown == NULL)
		abort();
	relay->subscriptions = grown;
	grown[relay->subscription_count++] = copy_line(line);
}

/* What a new connection will have to be told again. */
static void remember(struct relay *relay, struct str method, struct str line, const char *id)
{
	if (str_eq(method, STR("initialize"))) {
		keep_line(&relay->initialize, line);
		free(relay->initialize_id);
		relay->initialize_id = id == NULL ? NULL : strdup(id);
		free(relay->initialized);
		relay->initialized = NULL;
		while (relay->subscription_count > 0)
			free(relay->subscriptions[--relay->subscription_count]);
	} else if (str_eq(method, STR("notifications/initialized"))) {
		keep_line(&relay->initialized, line);
	} else if (str_eq(method, STR("logging/setLevel"))) {
		keep_line(&relay->log_level, line);
	} else if (str_eq(method, STR("resources/subscribe")) && relay->subscription_count < 256) {
		remember_subscription(relay, line);
	}
}

void relay_flush(struct relay *relay)
{
	ssize_t n;

	if (relay->socket < 0 || relay->to_server.n == 0)
		return;
	/* A broken socket shows when it is read. */
	n = send(relay->socket, relay->to_server.p, relay->to_server.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		buf_consume(&relay->to_server, (size_t)n);
}

/* Never waits: a server that waits for us to read would wait for ever. */
static void send_line(struct relay *relay, const char *line)
{
	if (relay->socket < 0)
		return;
	buf_add_str(&relay->to_server, str_of(line));
	relay_flush(relay);
}

static void take_request(struct relay *relay, const json_t *message, struct str method, struct str line)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const json_t *id = json_object_get(message, "id");
	const char *id_text = id == NULL ? NULL : str_z(arena, json_canonical(arena, id));
	char *whole;

	remember(relay, method, line, id_text);
	whole = copy_line(line);
	if (id_text != NULL && method.p != NULL && relay->pending_count < RELAY_PENDING) {
		struct pending *pending = &relay->pending[relay->pending_count++];

		*pending = (struct pending){
			.id = strdup(id_text),
			.line = copy_line(line),
			/* initialize is repeated as the session's opening, not as a request. */
			.may_repeat = is_repeatable(message, method),
			.is_sent = relay->socket >= 0,
		};
	}
	send_line(relay, whole);
	free(whole);
}

static void take_client_line(struct relay *relay, struct str line)
{
	struct json_error error;
	json_auto_t *message = NULL;

	if (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	if (str_trim(line).n == 0)
		return;
	message = json_read(line, &error);
	if (json_is_object(message)) {
		take_request(relay, message, json_member_str(message, "method"), line);
	} else {
		/* Batches, and what is no JSON: the server knows the answer. */
		char *whole = copy_line(line);

		if (relay->socket >= 0)
			send_line(relay, whole);
		else if (relay->stand_in != NULL)
			stand_in_feed(relay->stand_in, str_of(whole), &relay->why);
		free(whole);
	}
}

void relay_from_client(struct relay *relay, struct str bytes)
{
	buf_add_str(&relay->from_client, bytes);
	if (!relay->has_begun && relay->from_client.n >= 3) {
		if (memcmp(relay->from_client.p, "\xef\xbb\xbf", 3) == 0)
			buf_consume(&relay->from_client, 3);
		relay->has_begun = true;
	}
	for (;;) {
		const char *end = relay->from_client.n == 0
			? NULL
			: memchr(relay->from_client.p, '\n', relay->from_client.n);
		size_t n;

		if (end == NULL)
			break;
		n = (size_t)(end - relay->from_client.p);
		if (!relay->is_discarding)
			take_client_line(relay, (struct str){relay->from_client.p, n});
		relay->is_discarding = false;
		buf_consume(&relay->from_client, n + 1);
	}
	if (relay->from_client.n > RELAY_LINE_BYTES && !relay->is_discarding) {
		relay->is_discarding = true;
		answer_error(relay, NULL, -32600, STR("Message too large."));
	}
	if (relay->is_discarding)
		relay->from_client.n = 0;
}

/* True: the line is for the relay alone. */
static bool settle_answer(struct relay *relay, struct str line)
{
	AUTO(arena_destroyp) struct arena *arena = NULL;
	struct json_error error;
	json_auto_t *message = NULL;
	const json_t *id;
	const char *text;

	message = json_read(line, &error);
	id = json_object_get(message, "id");
	if (id == NULL || json_object_get(message, "method") != NULL)
		return false;
	arena = arena_create();
	text = str_z(arena, json_canonical(arena, id));
	if (relay->swallow_initialize && relay->initialize_id != NULL && strcmp(text, relay->initialize_id) == 0) {
		relay->swallow_initialize = false;
		return true;
	}
	for (size_t i = 0; i < relay->pending_count; i++) {
		if (strcmp(relay->pending[i].id, text) == 0) {
			pending_drop(relay, i);
			return false;
		}
	}
	/* Answers to what the relay repeated by itself (subscriptions) have ids that nobody waits for. */
	return json_is_string(id) && str_starts(json_str(id), STR("dais-relay-"));
}

void relay_from_server(struct relay *relay, struct str bytes)
{
	buf_add_str(&relay->from_server, bytes);
	for (;;) {
		const char *end = relay->from_server.n == 0
			? NULL
			: memchr(relay->from_server.p, '\n', relay->from_server.n);
		size_t n;

		if (end == NULL)
			return;
		n = (size_t)(end - relay->from_server.p) + 1;
		if (!settle_answer(relay, (struct str){relay->from_server.p, n - 1}))
			buf_add(&relay->to_client, relay->from_server.p, n);
		buf_consume(&relay->from_server, n);
	}
}

static bool is_initialize(const struct relay *relay, const struct pending *pending)
{
	return relay->initialize_id != NULL && strcmp(pending->id, relay->initialize_id) == 0;
}

/* The same request under an id of the relay's own. */
static void send_as_own(struct relay *relay, const char *line, size_t i)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct json_error error;
	json_auto_t *message = json_read(str_of(line), &error);

	if (!json_is_object(message))
		return;
	(void)json_object_set_new(message, "id", json_string(arena_printf(arena, "dais-relay-%zu", i)));
	send_line(relay, str_z(arena, str_printf(arena, "%.*s\n", STRF(json_canonical(arena, message)))));
}

int relay_replay(struct relay *relay)
{
	bool initialize_pending = false;

	for (size_t i = 0; i < relay->pending_count; i++)
		initialize_pending = initialize_pending || is_initialize(relay, &relay->pending[i]);
	if (relay->initialize != NULL) {
		/* An answer that the client has had already is not given again. */
		relay->swallow_initialize = !initialize_pending;
		send_line(relay, relay->initialize);
		if (relay->initialized != NULL)
			send_line(relay, relay->initialized);
		if (relay->log_level != NULL)
			send_as_own(relay, relay->log_level, 0);
		for (size_t i = 0; i < relay->subscription_count; i++)
			send_as_own(relay, relay->subscriptions[i], i + 1);
	}
	for (size_t i = 0; i < relay->pending_count; i++) {
		if (!is_initialize(relay, &relay->pending[i]))
			send_line(relay, relay->pending[i].line);
		relay->pending[i].is_sent = true;
	}
	return 0;
}

void relay_drop_unrepeatable(struct relay *relay)
{
	for (size_t i = 0; i < relay->pending_count;) {
		if (relay->pending[i].may_repeat || !relay->pending[i].is_sent) {
			i++;
			continue;
		}
		answer_error(relay, relay->pending[i].id, -32603,
			STR("The server restarted during this call; read back whether it took effect. Calls with an "
			    "idempotencyKey are repeated by themselves."));
		pending_drop(relay, i);
	}
}

/* ---- while there is no server ---- */

static void stand_in_says(void *context, struct str line)
{
	struct relay *relay = context;

	if (!relay->is_muted)
		buf_add_str(&relay->to_client, line);
}

static void begin_stand_in(struct relay *relay)
{
	const char *profile = getenv("MCP_TOOL_PROFILE");

	relay->stand_in = stand_in_create(profile == NULL ? STR_NONE : str_of(profile), stand_in_says, relay);
	if (relay->initialize == NULL)
		return;
	/* The session comes first; unless it is asked for just now, the client has its answer already. */
	relay->is_muted = true;
	for (size_t i = 0; i < relay->pending_count; i++)
		relay->is_muted = relay->is_muted && !is_initialize(relay, &relay->pending[i]);
	stand_in_feed(relay->stand_in, str_of(relay->initialize), &relay->why);
	relay->is_muted = false;
	for (size_t i = 0; i < relay->pending_count; i++)
		if (is_initialize(relay, &relay->pending[i]))
			pending_drop(relay, i--);
}

static void keep_reason(struct relay *relay, const struct failure *f)
{
	arena_destroy(relay->why_arena);
	relay->why_arena = arena_create();
	failure_init(&relay->why, relay->why_arena);
	(void)fail(&relay->why, f->code, "%.*s", STRF(f->message));
}

void relay_stand_in(struct relay *relay, const struct failure *f)
{
	keep_reason(relay, f);
	if (relay->stand_in == NULL)
		begin_stand_in(relay);
	while (relay->pending_count > 0) {
		struct pending *pending = &relay->pending[0];

		/* A subscription would have to be kept, and there is nothing to tell. */
		if (strstr(pending->line, "subscriptions/listen") != NULL)
			answer_error(relay, pending->id, -32603, f->message);
		else
			stand_in_feed(relay->stand_in, str_of(pending->line), &relay->why);
		pending_drop(relay, 0);
	}
}

void relay_step_back(struct relay *relay)
{
	stand_in_destroy(relay->stand_in);
	relay->stand_in = NULL;
}

size_t relay_unread(const struct relay *relay)
{
	return relay->to_client.n - relay->written;
}
