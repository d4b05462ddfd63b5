#include "mcp/message.h"

#include "base/limits.h"

static const struct str version_names[MCP_VERSIONS] = {
	[MCP_2024_11_05] = {"2024-11-05", 10},
	[MCP_2025_03_26] = {"2025-03-26", 10},
	[MCP_2025_06_18] = {"2025-06-18", 10},
	[MCP_2025_11_25] = {"2025-11-25", 10},
	[MCP_2026_07_28] = {"2026-07-28", 10},
};

#define SAFE_INTEGER ((int64_t)1 << 53) /* exact in every client */
#define MESSAGE_CHARS 300

int refusal_set(struct refusal *r, enum mcp_code code, int status, struct str message)
{
	*r = (struct refusal){code, status, message, STR_NONE};
	return -1;
}

struct str revision_text(enum mcp_version version)
{
	return version_names[version];
}

int revision_find(struct str text)
{
	for (int i = 0; i < MCP_VERSIONS; i++)
		if (str_eq(version_names[i], text))
			return i;
	return -1;
}

bool message_name_fits(struct str text, size_t max)
{
	return text.p != NULL && text.n <= max && memchr(text.p, '\0', text.n) == NULL;
}

json_t *message_parse(struct str text, struct refusal *r)
{
	struct json_error error;
	json_t *value;

	if (text.n > LIMIT_MESSAGE_BYTES) {
		(void)refusal_set(r, MCP_INVALID_REQUEST, 413, STR("The message is too large."));
		return NULL;
	}
	value = json_read(text, &error);
	if (value != NULL)
		return value;
	switch (error.problem) {
	case JSON_OVER_LIMIT:
		(void)refusal_set(r, MCP_INVALID_REQUEST, 400,
			STR("The message nests too deep or holds too much."));
		break;
	case JSON_DUPLICATE_KEY:
		(void)refusal_set(r, MCP_INVALID_REQUEST, 400, STR("The message has a key twice."));
		break;
	case JSON_NOT_UTF8:
		(void)refusal_set(r, MCP_PARSE_ERROR, 400, STR("The message is not UTF-8."));
		break;
	case JSON_FINE:
	case JSON_SYNTAX:
		(void)refusal_set(r, MCP_PARSE_ERROR, 400, STR("The message is not JSON."));
		break;
	}
	return NULL;
}

static int read_id(struct arena *arena, const json_t *id, struct message *out, struct refusal *r)
{
	struct buf text;
	struct json_writer w;

	if (json_is_integer(id)) {
		json_int_t value = json_integer_value(id);

		if (value >= SAFE_INTEGER || value <= -SAFE_INTEGER)
			return refusal_set(
				r, MCP_INVALID_REQUEST, 400, STR("The id is too large a number."));
		out->id = str_printf(arena, "%lld", (long long)value);
		return 0;
	}
	if (!json_is_string(id))
		return refusal_set(r, MCP_INVALID_REQUEST, 400,
			STR("The id is neither a string nor an integer."));
	if (!message_name_fits(json_str(id), LIMIT_MCP_REQUEST_ID_BYTES))
		return refusal_set(
			r, MCP_INVALID_REQUEST, 400, STR("The id is too long, or holds a NUL."));
	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_str(&w, json_str(id));
	out->id = buf_str(&text);
	return 0;
}

static int read_method(const json_t *method, struct message *out, struct refusal *r)
{
	if (!json_is_string(method))
		return refusal_set(r, MCP_INVALID_REQUEST, 400, STR("The method is not a string."));
	out->method = json_str(method);
	if (!message_name_fits(out->method, LIMIT_MCP_METHOD_BYTES))
		return refusal_set(r, MCP_INVALID_REQUEST, 400,
			STR("The method is too long, or holds a NUL."));
	return 0;
}

int message_read(struct arena *arena, json_t *value, struct message *out, struct refusal *r)
{
	json_t *id = json_object_get(value, "id");
	json_t *method = json_object_get(value, "method");
	json_t *params = json_object_get(value, "params");

	*out = (struct message){.whole = value};
	if (!json_is_object(value))
		return refusal_set(
			r, MCP_INVALID_REQUEST, 400, STR("The message is not an object."));
	if (id != NULL && read_id(arena, id, out, r) != 0)
		return -1;
	if (!str_eq(json_member_str(value, "jsonrpc"), STR("2.0")))
		return refusal_set(r, MCP_INVALID_REQUEST, 400, STR("jsonrpc is not \"2.0\"."));
	if (method == NULL && id != NULL &&
		(json_object_get(value, "result") != NULL ||
			json_object_get(value, "error") != NULL)) {
		out->kind = MESSAGE_RESPONSE;
		return 0;
	}
	if (read_method(method, out, r) != 0)
		return -1;
	out->kind = id != NULL ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION;
	if (params != NULL && !json_is_object(params))
		return refusal_set(r, MCP_INVALID_REQUEST, 400, STR("params is not an object."));
	out->params = params;
	out->meta = json_object_get(params, "_meta");
	out->claim = json_object_get(out->meta, META_VERSION);
	return 0;
}

void message_error_object(struct json_writer *w, int code, struct str message, struct str data)
{
	jw_object_begin(w);
	jw_kint(w, "code", code);
	jw_kstr(w, "message", (struct str){message.p, utf8_offset(message, MESSAGE_CHARS)});
	if (data.n > 0)
		jw_kraw(w, "data", data);
	jw_object_end(w);
}

void message_error(struct buf *out, struct str id, const struct refusal *r)
{
	struct json_writer w;

	json_writer_init(&w, out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	if (id.p != NULL)
		jw_kraw(&w, "id", id);
	jw_key(&w, "error");
	message_error_object(&w, r->code, r->message, r->data);
	jw_object_end(&w);
}

unsigned client_features(const json_t *capabilities)
{
	const json_t *elicit = json_object_get(capabilities, "elicitation");
	const json_t *extensions = json_object_get(capabilities, "extensions");
	unsigned features = 0;

	if (json_is_object(elicit)) {
		/* An empty object is how clients of 2025-06-18 say "forms". */
		if (json_object_size(elicit) == 0 ||
			json_is_object(json_object_get(elicit, "form")))
			features |= MCP_CAN_ELICIT_FORM;
		if (json_is_object(json_object_get(elicit, "url")))
			features |= MCP_CAN_ELICIT_URL;
	}
	if (json_is_object(json_object_get(capabilities, "sampling")))
		features |= MCP_CAN_SAMPLE;
	if (json_is_object(json_object_get(capabilities, "roots")))
		features |= MCP_CAN_LIST_ROOTS;
	if (json_is_object(json_object_get(extensions, EXTENSION_TASKS)))
		features |= MCP_CAN_TASKS;
	return features;
}
