/* threads/person.h - what a person may ask of threads: of every project, and without a thread that stands for them.
 *
 * Changes are made on the writer thread, each in one transaction, by the actor of the transaction; whoever commits one
 * calls threads_wake() afterwards. Answers are members of an object. */
#ifndef DAIS_THREADS_PERSON_H
#define DAIS_THREADS_PERSON_H

#include "threads/commands.h"

/* Threads and questions by their id, or by a beginning or an ending of it that no other has. THREAD_NOT_FOUND, NOT_FOUND,
 * AMBIGUOUS_ID. */
int person_thread(struct snapshot *s, struct str id, struct thread_row *out, struct failure *f);
/* A question; the id of a thread stands for the only one that it has open. */
int person_request(struct snapshot *s, struct str id, struct runtime_request_row *out, struct failure *f);

/* ---- reading ---- */

struct person_filter {
	struct str project; /* title or folder; absent: all */
	struct str status;  /* word of a status, "live" for all that is not at its end; absent: all */
	bool has_archived;  /* archived ones too */
	int64_t limit;
};

/* "threads": newest first; "more": whether there are others. */
int person_list(struct snapshot *s, const struct person_filter *filter, struct json_writer *w, struct failure *f);
/* "thread", its "runs", "tasks", "requests" that are open, and the newest `items` of its timeline. */
int person_show(struct snapshot *s, struct str id, int64_t items, struct json_writer *w, struct failure *f);
/* "requests": open questions, of one thread or of all (id absent). */
int person_requests(struct snapshot *s, struct str id, struct json_writer *w, struct failure *f);
/* "providers" with what keeps each from running. */
void person_providers(const struct threads *threads, struct arena *arena, struct json_writer *w);

/* ---- changing ---- */

struct person_start {
	struct threads *threads;
	struct str place; /* absolute path: its project, a new one when there is none */
	struct str text, title;
	struct target target;
	int64_t runtime, interaction; /* -1: full-access, default */
};

int person_start(struct tx *tx, const struct person_start *in, struct json_writer *w, struct failure *f);
int person_send(struct tx *tx, struct str id, struct str text, enum send_mode mode, struct json_writer *w,
	struct failure *f);
int person_interrupt(struct tx *tx, struct str id, struct json_writer *w, struct failure *f);
/* Ends its runs, its agent and what it would still be told; sending to it is refused from then on. */
int person_archive(struct tx *tx, struct str id, struct json_writer *w, struct failure *f);
/* The same, and it is not shown any more. What it has delegated goes on. */
int person_delete(struct tx *tx, struct str id, struct json_writer *w, struct failure *f);

struct person_answer {
	struct str id;
	int64_t decision;     /* enum agent_decision, -1: answers */
	const json_t *answers; /* object question id → text or array of texts */
};

/* INVALID_REQUEST when it is not open any more, or the answer does not fit. */
int person_respond(struct tx *tx, const struct person_answer *in, struct json_writer *w, struct failure *f);

#endif
