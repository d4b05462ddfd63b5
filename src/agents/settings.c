/* struct host_settings as a message: the numbers in its head; in its body all words, each with its NUL, then the texts. */
#include "agents/private.h"

#include "base/limits.h"

static size_t words_count(const char *const *words)
{
	size_t n = 0;

	while (words != NULL && words[n] != NULL)
		n++;
	return n;
}

static struct str *put_words(struct str *at, const char *const *words)
{
	for (size_t n = words_count(words); n > 0; n--, words++)
		*at++ = (struct str){*words, strlen(*words) + 1};
	return at;
}

int settings_send(uv_stream_t *stream, const struct host_settings *s, struct failure *f)
{
	size_t argc = words_count(s->argv), envc = words_count(s->env), dirs = words_count(s->writable);
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str *bodies = ARENA_ARRAY(arena, struct str, argc + envc + dirs + 4), *at = bodies;
	size_t n = 0;

	at = put_words(at, s->argv);
	at = put_words(at, s->env);
	at = put_words(at, s->writable);
	*at++ = (struct str){s->cwd, strlen(s->cwd) + 1};
	*at++ = s->secret;
	*at++ = s->placeholder;
	*at++ = s->note;
	for (const struct str *body = bodies; body < at; body++)
		n += body->n;
	if (n > LIMIT_AGENT_SETTINGS_BYTES)
		return fail(f, FAIL_PAYLOAD_TOO_LARGE,
			"arguments, environment and note of an agent may take %d bytes together, these take %zu",
			LIMIT_AGENT_SETTINGS_BYTES, n);
	frame_send(stream, bodies, (size_t)(at - bodies),
		"\"is\":\"settings\",\"argv\":%zu,\"env\":%zu,\"writable\":%zu,\"secret\":%zu,\"placeholder\":%zu,\"note\":%zu,"
		"\"startMs\":%lld,\"deadlineMs\":%lld,\"lineBytes\":%lld,\"readOnly\":%d,\"endsWithStdin\":%d",
		argc, envc, dirs, s->secret.n, s->placeholder.n, s->note.n, (long long)s->start_ms, (long long)s->deadline_ms,
		(long long)s->line_bytes, s->is_read_only, s->ends_with_stdin);
	return 0;
}

/* The word at the start of `rest`, or NULL. */
static const char *take_word(struct str *rest)
{
	const char *word = rest->p;
	const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\0', rest->n);

	if (end == NULL)
		return NULL;
	rest->n -= (size_t)(end + 1 - rest->p);
	rest->p = end + 1;
	return word;
}

static const char *const *take_words(struct str *rest, int64_t count, struct arena *arena)
{
	const char **words;

	if (count < 0 || (uint64_t)count > rest->n)
		return NULL;
	words = ARENA_ARRAY(arena, const char *, (size_t)count + 1);
	for (int64_t i = 0; i < count; i++)
		if ((words[i] = take_word(rest)) == NULL)
			return NULL;
	return words;
}

static bool take_text(struct str *rest, int64_t n, struct str *out)
{
	if (n < 0 || (uint64_t)n > rest->n)
		return false;
	*out = (struct str){rest->p, (size_t)n};
	rest->p += n;
	rest->n -= (size_t)n;
	return true;
}

int settings_read(const struct frame *frame, struct arena *arena, struct host_settings *out)
{
	struct str rest = frame->body;
	struct host_settings s = {
		.argv = take_words(&rest, frame_int(frame, "argv"), arena),
		.env = NULL,
		.start_ms = frame_int(frame, "startMs"),
		.deadline_ms = frame_int(frame, "deadlineMs"),
		.line_bytes = frame_int(frame, "lineBytes"),
		.is_read_only = frame_int(frame, "readOnly") != 0,
		.ends_with_stdin = frame_int(frame, "endsWithStdin") != 0,
	};

	s.env = s.argv == NULL ? NULL : take_words(&rest, frame_int(frame, "env"), arena);
	s.writable = s.env == NULL ? NULL : take_words(&rest, frame_int(frame, "writable"), arena);
	s.cwd = s.writable == NULL ? NULL : take_word(&rest);
	if (s.cwd == NULL || s.argv[0] == NULL || !take_text(&rest, frame_int(frame, "secret"), &s.secret) ||
		!take_text(&rest, frame_int(frame, "placeholder"), &s.placeholder) ||
		!take_text(&rest, frame_int(frame, "note"), &s.note) || rest.n != 0 || s.line_bytes < 1)
		return -1;
	*out = s;
	return 0;
}
