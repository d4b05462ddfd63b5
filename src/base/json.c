/* Reading: one linear scan enforces the limits and mends lone surrogates, then jansson parses. */
#include "base/json.h"

#include "base/clock.h"
#include "base/limits.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void problem(struct json_error *error, enum json_problem kind, size_t at, const char *text)
{
	error->problem = kind;
	error->at = at;
	(void)snprintf(error->text, sizeof(error->text), "%s at byte %zu", text, at);
}

static int hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int digit = c >= '0' && c <= '9' ? c - '0'
			: c >= 'a' && c <= 'f'   ? c - 'a' + 10
			: c >= 'A' && c <= 'F'   ? c - 'A' + 10
						 : -1;

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Behind the string that opens at `at`, or 0 with *error set. Escapes of lone surrogates are
 * overwritten by \u0000. */
static size_t scan_string(char *p, size_t n, size_t at, struct json_error *error)
{
	size_t start = at++;

	while (at < n && p[at] != '"') {
		int unit;

		if (p[at] != '\\') {
			at++;
			continue;
		}
		if (n - at < 6 || p[at + 1] != 'u') {
			at += 2;
			continue;
		}
		unit = hex4(p + at + 2);
		if (unit >= 0xd800 && unit <= 0xdbff && n - at >= 12 && p[at + 6] == '\\' &&
			p[at + 7] == 'u') {
			int low = hex4(p + at + 8);

			if (low >= 0xdc00 && low <= 0xdfff) {
				at += 12;
				continue;
			}
		}
		if (unit >= 0xd800 && unit <= 0xdfff)
			memcpy(p + at + 2, "0000", 4);
		at += 6;
	}
	if (at >= n) {
		problem(error, JSON_SYNTAX, start, "unterminated string");
		return 0;
	}
	if (at - start - 1 > LIMIT_JSON_STRING_BYTES) {
		problem(error, JSON_OVER_LIMIT, start, "string over the limit");
		return 0;
	}
	return at + 1;
}

/* A number that no int64 or double holds: jansson would refuse the document without a path. */
static bool out_of_range(struct arena *arena, struct str number)
{
	bool is_real = memchr(number.p, '.', number.n) != NULL || memchr(number.p, 'e', number.n) != NULL ||
		memchr(number.p, 'E', number.n) != NULL;
	int64_t integer;

	if (!is_real)
		return number.n >= 19 && !str_to_int(number, &integer);
	return number.n >= 5 && isinf(strtod(str_z(arena, number), NULL)) != 0;
}

/* The text with such numbers as strings that begin with U+0000, which every field check refuses. */
struct mending {
	struct arena *arena;
	struct buf out; /* empty while nothing had to be mended */
	size_t copied;
};

static void mend(struct mending *m, const char *p, size_t start, size_t end)
{
	struct str number = {p + start, end - start};

	if (!out_of_range(m->arena, number))
		return;
	buf_add(&m->out, p + m->copied, start - m->copied);
	buf_add_str(&m->out, STR("\"\\u0000" JSON_OUT_OF_RANGE "\""));
	m->copied = end;
}

static int scan(char *p, size_t n, struct mending *m, struct json_error *error)
{
	size_t depth = 0;
	size_t nodes = 0;

	for (size_t at = 0; at < n;) {
		size_t start = at;

		switch (p[at]) {
		case '"':
			at = scan_string(p, n, at, error);
			if (at == 0)
				return -1;
			break;
		case '[':
		case '{':
			if (++depth > LIMIT_JSON_DEPTH) {
				problem(error, JSON_OVER_LIMIT, at, "nested deeper than 64 levels");
				return -1;
			}
			at++;
			break;
		case ']':
		case '}':
			if (depth > 0)
				depth--;
			at++;
			break;
		case ',':
			if (++nodes > LIMIT_JSON_NODES) {
				problem(error, JSON_OVER_LIMIT, at, "more than 200000 values");
				return -1;
			}
			at++;
			break;
		case '-':
		case '0' ... '9':
			while (at < n && (p[at] == '-' || p[at] == '+' || p[at] == '.' || p[at] == 'e' ||
						 p[at] == 'E' || (p[at] >= '0' && p[at] <= '9')))
				at++;
			if (at - start > LIMIT_JSON_NUMBER_CHARS) {
				problem(error, JSON_OVER_LIMIT, start, "number over the limit");
				return -1;
			}
			mend(m, p, start, at);
			break;
		default:
			at++;
		}
	}
	return 0;
}

json_t *json_read(struct str text, struct json_error *error)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	json_error_t jansson;
	struct mending m = {.arena = arena};
	size_t bad = utf8_check(text);
	json_t *value;
	char *copy;

	error->problem = JSON_FINE;
	if (bad < text.n) {
		problem(error, JSON_NOT_UTF8, bad, "not UTF-8");
		return NULL;
	}
	copy = arena_copy(arena, text.p, text.n);
	buf_init(&m.out, arena, SIZE_MAX);
	if (scan(copy, text.n, &m, error) != 0)
		return NULL;
	if (m.copied > 0) {
		buf_add(&m.out, copy + m.copied, text.n - m.copied);
		copy = m.out.p;
		text.n = m.out.n;
	}
	value = json_loadb(copy, text.n,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &jansson);
	if (value == NULL) {
		bool twice = json_error_code(&jansson) == json_error_duplicate_key;

		problem(error, twice ? JSON_DUPLICATE_KEY : JSON_SYNTAX,
			jansson.position < 0 ? 0 : (size_t)jansson.position,
			twice ? "duplicate key" : "not JSON");
	}
	return value;
}

struct str json_str(const json_t *string)
{
	if (!json_is_string(string))
		return STR_NONE;
	return (struct str){json_string_value(string), json_string_length(string)};
}

struct str json_member_str(const json_t *object, const char *key)
{
	return json_str(json_object_get(object, key));
}

const char *json_type_name(const json_t *value)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "object",
		[JSON_ARRAY] = "array",
		[JSON_STRING] = "string",
		[JSON_INTEGER] = "integer",
		[JSON_REAL] = "number",
		[JSON_TRUE] = "boolean",
		[JSON_FALSE] = "boolean",
		[JSON_NULL] = "null",
	};

	return value == NULL ? "nothing" : names[json_typeof(value)];
}

struct str json_received(struct arena *arena, const json_t *value)
{
	struct buf out;
	struct json_writer w;

	if (value == NULL)
		return STR_NONE;
	if (json_is_object(value) || json_is_array(value))
		return str_printf(arena, "%s of %zu", json_type_name(value),
			json_is_object(value) ? json_object_size(value) : json_array_size(value));
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	if (json_is_string(value)) {
		struct str text = json_str(value);
		size_t cut = utf8_cut(text, 60);

		jw_str(&w, (struct str){text.p, cut});
		if (cut < text.n)
			buf_printf(&out, "… (%zu bytes)", text.n);
	} else {
		jw_json(&w, value);
	}
	return buf_str(&out);
}

static int append_dump(const char *bytes, size_t n, void *data)
{
	buf_add(data, bytes, n);
	return 0;
}

static void dump(struct buf *out, const json_t *value, size_t flags)
{
	int rc = json_dump_callback(
		value, append_dump, out, flags | JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));

	assert(rc == 0);
	(void)rc;
}

struct str json_canonical(struct arena *arena, const json_t *value)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	dump(&out, value, JSON_SORT_KEYS);
	return buf_str(&out);
}

struct str json_compact(struct arena *arena, const json_t *value)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	dump(&out, value, 0);
	return buf_str(&out);
}

struct str json_indented(struct arena *arena, const json_t *value)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	dump(&out, value, JSON_INDENT(2));
	return buf_str(&out);
}

void json_writer_init(struct json_writer *w, struct buf *out)
{
	*w = (struct json_writer){.out = out};
}

static void before_value(struct json_writer *w)
{
	if (w->comma)
		buf_add_char(w->out, ',');
	w->comma = true;
}

void jw_object_begin(struct json_writer *w)
{
	before_value(w);
	buf_add_char(w->out, '{');
	w->comma = false;
}

void jw_object_end(struct json_writer *w)
{
	buf_add_char(w->out, '}');
	w->comma = true;
}

void jw_array_begin(struct json_writer *w)
{
	before_value(w);
	buf_add_char(w->out, '[');
	w->comma = false;
}

void jw_array_end(struct json_writer *w)
{
	buf_add_char(w->out, ']');
	w->comma = true;
}

/* The characters that stand escaped in a string: controls, the quote, the backslash, DEL. */
static const bool is_escaped[256] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, ['"'] = 1, ['\\'] = 1, [0x7f] = 1};

void json_escape(struct buf *out, struct str text)
{
	size_t plain = 0;

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		const char *escape;

		if (!is_escaped[c])
			continue;
		buf_add(out, text.p + plain, i - plain);
		plain = i + 1;
		escape = c == '"' ? "\\\""
			: c == '\\' ? "\\\\"
			: c == '\n' ? "\\n"
			: c == '\r' ? "\\r"
			: c == '\t' ? "\\t"
				    : NULL;
		if (escape != NULL)
			buf_add(out, escape, 2);
		else
			buf_printf(out, "\\u%04x", c);
	}
	if (plain < text.n) /* absent text has no address to count from */
		buf_add(out, text.p + plain, text.n - plain);
}

static void quoted(struct buf *out, struct str text)
{
	buf_add_char(out, '"');
	json_escape(out, text);
	buf_add_char(out, '"');
}

void jw_key_str(struct json_writer *w, struct str key)
{
	before_value(w);
	quoted(w->out, key);
	buf_add_char(w->out, ':');
	w->comma = false;
}

void jw_key(struct json_writer *w, const char *key)
{
	before_value(w);
	buf_add_char(w->out, '"');
	buf_add(w->out, key, strlen(key));
	buf_add(w->out, "\":", 2);
	w->comma = false;
}

void jw_str(struct json_writer *w, struct str value)
{
	before_value(w);
	quoted(w->out, value);
}

void jw_text(struct json_writer *w, const char *value)
{
	jw_str(w, str_of(value));
}

void jw_int(struct json_writer *w, int64_t value)
{
	char digits[20];
	char *p = digits + sizeof(digits);
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	/* Every answer holds a dozen: printf takes ten times as long. */
	do {
		*--p = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	before_value(w);
	if (value < 0)
		buf_add_char(w->out, '-');
	buf_add(w->out, p, (size_t)(digits + sizeof(digits) - p));
}

void jw_real(struct json_writer *w, double value)
{
	assert(isfinite(value));
	before_value(w);
	buf_printf(w->out, "%.10g", value);
}

void jw_bool(struct json_writer *w, bool value)
{
	before_value(w);
	buf_add_str(w->out, value ? STR("true") : STR("false"));
}

void jw_null(struct json_writer *w)
{
	before_value(w);
	buf_add_str(w->out, STR("null"));
}

void jw_raw(struct json_writer *w, struct str json)
{
	before_value(w);
	buf_add_str(w->out, json);
}

void jw_members(struct json_writer *w, struct str members)
{
	if (members.n > 0)
		jw_raw(w, members);
}

void jw_json(struct json_writer *w, const json_t *value)
{
	before_value(w);
	dump(w->out, value, 0);
}

void jw_kstr(struct json_writer *w, const char *key, struct str value)
{
	jw_key(w, key);
	jw_str(w, value);
}

void jw_ktext(struct json_writer *w, const char *key, const char *value)
{
	jw_kstr(w, key, str_of(value));
}

void jw_kint(struct json_writer *w, const char *key, int64_t value)
{
	jw_key(w, key);
	jw_int(w, value);
}

void jw_kbool(struct json_writer *w, const char *key, bool value)
{
	jw_key(w, key);
	jw_bool(w, value);
}

void jw_kraw(struct json_writer *w, const char *key, struct str json)
{
	jw_key(w, key);
	jw_raw(w, json);
}

void jw_kstr_opt(struct json_writer *w, const char *key, struct str value)
{
	if (value.n > 0)
		jw_kstr(w, key, value);
}

void jw_kint_opt(struct json_writer *w, const char *key, int64_t value)
{
	if (value != 0)
		jw_kint(w, key, value);
}

void jw_kbool_opt(struct json_writer *w, const char *key, bool value)
{
	if (value)
		jw_kbool(w, key, value);
}

void jw_kobject(struct json_writer *w, const char *key)
{
	jw_key(w, key);
	jw_object_begin(w);
}

void jw_karray(struct json_writer *w, const char *key)
{
	jw_key(w, key);
	jw_array_begin(w);
}

void jw_ktime(struct json_writer *w, const char *key, int64_t at)
{
	char text[TIME_TEXT_SIZE];

	time_format(at, text);
	jw_ktext(w, key, text);
}
