#include "http/framing.h"

#include "base/limits.h"

/* RFC 9110 5.6.2: tchar. */
static bool is_token_byte(unsigned char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return true;
	return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_token_byte((unsigned char)s.p[i]))
			return false;
	return s.n > 0;
}

static bool is_field_value(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* Origin form, or the asterisk. The absolute form is for proxies: its authority could differ from
 * Host, which is what the application checks. Bytes above 0x7f frame nothing and are let through. */
static bool is_target(struct str s)
{
	if (s.n == 0 || (s.p[0] != '/' && !str_eq(s, STR("*"))))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c == 0x7f)
			return false;
	}
	return true;
}

static int refuse(struct framing *out, int status, const char *reason)
{
	*out = (struct framing){.reason = reason};
	return status;
}

static int check_line(const struct framing_head *head, struct framing *out)
{
	if (head->target.n > LIMIT_HTTP_TARGET_BYTES)
		return refuse(out, 414, "the request target is longer than 8 KiB");
	if (!is_token(head->method))
		return refuse(out, 400, "the method is not a token");
	if (!is_target(head->target))
		return refuse(out, 400, "the request target is not a path");
	if (!str_eq(head->version, STR("HTTP/1.1")) && !str_eq(head->version, STR("HTTP/1.0")))
		return refuse(out, 505, "the version is neither HTTP/1.1 nor HTTP/1.0");
	return 0;
}

static int check_sizes(const struct framing_head *head, struct framing *out)
{
	size_t total = head->method.n + head->target.n + head->version.n + 4;

	if (head->n > LIMIT_HTTP_FIELDS)
		return refuse(out, 431, "there are more than 100 headers");
	for (size_t i = 0; i < head->n; i++) {
		size_t size = head->fields[i].name.n + head->fields[i].value.n + 4;

		if (size > LIMIT_HTTP_FIELD_BYTES)
			return refuse(out, 431, "a header is longer than 8 KiB");
		total += size;
	}
	if (total > LIMIT_HTTP_HEAD_BYTES)
		return refuse(out, 431, "the head is longer than 32 KiB");
	return 0;
}

/* Digits only. A value past 18 digits is no length of anything we take: 413, not arithmetic. */
static int read_length(struct str value, uint64_t *out)
{
	uint64_t length = 0;

	if (value.n == 0)
		return 400;
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] < '0' || value.p[i] > '9')
			return 400;
	if (value.n > 18)
		return 413;
	for (size_t i = 0; i < value.n; i++)
		length = length * 10 + (uint64_t)(value.p[i] - '0');
	*out = length;
	return 0;
}

struct seen {
	size_t length, encoding, host;
	struct str length_value, encoding_value;
};

static int check_fields(const struct framing_head *head, struct seen *seen, struct framing *out)
{
	for (size_t i = 0; i < head->n; i++) {
		struct str name = head->fields[i].name;
		struct str value = head->fields[i].value;

		if (!is_token(name))
			return refuse(out, 400, "a header name is not a token");
		if (!is_field_value(value))
			return refuse(out, 400, "a header value has a control byte");
		if (str_eq_nocase(name, STR("content-length"))) {
			seen->length++;
			seen->length_value = value;
		} else if (str_eq_nocase(name, STR("transfer-encoding"))) {
			seen->encoding++;
			seen->encoding_value = value;
		} else if (str_eq_nocase(name, STR("host"))) {
			seen->host++;
		}
	}
	return 0;
}

int framing_check(const struct framing_head *head, struct framing *out)
{
	bool is_1_0 = str_eq(head->version, STR("HTTP/1.0"));
	struct seen seen = {0};
	uint64_t length = 0;
	int status = check_line(head, out);

	if (status == 0)
		status = check_sizes(head, out);
	if (status == 0)
		status = check_fields(head, &seen, out);
	if (status != 0)
		return status;
	if (seen.host > 1 || (seen.host == 0 && !is_1_0))
		return refuse(out, 400, "there must be exactly one Host header");
	if (seen.length > 1)
		return refuse(out, 400, "there is more than one Content-Length");
	if (seen.encoding > 0 && (seen.length > 0 || seen.encoding > 1 || is_1_0))
		return refuse(out, 400, "Transfer-Encoding must be alone, once, and not in HTTP/1.0");
	/* The parser compares the untrimmed value: one blank more and it would read until the end of
	 * the connection, so what is not exactly "chunked" is refused. */
	if (seen.encoding > 0 && !str_eq_nocase(seen.encoding_value, STR("chunked")))
		return refuse(out, 400, "Transfer-Encoding can be chunked only");
	if (seen.length > 0)
		status = read_length(seen.length_value, &length);
	if (status == 400)
		return refuse(out, 400, "Content-Length must be decimal digits");
	if (status == 413)
		return refuse(out, 413, "Content-Length is larger than any body that is accepted");
	*out = (struct framing){.chunked = seen.encoding > 0, .length = length};
	return 0;
}
