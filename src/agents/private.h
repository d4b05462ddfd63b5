/* agents/private.h - what the files of this room share: files and messages of a host, processes, confinement.
 *
 * A message is a head, one line of JSON, with "bytes" when that many raw bytes follow it. Lines and secrets travel as
 * raw bytes: they are never escaped, copied into a JSON tree, or checked for UTF-8.
 *
 * server → host: settings (first, on descriptor 0), hello (first, on host.sock), write, consumed, close_stdin, end
 * host → server: state (answers the first one), progress, replaced */
#ifndef DAIS_AGENTS_PRIVATE_H
#define DAIS_AGENTS_PRIVATE_H

#include "agents/agents.h"
#include "base/json.h"
#include "base/limits.h"

#include <sys/types.h>

#define FILE_LOCK "host.lock"
#define FILE_SOCKET "host.sock"
#define FILE_RECORD "host.json" /* whom to look for when the host died; written before the program starts */
#define FILE_SPOOL "out.jsonl"
#define FILE_STDERR "err.log"
#define FILE_EXIT "exit.json"
#define MARKER "DAIS_ATTEMPT=" /* variable that marks every process of an attempt */

/* ---- frame.c: messages ---- */

struct frame {
	json_t *head; /* owned by the framer until the next frame */
	struct str what; /* member "is" of the head */
	struct str body; /* valid until the next frame; may be overwritten */
};

struct framer {
	char *p; /* heap; wiped when it is freed or moved, since messages may hold the secret */
	size_t n, cap, from;
	size_t max_body;
	json_t *head;
};

void framer_init(struct framer *framer, size_t max_body);
void framer_finish(struct framer *framer);
/* Room for at least LIMIT_AGENT_READ_BYTES more; say with framer_filled() how many came. */
char *framer_room(struct framer *framer, size_t *n);
void framer_filled(struct framer *framer, size_t n);
/* 1 and *out; 0 when none is whole yet; -1 when the peer breaks the rules. */
int framer_next(struct framer *framer, struct frame *out);
int64_t frame_int(const struct frame *frame, const char *key);

/* Send a head, whose members are printed by `members` (our words and numbers only), and bodies, one after the other. What
 * was sent is wiped. */
void frame_send(uv_stream_t *stream, const struct str *bodies, size_t count, const char *members, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- settings.c: struct host_settings as a message ---- */

/* -1 when it is larger than LIMIT_AGENT_SETTINGS_BYTES. */
int settings_send(uv_stream_t *stream, const struct host_settings *settings, struct failure *f);
/* Texts stay views into the body of the frame. */
int settings_read(const struct frame *frame, struct arena *arena, struct host_settings *out);

/* ---- record.c: the small files of a host ---- */

struct process_id {
	pid_t pid; /* 0: none */
	int64_t started; /* clock ticks since boot: tells a process from a later one of the same number */
};

struct host_record {
	struct process_id host, agent;
	int64_t line_bytes;
	struct str marker; /* "DAIS_ATTEMPT=…", absent: none */
	struct str cgroup; /* directory, absent: none */
	bool is_same_boot; /* when read: numbers of processes still mean what they meant */
};

/* Both are read back in whole or not at all. In `dir`; -1 with errno. */
int record_write(int dir, const struct host_record *record);
int record_read(int dir, struct arena *arena, struct host_record *out);
int exit_write(int dir, const struct host_exit *exit);
/* Without stderr_tail. */
int exit_read(int dir, struct host_exit *out);
/* The end of err.log as valid UTF-8; empty when there is none. */
struct str stderr_tail(int dir, struct arena *arena);

/* ---- process.c: other processes ---- */

/* Which processes are meant: all that descend from `ancestor` (itself not), `agent` and all that descend from it, and
 * those of this user that have `marker` in their environment. */
struct process_set {
	pid_t ancestor; /* 0: none */
	struct process_id agent;
	struct str marker;
};
/* Start time of a living process, or -1. */
int64_t process_started(pid_t pid);
/* Send `signal` (0: only look) to each; how many there are, zombies not counted. -1 when /proc cannot be read. */
int processes_signal(const struct process_set *set, int signal);

/* ---- cgroup.c: the kernel's own list of a process tree ---- */

/* A new cgroup below ours; absent where that is not possible. */
struct str cgroup_create(struct arena *arena);
/* Descriptor for CLONE_INTO_CGROUP; -1: none. */
int cgroup_open(struct str cgroup);
void cgroup_kill(struct str cgroup);
/* Take it away; false while processes are in it. */
bool cgroup_remove(struct str cgroup);

/* ---- confine.c: read-only by the kernel ---- */

/* A ruleset that forbids every write but below `writable` (NULL at its end) and to harmless devices: a descriptor, or
 * -1 with errno and in *where what it was about. */
int confine_prepare(const char *const *writable, const char **where);
/* On the calling thread, for good; safe between fork and exec. */
int confine_self(int ruleset);

/* ---- spawn.c: the program ---- */

struct agent_pipes {
	int to_stdin, from_stdout, from_stderr; /* our ends, non-blocking */
};
/* 0, or -1 and *why (in `arena`) in words for people. */
int agent_spawn(const struct host_settings *settings, struct str cgroup, struct arena *arena, pid_t *pid,
	struct agent_pipes *pipes, const char **why);

/* ---- spool.c: what the program says ---- */

struct spool {
	int fd;
	int64_t written, consumed, punched;
	int64_t line_at; /* bytes of the line that has no end yet */
	int64_t line_bytes, max_unread;
	bool has_line; /* a whole line was there */
	bool is_too_long;
	size_t waiting_n; /* could not be written: the disk is full */
	char waiting[LIMIT_AGENT_READ_BYTES];
};

int spool_open(struct spool *spool, int dir, int64_t line_bytes);
/* What is longer than the limit is dropped with all that follows. */
void spool_add(struct spool *spool, const char *bytes, size_t n);
/* Write what waits; true when nothing waits any more. */
bool spool_flush(struct spool *spool);
bool spool_is_full(const struct spool *spool);
void spool_consumed(struct spool *spool, int64_t offset);

/* The newest LIMIT_AGENT_STDERR_BYTES of the program's stderr. */
struct errlog {
	int fd;
	int64_t n;
};
int errlog_open(struct errlog *log, int dir);
void errlog_add(struct errlog *log, const char *bytes, size_t n);
void errlog_trim(struct errlog *log);

/* ---- lines.c: the spool, line by line ---- */

struct lines {
	int fd; /* -1: not open yet */
	int64_t at; /* offset in the file of the next byte to read */
	int64_t line_bytes;
	char *p; /* nothing while nothing is unread */
	size_t from, n, cap, scanned, taken;
};
void lines_init(struct lines *lines, int64_t offset);
void lines_finish(struct lines *lines);
/* 1 and the next line; 0 none. `is_final`: nothing will be added, so that what has no end is a line too. */
int lines_next(struct lines *lines, int dir, bool is_final, struct str *line, int64_t *end);

/* ---- launch.c ---- */

#define HOST_LOCK_FD 3 /* where a host finds its lock, taken already */

/* Start `dais attempt-host` with one end of a socket as its descriptor 0, as nobody's child; the other end, or -1 with
 * errno. `lock` is host.lock, held. */
int launch_host(const char *directory, int lock);

#endif
