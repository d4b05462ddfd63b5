/* dais items: work items as a tree, a table, or one of them. */
#include "cli/items.h"

#include <time.h>
#include <unistd.h>

enum { KEY_ROOT = 2000, KEY_ROLE, KEY_OPEN, KEY_TABLE, KEY_LIMIT, KEY_WATCH, KEY_JSON };

#define PAGE 100
#define REDRAW_MS 100 /* at most ten pictures a second, however much happens */

struct items {
	struct cli *cli;
	const char *id, *root, *role;
	bool open, table, watch, json;
	int64_t limit; /* 0: all */
	int64_t total; /* known from the last read */
	bool is_drawn;
};

static const struct argp_option options[] = {
	{"root", KEY_ROOT, "ID", 0, "Only this project", 0},
	{"role", KEY_ROLE, "ROLE", 0, "Only items in this role, as a table: queue, work, review, blocked, terminal", 0},
	{"open", KEY_OPEN, NULL, 0, "Leave out what is finished", 0},
	{"table", KEY_TABLE, NULL, 0, "A table, not a tree", 0},
	{"limit", KEY_LIMIT, "N", 0, "At most N items, oldest first (default 1000; 0: all)", 0},
	{"watch", KEY_WATCH, NULL, 0, "Draw again whenever something happens", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct items *items = state->input;

	switch (key) {
	case KEY_ROOT:
		items->root = arg;
		return 0;
	case KEY_ROLE:
		items->role = arg;
		return 0;
	case KEY_OPEN:
		items->open = true;
		return 0;
	case KEY_TABLE:
		items->table = true;
		return 0;
	case KEY_LIMIT:
		if (!str_to_int(str_of(arg), &items->limit) || items->limit < 0)
			argp_error(state, "--limit must be a number, got %s", arg);
		return 0;
	case KEY_WATCH:
		items->watch = true;
		return 0;
	case KEY_JSON:
		items->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (items->id != NULL)
			argp_error(state, "too many arguments");
		items->id = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static struct str list_arguments(struct cli *cli, const struct items *items, int64_t limit, struct str cursor)
{
	json_auto_t *arguments = json_pack("{s:s, s:s, s:s, s:I, s:[s]}", "select", "list", "sortBy", "createdAt",
		"sortDir", "asc", "limit", (json_int_t)limit, "fields", "claim");

	if (items->root != NULL)
		(void)json_object_set_new(arguments, "rootId", json_string(items->root));
	if (items->role != NULL)
		(void)json_object_set_new(arguments, "roles", json_pack("[s]", items->role));
	if (items->open)
		(void)json_object_set_new(arguments, "excludeTerminal", json_true());
	if (cursor.n > 0)
		(void)json_object_set_new(arguments, "cursor", json_stringn(cursor.p, cursor.n));
	return json_canonical(cli->arena, arguments);
}

static int read_page(struct cli *cli, int fd, struct items *items, json_t *all, struct str *cursor,
	struct failure *f)
{
	json_auto_t *envelope = NULL;
	const json_t *page;
	int64_t rest = items->limit == 0 ? PAGE : items->limit - (int64_t)json_array_size(all);

	if (client_call(cli, fd, "items_read", list_arguments(cli, items, rest < PAGE ? rest : PAGE, *cursor), &envelope,
		    NULL, f) != 0)
		return -1;
	if (!json_is_true(json_object_get(envelope, "ok")))
		return fail_from_envelope(cli, envelope, f);
	page = json_object_get(envelope, "page");
	(void)json_array_extend(all, json_object_get(json_object_get(envelope, "data"), "items"));
	items->total = json_integer_value(json_object_get(page, "total"));
	*cursor = str_dup(cli->arena, json_member_str(page, "nextCursor"));
	return 0;
}

static int read_items(struct cli *cli, struct items *items, json_t *all, struct failure *f)
{
	struct str cursor = STR_NONE;
	int fd;
	int rc;

	if (client_connect(cli, &fd, f) != 0)
		return -1;
	do {
		rc = read_page(cli, fd, items, all, &cursor, f);
	} while (rc == 0 && cursor.n > 0 &&
		(items->limit == 0 || (int64_t)json_array_size(all) < items->limit));
	(void)close(fd);
	return rc;
}

static void print_table(struct cli *cli, const json_t *all)
{
	size_t width = term_width();
	size_t title = width > 64 ? width - 44 : 20;
	size_t i;
	json_t *item;

	(void)printf("%s%-8s  %-8s %-6s  %-14s  %s%s\n", term_bold(cli), "id", "role", "prio", "type", "title",
		term_off(cli));
	json_array_foreach (all, i, item) {
		struct str role = json_member_str(item, "role");

		(void)printf("%s%.8s%s  %s", term_dim(cli), json_member_str(item, "id").p, term_off(cli),
			term_role(cli, role));
		term_cell(cli, role, 8);
		(void)printf("%s ", term_off(cli));
		term_cell(cli, json_member_str(item, "priority"), 6);
		(void)printf("  ");
		term_cell(cli, json_member_str(item, "type"), 14);
		(void)printf("  %.*s\n", STRF(term_text(cli->arena, json_member_str(item, "title"), title)));
	}
}

static int draw_list(struct cli *cli, struct items *items, struct failure *f)
{
	json_auto_t *all = json_array();

	if (read_items(cli, items, all, f) != 0)
		return -1;
	if (items->json) {
		json_auto_t *out = json_pack("{s:O, s:I}", "items", all, "total", (json_int_t)items->total);

		print_json(out);
		return 0;
	}
	if (json_array_size(all) == 0)
		(void)printf("No items.\n");
	else if (items->table || items->role != NULL)
		print_table(cli, all);
	else
		items_print_tree(cli, all);
	if (items->total > (int64_t)json_array_size(all))
		(void)printf("… and %lld more: --limit 0, --root or --open\n",
			(long long)(items->total - (int64_t)json_array_size(all)));
	return 0;
}

static int draw(struct items *items, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct cli round = *items->cli;
	struct failure inner;
	int rc;

	round.arena = arena; /* --watch may draw for days */
	failure_init(&inner, arena);
	if (items->watch && !items->json && isatty(STDOUT_FILENO) != 0)
		(void)fputs("\033[H\033[2J", stdout);
	else if (items->is_drawn && !items->json)
		(void)putchar('\n');
	items->is_drawn = true;
	rc = items->id != NULL ? item_show(&round, str_of(items->id), items->json, &inner)
			       : draw_list(&round, items, &inner);
	(void)fflush(stdout);
	if (rc != 0)
		failure_copy(f, items->cli->arena, &inner);
	return rc;
}

static void take(void *context, struct str line)
{
	(void)context; /* that something happened is enough: what is drawn is read anew */
	(void)line;
}

static int settle(void *context, struct failure *f)
{
	const struct timespec pause = {.tv_nsec = REDRAW_MS * 1000000L};
	struct items *items = context;

	if (items->is_drawn)
		(void)nanosleep(&pause, NULL);
	if (draw(items, f) == 0)
		return ferror(stdout) != 0 ? 1 : 0;
	/* The server left between the event and the read: the follower waits for it. */
	return f->code == FAIL_NOT_REACHABLE || f->code == FAIL_UNAVAILABLE ? 0 : -1;
}

int cmd_items(struct cli *cli, int argc, char **argv)
{
	struct items items = {.cli = cli, .limit = 1000};
	struct following following = {.take = take, .settle = settle, .context = &items};
	struct failure f;
	int rc;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, "[ID]",
		    "Work items as a tree of projects, or one item with what it needs to go on. An ID may be cut to its "
		    "first 8 digits or more."
		    "\vExamples:\n  dais items --open\n  dais items 9a60c7d1\n  dais items --root 5b7d20c4 --watch",
		    &items) != 0)
		return 64;
	rc = items.watch ? follow_events(cli, &following, &f) : draw(&items, &f);
	return rc == 0 ? 0 : cli_fail(cli, &f);
}
