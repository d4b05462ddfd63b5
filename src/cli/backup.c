/* dais backup: a copy of the database, made while it is in use. */
#include "cli/cli.h"

#include "store/store.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FORCE = 2000 };

struct backing {
	const char *file;
	bool force;
};

static const struct argp_option options[] = {
	{"force", KEY_FORCE, NULL, 0, "Replace FILE when it exists", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct backing *backing = state->input;

	switch (key) {
	case KEY_FORCE:
		backing->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (backing->file != NULL)
			argp_error(state, "too many arguments");
		backing->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (backing->file == NULL)
			argp_error(state, "which file? For example: dais backup work.db");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Nothing but a backup file may be replaced: not a directory, not the database that is copied. */
static int check_place(const struct backing *backing, const char *database, struct failure *f)
{
	struct stat place;
	struct stat source;

	if (stat(database, &source) != 0)
		return errno == EACCES ? fail(f, FAIL_NOT_PERMITTED, "The database %s may not be opened.", database)
				       : fail(f, FAIL_NOT_REACHABLE, "There is no database at %s.", database);
	if (lstat(backing->file, &place) != 0)
		return errno == ENOENT ? 0 : fail(f, FAIL_CANNOT_CREATE, "%s cannot be made.", backing->file);
	if (place.st_dev == source.st_dev && place.st_ino == source.st_ino)
		return fail(f, FAIL_CANNOT_CREATE, "%s is the database itself.", backing->file);
	if (!S_ISREG(place.st_mode))
		return fail(f, FAIL_CANNOT_CREATE, "%s is no regular file.", backing->file);
	if (!backing->force)
		return fail(f, FAIL_CANNOT_CREATE, "%s exists already; --force replaces it.", backing->file);
	return 0;
}

static int back_up(struct cli *cli, const struct backing *backing, struct failure *f)
{
	struct settings *settings;
	const char *database;
	struct stat st;
	mode_t mask;
	int rc;

	if (cli_settings(cli, &settings, f) != 0)
		return -1;
	database = state_database(cli->arena, cli->state_dir, settings_text(settings, SETTING_STORE));
	if (check_place(backing, database, f) != 0)
		return -1;
	mask = umask(0077);
	rc = store_backup(database, backing->file, f);
	(void)umask(mask);
	if (rc != 0)
		return -1;
	if (stat(backing->file, &st) != 0)
		return fail(f, FAIL_CANNOT_CREATE, "%s is gone again.", backing->file);
	(void)printf("%s: %s\n", backing->file, term_bytes(cli->arena, st.st_size));
	return 0;
}

int cmd_backup(struct cli *cli, int argc, char **argv)
{
	struct backing backing = {.file = NULL};
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, "FILE",
		    "Copy the database to FILE (mode 0600), whether a server runs or not. The copy is one moment's state "
		    "and is complete before it gets its name. It also holds the digests of tokens."
		    "\vExample:\n  dais backup dais-$(date +%F).db\n"
		    "To go back to it, stop the server, remove STATE/dais.db, dais.db-wal and "
		    "dais.db-shm, and copy the file to STATE/dais.db.",
		    &backing) != 0)
		return 64;
	return back_up(cli, &backing, &f) == 0 ? 0 : cli_fail(cli, &f);
}
