/* dais doctor: is the database sound, is the state private, can this machine carry the server? */
#include "cli/doctor.h"
#include "cli/threads.h"

#include "store/store.h"
#include "threads/rebuild.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

void doctor_say(struct doctor *doctor, enum finding finding, const char *check, const char *fmt, ...)
{
	static const char *const words[] = {"ok", "note", "problem"};
	static const char *const roles[] = {"terminal", "work", "blocked"}; /* their colours */
	struct cli *cli = doctor->cli;
	struct str text;
	va_list args;

	va_start(args, fmt);
	text = str_of(arena_vprintf(cli->arena, fmt, args));
	va_end(args);
	doctor->problems += finding == FINDING_PROBLEM;
	if (doctor->checks != NULL) {
		(void)json_array_append_new(doctor->checks,
			json_pack("{s:s, s:s, s:s%}", "check", check, "finding", words[finding], "text", text.p, text.n));
		return;
	}
	(void)printf("%s%-7s%s  %-11s  %.*s\n", term_role(cli, str_of(roles[finding])), words[finding], term_off(cli),
		check, STRF(term_text(cli->arena, text, 0)));
}

/* ---- the state directory ---- */

static void check_file(struct doctor *doctor, const char *directory, const char *name, size_t *open_files)
{
	char *path = arena_printf(doctor->cli->arena, "%s/%s", directory, name);
	struct stat st;

	if (lstat(path, &st) != 0)
		return; /* gone since it was listed */
	if (S_ISLNK(st.st_mode) || (st.st_mode & 077) != 0 || st.st_uid != geteuid()) {
		doctor_say(doctor, FINDING_PROBLEM, "files", "%s %s", path,
			S_ISLNK(st.st_mode)	       ? "is a symbolic link"
				: st.st_uid != geteuid() ? "belongs to somebody else"
							 : "may be opened by others: chmod go= it");
		(*open_files)++;
	}
}

static void check_state(struct doctor *doctor)
{
	const char *directory = doctor->cli->state_dir;
	size_t open_files = 0;
	struct stat st;
	DIR *dir;

	if (stat(directory, &st) != 0) {
		doctor_say(doctor, errno == ENOENT ? FINDING_NOTE : FINDING_PROBLEM, "state", "%s %s", directory,
			errno == ENOENT ? "does not exist yet; dais serve makes it" : "cannot be looked at");
		return;
	}
	if (!S_ISDIR(st.st_mode))
		doctor_say(doctor, FINDING_PROBLEM, "state", "%s is no directory", directory);
	else if (st.st_uid != geteuid())
		doctor_say(doctor, FINDING_PROBLEM, "state", "%s belongs to somebody else", directory);
	else if ((st.st_mode & 077) != 0)
		doctor_say(doctor, FINDING_PROBLEM, "state", "%s may be entered by others (mode %03o): chmod 700 it",
			directory, st.st_mode & 0777U);
	else
		doctor_say(doctor, FINDING_OK, "state", "%s, mode 700", directory);
	dir = opendir(directory);
	if (dir == NULL)
		return;
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			check_file(doctor, directory, entry->d_name, &open_files);
	(void)closedir(dir);
	if (open_files == 0)
		doctor_say(doctor, FINDING_OK, "files", "nobody else may open them");
}

/* ---- the database ---- */

static void found(void *context, struct str line)
{
	doctor_say(context, FINDING_PROBLEM, "database", "%.*s", STRF(line));
}

static void found_leftover(void *context, struct str line)
{
	doctor_say(context, FINDING_NOTE, "agents", "%.*s", STRF(line));
}

static void found_in_log(void *context, struct str line)
{
	doctor_say(context, FINDING_PROBLEM, "log", "%.*s", STRF(line));
}

static int check_log(struct doctor *doctor, struct snapshot *s, struct failure *f)
{
	struct rebuilt rebuilt;
	int findings = threads_rebuild_check(s, found_in_log, doctor, &rebuilt, f);

	if (findings == 0)
		doctor_say(doctor, FINDING_OK, "log", "%lld events of threads make the %lld rows that are there",
			(long long)rebuilt.events, (long long)rebuilt.rows);
	if (findings >= 0 && rebuilt.older > 0)
		doctor_say(doctor, FINDING_NOTE, "log", "%lld rows are older than the log and were not compared",
			(long long)rebuilt.older);
	return findings < 0 ? -1 : 0;
}

/* Of threads, beyond what store_check looks at. */
static int check_threads(struct doctor *doctor, struct snapshot *s, struct failure *f)
{
	const char *directory = arena_printf(doctor->cli->arena, "%s/agents", doctor->cli->state_dir);

	if (threads_leftovers(s, directory, found_leftover, doctor, f) < 0)
		return -1;
	return doctor->rebuilds ? check_log(doctor, s, f) : 0;
}

/* 0 checked, 1 nothing to check, -1 failure. */
static int check_store(struct doctor *doctor, struct store *store, struct failure *f)
{
	struct store_facts facts;
	struct snapshot s;
	int findings;

	if (store_facts(store, &facts, f) != 0)
		return -1;
	if (facts.schema_version < store_schema_version()) {
		doctor_say(doctor, FINDING_NOTE, "schema",
			"version %lld; the next start of the server makes a copy and brings it to version %d",
			(long long)facts.schema_version, store_schema_version());
		return 1; /* the invariants are those of the newest schema */
	}
	doctor_say(doctor, FINDING_OK, "schema", "version %lld", (long long)facts.schema_version);
	if (snapshot_begin(store, doctor->cli->arena, &s, f) != 0)
		return -1;
	findings = store_check(&s, found, doctor, f);
	if (findings >= 0 && check_threads(doctor, &s, f) != 0)
		findings = -1;
	snapshot_end(&s);
	if (findings == 0)
		doctor_say(doctor, FINDING_OK, "database", "sound; %s and %s of log",
			term_bytes(doctor->cli->arena, facts.database_bytes),
			term_bytes(doctor->cli->arena, facts.wal_bytes));
	return findings < 0 ? -1 : 0;
}

static void found_in_search(void *context, struct str line)
{
	doctor_say(context, FINDING_PROBLEM, "search", "%.*s", STRF(line));
}

static void check_search(struct doctor *doctor, struct store *store)
{
	struct failure f;
	int findings;

	failure_init(&f, doctor->cli->arena);
	findings = store_check_search(store, doctor->cli->arena, found_in_search, doctor, &f);
	if (findings == 0)
		doctor_say(doctor, FINDING_OK, "search", "the index matches the texts");
	else if (findings < 0 && f.code == FAIL_STATE_OWNED)
		doctor_say(doctor, FINDING_NOTE, "search",
			"not compared with the texts while a server runs: stop it, or look at a backup");
	else if (findings < 0)
		doctor_say(doctor, FINDING_NOTE, "search", "not compared with the texts: %.*s", STRF(f.message));
}

static void check_database(struct doctor *doctor, const char *path)
{
	struct store_options how = {.path = path};
	struct store *store;
	struct failure f;
	int rc;

	failure_init(&f, doctor->cli->arena);
	if (access(path, F_OK) != 0) {
		doctor_say(doctor, errno == ENOENT ? FINDING_NOTE : FINDING_PROBLEM, "database",
			errno == ENOENT ? "there is none yet at %s" : "%s cannot be looked at", path);
		return;
	}
	if (store_open(&how, &store, &f) != 0) {
		doctor_say(doctor, f.code == FAIL_NOT_REACHABLE ? FINDING_NOTE : FINDING_PROBLEM, "database", "%.*s",
			STRF(f.message));
		return;
	}
	rc = check_store(doctor, store, &f);
	if (rc < 0)
		doctor_say(doctor, FINDING_PROBLEM, "database", "it cannot be checked: %.*s", STRF(f.message));
	if (rc == 0)
		check_search(doctor, store);
	store_close(store);
}

/* ---- the server ---- */

static void check_agents(struct doctor *doctor)
{
	json_auto_t *answer = NULL;
	const json_t *threads;
	struct failure f;

	failure_init(&f, doctor->cli->arena);
	if (threads_ask(doctor->cli, "list", json_pack("{s:s}", "status", "live"), &answer, &f) != 0) {
		doctor_say(doctor, FINDING_NOTE, "agents", "%.*s", STRF(f.message));
		return;
	}
	threads = json_object_get(answer, "threads");
	if (json_array_size(threads) == 0)
		doctor_say(doctor, FINDING_OK, "agents", "none at work");
	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *thread = json_array_get(threads, i);
		struct str title = term_text(doctor->cli->arena, json_member_str(thread, "title"), 60);

		doctor_say(doctor, FINDING_OK, "agents", "%.*s %.*s, %.*s: %.*s", STRF(short_id(json_member_str(thread, "id"))),
			STRF(json_member_str(thread, "status")), STRF(json_member_str(thread, "providerInstanceId")), STRF(title));
	}
}

static void check_server(struct doctor *doctor)
{
	json_auto_t *answer = NULL;
	struct failure f;

	failure_init(&f, doctor->cli->arena);
	if (client_admin_running(doctor->cli, STR("{\"op\":\"status\"}"), &answer, &f) == 0)
		doctor_say(doctor, FINDING_OK, "server", "pid %lld at %.*s, version %.*s",
			(long long)json_integer_value(json_object_get(answer, "pid")),
			STRF(json_member_str(answer, "url")), STRF(json_member_str(answer, "version")));
	if (answer != NULL)
		check_agents(doctor);
	else
		doctor_say(doctor, f.code == FAIL_NOT_REACHABLE ? FINDING_NOTE : FINDING_PROBLEM, "server", "%.*s",
			STRF(f.message));
}

/* ---- the environment ---- */

static void found_unknown(void *context, const char *name, const char *nearest)
{
	doctor_say(context, FINDING_NOTE, "environment", "%s is not known and is ignored; the nearest name is %s", name, nearest);
}

enum { KEY_JSON = 2000, KEY_REBUILD };

struct asked {
	bool json, rebuild;
};

static const struct argp_option options[] = {
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{"rebuild", KEY_REBUILD, NULL, 0,
		"Also read the whole log of threads, and compare what it makes with the tables; takes its time", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct asked *asked = state->input;

	(void)arg;
	if (key == KEY_JSON)
		asked->json = true;
	else if (key == KEY_REBUILD)
		asked->rebuild = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

int cmd_doctor(struct cli *cli, int argc, char **argv)
{
	struct doctor doctor = {.cli = cli};
	struct settings *settings;
	struct asked asked = {0};
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, NULL,
		    "Check the database (pages, keys, our own invariants), who may open the state, and what this machine "
		    "offers. Nothing is changed, and a server may run meanwhile; while none does, the search index is "
		    "checked too, and none can start until that is done. Exit code 1 when there is a "
		    "problem; notes are no problems.\vExample:\n  dais doctor --json",
		    &asked) != 0)
		return 64;
	if (cli_settings(cli, &settings, &f) != 0)
		return cli_fail(cli, &f);
	doctor.rebuilds = asked.rebuild;
	if (asked.json)
		doctor.checks = json_array();
	check_state(&doctor);
	check_database(&doctor, state_database(cli->arena, cli->state_dir, settings_text(settings, SETTING_STORE)));
	check_server(&doctor);
	settings_unknown_env(cli->arena, found_unknown, &doctor);
	machine_check(&doctor);
	if (asked.json) {
		json_auto_t *report = json_pack("{s:b, s:i, s:o}", "ok", doctor.problems == 0, "problems",
			(int)doctor.problems, "checks", doctor.checks);

		print_json(report);
	}
	return doctor.problems == 0 ? 0 : 1;
}
