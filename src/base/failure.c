#include "base/failure.h"

#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

static const struct failure_info table[] = {
#define FAILURE(name, wire, http, kind, exit_code, fix, meaning) \
	{FAIL_##name, wire, http, FAILURE_##kind, exit_code, fix, meaning},
#include "base/failure.def"
#undef FAILURE
};

static const char *const kind_names[] = {"permanent", "transient", "shedding"};

void failure_init(struct failure *f, struct arena *arena)
{
	*f = (struct failure){.arena = arena, .code = FAIL_INTERNAL, .index = -1};
}

const struct failure_info *failure_info(enum failure_code code)
{
	return &table[code];
}

const struct failure_info *failure_find(struct str wire)
{
	for (size_t i = 0; i < FAILURE_CODES; i++)
		if (str_eq(wire, str_of(table[i].wire)))
			return &table[i];
	return NULL;
}

static void set(struct failure *f, enum failure_code code, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

static void set(struct failure *f, enum failure_code code, const char *fmt, va_list args)
{
	struct arena *arena = f->arena;
	int index = f->index;

	failure_init(f, arena);
	f->code = code;
	f->index = index;
	f->message = str_of(arena_vprintf(arena, fmt, args));
}

int fail(struct failure *f, enum failure_code code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set(f, code, fmt, args);
	va_end(args);
	return -1;
}

int fail_errno(struct failure *f, const char *fmt, ...)
{
	int saved = errno;
	char text[128];
	va_list args;
	const char *what;

	va_start(args, fmt);
	what = arena_vprintf(f->arena, fmt, args);
	va_end(args);
	log_line(LOG_ERROR, "base", what,
		{"errno", LOG_TEXT(strerror_r(saved, text, sizeof(text)))});
	return fail(f, FAIL_INTERNAL, "The server could not do this; the cause is in its log.");
}

static int add_field(struct failure *f, enum failure_code code, struct str path, struct str received,
	const char *fmt, va_list args)
	__attribute__((format(printf, 5, 0)));

static int add_field(struct failure *f, enum failure_code code, struct str path, struct str received,
	const char *fmt, va_list args)
{
	struct failure_field **end = &f->fields;
	struct failure_field *field;

	if (!f->is_shape || f->code == FAIL_PAYLOAD_TOO_LARGE ||
		(code == FAIL_UNKNOWN_PARAMETER && f->code != code)) {
		/* An unknown name beats every other fault: its own list starts afresh. */
		struct arena *arena = f->arena;
		int index = f->index;

		failure_init(f, arena);
		f->index = index;
		f->code = code;
		f->is_shape = true;
	} else if (f->code == FAIL_UNKNOWN_PARAMETER && code != f->code) {
		return -1;
	}
	f->field_count++;
	if (f->field_count > LIMIT_FAILURE_FIELDS)
		return -1;
	end = &f->fields;
	while (*end != NULL)
		end = &(*end)->next;
	field = ARENA_NEW(f->arena, struct failure_field);
	field->path = str_dup(f->arena, path);
	field->reason = str_of(arena_vprintf(f->arena, fmt, args));
	field->received = str_dup(f->arena, received);
	*end = field;
	return -1;
}

int fail_field(struct failure *f, struct str path, struct str received, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)add_field(f, FAIL_INVALID_REQUEST, path, received, fmt, args);
	va_end(args);
	return -1;
}

int fail_unknown(struct failure *f, struct str path, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)add_field(f, FAIL_UNKNOWN_PARAMETER, path, STR_NONE, fmt, args);
	va_end(args);
	return -1;
}

int fail_under(struct failure *f, const char *fmt, ...)
{
	va_list args;
	const char *prefix;

	va_start(args, fmt);
	prefix = arena_vprintf(f->arena, fmt, args);
	va_end(args);
	for (struct failure_field *field = f->fields; field != NULL; field = field->next)
		field->path = str_printf(f->arena, "%s%.*s", prefix, STRF(field->path));
	return -1;
}

static void detail_add(struct failure *f, const char *key, struct str json)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, f->arena, SIZE_MAX);
	buf_add_str(&out, f->detail);
	json_writer_init(&w, &out);
	w.comma = out.n > 0;
	jw_kraw(&w, key, json);
	f->detail = buf_str(&out);
}

void fail_detail_raw(struct failure *f, const char *key, struct str json)
{
	detail_add(f, key, json);
}

void fail_detail_str(struct failure *f, const char *key, struct str value)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, f->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_str(&w, value);
	detail_add(f, key, buf_str(&out));
}

void fail_detail_int(struct failure *f, const char *key, int64_t value)
{
	detail_add(f, key, str_printf(f->arena, "%lld", (long long)value));
}

static const char *field_list_name(enum failure_code code)
{
	return code == FAIL_UNKNOWN_PARAMETER ? "parameters"
		: code == FAIL_CONFIG_INVALID ? "errors"
					      : "fields";
}

static void write_fields(const struct failure *f, struct json_writer *w)
{
	jw_karray(w, field_list_name(f->code));
	for (const struct failure_field *field = f->fields; field != NULL; field = field->next) {
		if (f->code == FAIL_UNKNOWN_PARAMETER) {
			jw_str(w, field->path);
			continue;
		}
		jw_object_begin(w);
		jw_kstr(w, f->code == FAIL_CONFIG_INVALID ? "path" : "field", field->path);
		jw_kstr(w, "reason", field->reason);
		if (field->received.p != NULL)
			jw_kstr(w, "received", field->received);
		jw_object_end(w);
	}
	jw_array_end(w);
	if (f->field_count > LIMIT_FAILURE_FIELDS)
		jw_kint(w, "more", (int64_t)f->field_count - LIMIT_FAILURE_FIELDS);
}

static void add_words(struct buf *out, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (i > 0)
			buf_add_str(out, STR(", "));
		buf_add_str(out, json_str(json_array_get(list, i)));
	}
}

/* "Reduce to {max}." with max taken from the detail members. */
static struct str fill_in(const struct failure *f, const char *fix)
{
	struct buf out;
	json_t *detail = NULL;

	if (strchr(fix, '{') == NULL)
		return str_of(fix);
	if (f->detail.n > 0) {
		struct str whole = str_printf(f->arena, "{%.*s}", STRF(f->detail));

		detail = json_loadb(whole.p, whole.n, 0, NULL);
	}
	buf_init(&out, f->arena, SIZE_MAX);
	for (const char *p = fix; *p != '\0';) {
		const char *end = *p == '{' ? strchr(p, '}') : NULL;
		const json_t *value;

		if (end == NULL) {
			buf_add_char(&out, *p++);
			continue;
		}
		value = json_object_get(detail, arena_copy(f->arena, p + 1, (size_t)(end - p) - 1));
		if (json_is_array(value))
			add_words(&out, value);
		else if (json_is_string(value))
			buf_add_str(&out, json_str(value));
		else if (value != NULL)
			buf_add_str(&out, json_received(f->arena, value));
		else
			buf_add(&out, p + 1, (size_t)(end - p) - 1);
		p = end + 1;
	}
	json_decref(detail);
	return buf_str(&out);
}

static struct str message_of(const struct failure *f)
{
	const struct failure_field *first = f->fields;

	if (f->message.n > 0 || first == NULL)
		return f->message;
	if (f->code == FAIL_UNKNOWN_PARAMETER)
		return str_printf(f->arena, "Unknown parameter %.*s%s%.*s%s", STRF(first->path),
			first->reason.n > 0 ? ": " : "", STRF(first->reason),
			first->reason.n > 0 && first->reason.p[first->reason.n - 1] == '?' ? "" : ".");
	if (f->field_count == 1)
		return str_printf(f->arena, "%.*s: %.*s.", STRF(first->path), STRF(first->reason));
	return str_printf(f->arena, "%zu fields are wrong; the first: %.*s: %.*s.", f->field_count,
		STRF(first->path), STRF(first->reason));
}

void failure_write(const struct failure *f, struct json_writer *w)
{
	const struct failure_info *info = &table[f->code];
	struct str message = message_of(f);

	jw_object_begin(w);
	jw_ktext(w, "code", info->wire);
	jw_ktext(w, "kind", kind_names[info->kind]);
	jw_kstr(w, "message", message.n > 0 ? message : str_of(info->meaning));
	if (info->fix[0] != '\0')
		jw_kstr(w, "fix", fill_in(f, info->fix));
	if (f->fields != NULL || f->detail.n > 0 || f->retry_after_ms > 0) {
		jw_kobject(w, "detail");
		if (f->fields != NULL)
			write_fields(f, w);
		if (f->detail.n > 0)
			jw_members(w, f->detail);
		jw_kint_opt(w, "retryAfterMs", f->retry_after_ms);
		jw_object_end(w);
	}
	if (f->index >= 0)
		jw_kint(w, "index", f->index);
	jw_object_end(w);
}

void failure_copy(struct failure *to, struct arena *arena, const struct failure *from)
{
	struct failure_field **end;

	*to = *from;
	to->arena = arena;
	to->message = str_dup(arena, from->message);
	to->detail = str_dup(arena, from->detail);
	to->fields = NULL;
	end = &to->fields;
	for (const struct failure_field *field = from->fields; field != NULL; field = field->next) {
		*end = ARENA_NEW(arena, struct failure_field);
		(*end)->path = str_dup(arena, field->path);
		(*end)->reason = str_dup(arena, field->reason);
		(*end)->received = str_dup(arena, field->received);
		end = &(*end)->next;
	}
}
