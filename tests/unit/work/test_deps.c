/* Dependencies: made, removed, walked. */
#include "toolbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static json_t *edge(struct box *box, int64_t from, int64_t to, const char *rest)
{
	return ask(box, &tool_deps_write, "{'ops':[{'op':'create','from':'%s','to':'%s'%s}]}", id_of(box->e, from),
		id_of(box->e, to), rest);
}

static int64_t item(struct box *box, const char *title)
{
	return make_item(box->e, box->root, title);
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void an_edge_is_made_and_read(void **state)
{
	struct box *box = *state;
	const json_t *result = result_of(edge(box, box->a, box->b, ",'unblockAt':'review'"));
	const json_t *edges;
	json_t *answer;

	assert_int_equal(int_at(result, "created"), 1);
	assert_int_equal(strlen(text_at(result, "id")), 36);
	answer = ask(box, &tool_deps_read, "{'select':'edges','itemId':'%s','direction':'incoming','includeItems':true}",
		id_of(box->e, box->b));
	edges = at(data_of(answer), "edges");
	assert_int_equal(json_array_size(edges), 1);
	assert_string_equal(text_at(edges, "0.from"), id_of(box->e, box->a));
	assert_string_equal(text_at(edges, "0.unblockAt"), "review");
	assert_true(json_is_false(at(edges, "0.satisfied")));
	assert_string_equal(text_at(edges, "0.item.title"), "Tide table import");
	answer = ask(box, &tool_deps_read, "{'select':'edges','itemId':'%s','direction':'outgoing'}",
		id_of(box->e, box->b));
	assert_int_equal(int_at(answer, "page.total"), 0);
	answer = ask(box, &tool_deps_read, "{'select':'backlinks','itemId':'%s'}", id_of(box->e, box->b));
	assert_string_equal(text_at(data_of(answer), "backlinks.0.fromTitle"), "Tide table import");
	assert_int_equal(count(box->e, "SELECT count(*) FROM event WHERE type = 9"), 1);
}

/* behaviour 5.7, A02 c d */
static void the_alias_is_stored_turned_round(void **state)
{
	struct box *box = *state;
	const char *id = text_at(result_of(edge(box, box->a, box->b, "")), "id");
	json_t *answer = edge(box, box->b, box->a, ",'type':'IS_BLOCKED_BY'");

	assert_error(answer, "duplicate");
	assert_string_equal(text_at(answer, "error.detail.existingId"), id);
	assert_error(edge(box, box->a, box->b, ",'type':'IS_BLOCKED_BY'"), "cycle_detected");
	answer = edge(box, box->a, box->a, "");
	assert_error(answer, "invalid_request");
	assert_string_equal(text_at(answer, "error.detail.fields.0.field"), "ops[0].to");
}

/* behaviour 5.8 */
static void the_path_of_a_cycle_is_closed(void **state)
{
	struct box *box = *state;
	int64_t c = item(box, "C");
	json_t *answer;

	(void)result_of(edge(box, box->a, box->b, ""));
	(void)result_of(edge(box, box->b, c, ""));
	answer = edge(box, c, box->a, "");
	assert_error(answer, "cycle_detected");
	assert_int_equal(json_array_size(at(answer, "error.detail.path")), 4);
	assert_string_equal(text_at(answer, "error.detail.path.0"), id_of(box->e, c));
	assert_string_equal(text_at(answer, "error.detail.path.1"), id_of(box->e, box->a));
	assert_string_equal(text_at(answer, "error.detail.path.2"), id_of(box->e, box->b));
	assert_string_equal(text_at(answer, "error.detail.path.3"), id_of(box->e, c));
	assert_int_equal(count(box->e, "SELECT count(*) FROM dep"), 2);
}

static void the_path_is_the_shortest_and_lowest(void **state)
{
	struct box *box = *state;
	int64_t ends[2] = {item(box, "start"), item(box, "end")};
	int64_t mid[3] = {item(box, "m1"), item(box, "m2"), item(box, "m3")};
	int64_t detour = item(box, "detour");
	const char *lowest = id_of(box->e, mid[0]);
	json_t *answer;

	for (int i = 0; i < 3; i++) {
		make_dep(box->e, ends[0], mid[i], ROLE_TERMINAL);
		make_dep(box->e, mid[i], ends[1], ROLE_TERMINAL);
		lowest = strcmp(id_of(box->e, mid[i]), lowest) < 0 ? id_of(box->e, mid[i]) : lowest;
	}
	make_dep(box->e, ends[0], detour, ROLE_TERMINAL);
	make_dep(box->e, detour, mid[0], ROLE_TERMINAL);
	answer = edge(box, ends[1], ends[0], "");
	assert_int_equal(json_array_size(at(answer, "error.detail.path")), 4);
	assert_string_equal(text_at(answer, "error.detail.path.2"), lowest);
}

/* A02 a: 2^24 paths */
static void stacked_diamonds_are_walked_once(void **state)
{
	struct box *box = *state;
	int64_t layer[24][2];
	int64_t pairs[23 * 4][2];
	int64_t started;
	json_t *answer;

	make_items(box->e, box->root, "diamond", layer[0], 48);
	for (size_t i = 0; i < 23 * 4; i++) {
		pairs[i][0] = layer[i / 4][i % 4 / 2];
		pairs[i][1] = layer[i / 4 + 1][i % 2];
	}
	make_deps(box->e, (const int64_t(*)[2])pairs, 23 * 4);
	started = now_ms();
	answer = edge(box, layer[23][0], layer[0][0], "");
	assert_error(answer, "cycle_detected");
	assert_int_equal(json_array_size(at(answer, "error.detail.path")), 25);
	(void)result_of(edge(box, layer[0][0], layer[23][0], ""));
	assert_true(now_ms() - started < 1000); /* two calls; far below what walking paths takes */
}

/* A02 h */
static void a_long_cycle_is_found_and_summarised(void **state)
{
	struct box *box = *state;
	enum { LENGTH = 5000 };
	int64_t *chain = arena_alloc(box->e->arena, LENGTH * sizeof(*chain));
	int64_t(*pairs)[2] = arena_alloc(box->e->arena, LENGTH * sizeof(*pairs));
	json_t *answer;
	int64_t started;
	size_t shown;

	make_items(box->e, box->root, "link", chain, LENGTH);
	for (int i = 0; i + 1 < LENGTH; i++) {
		pairs[i][0] = chain[i];
		pairs[i][1] = chain[i + 1];
	}
	make_deps(box->e, (const int64_t(*)[2])pairs, LENGTH - 1);
	started = now_ms();
	answer = edge(box, chain[LENGTH - 1], chain[0], "");
	assert_true(now_ms() - started < 1000); /* 25 ms on a quiet machine; paths would take for ever */
	assert_error(answer, "cycle_detected");
	shown = json_array_size(at(answer, "error.detail.path"));
	assert_int_equal(shown, LIMIT_CYCLE_PATH);
	assert_int_equal(int_at(answer, "error.detail.pathLength"), LENGTH + 1);
	assert_int_equal(int_at(answer, "error.detail.pathOmitted"), LENGTH + 1 - LIMIT_CYCLE_PATH);
	assert_string_equal(text_at(answer, "error.detail.path.0"), id_of(box->e, chain[LENGTH - 1]));
	assert_string_equal(text_at(answer, "error.detail.path.99"), id_of(box->e, chain[LENGTH - 1]));
	/* Away from the chain the backward search proves at once that nothing closes. */
	started = now_ms();
	(void)result_of(edge(box, item(box, "new"), chain[0], ""));
	assert_true(now_ms() - started < 1000);
}

/* A02 b, behaviour 3.17 */
static void relations_may_form_rings(void **state)
{
	struct box *box = *state;
	int64_t c = item(box, "C");
	json_t *answer;

	(void)result_of(edge(box, box->a, box->b, ",'type':'RELATES_TO'"));
	(void)result_of(edge(box, box->b, box->a, ",'type':'RELATES_TO'"));
	(void)result_of(edge(box, box->b, c, ",'type':'RELATES_TO'"));
	(void)result_of(edge(box, c, box->a, ",'type':'RELATES_TO'"));
	(void)result_of(edge(box, box->a, box->b, ""));
	assert_error(edge(box, box->a, c, ",'type':'RELATES_TO','unblockAt':'work'"), "invalid_request");
	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'transition','itemId':'%s','trigger':'start'}]}",
		id_of(box->e, c)));
	answer = ask(box, &tool_deps_read, "{'select':'edges','itemId':'%s','type':'RELATES_TO'}",
		id_of(box->e, c));
	assert_null(at(data_of(answer), "edges.0.satisfied"));
}

/* behaviour 5.9 */
static void a_pattern_is_all_or_nothing(void **state)
{
	struct box *box = *state;
	int64_t c = item(box, "C");
	const json_t *result;
	json_t *answer;

	(void)result_of(edge(box, box->b, c, ""));
	answer = ask(box, &tool_deps_write, "{'ops':[{'op':'create','pattern':'linear','itemIds':['%s','%s','%s']}]}",
		id_of(box->e, box->a), id_of(box->e, box->b), id_of(box->e, c));
	assert_error(answer, "duplicate");
	assert_int_equal(count(box->e, "SELECT count(*) FROM dep"), 1);
	result = result_of(ask(box, &tool_deps_write,
		"{'ops':[{'op':'create','pattern':'fan-out','from':'%s','to':['%s','%s'],'unblockAt':'work'}]}",
		id_of(box->e, box->a), id_of(box->e, box->b), id_of(box->e, c)));
	assert_int_equal(int_at(result, "created"), 2);
	assert_int_equal(json_array_size(at(result, "ids")), 2);
	answer = ask(box, &tool_deps_write, "{'ops':[{'op':'create','pattern':'fan-in','from':['%s','%s'],'to':'%s'}]}",
		id_of(box->e, box->a), id_of(box->e, box->a), id_of(box->e, box->feature));
	assert_error(answer, "duplicate");
	assert_null(at(answer, "error.detail.existingId"));
	answer = ask(box, &tool_deps_write, "{'ops':[{'op':'create','pattern':'linear','itemIds':['%s','%s','%s']}]}",
		id_of(box->e, box->feature), id_of(box->e, box->root), id_of(box->e, box->feature));
	assert_error(answer, "cycle_detected");
	assert_int_equal(count(box->e, "SELECT count(*) FROM dep"), 3);
}

static void forms_exclude_each_other(void **state)
{
	struct box *box = *state;
	const char *a = id_of(box->e, box->a);
	const char *b = id_of(box->e, box->b);

	assert_error(ask(box, &tool_deps_write, "{'ops':[{'op':'create','from':'%s'}]}", a), "invalid_request");
	assert_error(ask(box, &tool_deps_write, "{'ops':[{'op':'create','from':['%s','%s'],'to':'%s'}]}", a, b, a),
		"invalid_request");
	assert_error(ask(box, &tool_deps_write,
			     "{'ops':[{'op':'create','pattern':'linear','from':'%s','itemIds':['%s','%s']}]}", a, a, b),
		"invalid_request");
	assert_error(ask(box, &tool_deps_write, "{'ops':[{'op':'delete','from':'%s'}]}", a), "invalid_request");
	assert_error(ask(box, &tool_deps_write, "{'ops':[{'op':'delete','itemId':'%s'}]}", a), "invalid_request");
}

static void removing_an_edge_names_what_it_frees(void **state)
{
	struct box *box = *state;
	const json_t *result;

	(void)result_of(edge(box, box->a, box->b, ""));
	result = result_of(ask(box, &tool_deps_write, "{'ops':[{'op':'delete','from':'%s','to':'%s'}]}",
		id_of(box->e, box->a), id_of(box->e, box->b)));
	assert_int_equal(int_at(result, "deleted"), 1);
	assert_string_equal(text_at(result, "unblockedItems.0.itemId"), id_of(box->e, box->b));
	result = result_of(ask(box, &tool_deps_write, "{'ops':[{'op':'delete','from':'%s','to':'%s'}]}",
		id_of(box->e, box->a), id_of(box->e, box->b)));
	assert_int_equal(int_at(result, "deleted"), 0);
	assert_error(ask(box, &tool_deps_write, "{'ops':[{'op':'delete','depId':'00000000'}]}"), "not_found");
	(void)result_of(edge(box, box->a, box->b, ""));
	(void)result_of(edge(box, box->b, item(box, "C"), ",'type':'RELATES_TO'"));
	result = result_of(
		ask(box, &tool_deps_write, "{'ops':[{'op':'delete','itemId':'%s','all':true}]}", id_of(box->e, box->b)));
	assert_int_equal(int_at(result, "deleted"), 2);
	assert_int_equal(count(box->e, "SELECT count(*) FROM event WHERE type = 10"), 3);
}

/* behaviour 5.10 */
static void a_graph_is_capped_and_says_so(void **state)
{
	struct box *box = *state;
	enum { LEAVES = 1200 };
	int64_t leaves[LEAVES];
	int64_t pairs[LEAVES][2];
	json_t *answer;
	const json_t *data;

	make_items(box->e, box->root, "leaf", leaves, LEAVES);
	for (int i = 0; i < LEAVES; i++) {
		pairs[i][0] = box->a;
		pairs[i][1] = leaves[i];
	}
	make_deps(box->e, (const int64_t(*)[2])pairs, LEAVES);
	answer = ask(box, &tool_deps_read, "{'select':'graph','itemId':'%s','maxNodes':1000}", id_of(box->e, box->a));
	data = data_of(answer);
	assert_true(json_is_true(at(data, "truncated")));
	assert_int_equal(json_array_size(at(data, "nodes")), 1000);
	assert_int_equal(json_array_size(at(data, "chain")), 1000);
	assert_int_equal(int_at(data, "depth"), 1);
}

static void a_graph_has_its_nodes_in_topological_order(void **state)
{
	struct box *box = *state;
	int64_t c = item(box, "C");
	const json_t *data;

	(void)result_of(edge(box, box->a, box->b, ""));
	(void)result_of(edge(box, box->b, c, ""));
	(void)result_of(edge(box, box->a, c, ""));
	data = data_of(ask(box, &tool_deps_read, "{'select':'graph','itemId':'%s'}", id_of(box->e, box->a)));
	assert_string_equal(text_at(data, "chain.0"), id_of(box->e, box->a));
	assert_string_equal(text_at(data, "chain.1"), id_of(box->e, box->b));
	assert_string_equal(text_at(data, "chain.2"), id_of(box->e, c));
	assert_int_equal(json_array_size(at(data, "edges")), 3);
	assert_true(json_is_false(at(data, "truncated")));
	data = data_of(ask(box, &tool_deps_read, "{'select':'graph','itemId':'%s','direction':'upstream'}",
		id_of(box->e, c)));
	assert_int_equal(json_array_size(at(data, "nodes")), 3);
	data = data_of(ask(box, &tool_deps_read, "{'select':'graph','itemId':'%s','types':['RELATES_TO']}",
		id_of(box->e, c)));
	assert_int_equal(json_array_size(at(data, "nodes")), 1);
}

static void blocked_lists_both_kinds(void **state)
{
	struct box *box = *state;
	const json_t *data, *a, *b;
	const char *first, *second;
	json_t *answer;

	(void)result_of(edge(box, box->a, box->b, ""));
	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'transition','itemId':'%s','trigger':'block'}]}",
		id_of(box->e, box->a)));
	answer = ask(box, &tool_deps_read, "{'select':'blocked','rootId':'%s'}", id_of(box->e, box->root));
	data = data_of(answer);
	assert_int_equal(int_at(answer, "page.total"), 2);
	/* The order is by age, then by id: the two are of one millisecond, mostly. */
	a = strcmp(text_at(data, "items.0.id"), id_of(box->e, box->a)) == 0 ? at(data, "items.0") : at(data, "items.1");
	b = a == at(data, "items.0") ? at(data, "items.1") : at(data, "items.0");
	assert_string_equal(text_at(a, "blockType"), "explicit");
	assert_int_equal(int_at(a, "blockerCount"), 0);
	assert_string_equal(text_at(b, "blockType"), "dependency");
	assert_string_equal(text_at(b, "blockedBy.0.id"), id_of(box->e, box->a));
	assert_string_equal(text_at(b, "blockedBy.0.unblockAt"), "terminal");
	first = text_at(data, "items.0.id");
	second = text_at(data, "items.1.id");
	answer = ask(box, &tool_deps_read, "{'select':'blocked','priorities':['high'],'includeBlockers':false}");
	assert_int_equal(int_at(answer, "page.total"), 1);
	assert_null(at(data_of(answer), "items.0.blockedBy"));
	answer = ask(box, &tool_deps_read, "{'select':'blocked','limit':1}");
	assert_int_equal(json_array_size(at(data_of(answer), "items")), 1);
	assert_string_equal(text_at(data_of(answer), "items.0.id"), first);
	answer = ask(box, &tool_deps_read, "{'select':'blocked','limit':1,'cursor':'%s'}",
		text_at(answer, "page.nextCursor"));
	assert_string_equal(text_at(data_of(answer), "items.0.id"), second);
	assert_null(at(answer, "page.nextCursor"));
}

/* No disclosure across projects */
static void an_end_that_may_not_be_read_has_no_id(void **state)
{
	struct box *box = *state;
	int64_t other = make_item(box->e, 0, "Secret");
	struct caller caller = box->e->callers[P1];
	json_t *answer;

	make_dep(box->e, other, box->a, ROLE_TERMINAL);
	caller.capabilities = CAP_READ | CAP_MANAGE_DEPENDENCIES;
	caller.roots = &box->root;
	caller.root_count = 1;
	answer = ask_as(box, &caller, &tool_deps_read, "{'select':'edges','itemId':'%s'}", id_of(box->e, box->a));
	assert_true(json_is_null(at(data_of(answer), "edges.0.from")));
	answer = ask_as(box, &caller, &tool_deps_read, "{'select':'blocked'}");
	assert_true(json_is_null(at(data_of(answer), "items.0.blockedBy.0.id")));
	assert_string_equal(text_at(data_of(answer), "items.0.blockedBy.0.role"), "unknown");
	answer = ask_as(box, &caller, &tool_deps_read, "{'select':'backlinks','itemId':'%s'}", id_of(box->e, box->a));
	assert_int_equal(json_array_size(at(data_of(answer), "backlinks")), 0);
	answer = ask_as(box, &caller, &tool_deps_write, "{'ops':[{'op':'delete','itemId':'%s','all':true}]}",
		id_of(box->e, box->a));
	assert_error(answer, "forbidden");
	answer = ask_as(box, &caller, &tool_deps_write, "{'ops':[{'op':'create','from':'%s','to':'%s'}]}",
		id_of(box->e, box->a), id_of(box->e, other));
	assert_error(answer, "not_found");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_up, box_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_edge_is_made_and_read),
		TEST(the_alias_is_stored_turned_round),
		TEST(the_path_of_a_cycle_is_closed),
		TEST(the_path_is_the_shortest_and_lowest),
		TEST(stacked_diamonds_are_walked_once),
		TEST(a_long_cycle_is_found_and_summarised),
		TEST(relations_may_form_rings),
		TEST(a_pattern_is_all_or_nothing),
		TEST(forms_exclude_each_other),
		TEST(removing_an_edge_names_what_it_frees),
		TEST(a_graph_is_capped_and_says_so),
		TEST(a_graph_has_its_nodes_in_topological_order),
		TEST(blocked_lists_both_kinds),
		TEST(an_end_that_may_not_be_read_has_no_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
