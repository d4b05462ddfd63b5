/* Items are made, changed, moved and deleted. */
#include "desk.h"

static const char lifecycles[] =
	"work_item_schemas:\n"
	"  manual:\n    lifecycle: manual\n    notes: []\n"
	"  waking:\n    lifecycle: auto-reopen\n    notes: []\n"
	"  feature-task:\n    notes:\n"
	"      - {key: requirements, role: queue, required: true, description: d}\n"
	"      - {key: implementation-notes, role: work, required: true, description: d}\n"
	"traits:\n  needs-a11y:\n    notes:\n      - {key: a11y-check, role: review, required: true, description: d}\n";

static json_t *write_one(struct desk *d, const char *op)
{
	return ask(d, LOCAL, &tool_items_write, "{'ops':[%s]}", op);
}

/* The read-back of one item. */
static const json_t *look(struct desk *d, const char *id)
{
	return at(ask(d, LOCAL, &tool_items_read,
			  "{'select':'get','itemId':'%s','fields':['childCounts','description','properties','metadata']}", id),
		"data.item");
}

/* behaviours 1.7, 1.9 */
static void shape_faults_come_first_and_all_at_once(void **state)
{
	struct desk *d = *state;
	json_t *answer = write_one(d, "{'op':'create','actor':'me'}");

	assert_error(answer, "unknown_parameter");
	assert_string_equal(text_at(answer, "error.detail.parameters.0"), "ops[0].actor");
	answer = write_one(d, "{'op':'create','title':'  ','complexity':11}");
	assert_error(answer, "invalid_request");
	assert_int_equal(count_at(answer, "error.detail.fields"), 2);
	answer = write_one(d, "{'op':'update','itemId':'12345678','role':'work'}");
	assert_error(answer, "unknown_parameter");
	assert_int_equal(number(d, "SELECT count(*) FROM item"), 0);
}

static void a_title_counts_characters(void **state)
{
	struct desk *d = *state;
	struct buf text;
	const json_t *result;

	buf_init(&text, d->arena, SIZE_MAX);
	for (int i = 0; i < 500; i++)
		buf_add_str(&text, STR("💦"));
	result = do_op(d, LOCAL, &tool_items_write, "{'op':'create','title':'%.*s'}", (int)text.n, text.p);
	assert_string_equal(text_at(look(d, text_at(result, "id")), "title"), str_z(d->arena, buf_str(&text)));
	buf_add_str(&text, STR("💦"));
	assert_error(ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'create','title':'%.*s'}]}", (int)text.n, text.p),
		"invalid_request");
	assert_error(write_one(d, "{'op':'create','title':'a\\u0000b'}"), "invalid_request");
	/* nothing is normalised, nothing is taken for the same */
	assert_string_not_equal(new_item(d, NULL, "数据库升级", ""), new_item(d, NULL, "数据库升级", ""));
	assert_string_equal(text_at(look(d, new_item(d, NULL, "e\u0301\u202e\u2028", "")), "title"), "e\u0301\u202e\u2028");
}

static void an_item_is_as_it_was_made(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", ", 'type':'project'");
	const json_t *result = do_op(d, LOCAL, &tool_items_write,
		"{'op':'create','parentId':'%.8s','title':' Booking API ','summary':'s','description':'long','priority':'high',"
		"'complexity':3,'tags':['api','api','tide'],'traits':['x'],'requiresVerification':true,"
		"'properties':{'a':1},'metadata':'m'}",
		root);
	const json_t *item = look(d, text_at(result, "id"));

	assert_int_equal(int_at(result, "version"), 1);
	assert_int_equal(int_at(result, "depth"), 1);
	assert_string_equal(text_at(result, "role"), "queue");
	assert_string_equal(text_at(result, "rootId"), root);
	assert_true(json_is_false(at(result, "schemaMatch")));
	assert_string_equal(text_at(item, "title"), "Booking API");
	assert_string_equal(text_at(item, "priority"), "high");
	assert_int_equal(int_at(item, "complexity"), 3);
	assert_int_equal(count_at(item, "tags"), 2);
	assert_string_equal(text_at(item, "description"), "long");
	assert_int_equal(int_at(item, "properties.a"), 1);
	assert_string_equal(text_at(item, "metadata"), "m");
	assert_true(json_is_true(at(item, "requiresVerification")));
	assert_int_equal(int_at(look(d, root), "childCounts.queue"), 1);
}

static void bad_values_are_refused(void **state)
{
	struct desk *d = *state;
	static const char *const bad[] = {
		"'priority':'urgent'",
		"'tags':'a,b'",
		"'tags':['Upper']",
		"'tags':['-a']",
		"'complexity':0",
		"'properties':{'traits':['x']}",
		"'description':' '",
		"'type':''",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_error(ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'create','title':'t',%s}]}", bad[i]),
			"invalid_request");
	assert_error(write_one(d, "{'op':'create','title':'t','parentId':'00000000'}"), "not_found");
}

static void a_schema_gives_advice(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", "");
	const json_t *result;
	json_t *answer;

	push_rules(d, root, lifecycles);
	answer = ask(d, LOCAL, &tool_items_write,
		"{'idempotencyKey':'k','ops':[{'op':'create','title':'s','parentId':'%s','type':'feature-task',"
		"'traits':['needs-a11y','nobody']}]}",
		root);
	result = at(answer, "results.0");
	assert_true(json_is_true(at(result, "schemaMatch")));
	assert_int_equal(count_at(result, "expectedNotes"), 3);
	assert_string_equal(text_at(result, "expectedNotes.2.key"), "a11y-check");
	assert_string_equal(text_at(result, "availableTraits.0"), "needs-a11y");
	assert_true(warned(answer, "trait_unknown"));
	/* a replay tells the advice of its own time */
	answer = ask(d, LOCAL, &tool_items_write,
		"{'idempotencyKey':'k','ops':[{'op':'create','title':'s','parentId':'%s','type':'feature-task',"
		"'traits':['needs-a11y','nobody']}]}",
		root);
	assert_true(json_is_true(at(answer, "results.0.replayed")));
	assert_string_equal(text_at(answer, "results.0.id"), text_at(result, "id"));
	assert_int_equal(count_at(answer, "results.0.expectedNotes"), 3);
	assert_true(warned(ask(d, LOCAL, &tool_items_write,
				   "{'ops':[{'op':'create','title':'s','parentId':'%s','type':'unheard'}]}", root),
		"no_schema"));
}

/* behaviour 4.14 */
static void an_ended_parent_takes_children_by_its_lifecycle(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "root", "");
	const char *automatic = new_item(d, root, "automatic", "");
	const char *manual, *waking;
	json_t *answer;

	push_rules(d, root, lifecycles);
	manual = new_item(d, root, "manual", ", 'type':'manual'");
	waking = new_item(d, root, "waking", ", 'type':'waking'");
	assert_ok(trigger(d, automatic, "complete"));
	assert_ok(trigger(d, manual, "complete"));
	assert_ok(trigger(d, waking, "complete"));
	assert_string_equal(text_at(look(d, root), "role"), "terminal");
	answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'create','title':'c','parentId':'%s'}]}", automatic);
	assert_error(answer, "invalid_transition");
	assert_string_equal(text_at(answer, "error.detail.itemId"), automatic);
	assert_string_equal(text_at(answer, "error.detail.trigger"), "create");
	assert_string_equal(text_at(answer, "error.detail.allowed.0"), "reopen");
	(void)new_item(d, manual, "c", "");
	answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'create','title':'c','parentId':'%s'}]}", waking);
	assert_ok(answer);
	assert_string_equal(text_at(answer, "results.0.cascadeEvents.0.itemId"), waking);
	assert_string_equal(text_at(look(d, waking), "role"), "work");
}

static void an_update_changes_what_it_names(void **state)
{
	struct desk *d = *state;
	const char *id = new_item(d, NULL, "t", ", 'summary':'s','complexity':3,'tags':['a'],'metadata':'m'");
	const json_t *result = do_op(d, LOCAL, &tool_items_write,
		"{'op':'update','itemId':'%s','priority':'high','tags':['api','tide'],'complexity':null,'expectedVersion':1}", id);
	int64_t events = number(d, "SELECT count(*) FROM event");

	assert_int_equal(int_at(result, "version"), 2);
	assert_int_equal(count_at(result, "changed"), 3);
	assert_null(at(look(d, id), "complexity"));
	assert_string_equal(text_at(look(d, id), "metadata"), "m");
	/* what is so already is no change */
	result = do_op(d, LOCAL, &tool_items_write, "{'op':'update','itemId':'%s','priority':'high','title':'t'}", id);
	assert_int_equal(int_at(result, "version"), 2);
	assert_null(at(result, "changed"));
	assert_int_equal(number(d, "SELECT count(*) FROM event"), events);
	result = do_op(d, LOCAL, &tool_items_write,
		"{'op':'update','itemId':'%s','summary':null,'metadata':null,'tags':[]}", id);
	assert_int_equal(count_at(result, "changed"), 3);
	assert_null(at(look(d, id), "summary"));
	assert_null(at(look(d, id), "metadata"));
	assert_null(at(look(d, id), "tags"));
	assert_error(ask(d, LOCAL, &tool_items_write,
			     "{'ops':[{'op':'update','itemId':'%s','title':'u','expectedVersion':1}]}", id),
		"version_conflict");
	for (size_t i = 0; i < 4; i++) {
		static const char *const fixed[] = {"title", "priority", "tags", "traits"};

		assert_error(ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'update','itemId':'%s','%s':null}]}", id, fixed[i]),
			"invalid_request");
	}
}

/* behaviours 4.18, 4.15 */
static void a_delete_takes_children_only_when_told(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "root", "");
	const char *feature = new_item(d, root, "F", "");
	const char *a = new_item(d, feature, "A", "");
	const char *b = new_item(d, feature, "B", "");
	json_t *answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'delete','itemId':'%s'}]}", feature);

	assert_error(answer, "invalid_request");
	assert_string_equal(text_at(answer, "error.detail.fields.0.field"), "ops[0].recursive");
	assert_non_null(strstr(text_at(answer, "error.detail.fields.0.reason"), "2"));
	assert_ok(trigger(d, a, "complete"));
	(void)note(d, b, "k", "searchable words");
	assert_ok(ask(d, LOCAL, &tool_deps_write, "{'ops':[{'op':'create','from':'%s','to':'%s'}]}", a, b));
	answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'delete','itemId':'%s'}]}", b);
	assert_ok(answer);
	assert_int_equal(int_at(answer, "results.0.deleted"), 1);
	assert_int_equal(int_at(answer, "results.0.notes"), 1);
	assert_int_equal(int_at(answer, "results.0.dependencies"), 1);
	assert_string_equal(text_at(answer, "results.0.cascadeEvents.0.itemId"), feature);
	assert_string_equal(text_at(look(d, feature), "role"), "terminal");
	assert_int_equal(number(d, "SELECT count(*) FROM note_body"), 0);
	assert_int_equal(number(d, "SELECT count(*) FROM dep"), 0);
	assert_int_equal(int_at(do_op(d, LOCAL, &tool_items_write, "{'op':'delete','itemId':'%s','recursive':true}", root),
				 "deleted"),
		3);
	assert_int_equal(number(d, "SELECT count(*) FROM item"), 0);
	assert_int_equal(number(d, "SELECT count(*) FROM root_tally"), 0);
}

static void anothers_claim_in_the_subtree_stops_a_delete(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "root", "");
	const char *child = new_item(d, root, "held", "");
	json_t *answer;

	assert_ok(ask(d, P2, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}", child));
	answer = ask(d, P1, &tool_items_write, "{'ops':[{'op':'delete','itemId':'%s','recursive':true}]}", root);
	assert_error(answer, "not_claim_holder");
	assert_string_equal(text_at(answer, "error.detail.itemId"), child);
	assert_int_equal(number(d, "SELECT count(*) FROM item"), 2);
	assert_ok(ask(d, P2, &tool_items_write, "{'ops':[{'op':'delete','itemId':'%s','recursive':true}]}", root));
}

static void a_project_goes_by_its_title_and_takes_everything(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", ", 'type':'project'");

	push_rules(d, root, lifecycles);
	(void)do_op(d, LOCAL, &tool_docs_write, "{'op':'put','kind':'page','rootId':'%s','slug':'p','body':'x'}", root);
	assert_error(ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'delete','itemId':'%s'}]}", root), "invalid_request");
	(void)do_op(d, LOCAL, &tool_items_write, "{'op':'delete','itemId':'%s','confirmTitle':'Harbour'}", root);
	assert_int_equal(number(d, "SELECT count(*) FROM config"), 0);
	assert_int_equal(number(d, "SELECT count(*) FROM document"), 0);
	assert_int_equal(number(d, "SELECT count(*) FROM document_version"), 0);
}

/* behaviour 4.16 */
static void a_move_evaluates_the_old_parent_only(void **state)
{
	struct desk *d = *state;
	const char *one = new_item(d, NULL, "one", "");
	const char *two = new_item(d, NULL, "two", "");
	const char *feature = new_item(d, one, "F", "");
	const char *a = new_item(d, feature, "A", "");
	const char *b = new_item(d, feature, "B", "");
	const char *below = new_item(d, b, "below", "");
	const json_t *result;

	assert_ok(trigger(d, a, "complete"));
	result = do_op(d, LOCAL, &tool_items_write, "{'op':'reparent','itemId':'%s','parentId':'%s'}", b, two);
	assert_int_equal(int_at(result, "moved"), 2);
	assert_int_equal(int_at(result, "depth"), 1);
	assert_string_equal(text_at(result, "rootId"), two);
	assert_string_equal(text_at(result, "parentId"), two);
	assert_string_equal(text_at(look(d, feature), "role"), "terminal");
	assert_string_equal(text_at(look(d, two), "role"), "queue");
	assert_error(ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'reroot','itemId':'%s','parentId':'%s'}]}", b, feature),
		"invalid_transition");
	assert_string_equal(text_at(look(d, below), "rootId"), two);
	assert_int_equal(int_at(look(d, below), "depth"), 2);
	assert_int_equal(int_at(look(d, below), "version"), 2);
	/* a root of its own, and back where it is */
	result = do_op(d, LOCAL, &tool_items_write, "{'op':'reroot','itemId':'%s','parentId':null}", b);
	assert_string_equal(text_at(result, "rootId"), b);
	result = do_op(d, LOCAL, &tool_items_write, "{'op':'reroot','itemId':'%s','parentId':null}", b);
	assert_int_equal(int_at(result, "moved"), 0);
	assert_error(ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'reroot','itemId':'%s'}]}", b), "invalid_request");
	/* an update moves too */
	result = do_op(d, LOCAL, &tool_items_write, "{'op':'update','itemId':'%s','parentId':'%s','title':'B2'}", b, two);
	assert_int_equal(count_at(result, "changed"), 2);
	assert_string_equal(text_at(look(d, below), "rootId"), two);
	assert_int_equal(number(d, "SELECT count(*) FROM root_tally"), 2);
}

/* behaviour 4.17, A02 (e) */
static void an_item_does_not_move_below_itself(void **state)
{
	struct desk *d = *state;
	const char *a = new_item(d, NULL, "a", "");
	const char *b = new_item(d, a, "b", "");
	const char *c = new_item(d, b, "c", "");
	json_t *answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'reroot','itemId':'%s','parentId':'%s'}]}", a, a);

	assert_error(answer, "invalid_request");
	answer = ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'reroot','itemId':'%s','parentId':'%s'}]}", a, c);
	assert_error(answer, "cycle_detected");
	assert_int_equal(count_at(answer, "error.detail.path"), 4);
	assert_string_equal(text_at(answer, "error.detail.path.0"), a);
	assert_string_equal(text_at(answer, "error.detail.path.1"), b);
	assert_string_equal(text_at(answer, "error.detail.path.3"), a);
	assert_string_equal(text_at(look(d, c), "parentId"), b);
}

static void a_project_with_documents_stays_a_root(void **state)
{
	struct desk *d = *state;
	const char *a = new_item(d, NULL, "a", "");
	const char *b = new_item(d, NULL, "b", "");

	(void)do_op(d, LOCAL, &tool_docs_write, "{'op':'put','kind':'page','rootId':'%s','slug':'p','body':'x'}", a);
	assert_error(ask(d, LOCAL, &tool_items_write, "{'ops':[{'op':'reroot','itemId':'%s','parentId':'%s'}]}", a, b),
		"invalid_request");
	(void)do_op(d, LOCAL, &tool_items_write, "{'op':'reroot','itemId':'%s','parentId':'%s'}", b, a);
}

/* behaviour 1.6 */
static void ids_of_one_moment_differ_at_once(void **state)
{
	struct desk *d = *state;
	char first[9];
	int same = 0;

	(void)snprintf(first, sizeof(first), "%.8s", new_item(d, NULL, "t", ""));
	for (int i = 0; i < 200; i++)
		same += strncmp(first, new_item(d, NULL, "t", ""), 4) == 0;
	assert_true(same < 5);
}

int main(void)
{
#define DESK_TEST(name) cmocka_unit_test_setup_teardown(name, desk_up, desk_down)
	const struct CMUnitTest tests[] = {
		DESK_TEST(shape_faults_come_first_and_all_at_once),
		DESK_TEST(a_title_counts_characters),
		DESK_TEST(an_item_is_as_it_was_made),
		DESK_TEST(bad_values_are_refused),
		DESK_TEST(a_schema_gives_advice),
		DESK_TEST(an_ended_parent_takes_children_by_its_lifecycle),
		DESK_TEST(an_update_changes_what_it_names),
		DESK_TEST(a_delete_takes_children_only_when_told),
		DESK_TEST(anothers_claim_in_the_subtree_stops_a_delete),
		DESK_TEST(a_project_goes_by_its_title_and_takes_everything),
		DESK_TEST(a_move_evaluates_the_old_parent_only),
		DESK_TEST(an_item_does_not_move_below_itself),
		DESK_TEST(a_project_with_documents_stays_a_root),
		DESK_TEST(ids_of_one_moment_differ_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
