/* agents/agents.h - processes that outlive us: the door of the room.
 *
 * Every agent program runs under a small process of its own, `dais attempt-host`, which owns its pipes, appends every
 * line of its stdout to a file (the spool), writes what the server sends to its stdin, keeps deadlines, and at the end
 * leaves nothing of the program's process tree alive. The server may die and come back in between: the host goes on,
 * the new server connects to it, reads the spool from the byte where the store says it stood, and repeats the writes
 * that the host has not confirmed. The room knows nothing of protocols, threads or the store.
 *
 * Files of one host, in a directory of its own (0700): host.lock (held while it lives), host.sock, host.json (whom to
 * look for when the host died), out.jsonl (the spool), err.log (the last LIMIT_AGENT_STDERR_BYTES), exit.json (written
 * last). The secret and the note of the session are in the memory of the host only.
 *
 * All functions run on the thread of the libuv loop. Handlers are called from the loop, never from within one of these
 * functions; each may call any of them, host_release too. Views that a handler gets are valid during the call. */
#ifndef DAIS_AGENTS_AGENTS_H
#define DAIS_AGENTS_AGENTS_H

#include "base/failure.h"
#include "base/str.h"

#include <uv.h>

struct host;

/* How a host is started. It reaches the host through a pipe, never through its arguments or environment. */
struct host_settings {
	const char *directory; /* made by the caller, 0700, empty */
	const char *const *argv; /* of the agent program; argv[0] is looked for on PATH of `env` */
	/* Whole environment. A variable DAIS_ATTEMPT, its value unique to this attempt, is what strays are found by. */
	const char *const *env;
	const char *cwd; /* absolute */
	struct str secret;	 /* put in the place of `placeholder` in lines that say so; absent: none */
	struct str placeholder;
	struct str note;	 /* opaque; given back in struct host_state after a reconnect; memory of the host only */
	/* Both on a clock that stands still while the host is stopped or the machine sleeps. */
	int64_t start_ms;	 /* first line within this time, 0: no limit */
	int64_t deadline_ms;	 /* life of the whole session, 0: no limit */
	int64_t line_bytes;	 /* longest line without its end; a longer one ends the program */
	bool is_read_only;	 /* hold the process tree read-only (Landlock) … */
	const char *const *writable; /* … but for these directories or files, NULL at the end; each must exist */
	bool ends_with_stdin;	 /* closing stdin is the first step of the ladder */
};

struct host_exit {
	int code;	/* -1: killed by `signal` */
	int signal;
	const char *cause; /* closed list: exited, stdout_closed, line_too_long, start_timeout, deadline, ended, spawn_failed, lost */
	bool is_cleared;   /* no process of the tree is left */
	int64_t at;	   /* UTC ms */
	struct str stderr_tail; /* valid UTF-8, at most LIMIT_AGENT_STDERR_TAIL_BYTES */
};

struct host_state {
	int64_t agent_pid; /* 0: it was never started */
	int64_t written;  /* bytes in the spool */
	int64_t confirmed; /* highest sequence number of a line that was written to the program whole */
	struct str secret, note; /* as in host_settings; absent when the host is dead, or was asked before */
	bool has_exited; /* exited() follows; nothing can be written any more */
};

struct host_handlers {
	/* After host_start and host_connect: the host answers, or is known to be dead. It comes before all others, and again
	 * when the connection broke and was made anew, and when the program has read everything after a line found no room.
	 * Repeat the lines that are not confirmed. */
	void (*ready)(struct host *host, void *context, const struct host_state *state);
	/* Lines may be there: host_next_line, until it answers 0. Whoever stops before calls it again by himself. */
	void (*readable)(struct host *host, void *context);
	/* Every line up to this number was written to the program whole. */
	void (*confirmed)(struct host *host, void *context, int64_t seq);
	/* The program ended (or never started), or the host itself is gone (cause "lost"), and host_next_line has answered 0
	 * at the end of the spool. The last call but for host_release. */
	void (*exited)(struct host *host, void *context, const struct host_exit *exit);
};

/* Start a host and its program. -1 when not even the host could be started; what goes wrong with the program is told by
 * exited() with cause spawn_failed. Lines may be written at once. */
int host_start(uv_loop_t *loop, const struct host_settings *settings, const struct host_handlers *handlers, void *context,
	struct host **out, struct failure *f);
/* Go on with the host of this directory. A dead one with an exit.json answers ready() and, after its spool was read,
 * exited() just the same; a dead one without: its strays are killed first, and the cause is "lost". Of two servers the
 * newer one is heard; the older one hears no more. spool_offset -1: behind all that is there, for who only wants its end. */
int host_connect(uv_loop_t *loop, const char *directory, int64_t spool_offset, const struct host_handlers *handlers,
	void *context, struct host **out, struct failure *f);
/* Queue a line (without its end) for the program's stdin. Numbers rise; what was taken before is ignored. UNAVAILABLE:
 * more than LIMIT_AGENT_STDIN_BYTES would wait, an earlier line was refused for that, or there is nobody to write to.
 * ready() asks for it again, or exited() follows. PAYLOAD_TOO_LARGE: it never fits. */
int host_write(struct host *host, int64_t seq, struct str line, bool has_secret, struct failure *f);
/* Next line of the spool: 1, and *line until the next call, and *end, the offset behind it; 0 none yet. The bytes are the
 * program's own, and the very last line may lack its end. */
int host_next_line(struct host *host, struct str *line, int64_t *end);
/* What stands before this offset was stored: its disk space may go. While LIMIT_AGENT_SPOOL_BYTES (or one longest line)
 * are not consumed, the program waits. */
void host_consumed(struct host *host, int64_t offset);
/* Close the program's stdin, after the lines that were written. */
void host_close_stdin(struct host *host);
/* The ladder: stdin closed where that helps, SIGTERM, SIGKILL, then every process of the tree. */
void host_end(struct host *host);
/* Leave it running and forget it; no handler is called afterwards. Accepts NULL. */
void host_release(struct host *host);

/* The program `dais attempt-host DIRECTORY`; settings come on descriptor 0, a socket, which is the first connection of the
 * server. Exit code of the process. A program that calls host_start runs this when its arguments are those. */
int attempt_host_main(const char *directory);

/* Can this kernel hold a process tree read-only? The version of Landlock's interface, 0: no. */
int agents_can_confine(void);

#endif
