/* What a run found in its folder and what it left there, on record; and whether a run that may only read did. */
#include "threads/engine.h"

#include "base/limits.h"

#define NAMED_FILES 5 /* in the failure of a run that was to change nothing */

struct str checkpoint_scope_id(struct snapshot *s, const struct thread_run_row *run, struct failure *f)
{
	struct str run_id;
	struct thread_row thread;

	if (NEED(s, thread, run->thread_n, &thread, f) != 0)
		return STR_NONE;
	run_id = ident_run(s->arena, thread.id, run->ordinal);
	return IDENT(s->arena, "checkpoint-scope", run_id);
}

static int need_scope(struct tx *tx, const struct captured *in, const struct thread_run_row *run,
	struct checkpoint_scope_row *out, struct failure *f)
{
	struct str id = checkpoint_scope_id(&tx->snapshot, run, f);
	int64_t n;
	int rc = id.p == NULL ? -1 : row_find(&tx->snapshot, ROW_checkpoint_scope, id, &n, f);

	if (rc == 1)
		return NEED(&tx->snapshot, checkpoint_scope, n, out, f);
	*out = (struct checkpoint_scope_row){.id = id, .thread_n = run->thread_n, .run_n = run->n, .cwd = in->cwd,
		.created_at = tx->snapshot.now};
	return rc < 0 ? -1 : PUT(tx, checkpoint_scope, out, run->thread_n, f);
}

static struct str files_json(struct arena *arena, const struct file_changes *files)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	file_changes_write(files, &w);
	return buf_str(&out);
}

static int put_checkpoint(struct tx *tx, const struct captured *in, const struct checkpoint_scope_row *scope,
	struct checkpoint_row *out, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct str id = IDENT(arena, "checkpoint", scope->id, ident_number(arena, in->ordinal));
	int64_t n = 0;

	if (row_find(&tx->snapshot, ROW_checkpoint, id, &n, f) < 0)
		return -1;
	*out = (struct checkpoint_row){.n = n,
		.id = id,
		.thread_n = scope->thread_n,
		.scope_n = scope->n,
		.run_n = scope->run_n,
		.ordinal = in->ordinal,
		.status = in->checkpoint.status,
		.ref = in->checkpoint.ref,
		.digest = in->digest,
		.files = in->checkpoint.files.n == 0 ? STR_NONE : files_json(arena, &in->checkpoint.files),
		.file_count = (int64_t)in->checkpoint.files.total,
		.problem = in->checkpoint.problem,
		.captured_at = tx->snapshot.now};
	return PUT(tx, checkpoint, out, scope->thread_n, f);
}

static struct str item_body(struct arena *arena, const struct checkpoint_row *row, struct str scope_id)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr(&w, "checkpointId", row->id);
	jw_kstr(&w, "scopeId", scope_id);
	jw_kraw(&w, "files", row->files.p == NULL ? STR("[]") : row->files);
	jw_kint(&w, "fileCount", row->file_count);
	jw_kstr_opt(&w, "problem", row->problem);
	jw_object_end(&w);
	return buf_str(&out);
}

/* Where there is no repository there is nothing to show. */
static int show(struct tx *tx, const struct thread_run_row *run, const struct checkpoint_row *row, struct str scope_id,
	struct failure *f)
{
	struct turn_item_row item = {.id = IDENT(tx->snapshot.arena, "turn-item:checkpoint", row->id),
		.thread_n = run->thread_n,
		.run_n = run->n,
		.attempt_n = run->attempt_n,
		.type = TYPE_CHECKPOINT,
		.status = row->status == CHECKPOINT_ERROR ? WORK_FAILED : WORK_COMPLETED,
		.body = item_body(tx->snapshot.arena, row, scope_id),
		.started_at = tx->snapshot.now,
		.completed_at = tx->snapshot.now};

	return row->status == CHECKPOINT_MISSING ? 0 : item_add(tx, &item, f);
}

/* ---- proven to have read only ---- */

SQL(SQL_BASELINE, "SELECT n FROM checkpoint WHERE scope_n = $1 AND ordinal = 0");

/* Both digests are there and differ: 1, 0, -1. */
static int has_changed(struct snapshot *s, const struct checkpoint_row *after, struct failure *f)
{
	struct checkpoint_row before;
	int64_t n;
	int rc = query_int(s, &n, f, SQL_BASELINE, "i", after->scope_n);

	if (rc == 1)
		rc = NEED(s, checkpoint, n, &before, f) == 0 ? 1 : -1;
	if (rc <= 0)
		return rc;
	return before.digest.p != NULL && after->digest.p != NULL && !str_eq(before.digest, after->digest);
}

static struct str changed_failure(struct arena *arena, const struct file_changes *files)
{
	struct agent_failure why = {.class = CLASS_PERMISSION, .code = STR("read_only_changed"), .is_retryable = YES_NO};
	struct buf text;

	buf_init(&text, arena, SIZE_MAX);
	buf_add_str(&text, STR("The thread may only read, but its folder was changed during the run"));
	for (size_t i = 0; i < files->n && i < NAMED_FILES; i++)
		buf_printf(&text, "%s %s %.*s", i == 0 ? ":" : ",", files->rows[i].kind, STRF(files->rows[i].path));
	if (files->total > NAMED_FILES)
		buf_printf(&text, " and %zu more", files->total - NAMED_FILES);
	buf_add_str(&text, STR(". Whoever else works in the folder may have done it; its result proves nothing."));
	why.message = buf_str(&text);
	return failure_json(arena, &why);
}

static int end_run(struct tx *tx, const struct captured *in, struct thread_run_row *run, const struct checkpoint_row *after,
	struct failure *f)
{
	struct thread_row thread;
	int rc;

	if (NEED(&tx->snapshot, thread, run->thread_n, &thread, f) != 0)
		return -1;
	rc = thread.runtime_mode == RUNTIME_READ_ONLY ? has_changed(&tx->snapshot, after, f) : 0;
	if (rc < 0)
		return -1;
	return rc == 1 ? run_end(tx, run, RUN_FAILED, changed_failure(tx->snapshot.arena, &in->checkpoint.files), f)
		       : run_end(tx, run, RUN_COMPLETED, STR_NONE, f);
}

/* ---- */

SQL(SQL_DONE, "DELETE FROM effect WHERE n = $1");

int checkpoint_put(struct tx *tx, const struct captured *in, struct failure *f)
{
	struct thread_run_row run;
	struct checkpoint_scope_row scope;
	struct checkpoint_row row;
	int64_t done = tx_run(tx, f, SQL_DONE, "i", in->effect_n);

	/* The run has ended meanwhile. */
	if (done <= 0)
		return done < 0 ? -1 : 0;
	if (NEED(&tx->snapshot, thread_run, in->run_n, &run, f) != 0 || need_scope(tx, in, &run, &scope, f) != 0
		|| put_checkpoint(tx, in, &scope, &row, f) != 0)
		return -1;
	if (in->ordinal == 0)
		return 0;
	run.checkpoint_n = row.n;
	return show(tx, &run, &row, scope.id, f) != 0 ? -1 : end_run(tx, in, &run, &row, f);
}
