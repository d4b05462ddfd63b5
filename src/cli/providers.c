/* dais providers: who can be given work. */
#include "cli/threads.h"

static void print_texts(struct cli *cli, const char *name, const json_t *texts)
{
	for (size_t i = 0; i < json_array_size(texts); i++)
		(void)printf("%*s%s%s%s %.*s\n", 14, "", term_dim(cli), name, term_off(cli),
			STRF(term_text(cli->arena, json_str(json_array_get(texts, i)), 0)));
}

static void print_provider(struct cli *cli, const json_t *provider)
{
	bool can_run = json_is_true(json_object_get(provider, "canRun"));

	term_cell(cli, json_member_str(provider, "id"), 14);
	term_cell(cli, json_member_str(provider, "driver"), 14);
	(void)printf("%s%s%s  %.*s\n", can_run ? "" : term_role(cli, STR("blocked")), can_run ? "can run" : "cannot",
		term_off(cli), STRF(term_text(cli->arena, json_member_str(provider, "displayName"), 0)));
	print_texts(cli, "-", json_object_get(provider, "constraints"));
	print_texts(cli, "model", json_object_get(provider, "models"));
}

static int list(struct cli *cli, bool json, struct failure *f)
{
	json_auto_t *answer = NULL;
	const json_t *providers;

	if (threads_ask(cli, "providers", json_object(), &answer, f) != 0)
		return -1;
	providers = json_object_get(answer, "providers");
	if (json) {
		json_auto_t *out = json_pack("{s:O}", "providers", providers);

		print_json(out);
		return 0;
	}
	if (json_array_size(providers) == 0)
		(void)printf("No provider: install an agent program, or name one under providers in the configuration.\n");
	for (size_t i = 0; i < json_array_size(providers); i++)
		print_provider(cli, json_array_get(providers, i));
	return 0;
}

int cmd_providers(struct cli *cli, int argc, char **argv)
{
	bool json = false;
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse_switch(cli, argc, argv, "json", "Print JSON",
		    "The provider instances of the running server, as configured or found on its PATH, whether each can run, and "
		    "why not."
		    "\vExample:\n  dais providers",
		    &json) != 0)
		return 64;
	return list(cli, json, &f) == 0 ? 0 : cli_fail(cli, &f);
}
