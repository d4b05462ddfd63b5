/* git as a program: its environment, its deadlines, what its refusals mean. */
#include "workspace/private.h"

#include "base/limits.h"

#include <errno.h>
#include <unistd.h>

/* What holds for every command: no hook, daemon or house-keeping of the user runs, and a commit of
 * ours needs no configuration. */
static const char *const settings[] = {"core.hooksPath=/dev/null", "core.fsmonitor=false",
	"gc.auto=0", "maintenance.auto=false", "user.name=dais", "user.email=dais@localhost",
	"advice.addEmbeddedRepo=false"};
/* What would make a private index differ from the files: bits that hide changes, and parts kept
 * elsewhere. */
static const char *const index_settings[] = {"core.ignoreStat=false", "core.splitIndex=false",
	"core.sparseCheckout=false", "index.sparse=false", "core.safecrlf=false",
	"core.untrackedCache=false", "submodule.recurse=false"};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))
#define INDEX_SETTINGS (sizeof(index_settings) / sizeof(index_settings[0]))

static const char *const *make_argv(
	struct arena *arena, const struct git *git, const char *const *args)
{
	size_t n = 0, argc = 0;
	const char **argv;

	while (args[argc] != NULL)
		argc++;
	argv = ARENA_ARRAY(arena, const char *, 2 * (SETTINGS + INDEX_SETTINGS) + argc + 5);
	argv[n++] = "git";
	argv[n++] = "-C";
	argv[n++] = git->path;
	for (size_t i = 0; i < SETTINGS; i++) {
		argv[n++] = "-c";
		argv[n++] = settings[i];
	}
	for (size_t i = 0; git->index != NULL && i < INDEX_SETTINGS; i++) {
		argv[n++] = "-c";
		argv[n++] = index_settings[i];
	}
	memcpy(argv + n, args, argc * sizeof(argv[0]));
	argv[n + argc] = NULL;
	return argv;
}

static int stopped(
	const struct git *git, enum program_stop stop, const char *command, struct failure *f)
{
	if (stop == STOP_CANCELLED)
		return fault(f, FAULT_CANCELLED, "It was asked to stop during git %s.", command);
	if (stop == STOP_TOO_LONG)
		return fault(f, FAULT_TOO_LARGE, "git %s answered more than %d bytes.", command,
			LIMIT_GIT_OUTPUT_BYTES);
	return fault(f, FAULT_TIMED_OUT, "git %s took longer than %lld s.", command,
		(long long)(git->timeout_ms == 0 ? LIMIT_GIT_MS : git->timeout_ms) / 1000);
}

static int not_started(const struct program_end *end, struct failure *f)
{
	if (end->start_error == ENOENT || end->start_error == EACCES)
		return fault(f, FAULT_GIT_MISSING,
			"The program git was not found on the PATH of the server.");
	errno = end->start_error;
	return fault_errno(f, "start", "git");
}

int git_try(const struct workspace_call *call, const struct git *git, const char *const *args,
	struct program_end *end, struct failure *f)
{
	const char *index = git->index == NULL
	                            ? NULL
	                            : arena_printf(call->arena, "GIT_INDEX_FILE=%s", git->index);
	const char *const env[] = {"GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0",
		"GIT_EDITOR=:", index, NULL};
	struct program program = {
		.argv = make_argv(call->arena, git, args),
		.env = env,
		.input = -1,
		.timeout_ms = git->timeout_ms == 0 ? LIMIT_GIT_MS : git->timeout_ms,
		.max_out = LIMIT_GIT_OUTPUT_BYTES,
	};

	if (git->input.p != NULL) {
		program.input = program_input(git->input);
		if (program.input < 0)
			return fault_errno(f, "write", "the input of git");
	}
	program_run(call, &program, end);
	if (program.input >= 0)
		close(program.input);
	if (end->start_error != 0)
		return not_started(end, f);
	if (end->stop != STOP_NONE)
		return stopped(git, end->stop, args[0], f);
	return 0;
}

int git_run(const struct workspace_call *call, const struct git *git, const char *const *args,
	struct str *out, struct failure *f)
{
	struct program_end end;

	if (git_try(call, git, args, &end, f) != 0)
		return -1;
	if (end.exit_code != 0)
		return git_fault(git, &end, f);
	if (out != NULL)
		*out = end.out;
	return 0;
}

bool says(const struct program_end *end, const char *words)
{
	return memmem(end->err.p, end->err.n, words, strlen(words)) != NULL;
}

int git_fault(const struct git *git, const struct program_end *end, struct failure *f)
{
	struct str complaint = git_complaint(f->arena, end->err);

	if (complaint.n == 0)
		complaint = str_printf(f->arena, "it ended with %s %d",
			end->exit_code < 0 ? "signal" : "exit code",
			end->exit_code < 0 ? end->signal : end->exit_code);
	if (says(end, "No space left on device") || says(end, "Disk quota exceeded"))
		return fault(f, FAULT_DISK_FULL, "No space is left: %.*s", STRF(complaint));
	if (git->is_remote)
		return fault(f, FAULT_FETCH_FAILED, "origin could not be fetched from: %.*s",
			STRF(complaint));
	if (says(end, "not a git repository") || says(end, "cannot change to") ||
		says(end, "must be run in a work tree"))
		return fault(f, FAULT_REPOSITORY_MISSING, "%s is not inside a work tree of git.",
			git->path);
	if (says(end, "Permission denied") || says(end, "Read-only file system"))
		return fault(f, FAULT_NOT_PERMITTED, "It is not permitted: %.*s", STRF(complaint));
	return fault(f, FAULT_GIT_FAILED, "git refused: %.*s", STRF(complaint));
}

/* ---- what it said ---- */

static bool is_verdict(struct str line)
{
	return str_starts(line, STR("fatal: ")) || str_starts(line, STR("error: "));
}

/* https://user:password@host becomes https://host. */
static void drop_user(struct buf *out)
{
	for (size_t i = 0; i + 3 < out->n; i++) {
		size_t at = i + 3, end = at;

		if (memcmp(out->p + i, "://", 3) != 0)
			continue;
		for (size_t k = at;
			k < out->n && out->p[k] != '/' && out->p[k] != ' ' && out->p[k] != '\'';
			k++)
			if (out->p[k] == '@')
				end = k + 1;
		memmove(out->p + at, out->p + end, out->n - end);
		out->n -= end - at;
	}
}

struct str show_bytes(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	while (text.n > 0) {
		size_t good = utf8_check(text);

		buf_add(&out, text.p, good);
		if (good < text.n)
			buf_printf(&out, "\\x%02x", (unsigned char)text.p[good++]);
		text = (struct str){text.p + good, text.n - good};
	}
	return buf_str(&out);
}

static struct str make_presentable(struct arena *arena, struct str line)
{
	struct buf out;

	if (is_verdict(line))
		line = (struct str){line.p + 7, line.n - 7};
	line = show_bytes(arena, line);
	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < line.n; i++)
		buf_add_char(&out,
			(unsigned char)line.p[i] < ' ' || line.p[i] == 0x7f ? ' ' : line.p[i]);
	drop_user(&out);
	out.n = out.n > LIMIT_COMPLAINT_BYTES ? utf8_cut(buf_str(&out), LIMIT_COMPLAINT_BYTES)
	                                      : out.n;
	return str_trim(buf_str(&out));
}

struct str git_complaint(struct arena *arena, struct str err)
{
	struct str found = STR("");
	bool has_verdict = false;

	while (err.n > 0) {
		const char *end = memchr(err.p, '\n', err.n);
		struct str line = {err.p, end == NULL ? err.n : (size_t)(end - err.p)};
		size_t used = line.n + (end != NULL);

		/* What follows a verdict of a fetch is general advice; so are hints. */
		if (is_verdict(line) ||
			(!has_verdict && line.n > 0 && !str_starts(line, STR("hint:"))))
			found = line;
		has_verdict = has_verdict || is_verdict(line);
		err = (struct str){err.p + used, err.n - used};
	}
	return make_presentable(arena, found);
}

struct str chomp(struct str text)
{
	if (text.n > 0 && text.p[text.n - 1] == '\n')
		text.n--;
	return text;
}

bool next_piece(struct str *rest, struct str *piece)
{
	const char *end;

	if (rest->n == 0)
		return false;
	end = memchr(rest->p, '\0', rest->n);
	*piece = (struct str){rest->p, end == NULL ? rest->n : (size_t)(end - rest->p)};
	*rest = (struct str){
		rest->p + piece->n + (end != NULL), rest->n - piece->n - (end != NULL)};
	return true;
}
