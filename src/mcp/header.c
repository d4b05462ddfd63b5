/* Headers that must repeat what the body says, so that a proxy and we cannot be told different
 * things. */
#include "base/limits.h"
#include "mcp/inside.h"

#include <openssl/evp.h>
#include <stdlib.h>

static int mismatch(
	struct mcp_request *req_of_text, struct refusal *r, const char *name, const char *what)
{
	return refusal_set(r, MCP_HEADER_MISMATCH, 400,
		str_printf(req_of_text->arena, "The header %s %s.", name, what));
}

/* Standard alphabet, padded, nothing else. */
static bool base64_decode(struct arena *arena, struct str text, struct str *out)
{
	unsigned char *bytes;
	size_t padding = 0;
	int n;

	if (text.n % 4 != 0)
		return false;
	while (padding < 2 && padding < text.n && text.p[text.n - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < text.n - padding; i++) {
		char c = text.p[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			    c == '+' || c == '/'))
			return false;
	}
	bytes = arena_alloc(arena, text.n / 4 * 3 + 1);
	n = EVP_DecodeBlock(bytes, (const unsigned char *)text.p, (int)text.n);
	if (n < 0)
		return false;
	*out = (struct str){(const char *)bytes, (size_t)n - padding};
	return utf8_check(*out) == out->n;
}

bool header_decode(struct arena *arena, struct str value, struct str *out)
{
	static const char prefix[] = "=?base64?";
	size_t head = sizeof(prefix) - 1;

	value = str_trim(value);
	if (value.n > LIMIT_MCP_HEADER_BYTES)
		return false;
	*out = value;
	if (value.n < head + 2 || !str_starts(value, str_of(prefix)) || !str_ends(value, STR("?=")))
		return utf8_check(value) == value.n;
	return base64_decode(arena, (struct str){value.p + head, value.n - head - 2}, out);
}

/* -1: refused. 0: absent. 1: *out is its value. */
static int header_get(struct mcp_request *req, const struct header_view *headers, const char *name,
	struct str *out, struct refusal *r)
{
	bool differ = false;
	size_t count = 0;
	struct str raw = headers->get(headers->source, name, &count, &differ);

	if (count == 0)
		return 0;
	if (differ)
		return mismatch(req, r, name, "was sent more than once");
	if (!header_decode(req->arena, raw, out))
		return mismatch(req, r, name, "cannot be decoded");
	return 1;
}

int header_check_version(
	struct mcp_request *req, const struct header_view *headers, struct refusal *r)
{
	static const char name[] = "MCP-Protocol-Version";
	struct str claim = json_str(req->message.claim);
	struct str value;
	int found;

	if (claim.p == NULL)
		return 0; /* the envelope says what is wrong */
	found = header_get(req, headers, name, &value, r);
	if (found < 0)
		return -1;
	if (found == 0)
		return mismatch(req, r, name, "is missing");
	return str_eq(value, claim) ? 0 : mismatch(req, r, name, "does not match the request body");
}

static int check_one(struct mcp_request *req, const struct header_view *headers, const char *name,
	struct str want, struct refusal *r)
{
	struct str value;
	int found = header_get(req, headers, name, &value, r);

	if (found < 0)
		return -1;
	if (found == 0)
		return mismatch(req, r, name, "is missing");
	return str_eq(value, want) ? 0 : mismatch(req, r, name, "does not match the request body");
}

int header_check(struct mcp_request *req, const struct header_view *headers, struct refusal *r)
{
	if (check_one(req, headers, "Mcp-Method", req->message.method, r) != 0)
		return -1;
	if (req->method == NULL || req->target.p == NULL)
		return 0;
	return check_one(req, headers, "Mcp-Name", req->target, r);
}

static bool param_matches(struct arena *arena, const json_t *value, struct str header)
{
	char *end;

	if (json_is_string(value))
		return str_eq(json_str(value), header);
	if (json_is_boolean(value))
		return str_eq(header, json_is_true(value) ? STR("true") : STR("false"));
	if (json_is_number(value)) {
		char *text = str_z(arena, header);
		double number = strtod(text, &end);
		int64_t exact;

		if (json_is_integer(value) && str_to_int(header, &exact))
			return exact == json_integer_value(value);
		return header.n > 0 && *end == '\0' && number == json_number_value(value);
	}
	return false;
}

int header_check_params(struct mcp_request *req, const struct mcp_tool *tool,
	const struct header_view *headers, struct refusal *r)
{
	const json_t *arguments = json_object_get(req->message.params, "arguments");

	for (size_t i = 0; i < tool->header_param_count; i++) {
		const struct mcp_header_param *param = &tool->header_params[i];
		const char *name = arena_printf(req->arena, "Mcp-Param-%.*s", STRF(param->header));
		const json_t *value =
			json_object_getn(arguments, param->property.p, param->property.n);
		struct str text;
		int found = header_get(req, headers, name, &text, r);

		if (found < 0)
			return -1;
		if (value == NULL || json_is_null(value)) {
			if (found != 0)
				return mismatch(req, r, name, "has no value in the request body");
			continue;
		}
		if (found == 0)
			return mismatch(req, r, name, "is missing");
		if (!param_matches(req->arena, value, text))
			return mismatch(req, r, name, "does not match the request body");
	}
	return 0;
}
