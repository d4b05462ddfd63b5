/* Rules documents: pushed, refused, rolled back, imported. */
#include "toolbox.h"

#include "work/config.h"

#include <stdlib.h>

#define ONE "work_item_schemas:\n  feature-task:\n    notes:\n      - { key: requirements, role: queue, required: true }\n"
#define TWO "work_item_schemas:\n  feature-task:\n    notes: []\n"

static json_t *push_with(struct box *box, int64_t root, const char *yaml, const char *name, json_t *value)
{
	json_t *op = json_pack("{s:s,s:s,s:s}", "op", "push", "rootId", id_of(box->e, root), "yaml", yaml);

	if (name != NULL)
		(void)json_object_set_new(op, name, value);
	return call_as(box, &box->e->callers[LOCAL], &tool_config, json_pack("{s[o]}", "ops", op));
}

static json_t *try_push(struct box *box, int64_t root, const char *yaml)
{
	return push_with(box, root, yaml, NULL, NULL);
}

static json_t *validate(struct box *box, const char *yaml)
{
	return call_as(box, &box->e->callers[LOCAL], &tool_config,
		json_pack("{s[{s:s,s:s,s:s}]}", "ops", "op", "validate", "rootId", id_of(box->e, box->root), "yaml",
			yaml));
}

static json_t *current(struct box *box, const char *rest)
{
	return ask(box, &tool_config, "{'select':'current','rootId':'%s'%s}", id_of(box->e, box->root), rest);
}

static void a_push_is_kept_byte_for_byte(void **state)
{
	struct box *box = *state;
	const char *yaml = "\xEF\xBB\xBF# comment\r\n" ONE;
	const json_t *result = result_of(try_push(box, box->root, yaml));
	json_t *answer;

	assert_int_equal(int_at(result, "version"), 1);
	assert_true(json_is_true(at(result, "changed")));
	answer = current(box, "");
	assert_string_equal(text_at(data_of(answer), "yaml"), yaml);
	assert_int_equal(int_at(data_of(answer), "bytes"), (int64_t)strlen(yaml));
	assert_string_equal(text_at(data_of(answer), "fingerprint"), text_at(result, "fingerprint"));
	assert_null(at(data_of(current(box, ",'includeText':false")), "yaml"));
	answer = ask(box, &tool_config, "{'select':'current','rootId':'%s'}", id_of(box->e, make_item(box->e, 0, "x")));
	assert_error(answer, "not_found");
	assert_string_equal(text_at(answer, "error.detail.kind"), "root");
	assert_error(ask(box, &tool_config, "{'select':'current'}"), "not_found");
	assert_int_equal(count(box->e, "SELECT count(*) FROM event WHERE type = 18"), 1);
}

/* behaviour 5.11 */
static void pushes_are_guarded(void **state)
{
	struct box *box = *state;
	const char *other = "project: { rootId: 5b7d20c4-91e3-4f06-a8c2-0d4e6f1b7a35 }\n";
	const char *own = text_at(data_of(ask(box, &tool_deps_read, "{'select':'graph','itemId':'%s'}",
					  id_of(box->e, box->root))),
		"nodes.0.id");
	json_t *answer = try_push(box, box->a, ONE);

	assert_error(answer, "invalid_request");
	assert_string_equal(text_at(answer, "error.detail.fields.0.field"), "ops[0].rootId");
	assert_error(try_push(box, box->root, other), "invalid_request");
	(void)result_of(push_with(box, box->root, other, "force", json_true()));
	(void)result_of(try_push(box, box->root,
		arena_printf(box->e->arena, "project: { rootId: %s, name: Harbour }\n", own)));
	(void)result_of(try_push(box, box->root, ONE));
	(void)result_of(try_push(box, box->root, TWO));
	answer = try_push(box, box->root, ONE);
	assert_error(answer, "version_conflict");
	assert_string_equal(text_at(answer, "error.detail.kind"), "root");
	assert_string_equal(text_at(answer, "error.detail.actual"), text_at(data_of(current(box, "")), "fingerprint"));
	(void)result_of(push_with(box, box->root, ONE, "force", json_true()));
	answer = ask(box, &tool_config, "{'select':'versions','rootId':'%s','limit':2}", id_of(box->e, box->root));
	assert_string_equal(text_at(data_of(answer), "versions.0.source"), "force");
	assert_string_equal(text_at(data_of(answer), "versions.1.source"), "push");
	assert_int_equal(int_at(answer, "page.total"), 5);
	assert_non_null(at(answer, "page.nextCursor"));
}

static void an_expected_fingerprint_must_match(void **state)
{
	struct box *box = *state;
	const char *first = text_at(result_of(try_push(box, box->root, ONE)), "fingerprint");
	json_t *answer;

	answer = push_with(box, box->root, TWO, "expectedFingerprint", json_string("deadbeef"));
	assert_error(answer, "version_conflict");
	assert_string_equal(text_at(answer, "error.detail.expected"), "deadbeef");
	assert_string_equal(text_at(answer, "error.detail.actual"), first);
	(void)result_of(push_with(box, box->root, TWO, "expectedFingerprint", json_string(first)));
	answer = ask(box, &tool_config, "{'select':'relation','rootId':'%s','fingerprint':'%s'}",
		id_of(box->e, box->root), first);
	assert_string_equal(text_at(data_of(answer), "relation"), "superseded");
	answer = ask(box, &tool_config, "{'select':'relation','rootId':'%s','fingerprint':'%s'}",
		id_of(box->e, box->root), text_at(data_of(answer), "currentFingerprint"));
	assert_string_equal(text_at(data_of(answer), "relation"), "current");
	answer = ask(box, &tool_config, "{'select':'relation','rootId':'%s','fingerprint':'ab'}",
		id_of(box->e, box->root));
	assert_string_equal(text_at(data_of(answer), "relation"), "unknown");
}

/* behaviour 5.12, A08 a b c */
static void bom_and_crlf_are_the_same_text(void **state)
{
	struct box *box = *state;
	const char *crlf = "\xEF\xBB\xBFwork_item_schemas:\r\n  feature-task:\r\n    notes: []\r\n";
	const json_t *result;

	(void)result_of(try_push(box, box->root, TWO));
	result = result_of(try_push(box, box->root, crlf));
	assert_true(json_is_false(at(result, "changed")));
	assert_int_equal(int_at(result, "version"), 1);
	assert_string_equal(text_at(data_of(current(box, "")), "yaml"), TWO);
}

/* behaviour 5.13 */
static void a_push_holds_for_the_next_call(void **state)
{
	struct box *box = *state;
	static const char start[] = "{'ops':[{'op':'transition','itemId':'%s','trigger':'start'}]}";

	(void)result_of(try_push(box, box->root, TWO));
	(void)result_of(ask(box, &tool_advance, start, id_of(box->e, box->a)));
	(void)result_of(try_push(box, box->root, ONE));
	assert_error(ask(box, &tool_advance, start, id_of(box->e, box->b)), "gate_blocked");
}

/* behaviours 5.14, 5.15 */
static void a_bad_push_stores_nothing(void **state)
{
	struct box *box = *state;
	const char *two_enter =
		"work_item_schemas:\n  t:\n    seats:\n      - { name: a, phase: work, enters: true }\n"
		"      - { name: b, phase: work, enters: true }\n";
	const char *unowned =
		"work_item_schemas:\n  t:\n    seats:\n      - { name: unowned, phase: work, enters: true }\n"
		"      - { name: b, phase: work, enters: true }\n";
	const char *before = text_at(result_of(try_push(box, box->root, ONE)), "fingerprint");
	json_t *answer = try_push(box, box->root, two_enter);

	assert_error(answer, "config_invalid");
	assert_int_equal(json_array_size(at(answer, "error.detail.errors")), 1);
	assert_string_equal(text_at(data_of(current(box, "")), "fingerprint"), before);
	answer = validate(box, unowned);
	assert_error(answer, "config_invalid");
	assert_int_equal(json_array_size(at(answer, "error.detail.errors")), 1);
	assert_non_null(strstr(text_at(answer, "error.detail.errors.0.reason"), "unowned"));
	answer = validate(box, "traits: []");
	assert_error(answer, "config_invalid");
	assert_string_equal(text_at(answer, "error.detail.errors.0.path"), "traits");
	assert_error(try_push(box, box->root, "a: [\n"), "config_invalid");
	assert_error(try_push(box, box->root, "work_item_schemas:\n\tbug: {}\n"), "config_invalid");
	assert_error(try_push(box, box->root, "traits: {}\n---\ntraits: {}\n"), "config_invalid");
}

/* A08 n */
static void the_size_is_bounded(void **state)
{
	struct box *box = *state;
	json_t *answer;

	(void)result_of(try_push(box, box->root, arena_printf(box->e->arena, "#%s", repeat(box, "x", 131071))));
	answer = try_push(box, box->root, arena_printf(box->e->arena, "#%s", repeat(box, "x", 131072)));
	assert_error(answer, "payload_too_large");
	assert_int_equal(int_at(answer, "error.detail.max"), 131072);
	(void)result_of(try_push(box, box->root, "")); /* equals {} */
}

/* behaviour 5.16 */
static void flaws_are_warned_about(void **state)
{
	struct box *box = *state;
	const json_t *result = result_of(try_push(box, box->root, "independence: { mode: off }\nno_such_section: 1\n"));

	assert_true(json_array_size(at(result, "schemaWarnings")) >= 1);
	assert_non_null(at(result, "schemaWarnings.0.code"));
	assert_string_equal(text_at(result, "ignoredSections.0"), "no_such_section");
	assert_true(json_array_size(at(data_of(current(box, "")), "schemaWarnings")) >= 1);
}

/* behaviour 5.21 */
static void a_rollback_is_a_new_version(void **state)
{
	struct box *box = *state;
	static const char back[] = "{'ops':[{'op':'rollback','rootId':'%s','version':%d}]}";
	const char *root = id_of(box->e, box->root);
	const json_t *result;

	(void)result_of(try_push(box, box->root, ONE));
	(void)result_of(try_push(box, box->root, TWO));
	result = result_of(ask(box, &tool_config, back, root, 1));
	assert_int_equal(int_at(result, "version"), 3);
	assert_int_equal(int_at(result, "rolledBackTo"), 1);
	assert_string_equal(text_at(data_of(current(box, "")), "yaml"), ONE);
	assert_error(ask(box, &tool_config, back, root, 3), "invalid_request");
	assert_error(ask(box, &tool_config, back, root, 9), "not_found");
}

static void twenty_versions_are_kept(void **state)
{
	struct box *box = *state;
	json_t *answer;

	for (int i = 1; i <= 23; i++)
		(void)result_of(try_push(box, box->root, arena_printf(box->e->arena, "# %d\n", i)));
	answer = ask(box, &tool_config, "{'select':'versions','rootId':'%s'}", id_of(box->e, box->root));
	assert_int_equal(json_array_size(at(data_of(answer), "versions")), 20);
	assert_int_equal(int_at(data_of(answer), "versions.19.version"), 4);
	/* what fell out of the history is not known to be superseded any more */
	(void)result_of(try_push(box, box->root, "# 1\n"));
}

static void impact_counts_what_would_be_held(void **state)
{
	struct box *box = *state;
	const json_t *result;

	make_note(box->e, LOCAL, box->b, "requirements", ROLE_QUEUE, "filled");
	result = result_of(validate(box, ONE));
	assert_int_equal(int_at(result, "impact.items"), 4);
	assert_int_equal(int_at(result, "impact.newlyGated"), 1);
	assert_int_equal(int_at(result, "impact.noLongerGated"), 0);
	(void)result_of(try_push(box, box->root, ONE));
	result = result_of(push_with(box, box->root, TWO, "dryRun", json_true()));
	assert_int_equal(int_at(result, "impact.noLongerGated"), 1);
	assert_string_equal(text_at(data_of(current(box, "")), "yaml"), ONE);
}

static int import(struct tx *tx, void *arg, struct failure *f)
{
	struct config_import in = {.yaml = str_of(arg), .path = "config.yaml"};

	return config_import_global(tx, &in, f);
}

/* behaviours 5.22 and 5.18, 5.20 as they show in effective */
static void the_global_document_comes_from_its_file(void **state)
{
	struct box *box = *state;
	static char global[] =
		"work_item_schemas:\n  bug:\n    notes:\n      - { key: cause, role: work, required: true }\n"
		"status_labels: { start: doing }\n"
		"resources:\n  db: { description: global, defaultTtlSeconds: 60 }\n";
	static char broken[] = "work_item_schemas: [\n";
	struct failure f;
	json_t *answer;
	const json_t *data;

	failure_init(&f, box->e->arena);
	assert_int_equal(in_tx(box->e, LOCAL, import, global, &f), 0);
	assert_int_equal(in_tx(box->e, LOCAL, import, global, &f), 0);
	answer = ask(box, &tool_config, "{'select':'current'}");
	assert_int_equal(int_at(data_of(answer), "version"), 1);
	assert_string_equal(text_at(data_of(answer), "yaml"), global);
	assert_int_equal(in_tx(box->e, LOCAL, import, broken, &f), -1);
	assert_int_equal(f.code, FAIL_CONFIG_INVALID);
	assert_int_equal(int_at(data_of(ask(box, &tool_config, "{'select':'current'}")), "version"), 1);
	answer = ask(box, &tool_config, "{'select':'versions'}");
	assert_string_equal(text_at(data_of(answer), "versions.0.source"), "import");
	(void)result_of(try_push(box, box->root,
		"status_labels: { start: null }\nresources:\n  db: { description: project, defaultTtlSeconds: 5 }\n"));
	data = data_of(ask(box, &tool_config, "{'select':'effective','rootId':'%s'}", id_of(box->e, box->root)));
	assert_string_equal(text_at(data, "resolution"), "legacy");
	assert_string_equal(text_at(data, "types.0.type"), "bug");
	assert_string_equal(text_at(data, "types.0.source"), "global");
	assert_string_equal(text_at(data, "types.0.notes.0"), "cause");
	assert_null(at(data, "statusLabels.start"));
	assert_int_equal(int_at(data, "resources.0.defaultTtlSeconds"), 60);
	assert_string_equal(text_at(data, "independence.mode"), "warn");
	assert_error(ask(box, &tool_config, "{'ops':[{'op':'push','yaml':'a: 1'}]}"), "invalid_request");
}

static void writing_rules_needs_its_capability(void **state)
{
	struct box *box = *state;
	struct caller caller = box->e->callers[P1];
	json_t *answer;

	caller.capabilities = CAP_READ;
	answer = ask_as(box, &caller, &tool_config, "{'ops':[{'op':'push','rootId':'%s','yaml':''}]}",
		id_of(box->e, box->root));
	assert_error(answer, "forbidden");
	assert_string_equal(text_at(answer, "error.detail.required"), "write-config");
	(void)result_of(ask_as(box, &caller, &tool_config, "{'ops':[{'op':'validate','yaml':''}]}"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_up, box_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_push_is_kept_byte_for_byte),
		TEST(pushes_are_guarded),
		TEST(an_expected_fingerprint_must_match),
		TEST(bom_and_crlf_are_the_same_text),
		TEST(a_push_holds_for_the_next_call),
		TEST(a_bad_push_stores_nothing),
		TEST(the_size_is_bounded),
		TEST(flaws_are_warned_about),
		TEST(a_rollback_is_a_new_version),
		TEST(twenty_versions_are_kept),
		TEST(impact_counts_what_would_be_held),
		TEST(the_global_document_comes_from_its_file),
		TEST(writing_rules_needs_its_capability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
