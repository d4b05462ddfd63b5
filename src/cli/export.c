/* dais export: everything that was made, as lines of JSON. */
#include "cli/cli.h"

#include "store/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FORCE = 2000 };

struct exporting {
	const char *file; /* NULL: stdout */
	bool force, to_terminal;
	int fd;
	struct buf pending;
};

static const struct argp_option options[] = {
	{"force", KEY_FORCE, NULL, 0, "Replace FILE when it exists", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct exporting *exporting = state->input;

	switch (key) {
	case KEY_FORCE:
		exporting->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (exporting->file != NULL)
			argp_error(state, "too many arguments");
		exporting->file = strcmp(arg, "-") == 0 ? NULL : arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int flush(struct exporting *exporting, struct failure *f)
{
	struct str bytes = buf_str(&exporting->pending);

	if (write_all(exporting->fd, bytes) != 0)
		return fail(f, errno == ENOSPC ? FAIL_STORAGE_FULL : FAIL_CANNOT_CREATE, "The export cannot be written%s.",
			errno == ENOSPC ? ": the disk is full" : "");
	exporting->pending.n = 0;
	return 0;
}

static int write_line(void *context, struct str line, struct failure *f)
{
	struct exporting *exporting = context;

	if (exporting->to_terminal) {
		print_json_text((struct str){line.p, line.n - 1});
		return 0;
	}
	buf_add_str(&exporting->pending, line);
	return exporting->pending.n < 262144 ? 0 : flush(exporting, f);
}

static int read_store(struct cli *cli, struct exporting *exporting, struct failure *f)
{
	struct settings *settings;
	struct store_options how = {.path = NULL};
	struct store *store;
	struct snapshot s;
	int rc;

	if (cli_settings(cli, &settings, f) != 0)
		return -1;
	how.path = state_database(cli->arena, cli->state_dir, settings_text(settings, SETTING_STORE));
	if (store_open(&how, &store, f) != 0)
		return -1;
	rc = snapshot_begin(store, cli->arena, &s, f);
	if (rc == 0) {
		rc = transfer_export(&s, write_line, exporting, f);
		snapshot_end(&s);
	}
	store_close(store);
	return rc != 0 ? -1 : flush(exporting, f);
}

/* Under another name until it is whole, so that half an export is never taken for one. */
static int export_to_file(struct cli *cli, struct exporting *exporting, struct failure *f)
{
	char *partial = arena_printf(cli->arena, "%s.partial-%d", exporting->file, (int)getpid());
	struct stat st;
	int rc;

	if (lstat(exporting->file, &st) == 0 && (!exporting->force || !S_ISREG(st.st_mode)))
		return fail(f, FAIL_CANNOT_CREATE, S_ISREG(st.st_mode) ? "%s exists already; --force replaces it."
								       : "%s is no regular file.",
			exporting->file);
	exporting->fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (exporting->fd < 0)
		return fail(f, FAIL_CANNOT_CREATE, "%s cannot be made: %s.", exporting->file, strerror(errno));
	rc = read_store(cli, exporting, f);
	if (rc == 0 && fsync(exporting->fd) != 0)
		rc = fail(f, FAIL_CANNOT_CREATE, "%s cannot be written.", exporting->file);
	(void)close(exporting->fd);
	if (rc == 0 && rename(partial, exporting->file) != 0)
		rc = fail(f, FAIL_CANNOT_CREATE, "%s cannot be made.", exporting->file);
	if (rc != 0)
		(void)unlink(partial);
	return rc;
}

int cmd_export(struct cli *cli, int argc, char **argv)
{
	struct exporting exporting = {.fd = STDOUT_FILENO};
	struct failure f;
	int rc;

	failure_init(&f, cli->arena);
	buf_init(&exporting.pending, cli->arena, SIZE_MAX);
	if (cli_parse(cli, argc, argv, options, parse, "[FILE]",
		    "Write everything that people and agents made as lines of JSON, to FILE (mode 0600) or stdout: items, "
		    "notes and their revisions, dependencies, documents, rules, runs, history. It is one moment's state, "
		    "whether a server runs or not. Tokens, sessions and running claims are left out."
		    "\vExample:\n  dais export work.jsonl",
		    &exporting) != 0)
		return 64;
	exporting.to_terminal = exporting.file == NULL && isatty(STDOUT_FILENO) != 0;
	rc = exporting.file == NULL ? read_store(cli, &exporting, &f) : export_to_file(cli, &exporting, &f);
	return rc == 0 ? 0 : cli_fail(cli, &f);
}
