/* dais threads list, show: what stands on record. */
#include "cli/threads.h"

struct str short_id(struct str id)
{
	const size_t n = 8;

	return id.n <= n ? id : (struct str){id.p + id.n - n, n};
}

int threads_ask(struct cli *cli, const char *op, json_t *request, json_t **out, struct failure *f)
{
	json_auto_t *owned = request;

	if (owned == NULL || json_object_set_new(owned, "op", json_sprintf("threads.%s", op)) != 0)
		return fail(f, FAIL_USAGE, "The arguments are not UTF-8 text.");
	return client_admin_running(cli, json_canonical(cli->arena, owned), out, f);
}

static const char *colour_of(const struct cli *cli, struct str status)
{
	if (str_eq(status, STR("running")) || str_eq(status, STR("starting")) || str_eq(status, STR("preparing")))
		return term_role(cli, STR("work"));
	if (str_eq(status, STR("asks")) || str_eq(status, STR("waiting")))
		return term_role(cli, STR("review"));
	if (str_eq(status, STR("failed")))
		return term_role(cli, STR("blocked"));
	return str_eq(status, STR("queued")) ? term_role(cli, STR("queue")) : term_dim(cli);
}

/* ---- list ---- */

struct table {
	struct cli *cli;
	const json_t *threads;
	size_t title;
};

static bool is_listed(const json_t *threads, struct str id)
{
	for (size_t i = 0; id.n > 0 && i < json_array_size(threads); i++)
		if (str_eq(json_member_str(json_array_get(threads, i), "id"), id))
			return true;
	return false;
}

static void print_row(const struct table *table, const json_t *thread, int level)
{
	struct cli *cli = table->cli;
	struct str status = json_member_str(thread, "status");
	struct str title = json_member_str(thread, "title");

	(void)printf("%s", term_dim(cli));
	term_cell(cli, short_id(json_member_str(thread, "id")), 8);
	(void)printf("%s  %s", term_off(cli), colour_of(cli, status));
	term_cell(cli, status, 11);
	(void)printf("%s ", term_off(cli));
	term_cell(cli, json_member_str(thread, "providerInstanceId"), 12);
	(void)printf(" ");
	term_cell(cli, json_member_str(thread, "project"), 14);
	(void)printf("  ");
	if (level > 0)
		title = str_printf(cli->arena, "%*s└ %.*s", (level - 1) * 2, "", STRF(title));
	(void)printf("%.*s\n", STRF(term_text(cli->arena, title, table->title)));
}

/* Those are deeper that were delegated by this one; oldest first, as they began. */
static void print_children(const struct table *table, struct str parent, int level)
{
	for (size_t i = json_array_size(table->threads); i-- > 0;) {
		const json_t *thread = json_array_get(table->threads, i);

		if (!str_eq(json_member_str(thread, "parentThreadId"), parent) || parent.n == 0)
			continue;
		print_row(table, thread, level);
		print_children(table, json_member_str(thread, "id"), level + 1);
	}
}

static void print_tree(struct cli *cli, const json_t *threads)
{
	size_t width = term_width();
	struct table table = {.cli = cli, .threads = threads, .title = width > 76 ? width - 52 : 24};

	(void)printf("%s%-8s  %-11s %-12s %-14s  %s%s\n", term_bold(cli), "id", "status", "provider", "project", "title",
		term_off(cli));
	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *thread = json_array_get(threads, i);

		if (is_listed(threads, json_member_str(thread, "parentThreadId")))
			continue;
		print_row(&table, thread, 0);
		print_children(&table, json_member_str(thread, "id"), 1);
	}
}

int threads_list(struct cli *cli, const struct listing *listing, struct failure *f)
{
	json_auto_t *answer = NULL;
	const json_t *threads;

	if (threads_ask(cli, "list",
		    json_pack("{s:s*, s:s*, s:b, s:I}", "project", listing->project, "status", listing->status, "archived",
			    listing->archived, "limit", (json_int_t)listing->limit),
		    &answer, f) != 0)
		return -1;
	threads = json_object_get(answer, "threads");
	if (listing->json) {
		json_auto_t *out = json_pack("{s:O, s:O}", "threads", threads, "more", json_object_get(answer, "more"));

		print_json(out);
		return 0;
	}
	if (json_array_size(threads) == 0)
		(void)printf("No threads.\n");
	else
		print_tree(cli, threads);
	if (json_is_true(json_object_get(answer, "more")))
		(void)printf("… and older ones: --limit\n");
	return 0;
}

/* ---- show ---- */

static void print_line(struct cli *cli, const char *name, struct str value)
{
	if (value.n > 0)
		(void)printf("%s%-10s%s %.*s\n", term_dim(cli), name, term_off(cli), STRF(term_text(cli->arena, value, 0)));
}

static void print_head(struct cli *cli, const json_t *thread)
{
	struct str model = json_member_str(thread, "model");
	struct str provider = json_member_str(thread, "providerInstanceId");

	if (model.n > 0)
		provider = str_printf(cli->arena, "%.*s, %.*s", STRF(provider), STRF(model));
	(void)printf("%s%.*s%s\n", term_bold(cli), STRF(term_text(cli->arena, json_member_str(thread, "title"), 0)),
		term_off(cli));
	print_line(cli, "thread", json_member_str(thread, "id"));
	print_line(cli, "status", json_member_str(thread, "status"));
	print_line(cli, "provider", provider);
	print_line(cli, "modes",
		str_printf(cli->arena, "%.*s, %.*s", STRF(json_member_str(thread, "runtimeMode")),
			STRF(json_member_str(thread, "interactionMode"))));
	print_line(cli, "project", json_member_str(thread, "project"));
	print_line(cli, "folder", json_member_str(thread, "cwd"));
	print_line(cli, "branch", json_member_str(thread, "branch"));
	print_line(cli, "parent", json_member_str(thread, "parentThreadId"));
	print_line(cli, "archived", json_member_str(thread, "archivedAt"));
}

static void print_runs(struct cli *cli, const json_t *runs)
{
	for (size_t i = json_array_size(runs); i-- > 0;) {
		const json_t *run = json_array_get(runs, i);
		struct str status = json_member_str(run, "status");
		struct str why = json_member_str(json_object_get(run, "failure"), "message");

		(void)printf("%srun %-3lld%s %s%.*s%s  %.*s%s%.*s\n", term_dim(cli),
			(long long)json_integer_value(json_object_get(run, "ordinal")), term_off(cli), colour_of(cli, status),
			STRF(status), term_off(cli), STRF(json_member_str(run, "requestedAt")), why.n > 0 ? "  " : "",
			STRF(term_text(cli->arena, why, 0)));
	}
}

static void print_tasks(struct cli *cli, const json_t *tasks)
{
	for (size_t i = 0; i < json_array_size(tasks); i++) {
		const json_t *task = json_array_get(tasks, i);

		(void)printf("%stask%s    %.*s  %.*s  %.*s\n", term_dim(cli), term_off(cli),
			STRF(short_id(json_member_str(task, "threadId"))), STRF(json_member_str(task, "status")),
			STRF(term_text(cli->arena, json_member_str(task, "title"), 60)));
	}
}

int threads_show(struct cli *cli, struct str id, bool json, struct failure *f)
{
	json_auto_t *answer = NULL;
	const json_t *list;

	if (threads_ask(cli, "show", json_pack("{s:s%}", "id", id.p, id.n), &answer, f) != 0)
		return -1;
	if (json) {
		print_json(answer);
		return 0;
	}
	print_head(cli, json_object_get(answer, "thread"));
	print_runs(cli, json_object_get(answer, "runs"));
	print_tasks(cli, json_object_get(answer, "tasks"));
	list = json_object_get(answer, "requests");
	for (size_t i = 0; i < json_array_size(list); i++)
		print_request(cli, stdout, json_array_get(list, i));
	list = json_object_get(answer, "items");
	if (json_array_size(list) > 0)
		(void)putchar('\n');
	for (size_t i = 0; i < json_array_size(list); i++)
		print_item(cli, stdout, json_array_get(list, i));
	return 0;
}
