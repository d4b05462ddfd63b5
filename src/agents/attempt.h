/* agents/attempt.h - the inside of `dais attempt-host`: one program, its pipes, its clock, its end, and the server that
 * listens. One thread, one libuv loop. */
#ifndef DAIS_AGENTS_ATTEMPT_H
#define DAIS_AGENTS_ATTEMPT_H

#include "agents/private.h"

/* How far the end has come. Only stage_enter() writes it; what each does, and for how long, is the table in ladder.c. */
enum stage {
	STAGE_RUNNING,
	STAGE_STDIN, /* its input was closed */
	STAGE_TERM,  /* its process group got SIGTERM */
	STAGE_KILL,  /* its process group got SIGKILL */
	STAGE_LEFT,  /* it is gone; what it left running got SIGTERM */
	STAGE_CLEAR, /* what is left gets SIGKILL until there is nothing */
	STAGE_DONE,  /* only the record is missing */
	STAGES,
};

enum alarm {
	ALARM_START,	/* the first line is late */
	ALARM_DEADLINE,
	ALARM_STDOUT,	/* the program lives on without its output */
	ALARM_STAGE,	/* this stage took long enough */
	ALARM_LOOK,	/* is anything left? */
	ALARM_FLUSH,	/* is there room on the disk again? */
	ALARM_PROGRESS, /* the server reads slowly */
	ALARMS,
};

struct channel;

struct attempt {
	uv_loop_t loop;
	struct arena *arena;
	int dir, lock;
	char *kept; /* body of the settings message: what `settings` points to; wiped at the end */
	size_t kept_n;
	struct host_settings settings;
	struct str marker, cgroup;

	struct process_id agent; /* pid 0: never started */
	bool is_agent_gone;
	int status; /* of waitpid, when gone */
	enum stage stage;
	const char *cause; /* why it is ended; NULL: it ended by itself */
	bool is_cleared;

	uv_signal_t on_child, on_term;
	uv_timer_t timer;
	int64_t due[ALARMS]; /* monotonic ms; 0: not set */
	int64_t expected;    /* when the timer is due */

	uv_pipe_t in, out, err;
	bool is_in_open, is_out_open, is_err_open;
	bool is_out_paused;
	bool closes_in; /* when all lines were written */
	int64_t accepted, confirmed; /* numbers of lines */
	size_t queued; /* bytes of lines that the program has not taken */
	struct spool spool;
	struct errlog errlog;
	char room[LIMIT_AGENT_READ_BYTES]; /* for what the program says */

	uv_pipe_t listener;
	struct channel *server; /* the newest one that said hello */
	int channels;
};

/* ---- attempt_clock.c ---- */

void clock_open(struct attempt *a);
void alarm_set(struct attempt *a, enum alarm alarm, int64_t ms);
void alarm_clear(struct attempt *a, enum alarm alarm);

/* ---- attempt_pipes.c ---- */

void pipes_open(struct attempt *a, const struct agent_pipes *pipes);
void pipes_write(struct attempt *a, int64_t seq, struct str line, bool has_secret);
/* After what is queued; `at_once`: without it. */
void pipes_close_stdin(struct attempt *a, bool at_once);
/* The server stored all before `offset`. */
void pipes_consumed(struct attempt *a, int64_t offset);
void pipes_flush(struct attempt *a);
/* Take what the dead program left in its pipes. False: it has to be tried again, the disk is full. */
bool pipes_drain(struct attempt *a);

/* ---- channel.c ---- */

int channel_listen(struct attempt *a);
/* The connection that brought the settings is the first one. */
void channel_adopt(struct attempt *a, int fd, struct framer *framer);
/* Tell the server how far the spool and the writes are. */
void channel_progress(struct attempt *a);
/* Close every handle of the loop, which ends it. */
void channel_close_all(struct attempt *a);

/* ---- ladder.c ---- */

void stage_enter(struct attempt *a, enum stage stage);
/* End the program for this cause; the first one counts. */
void attempt_end(struct attempt *a, const char *cause);
void attempt_alarm(struct attempt *a, enum alarm alarm);
/* Collect every child that ended, adopted ones too. */
void attempt_reap(struct attempt *a);

#endif
