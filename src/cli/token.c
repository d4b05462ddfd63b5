/* dais token: API tokens of callers over HTTP. The token's text goes to stdout, once, and nowhere else. */
#include "cli/cli.h"

#include "base/clock.h"

#include <unistd.h>

#define WORKING_SET "read write-items write-notes advance manage-dependencies"

enum { KEY_ID = 2000, KEY_CAP, KEY_ALL, KEY_ROOT, KEY_TTL, KEY_DESCRIPTION, KEY_JSON };

struct asking {
	struct cli_words words; /* the argument is the token's id */
	const char *description;
	struct buf capabilities;
	json_t *roots;
	int64_t ttl;
	bool json;
};

static const struct argp_option options[] = {
	{"id", KEY_ID, "ID", 0, "Name of the token; the principal is api:ID", 0},
	{"cap", KEY_CAP, "LIST", 0, "What it may: words separated by commas, of read, write-items, write-notes, advance, manage-dependencies, "
				  "write-config, manage-runs, orchestration (tasks and threads), admin (default: " WORKING_SET ")", 0},
	{"capabilities", KEY_CAP, "LIST", OPTION_ALIAS, NULL, 0},
	{"all", KEY_ALL, NULL, 0, "It may everything, administration included", 0},
	{"root", KEY_ROOT, "ID", 0, "Only this project; may repeat", 0},
	{"ttl", KEY_TTL, "SECONDS", 0, "It ends by itself after this time", 0},
	{"description", KEY_DESCRIPTION, "TEXT", 0, "What it is for", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct asking *asking = state->input;

	switch (key) {
	case KEY_ID:
		asking->words.argument = arg;
		return 0;
	case KEY_CAP:
		buf_add_str(&asking->capabilities, str_of(arg));
		buf_add_char(&asking->capabilities, ' ');
		return 0;
	case KEY_ALL:
		buf_add_str(&asking->capabilities, STR("admin "));
		return 0;
	case KEY_ROOT:
		if (asking->roots == NULL)
			asking->roots = json_array();
		(void)json_array_append_new(asking->roots, json_string(arg));
		return 0;
	case KEY_TTL:
		if (!str_to_int(str_of(arg), &asking->ttl) || asking->ttl < 1)
			argp_error(state, "--ttl must be a number of seconds, got %s", arg);
		return 0;
	case KEY_DESCRIPTION:
		asking->description = arg;
		return 0;
	case KEY_JSON:
		asking->json = true;
		return 0;
	case ARGP_KEY_ARG:
		words_take(&asking->words, arg, state);
		return 0;
	case ARGP_KEY_END:
		words_check(&asking->words, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int run_create(struct cli *cli, void *input, struct failure *f)
{
	const struct asking *asking = input;
	json_auto_t *answer = NULL;
	json_auto_t *request = json_pack("{s:s, s:s, s:s*, s:s*, s:O*}", "op", "token.create", "capabilities",
		asking->capabilities.n == 0 ? WORKING_SET : str_z(cli->arena, buf_str(&asking->capabilities)), "id",
		asking->words.argument, "description", asking->description, "roots", asking->roots);
	struct str token;

	if (asking->ttl > 0)
		(void)json_object_set_new(request, "ttlSeconds", json_integer(asking->ttl));
	if (request == NULL)
		return fail(f, FAIL_USAGE, "The arguments are not UTF-8 text.");
	if (client_admin(cli, json_canonical(cli->arena, request), &answer, f) != 0)
		return -1;
	if (asking->json) {
		print_json(answer);
		return 0;
	}
	token = json_member_str(answer, "token");
	(void)printf("%.*s\n", STRF(token));
	if (fflush(stdout) != 0)
		return fail(f, FAIL_CANNOT_CREATE, "The token was made but could not be written, and is lost: dais token revoke %.*s.",
			STRF(json_member_str(answer, "id")));
	(void)fprintf(stderr,
		"dais: token %.*s made. This is the only time that it is shown; keep it in a file with mode 0600.\n",
		STRF(json_member_str(answer, "id")));
	return 0;
}

static const char *state_of(const json_t *token)
{
	int64_t end;

	if (json_object_get(token, "revokedAt") != NULL)
		return "revoked";
	return time_parse(json_member_str(token, "expiresAt"), &end) && end <= clock_wall_ms() ? "ended" : "live";
}

static int run_list(struct cli *cli, void *input, struct failure *f)
{
	const struct asking *asking = input;
	json_auto_t *answer = NULL;
	const json_t *tokens;
	size_t i;
	json_t *token;

	if (client_admin(cli, STR("{\"op\":\"token.list\"}"), &answer, f) != 0)
		return -1;
	tokens = json_object_get(answer, "tokens");
	if (asking->json) {
		print_json(tokens);
		return 0;
	}
	json_array_foreach (tokens, i, token) {
		struct str expires = json_member_str(token, "expiresAt");

		(void)printf("%s", term_bold(cli));
		term_cell(cli, json_member_str(token, "id"), 20);
		(void)printf("%s  %-7s  ", term_off(cli), state_of(token));
		term_cell(cli, expires.n == 0 ? STR("no end") : expires, 24);
		(void)printf("  %.*s\n", STRF(term_text(cli->arena, json_member_str(token, "capabilities"), 0)));
	}
	if (json_array_size(tokens) == 0)
		(void)fprintf(stderr, "dais: there are no tokens.\n");
	return 0;
}

static int run_revoke(struct cli *cli, void *input, struct failure *f)
{
	const struct asking *asking = input;
	json_auto_t *answer = NULL;
	json_auto_t *request = json_pack("{s:s, s:s}", "op", "token.revoke", "id", asking->words.argument);

	if (request == NULL)
		return fail(f, FAIL_USAGE, "The id is not UTF-8 text.");
	if (client_admin(cli, json_canonical(cli->arena, request), &answer, f) != 0)
		return -1;
	if (asking->json)
		print_json(answer);
	else
		(void)fprintf(stderr, "dais: token %s is revoked; it opens nothing any more.\n", asking->words.argument);
	return 0;
}

static const struct cli_verb verbs[] = {
	{"create", NULL, run_create},
	{"list", NULL, run_list},
	{"revoke", "which token? See dais token list", run_revoke},
	{0},
};

int cmd_token(struct cli *cli, int argc, char **argv)
{
	struct asking asking = {.words = {.verbs = verbs}};
	int rc;

	buf_init(&asking.capabilities, cli->arena, 4096);
	if (cli_parse(cli, argc, argv, options, parse, "create [ID]|list|revoke ID",
		    "API tokens of callers over HTTP. create prints the token, and nothing else, to stdout."
		    "\vExamples:\n"
		    "  (umask 077; dais token create ci --cap read,advance --ttl 86400 > ci.token)\n"
		    "  (umask 077; dais token create lead --capabilities read,orchestration > lead.token)\n"
		    "  dais token list\n"
		    "  dais token revoke ci",
		    &asking) != 0)
		return 64;
	rc = words_run(cli, &asking.words, &asking);
	json_decref(asking.roots);
	return rc;
}
