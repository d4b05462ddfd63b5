/* A session's file: one JSON line with its state, then its history, an update a line, so that load repeats it without
 * reading it. Written to a second file and renamed: a reader never sees half of it. It is to outlive the process, not
 * a power cut: no sync. */
#include "script/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_VERSION 1

const char *script_session_directory(struct arena *arena)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (state != NULL && state[0] == '/')
		return arena_printf(arena, "%s/dais-script", state);
	return home != NULL && home[0] == '/' ? arena_printf(arena, "%s/.dais-script", home) : NULL;
}

static void write_state(const struct session *session, struct json_writer *w)
{
	const struct scenario *scenario = session->agent->scenario;

	jw_object_begin(w);
	jw_kint(w, "version", FILE_VERSION);
	jw_ktext(w, "session", session->id);
	jw_ktext(w, "cwd", session->cwd);
	jw_kstr(w, "model", scenario->models[session->model]);
	jw_ktext(w, "mode", script_mode(session->mode));
	jw_kint(w, "turns", session->turns);
	jw_karray(w, "uses");
	for (size_t i = 0; i < scenario->scene_count; i++)
		jw_int(w, session->scene_uses[i]);
	jw_array_end(w);
	jw_key(w, "memory");
	jw_json(w, session->memory);
	jw_key(w, "saved");
	jw_json(w, session->saved);
	jw_object_end(w);
}

static int write_bytes(int fd, struct str text)
{
	while (text.n > 0) {
		ssize_t n = write(fd, text.p, text.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text = (struct str){text.p + n, text.n - (size_t)n};
	}
	return 0;
}

static int write_file(const char *path, struct str state, struct str history)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -1;
	rc = write_bytes(fd, state) != 0 || write_bytes(fd, history) != 0 ? -1 : 0;
	return close(fd) != 0 ? -1 : rc;
}

static int make_directory(const char *directory)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *path = arena_copy(arena, directory, strlen(directory));

	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return mkdir(path, 0700) != 0 && errno != EEXIST ? -1 : 0;
}

int script_session_save(const struct session *session, struct failure *f)
{
	const char *directory = session->agent->directory;
	const char *path, *draft;
	struct json_writer w;
	struct buf state;
	int rc;

	if (directory == NULL)
		return fail(
			f, FAIL_CANNOT_CREATE, "neither XDG_STATE_HOME nor HOME is set: the session cannot be kept");
	path = arena_printf(f->arena, "%s/%s.json", directory, session->id);
	draft = arena_printf(f->arena, "%s.%ld", path, (long)getpid());
	buf_init(&state, NULL, SIZE_MAX);
	json_writer_init(&w, &state);
	write_state(session, &w);
	buf_add_char(&state, '\n');
	rc = make_directory(directory) != 0 || write_file(draft, buf_str(&state), buf_str(&session->history)) != 0 ||
	                     rename(draft, path) != 0
	             ? fail(f, FAIL_CANNOT_CREATE, "the session file %s cannot be written: %s", path, strerror(errno))
	             : 0;
	buf_finish(&state);
	return rc;
}

/* ---- back ---- */

static bool is_session_id(struct str id)
{
	for (size_t i = 0; i < id.n; i++)
		if (strchr("0123456789abcdef-", id.p[i]) == NULL || id.p[i] == '\0')
			return false;
	return id.n == ID_TEXT_SIZE - 1;
}

/* 0 read, 1 no such file, -1 errno. */
static int read_file(const char *path, struct buf *out)
{
	static const size_t piece = 65536;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? 1 : -1;
	bytes = malloc(piece);
	if (bytes == NULL)
		abort();
	while ((n = read(fd, bytes, piece)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			buf_add(out, bytes, (size_t)n);
	free(bytes);
	(void)close(fd);
	return n < 0 ? -1 : 0;
}

static size_t find_model(const struct scenario *scenario, struct str name)
{
	for (size_t i = 0; i < scenario->model_count; i++)
		if (str_eq(name, scenario->models[i]))
			return i;
	return 0; /* the scenario was changed: its default */
}

static size_t find_mode(struct str name)
{
	for (size_t i = 0; script_mode(i) != NULL; i++)
		if (str_eq(name, str_of(script_mode(i))))
			return i;
	return 0;
}

static void take_state(struct session *session, const json_t *state)
{
	const struct scenario *scenario = session->agent->scenario;
	const json_t *uses = json_object_get(state, "uses");

	session->turns = json_integer_value(json_object_get(state, "turns"));
	session->model = find_model(scenario, json_member_str(state, "model"));
	session->mode = find_mode(json_member_str(state, "mode"));
	for (size_t i = 0; i < scenario->scene_count; i++)
		session->scene_uses[i] = json_integer_value(json_array_get(uses, i));
	(void)json_object_update(session->memory, json_object_get(state, "memory"));
	(void)json_object_update(session->saved, json_object_get(state, "saved"));
}

int script_session_restore(struct session *session, struct str id, struct failure *f)
{
	json_error_t error;
	json_t *state;
	const char *path, *end;
	int rc;

	if (session->agent->directory == NULL || !is_session_id(id))
		return 1;
	memcpy(session->id, id.p, id.n);
	path = arena_printf(f->arena, "%s/%s.json", session->agent->directory, session->id);
	rc = read_file(path, &session->history);
	if (rc != 0)
		return rc > 0 ? 1
		              : fail(f, FAIL_INTERNAL, "the session file %s cannot be read: %s", path, strerror(errno));
	end = session->history.n == 0 ? NULL : memchr(session->history.p, '\n', session->history.n);
	/* Our own file: the limits for what strangers send do not apply. */
	state = end == NULL ? NULL : json_loadb(session->history.p, (size_t)(end - session->history.p), 0, &error);
	if (!json_is_object(state)) {
		json_decref(state);
		return fail(f, FAIL_INTERNAL, "the session file %s is damaged", path);
	}
	take_state(session, state);
	json_decref(state);
	buf_consume(&session->history, (size_t)(end - session->history.p) + 1);
	return 0;
}
