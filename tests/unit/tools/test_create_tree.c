/* A tree is made whole or not at all. */
#include "desk.h"

static const char rules[] = "work_item_schemas:\n"
			    "  feature-task:\n    notes:\n"
			    "      - {key: requirements, role: queue, required: true, description: d}\n"
			    "      - {key: implementation-notes, role: work, required: true, description: d}\n";

static void a_tree_is_made_with_its_edges_and_notes(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", ", 'type':'project'");
	const json_t *result;
	const char *tides;
	json_t *got;

	push_rules(d, root, rules);
	result = do_op(d, LOCAL, &tool_items_write,
		"{'op':'create_tree','root':{'title':'Berth booking','type':'feature','parentId':'%s'},"
		"'children':[{'ref':'deep','parentRef':'api','title':'Deep'},"
		"{'ref':'tides','title':'Tide table import','type':'feature-task'},"
		"{'ref':'api','title':'Booking API','type':'feature-task'}],"
		"'deps':[{'from':'tides','to':'api'},{'from':'root','to':'deep','type':'IS_BLOCKED_BY','unblockAt':'work'}],"
		"'notes':[{'itemRef':'tides','key':'requirements','body':'Read the yearly file.'}]}",
		root);
	assert_int_equal(int_at(result, "root.depth"), 1);
	assert_null(at(result, "root.schemaMatch"));
	assert_string_equal(text_at(result, "children.0.ref"), "deep");
	assert_int_equal(int_at(result, "children.0.depth"), 3);
	assert_string_equal(text_at(result, "children.1.expectedNotes.0"), "requirements");
	assert_string_equal(text_at(result, "deps.0.from"), "tides");
	assert_string_equal(text_at(result, "deps.1.from"), "deep");
	assert_string_equal(text_at(result, "deps.1.type"), "BLOCKS");
	assert_int_equal(count_at(result, "notes"), 1);
	tides = text_at(result, "children.1.id");
	got = ask(d, LOCAL, &tool_notes_read, "{'select':'get','itemId':'%s','key':'requirements'}", tides);
	assert_string_equal(text_at(got, "data.note.body"), "Read the yearly file.");
	assert_string_equal(text_at(got, "data.note.id"), text_at(result, "notes.0.id"));
}

static void blank_rows_are_made_for_the_schema(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", "");
	const json_t *result;

	push_rules(d, root, rules);
	result = do_op(d, LOCAL, &tool_items_write,
		"{'op':'create_tree','root':{'id':'%s'},'createNotes':true,"
		"'children':[{'ref':'a','title':'A','type':'feature-task'}],"
		"'notes':[{'itemRef':'a','key':'requirements','body':'given'}]}",
		root);
	assert_int_equal(count_at(result, "notes"), 2);
	assert_string_equal(text_at(result, "notes.1.key"), "implementation-notes");
	assert_int_equal(number(d, "SELECT count(*) FROM note WHERE is_filled = 0"), 1);
}

/* behaviour 4.19, A02 (g) */
static void a_cycle_leaves_nothing_behind(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", "");
	json_t *answer;

	(void)do_op(d, LOCAL, &tool_docs_write,
		"{'op':'put','kind':'plan','rootId':'%s','slug':'plan','body':'# One\\ntext\\n'}", root);
	answer = ask(d, LOCAL, &tool_items_write,
		"{'ops':[{'op':'create_tree','root':{'title':'F','parentId':'%s'},'docRef':{'slug':'plan'},"
		"'children':[{'ref':'a','title':'A','noteAnchors':[{'noteKey':'k','role':'work','anchor':'one'}]},"
		"{'ref':'b','title':'B'},{'ref':'c','title':'C'}],"
		"'deps':[{'from':'a','to':'b'},{'from':'b','to':'c'},{'from':'c','to':'a'}]}]}",
		root);
	assert_error(answer, "cycle_detected");
	assert_int_equal(count_at(answer, "error.detail.path"), 4);
	assert_string_equal(text_at(answer, "error.detail.path.0"), text_at(answer, "error.detail.path.3"));
	assert_int_equal(number(d, "SELECT count(*) FROM item"), 1);
	assert_int_equal(number(d, "SELECT count(*) FROM note"), 0);
	assert_int_equal(number(d, "SELECT count(*) FROM document WHERE status = 0"), 1);
	answer = ask(d, LOCAL, &tool_items_write,
		"{'ops':[{'op':'create_tree','root':{'title':'F'},'children':[{'ref':'x','title':'X'},"
		"{'ref':'a','title':'A','parentRef':'b'},{'ref':'b','title':'B','parentRef':'a'}]}]}");
	assert_error(answer, "cycle_detected");
	assert_int_equal(count_at(answer, "error.detail.path"), 3);
	assert_int_equal(number(d, "SELECT count(*) FROM item"), 1);
}

/* behaviour 4.20 */
static void sections_of_a_plan_become_notes_and_the_plan_is_adopted(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", "");
	static const char tree[] =
		"{'op':'create_tree','root':{'title':'F','parentId':'%s'},'docRef':{'slug':'plan'},"
		"'children':[{'ref':'a','title':'A','noteAnchors':[{'noteKey':'requirements','role':'queue','anchor':'%s'},"
		"{'noteKey':'given','role':'work','anchor':'tide-tables'}]}],"
		"'notes':[{'itemRef':'a','key':'given','role':'work','body':'wins'}]}";
	const json_t *result;
	json_t *answer;

	(void)do_op(d, LOCAL, &tool_docs_write,
		"{'op':'put','kind':'plan','rootId':'%s','slug':'plan','body':'# Plan\\n## Tide tables\\nfirst\\n"
		"## Tide tables\\nsecond\\n## End\\n'}",
		root);
	answer = ask(d, LOCAL, &tool_items_write, "{'ops':[%s]}",
		arena_printf(d->arena, "{'op':'create_tree','root':{'title':'F','parentId':'%s'},'docRef':{'slug':'plan'},"
			"'children':[{'ref':'a','title':'A','noteAnchors':[{'noteKey':'k','role':'queue','anchor':'none'}]}]}", root));
	assert_error(answer, "not_found");
	assert_string_equal(text_at(answer, "error.detail.id"), "plan#none");
	result = do_op(d, LOCAL, &tool_items_write, tree, root, "tide-tables-2");
	assert_string_equal(text_at(result, "adopted.slug"), "plan");
	answer = ask(d, LOCAL, &tool_notes_read, "{'select':'get','itemId':'%s','key':'requirements'}",
		text_at(result, "children.0.id"));
	assert_string_equal(text_at(answer, "data.note.body"), "## Tide tables\nsecond\n");
	answer = ask(d, LOCAL, &tool_notes_read, "{'select':'get','itemId':'%s','key':'given'}",
		text_at(result, "children.0.id"));
	assert_string_equal(text_at(answer, "data.note.body"), "wins");
	answer = ask(d, LOCAL, &tool_items_write, "{'ops':[%s]}", arena_printf(d->arena,
		"{'op':'create_tree','root':{'title':'G','parentId':'%s'},'docRef':{'slug':'plan'}}", root));
	assert_error(answer, "duplicate");
	assert_string_equal(text_at(answer, "error.detail.kind"), "document");
}

static void bad_shapes_are_told_by_their_paths(void **state)
{
	struct desk *d = *state;
	static const struct {
		const char *rest, *code, *field;
	} bad[] = {
		{"'root':{}", "invalid_request", "ops[0].root.title"},
		{"'root':{'id':'12345678','parentId':null}", "invalid_request", "ops[0].root.id"},
		{"'root':{'id':'12345678','title':'t'}", "invalid_request", "ops[0].root.id"},
		{"'root':{'title':'t'},'children':[{'ref':'root','title':'x'}]", "invalid_request", "ops[0].children[0].ref"},
		{"'root':{'title':'t'},'children':[{'ref':'a','title':'x'},{'ref':'a','title':'x'}]", "invalid_request",
			"ops[0].children[1].ref"},
		{"'root':{'title':'t'},'children':[{'ref':'a','title':'x','parentRef':'z'}]", "invalid_request",
			"ops[0].children[0].parentRef"},
		{"'root':{'title':'t'},'deps':[{'from':'root','to':'q'}]", "invalid_request", "ops[0].deps[0].to"},
		{"'root':{'title':'t'},'docRef':{'slug':'rule/x'}", "invalid_request", "ops[0].docRef.slug"},
	};
	json_t *answer;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'create_tree',%s}]}", bad[i].rest);
		assert_error(answer, bad[i].code);
		assert_string_equal(text_at(answer, "error.detail.fields.0.field"), bad[i].field);
	}
	answer = ask(d, LOCAL, &tool_items_write,
		"{'ops':[{'op':'create_tree','root':{'title':'t'},'children':[{'ref':'a','title':'x','children':[]}]}]}");
	assert_error(answer, "unknown_parameter");
	assert_string_equal(text_at(answer, "error.detail.parameters.0"), "ops[0].children[0].children");
	answer = ask(d, LOCAL, &tool_items_write,
		"{'ops':[{'op':'create_tree','root':{'title':'t'},'children':[{'ref':'a','title':'x','parentId':null}]}]}");
	assert_error(answer, "unknown_parameter");
	assert_int_equal(number(d, "SELECT count(*) FROM item"), 0);
}

static void a_tree_has_a_size(void **state)
{
	struct desk *d = *state;
	struct buf text;
	json_t *answer;

	buf_init(&text, d->arena, SIZE_MAX);
	for (int i = 0; i < 201; i++)
		buf_printf(&text, "%s{'ref':'r%d','title':'t'}", i == 0 ? "" : ",", i);
	answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'create_tree','root':{'title':'t'},'children':[%.*s]}]}",
		(int)text.n, text.p);
	assert_error(answer, "payload_too_large");
	assert_int_equal(int_at(answer, "error.detail.max"), 200);
	assert_int_equal(int_at(answer, "error.detail.actual"), 201);
}

int main(void)
{
#define DESK_TEST(name) cmocka_unit_test_setup_teardown(name, desk_up, desk_down)
	const struct CMUnitTest tests[] = {
		DESK_TEST(a_tree_is_made_with_its_edges_and_notes),
		DESK_TEST(blank_rows_are_made_for_the_schema),
		DESK_TEST(a_cycle_leaves_nothing_behind),
		DESK_TEST(sections_of_a_plan_become_notes_and_the_plan_is_adopted),
		DESK_TEST(bad_shapes_are_told_by_their_paths),
		DESK_TEST(a_tree_has_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
