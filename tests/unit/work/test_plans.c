/* How the statements of reading calls reach their rows, asked of SQLite by EXPLAIN QUERY PLAN: no large table is walked from
 * end to end, and nothing is sorted whose size others choose.
 *
 * With DAIS_DUMP_SQL=FILE every statement that was used is written there, the assembled ones above all, one a line:
 * tests/tools/test_sql.py reads them as PostgreSQL does. */
#include "toolbox.h"

#include "plans.h"

#include <stdio.h>

/* ---- what is allowed ---- */

/* Tables that grow with the work kept. */
static const char *const large[] = {"item", "item_text", "item_tag", "item_trait", "note", "note_body", "note_revision", "dep",
	"event", "lease_history", "document_version", "idempotency", "call_log", "run_report", NULL};

/* Statements that sort, each with what bounds what they sort. */
static const struct plan_sort sorts[] = {
	{"WITH RECURSIVE sub (n) AS (SELECT r.n FROM item r", "a subtree that is known to be small"},
	{"WITH RECURSIVE sub (n, role) AS", "five roles"},
	{"FROM dep d JOIN item f ON f.n = d.from_n JOIN item t ON t.n = d.to_n WHERE (d.from_n", "edges of one item"},
	{"FROM dep d JOIN item f ON f.n = d.from_n JOIN item t ON t.n = d.to_n WHERE d.from_n", "edges of one item"},
	{"FROM dep d JOIN item f ON f.n = d.from_n JOIN item t ON t.n = d.to_n WHERE d.to_n", "edges of one item"},
	{"FROM dep d JOIN item i ON i.n = d.from_n JOIN item_text t ON t.n = i.n WHERE d.to_n", "edges of one item"},
	{"FROM dep d JOIN item i ON i.n = d.from_n WHERE d.to_n", "edges of one item"},
	{"FROM dep d JOIN item i ON i.n = d.to_n JOIN item m ON m.n = d.from_n WHERE d.from_n", "edges of one item"},
	{"FROM item i WHERE i.claim_by = ", "claims of one caller"},
	{"i.root_n = $", "one project, by a key that only a listing of everything has an index for"},
	{"i.parent_n = $", "children of one item"},
	{NULL, NULL},
};

/* Statements that count, each run only where few rows can match. */
static const char *const counts[] = {"SELECT count(*) FROM item i WHERE", NULL};

static const struct plan_rules rules = {large, sorts, counts};

/* ---- a store with something of everything ---- */

struct scene {
	struct box *box;
	const char *ids[26]; /* by letter: what $R, $F … stand for */
	struct caller limited; /* to one project */
};

static const char *id(struct scene *scene, int64_t n)
{
	return id_of(scene->box->e, n);
}

static void set(struct scene *scene)
{
	struct box *box = scene->box;
	const json_t *run;

	make_dep(box->e, box->a, box->b, ROLE_TERMINAL);
	make_dep(box->e, make_item(box->e, box->feature, "third"), box->a, ROLE_TERMINAL);
	make_note(box->e, LOCAL, box->a, "plan", ROLE_QUEUE, "first words");
	make_note(box->e, LOCAL, box->b, "plan", ROLE_QUEUE, "other words");
	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'transition','itemId':'%s','trigger':'block'}]}",
		id(scene, make_item(box->e, box->root, "blocked words"))));
	for (const char *slug = "pq"; *slug != '\0'; slug++)
		(void)result_of(ask(box, &tool_docs_write,
			"{'ops':[{'op':'put','kind':'page','rootId':'%s','slug':'%c','body':'x','title':'t'}]}",
			id(scene, box->root), *slug));
	run = result_of(ask(box, &tool_report, "{'ops':[{'op':'open_run','rootId':'%s','title':'one'}]}", id(scene, box->root)));
	scene->ids['U' - 'A'] = text_at(run, "runId");
	(void)result_of(ask(box, &tool_report, "{'ops':[{'op':'open_run','rootId':'%s','title':'two'}]}", id(scene, box->root)));
	for (int i = 0; i < 2; i++)
		(void)result_of(ask(box, &tool_report,
			"{'ops':[{'op':'post','runId':'%s','kind':'decision','needsDecision':true,'body':'b'}]}",
			scene->ids['U' - 'A']));
	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}", id(scene, box->a)));
	scene->ids['R' - 'A'] = id(scene, box->root);
	scene->ids['F' - 'A'] = id(scene, box->feature);
	scene->ids['A' - 'A'] = id(scene, box->a);
	scene->ids['B' - 'A'] = id(scene, box->b);
	scene->limited = box->e->callers[P1];
	scene->limited.roots = &box->root;
	scene->limited.root_count = 1;
}

/* ---- calls ---- */

struct probe {
	const struct tool *tool;
	const char *args; /* ' for ", $X for an id */
};

static const char *filled(struct scene *scene, const char *args)
{
	struct buf out;

	buf_init(&out, scene->box->e->arena, SIZE_MAX);
	for (; *args != '\0'; args++) {
		if (*args != '$') {
			buf_add_char(&out, *args);
			continue;
		}
		args++;
		buf_add_str(&out, str_of(scene->ids[*args - 'A']));
	}
	return str_z(scene->box->e->arena, buf_str(&out));
}

/* The call, and where its answer has a next page that one too. */
static void look(struct scene *scene, const struct caller *caller, const struct probe *probe)
{
	const char *args = filled(scene, probe->args);
	json_t *answer = ask_as(scene->box, caller, probe->tool, "%s", args);
	const char *cursor = text_at(answer, "page.nextCursor");

	if (json_is_false(json_object_get(answer, "ok")))
		fail_msg("%s: %s", args, json_dumps(answer, JSON_COMPACT));
	if (cursor[0] != '\0')
		(void)data_of(ask_as(scene->box, caller, probe->tool, "%.*s,'cursor':'%s'}", (int)strlen(args) - 1, args, cursor));
}

static const struct probe hot[] = {
	{&tool_items_read, "{'select':'get','itemId':'$A'}"},
	{&tool_items_read, "{'select':'get','itemId':'$A','fields':['ancestors','description','properties','metadata','childCounts',"
			   "'notes','noteProgress','dependencies','claim','createdBy','summary','tags']}"},
	{&tool_items_read, "{'select':'list','limit':1}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortDir':'asc'}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'priority'}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'priority','sortDir':'desc'}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'complexity'}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'complexity','sortDir':'desc'}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'title'}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'title','sortDir':'desc'}"},
	{&tool_items_read, "{'select':'list','limit':1,'rootId':'$R'}"},
	{&tool_items_read, "{'select':'list','limit':1,'rootId':'$R','roles':['queue'],'sortBy':'priority'}"},
	{&tool_items_read, "{'select':'list','limit':1,'parentId':'$F'}"},
	{&tool_items_read, "{'select':'list','limit':1,'parentId':'$F','sortBy':'priority'}"},
	{&tool_items_read, "{'select':'next','limit':20}"},
	{&tool_items_read, "{'select':'next','orderBy':'oldest','includeDetails':true}"},
	{&tool_items_read, "{'select':'next','orderBy':'newest','fields':['ancestors','noteProgress']}"},
	{&tool_items_read, "{'select':'next','roles':['work','review','blocked'],'priorities':['high','low']}"},
	{&tool_items_read, "{'select':'next','roles':['work'],'orderBy':'oldest'}"},
	{&tool_items_read, "{'select':'next','parentId':null,'orderBy':'newest'}"},
	{&tool_items_read, "{'select':'next','rootId':'$R','orderBy':'newest'}"},
	{&tool_items_read, "{'select':'next','ancestorId':'$F'}"},
	{&tool_items_read, "{'select':'next','types':['feature-task']}"},
	{&tool_items_read, "{'select':'next','tags':['a']}"},
	{&tool_items_read, "{'select':'next','rootId':'$R','statusLabels':['x'],'complexityMin':2}"},
	{&tool_items_read, "{'select':'context'}"},
	{&tool_items_read, "{'select':'context','rootId':'$R','since':'2020-01-01T00:00:00Z','fields':['ancestors','missing','blockers']}"},
	{&tool_items_read, "{'select':'context','ancestorId':'$F'}"},
	{&tool_items_read, "{'select':'overview','limit':1,'includeChildren':true}"},
	{&tool_items_read, "{'select':'overview','limit':1,'excludeTerminal':true}"},
	{&tool_items_read, "{'select':'overview','itemId':'$F','limit':1}"},
	{&tool_items_read, "{'select':'overview','anchorId':'$R','limit':1}"},
	{&tool_items_read, "{'select':'gate','itemId':'$A'}"},
	{&tool_items_read, "{'select':'history','limit':1}"},
	{&tool_items_read, "{'select':'history','itemId':'$A'}"},
	{&tool_items_read, "{'select':'history','rootId':'$R'}"},
	{&tool_items_read, "{'select':'history','ancestorId':'$F'}"},
	{&tool_notes_read, "{'select':'list','itemId':'$A'}"},
	{&tool_deps_read, "{'select':'edges','itemId':'$A','limit':1,'includeItems':true}"},
	{&tool_deps_read, "{'select':'graph','itemId':'$A','direction':'both'}"},
	{&tool_deps_read, "{'select':'backlinks','itemId':'$A','limit':1}"},
	{&tool_deps_read, "{'select':'blocked','limit':1}"},
	{&tool_deps_read, "{'select':'blocked','limit':1,'rootId':'$R'}"},
	{&tool_advance, "{'ops':[{'op':'claim','selector':{}}]}"},
	{&tool_advance, "{'ops':[{'op':'claim','selector':{'orderBy':'oldest'}}]}"},
	{&tool_advance, "{'ops':[{'op':'claim','selector':{'ancestorId':'$F'}}]}"},
	{&tool_advance, "{'ops':[{'op':'transition','itemId':'$T','trigger':'start'}]}"},
};

/* Other ways to assemble a statement: rare, or bounded by what is asked, so only their text counts. */
#define FILTERS \
	"'types':['a','b'],'tags':['a','b'],'tagsAll':['a','b'],'statusLabels':['a'],'roles':['queue','work']," \
	"'priorities':['high','low'],'complexityMin':1,'complexityMax':9,'createdAfter':'2020-01-01T00:00:00Z'," \
	"'createdBefore':'2040-01-01T00:00:00Z','modifiedAfter':'2020-01-01T00:00:00Z','modifiedBefore':'2040-01-01T00:00:00Z'," \
	"'roleChangedAfter':'2020-01-01T00:00:00Z','roleChangedBefore':'2040-01-01T00:00:00Z'"
static const struct probe rare[] = {
	{&tool_items_read, "{'select':'list'," FILTERS ",'excludeTerminal':true}"},
	{&tool_items_read, "{'select':'list','parentId':null,'traits':['x']}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'modifiedAt'}"},
	{&tool_items_read, "{'select':'list','limit':1,'sortBy':'roleChangedAt'}"},
	{&tool_items_read, "{'select':'list','limit':1,'ancestorId':'$F','sortBy':'title'}"},
	{&tool_items_read, "{'select':'list','limit':1,'ancestorId':'$R','sortBy':'complexity','sortDir':'desc'}"},
	{&tool_items_read, "{'select':'list','claimStatus':'claimed'}"},
	{&tool_items_read, "{'select':'list','claimStatus':'expired'}"},
	{&tool_items_read, "{'select':'list','claimStatus':'unclaimed'}"},
	{&tool_items_read, "{'select':'search','query':'words','excludeTerminal':true,'noteRoles':['queue'],'noteKeys':['plan']}"},
	{&tool_items_read, "{'select':'search','query':'wo rd','itemId':'$A'}"},
	{&tool_items_read, "{'select':'search','query':'words','ancestorId':'$F'}"},
	{&tool_items_read, "{'select':'search','query':'words','types':['a']}"},
	{&tool_items_read, "{'select':'next','rootId':'$R'," FILTERS "}"},
	{&tool_deps_read, "{'select':'blocked','limit':1," FILTERS "}"},
	{&tool_docs_read, "{'select':'list','rootId':'$R','limit':1,'kinds':['plan','page'],'slugPrefix':'p'}"},
	{&tool_docs_read, "{'select':'list','rootId':'$R','limit':1}"},
	{&tool_docs_read, "{'select':'list','rootId':'$R','kinds':['plan'],'status':'pending'}"},
	{&tool_report, "{'select':'board','limit':1,'rootId':'$R'}"},
	{&tool_report, "{'select':'decisions','limit':1,'rootId':'$R','runId':'$U'}"},
};

/* ---- the tests ---- */

static void calls_reach_their_rows_through_indexes(void **state)
{
	struct scene scene = {.box = *state};
	const struct caller *callers[] = {&scene.box->e->callers[LOCAL], &scene.limited};
	char path[128];
	int faults = 0;

	set(&scene);
	(void)snprintf(path, sizeof(path), "%s/dais.db", scene.box->e->dir);
	for (size_t i = 0; i < sizeof(hot) / sizeof(hot[0]) * 2; i++) {
		const struct probe *probe = &hot[i / 2];

		scene.ids['T' - 'A'] = id(&scene, make_item(scene.box->e, scene.box->root, "free"));
		plans_forget();
		look(&scene, callers[i % 2], probe);
		faults += plans_judge(path, &rules, probe->args);
		plans_dump();
	}
	assert_int_equal(faults, 0);
}

/* What a large subtree or many projects make of a filter. */
static void look_at_large(struct scene *scene)
{
	static int64_t roots[30];
	static int64_t items[600];
	struct caller many = scene->limited;

	make_items(scene->box->e, scene->box->feature, "many", items, 600);
	look(scene, &scene->box->e->callers[LOCAL], &(struct probe){&tool_items_read, "{'select':'list','ancestorId':'$F'}"});
	look(scene, &scene->box->e->callers[LOCAL], &(struct probe){&tool_items_read, "{'select':'context','ancestorId':'$F'}"});
	make_items(scene->box->e, 0, "root", roots, 30);
	many.roots = roots;
	many.root_count = 30;
	look(scene, &many, &(struct probe){&tool_items_read, "{'select':'list'}"});
}

static void every_way_to_assemble_a_statement_is_written_down(void **state)
{
	struct scene scene = {.box = *state};

	set(&scene);
	plans_forget();
	for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
		look(&scene, &scene.box->e->callers[LOCAL], &rare[i]);
		look(&scene, &scene.limited, &rare[i]);
	}
	look_at_large(&scene);
	plans_dump();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_up, box_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_reach_their_rows_through_indexes),
		TEST(every_way_to_assemble_a_statement_is_written_down),
	};
	int rc;

	plans_watch();
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	plans_forget();
	return rc;
}
