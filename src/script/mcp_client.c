/* MCP over Streamable HTTP: what an agent needs to call a tool, and the patience to outlive a restart of the server.
 *
 * One connection and one MCP session for the life of the agent's session. A server that is away (no connection, a
 * broken one, 503) is tried again for a minute, when the call may be repeated: it carries a clientRequestId, or the
 * tool says that it only reads. A server that has forgotten the session is greeted anew. */
#include "script/private.h"

#include "base/clock.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdlib.h>

#define PROTOCOL "2025-11-25"
#define PATIENCE_MS 60000
#define FIRST_DELAY_MS 100
#define MAX_DELAY_MS 2000
#define CANCEL_MS 2000
#define BODY_BYTES (16 * 1024 * 1024)
#define TOOL_PAGES 20

struct mcp_client {
	CURL *easy;
	CURLM *multi;
	int wake; /* readable: cancelled */
	bool ignores_wake;
	uint64_t server_serial;
	bool is_open; /* the server has greeted us */
	char session[256];
	char version[32];
	int64_t next_id;
	json_t *reads; /* names of the tools that only read; NULL: not known */
};

enum verdict { FINE, AWAY, FORGOTTEN, CANCELLED, REFUSED };

struct reply {
	struct arena *arena;
	long status;
	struct buf body;
	bool is_stream;
	struct str session;     /* header; absent: none */
	int64_t retry_ms;       /* header; 0: none */
	json_t *message;        /* the answer to our id; owned */
	const char *why, *text; /* of what is not FINE */
};

struct mcp_client *mcp_client_create(int wake, uint64_t server_serial)
{
	struct mcp_client *mcp = calloc(1, sizeof(*mcp));

	if (mcp == NULL)
		abort();
	mcp->easy = curl_easy_init();
	mcp->multi = curl_multi_init();
	if (mcp->easy == NULL || mcp->multi == NULL)
		abort();
	mcp->wake = wake;
	mcp->server_serial = server_serial;
	return mcp;
}

void mcp_client_destroy(struct mcp_client *mcp)
{
	if (mcp == NULL)
		return;
	curl_easy_cleanup(mcp->easy);
	(void)curl_multi_cleanup(mcp->multi);
	json_decref(mcp->reads);
	free(mcp);
}

uint64_t mcp_client_serial(const struct mcp_client *mcp)
{
	return mcp->server_serial;
}

/* ---- one request ---- */

/* The body is read, not handed over: curl repeats a request by itself when a kept connection breaks, and whether a call
 * may be repeated is not for it to say. What it has read once it cannot send again. */
static size_t give_body(char *bytes, size_t size, size_t n, void *context)
{
	struct str *rest = context;
	size_t count = size * n < rest->n ? size * n : rest->n;

	memcpy(bytes, rest->p, count);
	*rest = (struct str){rest->p + count, rest->n - count};
	return count;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *context)
{
	struct reply *reply = context;

	buf_add(&reply->body, bytes, size * n);
	return reply->body.overflow ? 0 : n;
}

static size_t take_header(char *bytes, size_t size, size_t n, void *context)
{
	struct reply *reply = context;
	struct str line = {bytes, size * n};
	const char *colon = memchr(bytes, ':', line.n);
	struct str name, value;
	int64_t seconds;

	if (colon == NULL)
		return n;
	name = (struct str){bytes, (size_t)(colon - bytes)};
	value = str_trim((struct str){colon + 1, line.n - name.n - 1});
	if (str_eq_nocase(name, STR("mcp-session-id")))
		reply->session = str_dup(reply->arena, value);
	else if (str_eq_nocase(name, STR("content-type")))
		reply->is_stream = str_starts(value, STR("text/event-stream"));
	else if (str_eq_nocase(name, STR("retry-after")) && str_to_int(value, &seconds) && seconds >= 0)
		reply->retry_ms = seconds < PATIENCE_MS / 1000 ? seconds * 1000 : PATIENCE_MS;
	return n;
}

static struct curl_slist *add_line(struct curl_slist *list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(list, line);

	if (longer == NULL)
		abort();
	return longer;
}

static struct curl_slist *headers_of(const struct mcp_client *mcp, const struct mcp_server *server, struct arena *arena)
{
	struct curl_slist *list = add_line(NULL, "Content-Type: application/json");

	list = add_line(list, "Accept: application/json, text/event-stream");
	list = add_line(list, "Expect:"); /* do not wait for a permission to send */
	if (mcp->version[0] != '\0')
		list = add_line(list, arena_printf(arena, "MCP-Protocol-Version: %s", mcp->version));
	if (mcp->session[0] != '\0')
		list = add_line(list, arena_printf(arena, "Mcp-Session-Id: %s", mcp->session));
	for (size_t i = 0; i < server->header_count; i++)
		list = add_line(list, arena_printf(arena, "%.*s: %.*s", STRF(server->headers[i].name),
					      STRF(server->headers[i].value)));
	return list;
}

/* `rest` and `headers` live until the transfer is over. */
static void set_up(struct mcp_client *mcp, const struct mcp_server *server, struct str *rest,
	struct curl_slist *headers, struct reply *reply)
{
	CURL *easy = mcp->easy;

	curl_easy_reset(easy); /* keeps the connections */
	(void)curl_easy_setopt(easy, CURLOPT_URL, str_z(reply->arena, server->url));
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(
		easy, CURLOPT_PROXY, ""); /* the endpoint is this machine's, whatever the environment says */
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rest->n);
	(void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
	(void)curl_easy_setopt(easy, CURLOPT_READDATA, rest);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, reply);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, reply);
	if (mcp->ignores_wake)
		(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)CANCEL_MS);
}

/* Until the transfer is over; false: cancelled. A call may take long (it may wait for other agents): no limit. */
static bool drive(struct mcp_client *mcp, CURLcode *result)
{
	struct curl_waitfd wake = {.fd = mcp->wake, .events = CURL_WAIT_POLLIN};
	int running = 1, left;
	CURLMsg *message;

	while (curl_multi_perform(mcp->multi, &running) == CURLM_OK && running > 0) {
		(void)curl_multi_poll(mcp->multi, &wake, mcp->ignores_wake ? 0 : 1, 1000, NULL);
		if (wake.revents != 0 && !mcp->ignores_wake)
			return false;
	}
	*result = CURLE_RECV_ERROR;
	while ((message = curl_multi_info_read(mcp->multi, &left)) != NULL)
		if (message->msg == CURLMSG_DONE)
			*result = message->data.result;
	return true;
}

static enum verdict judge(struct reply *reply, CURLcode result)
{
	if (result != CURLE_OK) {
		reply->why = "connection_lost";
		reply->text = curl_easy_strerror(result);
		return AWAY;
	}
	if (reply->status >= 200 && reply->status < 300)
		return FINE;
	reply->why = arena_printf(reply->arena, "http_%ld", reply->status);
	reply->text = arena_printf(reply->arena, "the MCP server answered with status %ld", reply->status);
	if (reply->status == 503)
		return AWAY;
	return reply->status == 404 ? FORGOTTEN : REFUSED;
}

static enum verdict post(struct mcp_client *mcp, const struct mcp_server *server, struct str body, struct reply *reply)
{
	struct curl_slist *headers = headers_of(mcp, server, reply->arena);
	CURLcode result = CURLE_OK;
	bool is_over;

	buf_init(&reply->body, reply->arena, BODY_BYTES);
	set_up(mcp, server, &body, headers, reply);
	(void)curl_multi_add_handle(mcp->multi, mcp->easy);
	is_over = drive(mcp, &result);
	(void)curl_easy_getinfo(mcp->easy, CURLINFO_RESPONSE_CODE, &reply->status);
	(void)curl_multi_remove_handle(mcp->multi, mcp->easy);
	curl_slist_free_all(headers);
	return is_over ? judge(reply, result) : CANCELLED;
}

/* ---- one call of JSON-RPC ---- */

static bool take_message(struct reply *reply, struct str text, int64_t id)
{
	struct json_error error;
	json_t *message = json_read(text, &error);
	const json_t *its = json_object_get(message, "id");

	if (json_is_integer(its) && json_integer_value(its) == id && json_object_get(message, "method") == NULL) {
		reply->message = message;
		return true;
	}
	json_decref(message);
	return false;
}

/* The data of each event in turn; the others on the stream are notices. */
static void take_events(struct reply *reply, int64_t id)
{
	struct str rest = buf_str(&reply->body);
	struct buf data;

	buf_init(&data, reply->arena, BODY_BYTES);
	while (rest.n > 0) {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct str line = {rest.p, end == NULL ? rest.n : (size_t)(end - rest.p)};

		rest = end == NULL ? STR("") : (struct str){end + 1, rest.n - line.n - 1};
		line = str_trim(line);
		if (str_starts(line, STR("data:")))
			buf_add(&data, line.p + 5, line.n - 5);
		else if (line.n == 0 && data.n > 0) {
			if (take_message(reply, buf_str(&data), id))
				return;
			buf_consume(&data, data.n);
		}
	}
}

static struct str envelope(struct arena *arena, const char *method, int64_t id, struct str params)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_kint_opt(&w, "id", id); /* 0: a notification */
	jw_ktext(&w, "method", method);
	jw_kraw(&w, "params", params);
	jw_object_end(&w);
	return buf_str(&out);
}

static enum verdict request(struct mcp_client *mcp, const struct mcp_server *server, const char *method,
	struct str params, struct reply *reply)
{
	int64_t id = ++mcp->next_id;
	enum verdict verdict = post(mcp, server, envelope(reply->arena, method, id, params), reply);

	if (verdict != FINE)
		return verdict;
	if (reply->is_stream)
		take_events(reply, id);
	else
		(void)take_message(reply, buf_str(&reply->body), id);
	if (reply->message != NULL)
		return FINE;
	/* A stream that ends before the answer is a server that went away; anything else is none of ours. */
	reply->why = reply->is_stream ? "connection_lost" : "unreadable";
	reply->text = "the MCP server did not answer the request";
	return reply->is_stream ? AWAY : REFUSED;
}

/* ---- the session ---- */

static void copy_text(char *to, size_t size, struct str from)
{
	size_t n = from.n < size ? from.n : 0; /* too long: as if there were none */

	memcpy(to, from.p == NULL ? "" : from.p, n);
	to[n] = '\0';
}

static void forget(struct mcp_client *mcp)
{
	mcp->is_open = false;
	mcp->session[0] = '\0';
	mcp->version[0] = '\0';
}

static enum verdict greet(struct mcp_client *mcp, const struct mcp_server *server, struct reply *reply)
{
	static const char hello[] = "{\"protocolVersion\":\"" PROTOCOL "\",\"capabilities\":{},\"clientInfo\":"
				    "{\"name\":\"dais-script\",\"version\":\"" DAIS_VERSION "\"}}";
	struct reply noted = {.arena = reply->arena};
	enum verdict verdict;

	forget(mcp);
	verdict = request(mcp, server, "initialize", STR(hello), reply);
	if (verdict != FINE)
		return verdict;
	copy_text(mcp->session, sizeof(mcp->session), reply->session);
	copy_text(mcp->version, sizeof(mcp->version),
		json_member_str(json_object_get(reply->message, "result"), "protocolVersion"));
	json_decref(reply->message);
	reply->message = NULL;
	verdict = post(mcp, server, envelope(reply->arena, "notifications/initialized", 0, STR("{}")), &noted);
	reply->why = noted.why;
	reply->text = noted.text;
	reply->retry_ms = noted.retry_ms;
	mcp->is_open = verdict == FINE;
	return verdict;
}

static void note_readers(struct mcp_client *mcp, const json_t *tools)
{
	for (size_t i = 0; i < json_array_size(tools); i++) {
		const json_t *tool = json_array_get(tools, i);
		struct str name = json_member_str(tool, "name");

		if (json_is_true(json_object_get(json_object_get(tool, "annotations"), "readOnlyHint")) &&
			name.p != NULL)
			(void)json_object_setn_new(mcp->reads, name.p, name.n, json_true());
	}
}

static enum verdict list_tools(
	struct mcp_client *mcp, const struct mcp_server *server, struct arena *arena, struct reply *reply)
{
	struct str params = STR("{}");
	enum verdict verdict = FINE;

	mcp->reads = json_object();
	for (int page = 0; page < TOOL_PAGES && params.p != NULL && verdict == FINE; page++) {
		const json_t *result;
		struct str cursor;

		*reply = (struct reply){.arena = arena};
		verdict = request(mcp, server, "tools/list", params, reply);
		result = json_object_get(reply->message, "result");
		note_readers(mcp, json_object_get(result, "tools"));
		cursor = json_member_str(result, "nextCursor");
		params = cursor.p == NULL ? STR_NONE
		                          : str_printf(arena, "{\"cursor\":%s}",
						    json_canonical(arena, json_object_get(result, "nextCursor")).p);
		json_decref(reply->message);
		reply->message = NULL;
	}
	if (verdict != FINE) { /* ask again next time */
		json_decref(mcp->reads);
		mcp->reads = NULL;
	}
	return verdict;
}

/* ---- a call ---- */

struct attempt {
	struct reply reply;
	bool is_sent; /* the server may have heard of the call */
};

static enum verdict try_once(
	struct mcp_client *mcp, const struct mcp_call *call, struct arena *arena, struct attempt *attempt)
{
	enum verdict verdict = FINE;
	struct json_writer w;
	struct buf params;

	attempt->reply = (struct reply){.arena = arena};
	if (!mcp->is_open)
		verdict = greet(mcp, call->server, &attempt->reply);
	if (verdict == FINE && call->retry == RETRY_AS_SAFE && !call->has_request_id && mcp->reads == NULL)
		verdict = list_tools(mcp, call->server, arena, &attempt->reply);
	if (verdict != FINE)
		return verdict;
	buf_init(&params, arena, SIZE_MAX);
	json_writer_init(&w, &params);
	jw_object_begin(&w);
	jw_kstr(&w, "name", call->tool);
	jw_kraw(&w, "arguments", call->arguments);
	jw_object_end(&w);
	attempt->reply = (struct reply){.arena = arena};
	attempt->is_sent = true;
	return request(mcp, call->server, "tools/call", buf_str(&params), &attempt->reply);
}

static bool may_repeat(const struct mcp_client *mcp, const struct mcp_call *call, bool is_sent)
{
	if (call->retry != RETRY_AS_SAFE)
		return call->retry == RETRY_YES;
	return !is_sent || call->has_request_id || json_object_getn(mcp->reads, call->tool.p, call->tool.n) != NULL;
}

/* False: cancelled. */
static bool wait_ms(const struct mcp_client *mcp, int64_t ms)
{
	struct pollfd wake = {.fd = mcp->wake, .events = POLLIN};

	return poll(&wake, 1, (int)ms) <= 0;
}

/* The server may go on working on it: tell it that nobody waits. */
static void withdraw(struct mcp_client *mcp, const struct mcp_call *call, struct arena *arena)
{
	struct reply reply = {.arena = arena};

	if (!mcp->is_open)
		return;
	mcp->ignores_wake = true;
	(void)post(mcp, call->server,
		envelope(arena, "notifications/cancelled", 0,
			str_printf(arena, "{\"requestId\":%lld}", (long long)mcp->next_id)),
		&reply);
	mcp->ignores_wake = false;
}

int mcp_client_call(struct mcp_client *mcp, const struct mcp_call *call, struct arena *arena, json_t **out,
	const char **why, const char **text)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS, delay_ms = FIRST_DELAY_MS;
	struct attempt attempt = {0};
	enum verdict verdict;

	for (;;) {
		int64_t pause_ms;

		verdict = try_once(mcp, call, arena, &attempt);
		pause_ms = attempt.reply.retry_ms > delay_ms ? attempt.reply.retry_ms : delay_ms;
		if (verdict == FORGOTTEN && mcp->is_open) {
			forget(mcp); /* then once more; a server that answers a greeting so is none */
			continue;
		}
		if (verdict != AWAY || !may_repeat(mcp, call, attempt.is_sent) || clock_mono_ms() + pause_ms > until)
			break;
		if (!wait_ms(mcp, pause_ms)) {
			verdict = CANCELLED;
			break;
		}
		delay_ms = delay_ms * 2 < MAX_DELAY_MS ? delay_ms * 2 : MAX_DELAY_MS;
	}
	*out = attempt.reply.message;
	*why = attempt.reply.why;
	*text = attempt.reply.text;
	if (verdict == CANCELLED && attempt.is_sent)
		withdraw(mcp, call, arena);
	return verdict == FINE ? 0 : verdict == CANCELLED ? 1 : -1;
}
