/* The small files of a host. They are written beside their place and renamed, so that they are whole or absent. */
#include "agents/private.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int write_all(int fd, struct str bytes)
{
	while (bytes.n > 0) {
		ssize_t n = write(fd, bytes.p, bytes.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return 0;
}

static int replace_file(int dir, const char *name, struct str bytes, bool is_durable)
{
	static const char other[] = "new.json";
	int fd = openat(dir, other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -1;
	rc = write_all(fd, bytes);
	if (rc == 0 && is_durable)
		rc = fsync(fd);
	if (close(fd) != 0)
		rc = -1;
	if (rc == 0)
		rc = renameat(dir, other, dir, name);
	if (rc == 0 && is_durable)
		rc = fsync(dir);
	return rc;
}

/* Up to LIMIT_AGENT_SETTINGS_BYTES; absent when it cannot be read. */
static struct str read_whole(int dir, const char *name, struct arena *arena)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct buf buf;
	char part[4096];
	ssize_t n;

	if (fd < 0)
		return STR_NONE;
	buf_init(&buf, arena, LIMIT_AGENT_SETTINGS_BYTES);
	while ((n = read(fd, part, sizeof(part))) > 0)
		buf_add(&buf, part, (size_t)n);
	(void)close(fd);
	return n < 0 || buf.overflow ? STR_NONE : buf_str(&buf);
}

static json_t *read_json(int dir, const char *name, struct arena *arena)
{
	struct str text = read_whole(dir, name, arena);
	struct json_error error;
	json_t *value;

	if (text.p == NULL)
		return NULL;
	value = json_read(text, &error);
	if (json_is_object(value))
		return value;
	json_decref(value);
	errno = EBADMSG;
	return NULL;
}

/* Numbers of processes mean something until the next boot only. */
static struct str boot_id(struct arena *arena)
{
	return str_trim(read_whole(AT_FDCWD, "/proc/sys/kernel/random/boot_id", arena));
}

int record_write(int dir, const struct host_record *record)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct json_writer w;
	struct buf buf;

	buf_init(&buf, arena, LIMIT_AGENT_SETTINGS_BYTES);
	json_writer_init(&w, &buf);
	jw_object_begin(&w);
	jw_kint(&w, "pid", record->host.pid);
	jw_kint(&w, "started", record->host.started);
	jw_kint(&w, "agentPid", record->agent.pid);
	jw_kint(&w, "agentStarted", record->agent.started);
	jw_kint(&w, "lineBytes", record->line_bytes);
	jw_kstr_opt(&w, "marker", record->marker);
	jw_kstr_opt(&w, "cgroup", record->cgroup);
	jw_kstr_opt(&w, "boot", boot_id(arena));
	jw_object_end(&w);
	buf_add_char(&buf, '\n');
	return replace_file(dir, FILE_RECORD, buf_str(&buf), false);
}

static int64_t member_int(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

int record_read(int dir, struct arena *arena, struct host_record *out)
{
	json_auto_t *json = read_json(dir, FILE_RECORD, arena);

	if (json == NULL)
		return -1;
	*out = (struct host_record){
		.host = {(pid_t)member_int(json, "pid"), member_int(json, "started")},
		.agent = {(pid_t)member_int(json, "agentPid"), member_int(json, "agentStarted")},
		.line_bytes = member_int(json, "lineBytes"),
		.marker = str_dup(arena, json_member_str(json, "marker")),
		.cgroup = str_dup(arena, json_member_str(json, "cgroup")),
		.is_same_boot = str_eq(json_member_str(json, "boot"), boot_id(arena)),
	};
	return 0;
}

/* ---- exit.json ---- */

/* The closed list of causes; they are told by these very pointers. */
static const char *const causes[] = {
	"exited", "stdout_closed", "line_too_long", "start_timeout", "deadline", "ended", "spawn_failed", "lost"};

int exit_write(int dir, const struct host_exit *exit)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "{\"code\":%d,\"signal\":%d,\"cause\":\"%s\",\"cleared\":%s,\"at\":%lld}\n",
		exit->code, exit->signal, exit->cause, exit->is_cleared ? "true" : "false", (long long)exit->at);

	return replace_file(dir, FILE_EXIT, (struct str){text, (size_t)n}, true);
}

int exit_read(int dir, struct host_exit *out)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	json_auto_t *json = read_json(dir, FILE_EXIT, arena);

	for (size_t i = 0; json != NULL && i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (!str_eq(json_member_str(json, "cause"), str_of(causes[i])))
			continue;
		*out = (struct host_exit){
			.code = (int)member_int(json, "code"),
			.signal = (int)member_int(json, "signal"),
			.cause = causes[i],
			.is_cleared = json_is_true(json_object_get(json, "cleared")),
			.at = member_int(json, "at"),
		};
		return 0;
	}
	return -1;
}

/* ---- err.log ---- */

static struct str as_utf8(struct arena *arena, struct str bytes)
{
	struct buf buf;

	buf_init(&buf, arena, bytes.n * 3 + 1); /* U+FFFD takes three bytes */
	while (bytes.n > 0) {
		size_t good = utf8_check(bytes);

		buf_add(&buf, bytes.p, good);
		bytes.p += good;
		bytes.n -= good;
		if (bytes.n == 0)
			break;
		buf_add_str(&buf, STR("\xef\xbf\xbd"));
		bytes.p++;
		bytes.n--;
	}
	return buf_str(&buf);
}

struct str stderr_tail(int dir, struct arena *arena)
{
	int fd = openat(dir, FILE_STDERR, O_RDONLY | O_CLOEXEC);
	off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	off_t from = end > LIMIT_AGENT_STDERR_TAIL_BYTES ? end - LIMIT_AGENT_STDERR_TAIL_BYTES : 0;
	char *bytes;
	ssize_t n;
	struct str text;

	if (fd < 0)
		return STR("");
	bytes = arena_alloc(arena, LIMIT_AGENT_STDERR_TAIL_BYTES);
	n = pread(fd, bytes, LIMIT_AGENT_STDERR_TAIL_BYTES, from);
	(void)close(fd);
	text = (struct str){bytes, n < 0 ? 0 : (size_t)n};
	while (from > 0 && text.n > 0 && ((unsigned char)*text.p & 0xc0) == 0x80) { /* the end of a cut character */
		text.p++;
		text.n--;
	}
	text = as_utf8(arena, text);
	if (text.n > LIMIT_AGENT_STDERR_TAIL_BYTES) { /* replacements made it longer: its end is what counts */
		size_t cut = utf8_cut(text, text.n - LIMIT_AGENT_STDERR_TAIL_BYTES + 3);

		text = (struct str){text.p + cut, text.n - cut};
	}
	return text;
}
