/* What a program said, fit to be stored and shown. */
#include "threads/engine.h"

#include "base/limits.h"

#include <ctype.h>

static const char *const secret_words[] = {"token", "secret", "password", "passwd", "api_key", "apikey", "api-key",
	"authorization", "credential", "access_key"};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static bool starts_nocase(struct str text, size_t at, const char *word)
{
	size_t n = strlen(word);

	return text.n - at >= n && str_eq_nocase((struct str){text.p + at, n}, (struct str){word, n});
}

static size_t skip_value(struct str text, size_t at)
{
	if (at < text.n && (text.p[at] == '"' || text.p[at] == '\''))
		at++;
	while (at < text.n && !isspace((unsigned char)text.p[at]) && strchr("\"',;&)}]", text.p[at]) == NULL)
		at++;
	return at;
}

/* "Bearer abc", "Basic abc": where the value ends, 0 when this is none. */
static size_t scheme_end(struct str text, size_t at)
{
	static const char *const schemes[] = {"bearer ", "basic "};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (starts_nocase(text, at, schemes[i]))
			return skip_value(text, at + strlen(schemes[i]));
	return 0;
}

/* token=abc, "api_key": "abc": where the value begins, 0 when this is none. */
static size_t pair_value(struct str text, size_t at)
{
	for (size_t i = 0; i < sizeof(secret_words) / sizeof(secret_words[0]); i++) {
		size_t end = at + strlen(secret_words[i]);

		if (!starts_nocase(text, at, secret_words[i]))
			continue;
		while (end < text.n && is_word(text.p[end]))
			end++;
		if (end < text.n && (text.p[end] == '"' || text.p[end] == '\''))
			end++;
		while (end < text.n && text.p[end] == ' ')
			end++;
		if (end >= text.n || (text.p[end] != '=' && text.p[end] != ':'))
			continue;
		end++;
		while (end < text.n && text.p[end] == ' ')
			end++;
		return end;
	}
	return 0;
}

/* sk-…: a key of a model service. */
static size_t key_end(struct str text, size_t at)
{
	size_t end = at + 3;

	if (!starts_nocase(text, at, "sk-") || (at > 0 && is_word(text.p[at - 1])))
		return 0;
	while (end < text.n && is_word(text.p[end]))
		end++;
	return end - at >= 16 ? end : 0;
}

/* Of "https://", "postgres://" … with all three signs at its end; 0 when this is none. */
static size_t scheme_length(struct str text, size_t at)
{
	size_t end = at;

	while (end < text.n && (isalnum((unsigned char)text.p[end]) || (end > at && strchr("+-.", text.p[end]) != NULL)))
		end++;
	return end > at && starts_nocase(text, end, "://") ? end + 3 - at : 0;
}

/* A URL without user, query and fragment; where it ends, 0 when this is none. */
static size_t copy_url(struct buf *out, struct str text, size_t at)
{
	size_t n = scheme_length(text, at);
	size_t end = at + n, host = at + n, cut;

	if (n == 0)
		return 0;
	while (end < text.n && !isspace((unsigned char)text.p[end]) && strchr("\"'<>)", text.p[end]) == NULL)
		end++;
	for (size_t i = host; i < end && text.p[i] != '/' && text.p[i] != '?' && text.p[i] != '#'; i++)
		if (text.p[i] == '@')
			host = i + 1;
	for (cut = host; cut < end && text.p[cut] != '?' && text.p[cut] != '#'; cut++)
		;
	buf_add(out, text.p + at, n);
	buf_add(out, text.p + host, cut - host);
	return end;
}

/* Colours of a terminal, ESC [ … letter: where they end, 0 when these are none. */
static size_t colour_end(struct str text, size_t at)
{
	size_t end = at + 2;

	if (text.n - at < 2 || text.p[at] != '\x1b' || text.p[at + 1] != '[')
		return 0;
	while (end < text.n && (isdigit((unsigned char)text.p[end]) || text.p[end] == ';'))
		end++;
	return end < text.n && isalpha((unsigned char)text.p[end]) ? end + 1 : 0;
}

/* First of all: the letter of a colour is no part of the word that follows. */
static struct str without_colours(struct arena *arena, struct str text)
{
	struct buf out;

	if (memchr(text.p, '\x1b', text.n) == NULL)
		return text;
	buf_init(&out, arena, SIZE_MAX);
	for (size_t at = 0; at < text.n;) {
		size_t end = colour_end(text, at);

		if (end == 0)
			buf_add_char(&out, text.p[at++]);
		else
			at = end;
	}
	return buf_str(&out);
}

static size_t copy_clean(struct buf *out, struct str text, size_t at)
{
	bool is_start = at == 0 || !is_word(text.p[at - 1]);
	size_t end = is_start ? copy_url(out, text, at) : 0;
	size_t value;

	if (end != 0)
		return end;
	end = is_start ? scheme_end(text, at) : 0;
	if (end == 0)
		end = key_end(text, at);
	if (end != 0) {
		buf_add_str(out, STR("[removed]"));
		return end;
	}
	value = pair_value(text, at);
	if (value != 0) {
		buf_add(out, text.p + at, value - at);
		buf_add_str(out, STR("[removed]"));
		end = scheme_end(text, value);
		return end != 0 ? end : skip_value(text, value);
	}
	if (iscntrl((unsigned char)text.p[at]) && text.p[at] != '\n' && text.p[at] != '\t')
		return at + 1;
	buf_add_char(out, text.p[at]);
	return at + 1;
}

struct str clean_text(struct arena *arena, struct str text, size_t max_chars)
{
	struct buf out;
	struct str clean;

	buf_init(&out, arena, SIZE_MAX);
	/* Far more than will be kept need not be looked through. */
	if (text.n > max_chars * 8)
		text.n = utf8_cut(text, max_chars * 8);
	if (text.n > 0)
		text = without_colours(arena, text);
	for (size_t at = 0; at < text.n;)
		at = copy_clean(&out, text, at);
	clean = str_trim(buf_str(&out));
	clean.n = utf8_offset(clean, max_chars);
	return clean;
}

/* Head and tail of a long text, and how much is missing between them. */
static json_t *clip_text(struct arena *arena, struct str text)
{
	size_t head = utf8_cut(text, LIMIT_ITEM_OUTPUT_BYTES / 2);
	size_t tail = text.n - LIMIT_ITEM_OUTPUT_BYTES / 2;
	struct str clipped;

	while (tail < text.n && ((unsigned char)text.p[tail] & 0xc0) == 0x80)
		tail++;
	clipped = str_printf(arena, "%.*s\n[… %zu bytes are missing here …]\n%.*s", (int)head, text.p, tail - head,
		(int)(text.n - tail), text.p + tail);
	return json_stringn(clipped.p, clipped.n);
}

struct str clip_body(struct arena *arena, struct str body)
{
	struct json_error error;
	json_auto_t *object = NULL;
	const char *key;
	json_t *value;
	void *next;
	bool is_clipped = false;

	if (body.n <= LIMIT_ITEM_OUTPUT_BYTES)
		return body;
	object = json_read(body, &error);
	json_object_foreach_safe(object, next, key, value)
	{
		struct str text = json_str(value);

		if (text.n <= LIMIT_ITEM_OUTPUT_BYTES)
			continue;
		(void)json_object_set_new(object, key, clip_text(arena, text));
		is_clipped = true;
	}
	if (is_clipped)
		(void)json_object_set_new(object, "outputTruncated", json_true());
	body = object == NULL ? STR("{\"outputTruncated\":true}") : json_compact(arena, object);
	return body.n <= 4 * LIMIT_ITEM_OUTPUT_BYTES ? body : STR("{\"outputTruncated\":true}");
}

struct str failure_json(struct arena *arena, const struct agent_failure *failure)
{
	struct str message = clean_text(arena, failure->message, LIMIT_AGENT_MESSAGE_CHARS);
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "class", failure_class_name(failure->class));
	jw_kstr_opt(&w, "code", failure->code);
	jw_kstr(&w, "message", message.n == 0 ? STR("The agent gave no reason.") : message);
	if (failure->is_retryable != YES_UNKNOWN)
		jw_kbool(&w, "retryable", failure->is_retryable == YES_YES);
	jw_object_end(&w);
	return buf_str(&out);
}
