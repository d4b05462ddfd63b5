/* Documents: plans, rules, pages. */
#include "toolbox.h"

#include "work/docs.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *put(struct box *box, const char *kind, const char *slug, const char *body)
{
	return call_as(box, &box->e->callers[LOCAL], &tool_docs_write,
		json_pack("{s[{s:s,s:s,s:s,s:s,s:s}]}", "ops", "op", "put", "kind", kind, "rootId",
			id_of(box->e, box->root), "slug", slug, "body", body));
}

static json_t *get(struct box *box, const char *slug, const char *rest)
{
	return ask(box, &tool_docs_read, "{'select':'get','rootId':'%s','slug':'%s'%s}", id_of(box->e, box->root), slug,
		rest);
}

static void a_put_makes_versions(void **state)
{
	struct box *box = *state;
	const json_t *result = result_of(put(box, "page", "glossary", "# Glossary\nHull"));
	json_t *answer;

	assert_true(json_is_true(at(result, "created")));
	assert_int_equal(int_at(result, "version"), 1);
	assert_int_equal(strlen(text_at(result, "contentHash")), 64);
	result = result_of(put(box, "page", "glossary", "# Glossary\r\nHull"));
	assert_true(json_is_true(at(result, "unchanged")));
	result = result_of(put(box, "page", "glossary", "# Glossary\nBerth"));
	assert_int_equal(int_at(result, "version"), 2);
	assert_string_equal(text_at(data_of(get(box, "glossary", "")), "document.body"), "# Glossary\nBerth");
	assert_string_equal(text_at(data_of(get(box, "glossary", ",'version':1")), "document.body"), "# Glossary\nHull");
	answer = ask(box, &tool_docs_read, "{'select':'versions','docId':'%s'}", text_at(result, "docId"));
	assert_int_equal(int_at(answer, "page.total"), 2);
	assert_int_equal(int_at(data_of(answer), "versions.0.version"), 2);
	assert_string_equal(text_at(data_of(answer), "versions.0.actor.id"), "local");
	result = result_of(ask(box, &tool_docs_write, "{'ops':[{'op':'restore','docId':'%s','version':1}]}",
		text_at(result, "docId")));
	assert_int_equal(int_at(result, "version"), 3);
	assert_int_equal(int_at(result, "restoredFrom"), 1);
	assert_string_equal(text_at(data_of(get(box, "glossary", "")), "document.body"), "# Glossary\nHull");
	assert_error(ask(box, &tool_docs_write, "{'ops':[{'op':'restore','docId':'%s','version':9}]}",
			     text_at(result, "docId")),
		"not_found");
}

static void titles_stay_unless_given(void **state)
{
	struct box *box = *state;
	const char *root = id_of(box->e, box->root);
	static const char with[] =
		"{'ops':[{'op':'put','kind':'page','rootId':'%s','slug':'p','body':'x','title':%s}]}";

	(void)result_of(ask(box, &tool_docs_write, with, root, "'One'"));
	assert_true(json_is_true(at(result_of(put(box, "page", "p", "x")), "unchanged")));
	(void)result_of(put(box, "page", "p", "y"));
	assert_string_equal(text_at(data_of(get(box, "p", "")), "document.title"), "One");
	(void)result_of(ask(box, &tool_docs_write, with, root, "null"));
	assert_null(at(data_of(get(box, "p", "")), "document.title"));
}

/* behaviour 5.24 */
static void limits_depend_on_the_kind(void **state)
{
	struct box *box = *state;
	json_t *answer = put(box, "rule", "rule/spec", repeat(box, "x", 16385));

	assert_error(answer, "payload_too_large");
	assert_int_equal(int_at(answer, "error.detail.max"), 16384);
	assert_int_equal(int_at(answer, "error.detail.actual"), 16385);
	(void)result_of(put(box, "rule", "rule/spec", repeat(box, "x", 16384)));
	(void)result_of(put(box, "page", "big", repeat(box, "x", 65536)));
	assert_error(put(box, "page", "big", repeat(box, "x", 65537)), "payload_too_large");
}

static void slugs_follow_their_grammar(void **state)
{
	struct box *box = *state;
	static const char *const bad[] = {"../../x", "A", "", "a//b", "/a", "a/", "-a", "数据库", "a b"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_error(put(box, "page", bad[i], "x"), "invalid_request");
	assert_error(put(box, "page", repeat(box, "a", 121), "x"), "invalid_request");
	(void)result_of(put(box, "page", repeat(box, "a", 120), "x"));
	(void)result_of(put(box, "page", "a/b.c/d-e_f", "x"));
	assert_error(put(box, "page", "rule/x", "x"), "invalid_request");
	assert_error(put(box, "rule", "x", "x"), "invalid_request");
	assert_error(put(box, "rule", "rule/a/b", "x"), "invalid_request");
	(void)result_of(put(box, "page", "taken", "x"));
	assert_error(put(box, "plan", "taken", "x"), "invalid_request");
}

static void expected_version_zero_only_creates(void **state)
{
	struct box *box = *state;
	static const char op[] =
		"{'ops':[{'op':'put','kind':'page','rootId':'%s','slug':'p','body':'%s','expectedVersion':0}]}";
	json_t *answer;

	(void)result_of(ask(box, &tool_docs_write, op, id_of(box->e, box->root), "x"));
	answer = ask(box, &tool_docs_write, op, id_of(box->e, box->root), "y");
	assert_error(answer, "version_conflict");
	assert_string_equal(text_at(answer, "error.detail.kind"), "document");
	assert_int_equal(int_at(answer, "error.detail.actual"), 1);
}

static void outlines_and_sections_follow_headings(void **state)
{
	struct box *box = *state;
	const json_t *result =
		result_of(put(box, "plan", "plan", "# Scope\na\n## Tide tables\nb\n```\n# no\n```\n## Tide tables\nc\n"));
	const json_t *data;
	json_t *answer;

	assert_int_equal(json_array_size(at(result, "anchors")), 3);
	data = data_of(get(box, "plan", ",'outline':true"));
	assert_null(at(data, "document.body"));
	assert_string_equal(text_at(data, "document.status"), "pending");
	assert_string_equal(text_at(data, "document.outline.2.anchor"), "tide-tables-2");
	assert_int_equal(int_at(data, "document.outline.2.level"), 2);
	answer = ask(box, &tool_docs_read, "{'select':'section','docId':'%s','anchor':'tide-tables-2'}",
		text_at(result, "docId"));
	assert_string_equal(text_at(data_of(answer), "section.body"), "## Tide tables\nc\n");
	answer = ask(box, &tool_docs_read, "{'select':'section','docId':'%s','anchor':'none'}",
		text_at(result, "docId"));
	assert_error(answer, "not_found");
	assert_string_equal(text_at(answer, "error.detail.kind"), "document");
	assert_string_equal(text_at(answer, "error.detail.id"), "plan#none");
}

static void an_outline_is_paged(void **state)
{
	struct box *box = *state;
	size_t seen = 0;
	char rest[64] = ",'outline':true";

	(void)result_of(put(box, "page", "many", repeat(box, "# heading\n", 5000)));
	for (int page = 0; page < 50; page++) {
		const json_t *doc = at(data_of(get(box, "many", rest)), "document");
		char *text = json_dumps(doc, JSON_COMPACT);

		assert_true(strlen(text) < 60 * 1024);
		free(text);
		seen += json_array_size(at(doc, "outline"));
		if (at(doc, "nextOffset") == NULL)
			break;
		(void)snprintf(rest, sizeof(rest), ",'outline':true,'offset':%d", (int)int_at(doc, "nextOffset"));
	}
	assert_int_equal(seen, 5000);
}

/* behaviour 5.23 */
static void a_rule_is_found_by_its_note(void **state)
{
	struct box *box = *state;
	json_t *answer;
	const json_t *rule;

	(void)push(box, box->root,
		"work_item_schemas:\n  feature-task:\n    notes:\n"
		"      - { key: requirements, role: queue, required: true, skill: spec-quality }\n"
		"      - { key: free, role: queue, required: false, skill: Not A Key }\n");
	answer = ask(box, &tool_docs_read, "{'select':'rule','itemId':'%s','noteKey':'requirements'}",
		id_of(box->e, box->a));
	assert_error(answer, "not_found");
	(void)result_of(ask(box, &tool_docs_write,
		"{'ops':[{'op':'put','kind':'rule','rootId':'%s','key':'spec-quality','body':'State {{it}} once.'}]}",
		id_of(box->e, box->root)));
	answer = ask(box, &tool_docs_read, "{'select':'rule','itemId':'%s','noteKey':'requirements'}",
		id_of(box->e, box->a));
	rule = at(data_of(answer), "rule");
	assert_string_equal(text_at(rule, "key"), "spec-quality");
	assert_string_equal(text_at(rule, "body"), "State {{it}} once.");
	assert_int_equal(int_at(rule, "bytes"), 18);
	assert_string_equal(text_at(rule, "rulesVersion"), text_at(data_of(ask(box, &tool_docs_read,
		"{'select':'list','rootId':'%s'}", id_of(box->e, box->root))), "documents.0.contentHash"));
	answer = ask(box, &tool_docs_read, "{'select':'rule','itemId':'%s','noteKey':'free'}", id_of(box->e, box->a));
	assert_error(answer, "not_found");
	answer = ask(box, &tool_docs_read, "{'select':'rule','rootId':'%s','key':'spec-quality'}",
		id_of(box->e, box->root));
	(void)data_of(answer);
	/* and the rules that the configuration names are known */
	answer = ask(box, &tool_config, "{'select':'rules','rootId':'%s'}", id_of(box->e, box->root));
	assert_string_equal(text_at(data_of(answer), "rules.0.usedBy.0.noteKey"), "requirements");
	assert_true(json_is_true(at(data_of(answer), "rules.0.stored")));
	answer = ask(box, &tool_docs_write, "{'ops':[{'op':'delete','rootId':'%s','slug':'rule/spec-quality'}]}",
		id_of(box->e, box->root));
	(void)result_of(answer);
	assert_true(has_warning(answer, "rule_in_use"));
}

static void a_list_is_filtered_and_paged_by_slug(void **state)
{
	struct box *box = *state;
	const char *root = id_of(box->e, box->root);
	json_t *answer;

	(void)result_of(put(box, "plan", "b-plan", "x"));
	(void)result_of(put(box, "page", "a-page", "x"));
	(void)result_of(put(box, "page", "a-page/sub", "x"));
	(void)result_of(put(box, "rule", "rule/r", "x"));
	answer = ask(box, &tool_docs_read, "{'select':'list','rootId':'%s','kinds':['plan'],'status':'pending'}", root);
	assert_int_equal(int_at(answer, "page.total"), 1);
	assert_string_equal(text_at(data_of(answer), "documents.0.slug"), "b-plan");
	answer = ask(box, &tool_docs_read, "{'select':'list','rootId':'%s','slugPrefix':'a-page'}", root);
	assert_int_equal(int_at(answer, "page.total"), 2);
	answer = ask(box, &tool_docs_read, "{'select':'list','rootId':'%s','limit':3}", root);
	assert_string_equal(text_at(data_of(answer), "documents.2.slug"), "b-plan");
	answer = ask(box, &tool_docs_read, "{'select':'list','rootId':'%s','limit':3,'cursor':'%s'}", root,
		text_at(answer, "page.nextCursor"));
	assert_string_equal(text_at(data_of(answer), "documents.0.slug"), "rule/r");
	assert_null(at(answer, "page.nextCursor"));
}

static void the_root_may_be_left_out_by_a_caller_with_one(void **state)
{
	struct box *box = *state;
	struct caller caller = box->e->callers[P1];

	caller.roots = &box->root;
	caller.root_count = 1;
	(void)result_of(put(box, "page", "p", "x"));
	(void)data_of(ask_as(box, &caller, &tool_docs_read, "{'select':'get','slug':'p'}"));
	assert_error(ask(box, &tool_docs_read, "{'select':'get','slug':'p'}"), "invalid_request");
	assert_error(ask(box, &tool_docs_read, "{'select':'get','slug':'p','rootId':'%s'}", id_of(box->e, box->a)),
		"invalid_request");
}

static int adopt(struct tx *tx, void *arg, struct failure *f)
{
	struct box *box = arg;
	struct document doc;
	struct item item;

	assert_int_equal(document_find(&tx->snapshot, box->root, STR("plan"), &doc, f), 1);
	assert_int_equal(item_load(&tx->snapshot, box->feature, &item, f), 1);
	return document_adopt(tx, &doc, &item, f);
}

static void a_plan_is_adopted_once(void **state)
{
	struct box *box = *state;
	struct failure f;
	json_t *answer;

	failure_init(&f, box->e->arena);
	(void)result_of(put(box, "plan", "plan", "x"));
	assert_int_equal(in_tx(box->e, LOCAL, adopt, box, &f), 0);
	assert_int_equal(in_tx(box->e, LOCAL, adopt, box, &f), -1);
	assert_int_equal(f.code, FAIL_DUPLICATE);
	answer = ask(box, &tool_docs_read, "{'select':'list','rootId':'%s','status':'adopted'}",
		id_of(box->e, box->root));
	assert_string_equal(text_at(data_of(answer), "documents.0.adoptedByItemId"), id_of(box->e, box->feature));
	(void)result_of(put(box, "plan", "plan", "y"));
	answer = ask(box, &tool_docs_read, "{'select':'list','rootId':'%s'}", id_of(box->e, box->root));
	assert_string_equal(text_at(data_of(answer), "documents.0.status"), "adopted");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_up, box_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_put_makes_versions),
		TEST(titles_stay_unless_given),
		TEST(limits_depend_on_the_kind),
		TEST(slugs_follow_their_grammar),
		TEST(expected_version_zero_only_creates),
		TEST(outlines_and_sections_follow_headings),
		TEST(an_outline_is_paged),
		TEST(a_rule_is_found_by_its_note),
		TEST(a_list_is_filtered_and_paged_by_slug),
		TEST(the_root_may_be_left_out_by_a_caller_with_one),
		TEST(a_plan_is_adopted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
