/* dais status: what the server is doing. */
#include "cli/cli.h"

#include <unistd.h>

static int64_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void print_projects(struct cli *cli, const json_t *status)
{
	static const char *const roles[] = {"queue", "work", "review", "blocked", "terminal"};
	const json_t *projects = json_object_get(status, "projects");
	int64_t older = number(status, "projectCount") - (int64_t)json_array_size(projects);
	size_t width = term_width();
	size_t title = width < 70 ? 20 : width - 50 > 50 ? 50 : width - 50;
	size_t i;
	json_t *project;

	if (json_array_size(projects) == 0) {
		(void)printf("\nNo project yet. Add one: dais project add DIR\n");
		return;
	}
	(void)printf("\n%s%-*s  %7s %6s %6s %7s %8s%s\n", term_bold(cli), (int)title + 10, "project", "queue", "work",
		"review", "blocked", "done", term_off(cli));
	json_array_foreach (projects, i, project) {
		const json_t *counts = json_object_get(project, "counts");

		(void)printf("%s%.8s%s  ", term_dim(cli), json_member_str(project, "id").p, term_off(cli));
		term_cell(cli, json_member_str(project, "title"), title);
		for (size_t role = 0; role < 5; role++) {
			static const int columns[] = {9, 6, 6, 7, 8};
			int64_t n = number(counts, roles[role]);

			(void)printf("%s%s%*lld%s", role == 0 ? "" : " ",
				n == 0 ? term_dim(cli) : term_role(cli, str_of(roles[role])), columns[role], (long long)n,
				term_off(cli));
		}
		(void)putchar('\n');
	}
	if (older > 0)
		(void)printf("… and %lld older one%s\n", (long long)older, plural(older));
}

static void print_status(struct cli *cli, const json_t *status)
{
	(void)printf("dais %.*s, pid %lld, up %s\n", STRF(json_member_str(status, "version")),
		(long long)number(status, "pid"), term_duration(cli->arena, number(status, "uptimeMs")));
	(void)printf("address  %.*s\n", STRF(json_member_str(status, "url")));
	(void)printf("state    %.*s\n", STRF(term_text(cli->arena, str_of(cli->state_dir), 0)));
	(void)printf("store    %s and %s of log; %s free on the disk%s\n",
		term_bytes(cli->arena, number(status, "databaseBytes")), term_bytes(cli->arena, number(status, "walBytes")),
		term_bytes(cli->arena, number(status, "freeDiskBytes")),
		json_is_true(json_object_get(status, "storageFull")) ? "; FULL: writes are refused" : "");
	(void)printf("claims   %lld active\n", (long long)number(status, "activeClaims"));
	print_projects(cli, status);
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
	json_auto_t *status = NULL;
	bool json = false;
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse_switch(cli, argc, argv, "json", "Print JSON",
		    "What the running server is doing: address, store, projects, claims. Exit code 69 when none runs."
		    "\vExample:\n  dais status --json",
		    &json) != 0)
		return 64;
	if (client_admin_running(cli, STR("{\"op\":\"status\"}"), &status, &f) != 0)
		return cli_fail(cli, &f);
	if (json)
		print_json(status);
	else
		print_status(cli, status);
	return 0;
}
