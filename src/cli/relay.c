#include "cli/relay.h"

#include "base/limits.h"

#include <stdlib.h>
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
	while (relay->pending_count > 0)
		pending_drop(relay, 0);
	for (size_t i = 0; i < relay->subscription_count; i++)
		free(relay->subscriptions[i]);
	free(relay->subscriptions);
	free(relay->initialize);
	free(relay->initialized);
	free(relay->initialize_id);
	free(relay->log_level);
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

static void send_line(struct relay *relay, const char *line)
{
	if (relay->socket >= 0)
		(void)write_all(relay->socket, str_of(line)); /* a broken socket shows when it is read */
}

static void take_request(struct relay *relay, const json_t *message, struct str method, struct str line)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const json_t *id = json_object_get(message, "id");
	const char *id_text = id == NULL ? NULL : str_z(arena, json_canonical(arena, id));
	char *whole;

	if (id_text != NULL && relay->refusal.n > 0) {
		answer_error(relay, id_text, -32603, relay->refusal);
		return;
	}
	remember(relay, method, line, id_text);
	whole = copy_line(line);
	if (id_text != NULL && method.p != NULL && relay->pending_count < RELAY_PENDING) {
		struct pending *pending = &relay->pending[relay->pending_count++];

		pending->id = strdup(id_text);
		/* initialize is repeated as the session's opening, not as a request. */
		pending->line = is_repeatable(message, method) ? copy_line(line) : NULL;
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
	} else if (relay->refusal.n > 0) {
		answer_error(relay, NULL, -32700, STR("Not JSON."));
	} else {
		/* Batches, and what is no JSON: the server knows the answer. */
		char *whole = copy_line(line);

		send_line(relay, whole);
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
	for (size_t i = 0; i < relay->pending_count; i++)
		if (!is_initialize(relay, &relay->pending[i]) && relay->pending[i].line != NULL)
			send_line(relay, relay->pending[i].line);
	return 0;
}

void relay_drop_unrepeatable(struct relay *relay)
{
	for (size_t i = 0; i < relay->pending_count;) {
		if (relay->pending[i].line != NULL) {
			i++;
			continue;
		}
		answer_error(relay, relay->pending[i].id, -32603,
			STR("The server restarted during this call; read back whether it took effect. Calls with an "
			    "idempotencyKey are repeated by themselves."));
		pending_drop(relay, i);
	}
}

void relay_fail_all(struct relay *relay, const struct failure *f)
{
	while (relay->pending_count > 0) {
		answer_error(relay, relay->pending[0].id, -32603, f->message);
		pending_drop(relay, 0);
	}
}
