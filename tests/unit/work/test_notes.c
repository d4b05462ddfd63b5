/* Notes: written, read, owned. */
#include "toolbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES \
	"work_item_schemas:\n" \
	"  feature-task:\n" \
	"    seats:\n" \
	"      - { name: implementer, phase: work, enters: true }\n" \
	"      - { name: test-author, phase: work }\n" \
	"      - { name: reviewer, phase: review, reads_exclude: [implementation-notes] }\n" \
	"    notes:\n" \
	"      - { key: requirements, role: queue, required: true, guidance: List endpoints., skill: spec-quality }\n" \
	"      - { key: implementation-notes, role: work, required: true }\n" \
	"      - { key: tests, role: work, required: false, seat: test-author }\n" \
	"      - { key: short, role: work, required: false, maxLength: 10 }\n"

static json_t *upsert(struct box *box, int64_t item, const char *key, const char *role, const char *body)
{
	return call_as(box, &box->e->callers[LOCAL], &tool_notes_write,
		json_pack("{s[{s:s,s:s,s:s,s:s*,s:s}]}", "ops", "op", "upsert", "itemId", id_of(box->e, item), "key",
			key, "role", role, "body", body));
}

static json_t *get(struct box *box, int64_t item, const char *key)
{
	return ask(box, &tool_notes_read, "{'select':'get','itemId':'%s','key':'%s'}", id_of(box->e, item), key);
}

/* behaviour 5.1 */
static void an_upsert_keeps_identity(void **state)
{
	struct box *box = *state;
	const json_t *first = result_of(upsert(box, box->a, "scratch", "queue", "one"));
	const json_t *second = result_of(upsert(box, box->a, "scratch", "queue", "two"));
	const json_t *note = at(data_of(get(box, box->a, "scratch")), "note");

	assert_string_equal(text_at(first, "id"), text_at(second, "id"));
	assert_true(json_is_true(at(first, "created")));
	assert_true(json_is_false(at(second, "created")));
	assert_int_equal(int_at(second, "version"), 2);
	assert_string_equal(text_at(note, "body"), "two");
	assert_int_equal(int_at(note, "bodyLength"), 3);
	assert_int_equal(events_of(box->e, box->a, EVENT_NOTE_UPSERTED), 2);
}

static void the_same_text_again_is_no_version(void **state)
{
	struct box *box = *state;
	const json_t *again;

	(void)result_of(upsert(box, box->a, "scratch", "queue", "one"));
	again = result_of(upsert(box, box->a, "scratch", "queue", "one"));
	assert_true(json_is_true(at(again, "unchanged")));
	assert_int_equal(int_at(again, "version"), 1);
	assert_int_equal(events_of(box->e, box->a, EVENT_NOTE_UPSERTED), 1);
	/* by another author it is */
	again = result_of(ask_as(box, &box->e->callers[P1], &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'scratch','role':'queue','body':'one'}]}",
		id_of(box->e, box->a)));
	assert_int_equal(int_at(again, "version"), 2);
}

/* behaviour 5.2 */
static void the_schema_decides_the_role(void **state)
{
	struct box *box = *state;
	json_t *refused;

	(void)push(box, box->root, RULES);
	refused = upsert(box, box->a, "requirements", "work", "x");
	assert_error(refused, "schema_violation");
	assert_string_equal(text_at(refused, "error.detail.type"), "feature-task");
	(void)result_of(upsert(box, box->a, "requirements", NULL, "x"));
	assert_string_equal(text_at(data_of(get(box, box->a, "requirements")), "note.role"), "queue");
	refused = upsert(box, box->a, "free", NULL, "x");
	assert_error(refused, "invalid_request");
	assert_string_equal(text_at(refused, "error.detail.fields.0.field"), "ops[0].role");
	(void)result_of(upsert(box, box->a, "free", "REVIEW", "x"));
}

/* behaviour 5.3 */
static void lengths_count_characters_of_normalised_text(void **state)
{
	struct box *box = *state;
	json_t *answer;

	(void)push(box, box->root, RULES "note_limits: { mode: reject }\n");
	answer = upsert(box, box->a, "short", NULL, "12345\r\n789\r");
	(void)result_of(answer);
	assert_true(has_warning(answer, "body_normalised"));
	assert_string_equal(text_at(data_of(get(box, box->a, "short")), "note.body"), "12345\n789\n");
	(void)result_of(upsert(box, box->a, "short", NULL, repeat(box, "💦", 10)));
	answer = upsert(box, box->a, "short", NULL, repeat(box, "💦", 11));
	assert_error(answer, "note_too_long");
	assert_int_equal(int_at(answer, "error.detail.max"), 10);
	assert_int_equal(int_at(answer, "error.detail.actual"), 11);
	(void)push(box, box->root, RULES);
	answer = upsert(box, box->a, "short", NULL, "12345678901");
	(void)result_of(answer);
	assert_true(has_warning(answer, "note_over_limit"));
}

/* behaviour 5.4 and A15: bytes are counted before line ends are changed */
static void bytes_are_limited_up_front(void **state)
{
	struct box *box = *state;
	json_t *answer = upsert(box, box->a, "big", "queue", repeat(box, "x", 65537));
	const json_t *note;

	assert_error(answer, "payload_too_large");
	assert_int_equal(int_at(answer, "error.detail.max"), 65536);
	assert_int_equal(int_at(answer, "error.detail.actual"), 65537);
	assert_error(upsert(box, box->a, "big", "queue", repeat(box, "\r\n", 40000)), "payload_too_large");
	(void)result_of(upsert(box, box->a, "big", "queue", repeat(box, "x", 65536)));
	note = at(data_of(get(box, box->a, "big")), "note");
	assert_int_equal(int_at(note, "bodyLength"), 65536);
	assert_true(json_is_true(at(note, "truncated")));
}

/* A15, A11 g h: what was written comes back byte for byte, in windows that end between characters */
static void windows_of_a_body_join_to_the_whole(void **state)
{
	struct box *box = *state;
	const char *body = repeat(box, "line é 💦 \"quoted\"\t{\"not\":\"parsed\"}\n", 1300);
	char *joined = arena_alloc(box->e->arena, strlen(body) + 1);
	int64_t offset = 0;

	(void)result_of(upsert(box, box->a, "long", "queue", body));
	for (int i = 0; i < 10; i++) {
		const json_t *note = at(data_of(ask(box, &tool_notes_read,
					     "{'select':'get','itemId':'%s','key':'long','offset':%d}",
					     id_of(box->e, box->a), (int)offset)),
			"note");

		strcat(joined, text_at(note, "body"));
		if (at(note, "truncated") == NULL)
			break;
		offset = int_at(note, "nextOffset");
	}
	assert_string_equal(joined, body);
	(void)result_of(upsert(box, box->a, "json", "queue", "{\"not\":\"parsed\"}"));
	assert_string_equal(text_at(data_of(get(box, box->a, "json")), "note.body"), "{\"not\":\"parsed\"}");
}

static void a_section_of_a_note_is_read_by_its_anchor(void **state)
{
	struct box *box = *state;
	json_t *answer;

	(void)result_of(upsert(box, box->a, "plan", "queue", "# One\na\n# Two\nb\n"));
	answer = ask(box, &tool_notes_read, "{'select':'get','itemId':'%s','key':'plan','section':'two'}",
		id_of(box->e, box->a));
	assert_string_equal(text_at(data_of(answer), "note.body"), "# Two\nb\n");
	answer = ask(box, &tool_notes_read, "{'select':'get','itemId':'%s','key':'plan','section':'three'}",
		id_of(box->e, box->a));
	assert_error(answer, "not_found");
	assert_string_equal(text_at(answer, "error.detail.id"), "plan#three");
}

/* behaviour 5.5 */
static void a_list_is_metadata_in_schema_order(void **state)
{
	struct box *box = *state;
	const json_t *notes;
	json_t *answer;

	(void)push(box, box->root, RULES);
	(void)result_of(upsert(box, box->a, "aaa", "queue", "x"));
	(void)result_of(upsert(box, box->a, "tests", NULL, " \n"));
	(void)result_of(upsert(box, box->a, "requirements", NULL, "x"));
	answer = ask(box, &tool_notes_read, "{'select':'list','itemId':'%s'}", id_of(box->e, box->a));
	notes = at(data_of(answer), "notes");
	assert_int_equal(json_array_size(notes), 3);
	assert_string_equal(text_at(notes, "0.key"), "requirements");
	assert_string_equal(text_at(notes, "1.key"), "tests");
	assert_true(json_is_false(at(notes, "1.filled")));
	assert_string_equal(text_at(notes, "1.seat"), "test-author");
	assert_string_equal(text_at(notes, "2.key"), "aaa");
	assert_null(at(notes, "0.body"));
	assert_int_equal(int_at(answer, "page.total"), 3);
	answer = ask(box, &tool_notes_read, "{'select':'list','itemIds':['%s','%s'],'keys':['aaa'],'fields':['sha256']}",
		id_of(box->e, box->b), id_of(box->e, box->a));
	assert_string_equal(text_at(data_of(answer), "notes.0.itemId"), id_of(box->e, box->a));
	assert_int_equal(strlen(text_at(data_of(answer), "notes.0.sha256")), 64);
}

/* behaviour 1.19 */
static void a_list_with_bodies_stays_within_its_budget(void **state)
{
	struct box *box = *state;
	const char *body = repeat(box, "x", 59000);
	char cursor[512] = "";
	int seen = 0;

	for (int i = 0; i < 20; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "n%02d", i);
		(void)result_of(upsert(box, box->a, key, "queue", i % 5 == 0 ? body : "small"));
	}
	for (int page = 0; page < 30; page++) {
		json_t *answer = ask(box, &tool_notes_read, "{'select':'list','itemId':'%s','fields':['body']%s}",
			id_of(box->e, box->a), cursor);
		const json_t *notes = at(data_of(answer), "notes");
		char *text = json_dumps(answer, JSON_COMPACT);

		assert_true(strlen(text) <= 60 * 1024);
		free(text);
		for (size_t i = 0; i < json_array_size(notes); i++) {
			char key[16];

			(void)snprintf(key, sizeof(key), "n%02d", seen++);
			assert_string_equal(text_at(json_array_get(notes, i), "key"), key);
		}
		if (at(answer, "page.nextCursor") == NULL)
			break;
		assert_true(has_warning(answer, "page_shrunk"));
		(void)snprintf(cursor, sizeof(cursor), ",'cursor':'%s'", text_at(answer, "page.nextCursor"));
	}
	assert_int_equal(seen, 20);
}

/* behaviour 5.6, A06 */
static void a_body_from_a_file_stays_in_its_directory(void **state)
{
	struct box *box = *state;
	static const char *const bad[] = {"../x", "/etc/hosts", "link", "dir/../note.md", "", ".", "dir", "inner/note.md",
		"absent", "fifo"};
	char path[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/note.md", box->config_dir);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs("from a file\r\n", file);
	(void)fclose(file);
	(void)snprintf(path, sizeof(path), "%s/link", box->config_dir);
	assert_int_equal(symlink("/etc/hosts", path), 0);
	(void)snprintf(path, sizeof(path), "%s/inner", box->config_dir);
	assert_int_equal(symlink("/etc", path), 0);
	(void)snprintf(path, sizeof(path), "%s/dir", box->config_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/fifo", box->config_dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *answer = ask(box, &tool_notes_write,
			"{'ops':[{'op':'upsert','itemId':'%s','key':'f','role':'queue','bodyFromFile':'%s'}]}",
			id_of(box->e, box->a), bad[i]);

		assert_error(answer, "invalid_request");
		assert_string_equal(text_at(answer, "error.detail.fields.0.field"), "ops[0].bodyFromFile");
	}
	(void)result_of(ask(box, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'f','role':'queue','bodyFromFile':'note.md'}]}",
		id_of(box->e, box->a)));
	assert_string_equal(text_at(data_of(get(box, box->a, "f")), "note.body"), "from a file\n");
}

static void only_local_callers_name_files(void **state)
{
	struct box *box = *state;
	struct caller remote = box->e->callers[P1];

	remote.is_local = false;
	assert_error(ask_as(box, &remote, &tool_notes_write,
			     "{'ops':[{'op':'upsert','itemId':'%s','key':'f','role':'queue','bodyFromFile':'x'}]}",
			     id_of(box->e, box->a)),
		"forbidden");
}

static void expected_versions_and_create_only_hold(void **state)
{
	struct box *box = *state;
	const char *id = id_of(box->e, box->a);
	json_t *answer;

	(void)result_of(upsert(box, box->a, "k", "queue", "one"));
	answer = ask(box, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'queue','body':'x','expectedVersion':0}]}", id);
	assert_error(answer, "version_conflict");
	assert_int_equal(int_at(answer, "error.detail.actual"), 1);
	answer = ask(box, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'queue','body':'x','createOnly':true}]}", id);
	assert_error(answer, "duplicate");
	assert_int_equal(strlen(text_at(answer, "error.detail.existingId")), 36);
	(void)result_of(ask(box, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'queue','body':'x','expectedVersion':1}]}", id));
	(void)result_of(ask(box, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'new','role':'queue','body':'x','expectedVersion':0}]}", id));
	answer = ask(box, &tool_notes_write, "{'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'queue'}]}", id);
	assert_error(answer, "invalid_request");
}

static void revisions_are_kept_newest_first(void **state)
{
	struct box *box = *state;
	json_t *answer;
	const json_t *rows;

	for (int i = 1; i <= 25; i++) {
		char body[16];

		(void)snprintf(body, sizeof(body), "v%d", i);
		(void)result_of(upsert(box, box->a, "k", "queue", body));
	}
	answer = ask(box, &tool_notes_read, "{'select':'revisions','itemId':'%s','key':'k'}", id_of(box->e, box->a));
	rows = at(data_of(answer), "revisions");
	assert_int_equal(json_array_size(rows), 20);
	assert_int_equal(int_at(rows, "0.version"), 25);
	assert_int_equal(int_at(rows, "19.version"), 6);
	assert_string_equal(text_at(rows, "0.actor.id"), "local");
	answer = ask(box, &tool_notes_read, "{'select':'get','itemId':'%s','key':'k','version':7}",
		id_of(box->e, box->a));
	assert_string_equal(text_at(data_of(answer), "note.body"), "v7");
	answer = ask(box, &tool_notes_read, "{'select':'get','itemId':'%s','key':'k','version':5}",
		id_of(box->e, box->a));
	assert_error(answer, "not_found");
}

static void a_write_names_the_next_missing_note(void **state)
{
	struct box *box = *state;
	const json_t *result;

	(void)push(box, box->root, RULES);
	result = result_of(upsert(box, box->a, "free", "queue", "x"));
	assert_string_equal(text_at(result, "itemContext.guidanceKey"), "requirements");
	assert_string_equal(text_at(result, "itemContext.skillPointer"), "spec-quality");
	assert_int_equal(int_at(result, "itemContext.noteProgress.remaining"), 1);
	result = result_of(upsert(box, box->a, "requirements", NULL, "x"));
	assert_null(at(result, "itemContext.guidanceKey"));
	assert_int_equal(int_at(result, "itemContext.noteProgress.filled"), 1);
	assert_int_equal(int_at(result, "itemContext.noteProgress.total"), 1);
}

static void advice_is_computed_anew_on_a_replay(void **state)
{
	struct box *box = *state;
	const char *id = id_of(box->e, box->a);
	json_t *answer;

	(void)push(box, box->root, RULES);
	for (int i = 0; i < 2; i++) {
		answer = ask(box, &tool_notes_write,
			"{'ops':[{'op':'upsert','itemId':'%s','key':'free','role':'queue','body':'x'}],"
			"'idempotencyKey':'k'}",
			id);
		assert_int_equal(int_at(result_of(answer), "itemContext.noteProgress.remaining"), i == 0);
		if (i == 0)
			(void)result_of(upsert(box, box->a, "requirements", NULL, "x"));
	}
	assert_true(json_is_true(at(answer, "replayed")));
}

static void deleting_counts_what_is_not_there(void **state)
{
	struct box *box = *state;
	const char *id = id_of(box->e, box->a);
	const json_t *result;

	(void)result_of(upsert(box, box->a, "one", "queue", "x"));
	(void)result_of(upsert(box, box->a, "two", "queue", "x"));
	result = result_of(
		ask(box, &tool_notes_write, "{'ops':[{'op':'delete','itemId':'%s','key':'scratch'}]}", id));
	assert_int_equal(int_at(result, "deleted"), 0);
	assert_int_equal(int_at(result, "notFound"), 1);
	result = result_of(ask(box, &tool_notes_write, "{'ops':[{'op':'delete','itemId':'%s','all':true}]}", id));
	assert_int_equal(int_at(result, "deleted"), 2);
	assert_int_equal(events_of(box->e, box->a, EVENT_NOTE_DELETED), 2);
	result = result_of(ask(box, &tool_notes_write,
		"{'ops':[{'op':'delete','noteIds':['00000000','00000000-0000-4000-8000-000000000000']}]}"));
	assert_int_equal(int_at(result, "notFound"), 2);
	assert_error(ask(box, &tool_notes_write, "{'ops':[{'op':'delete','itemId':'%s'}]}", id), "invalid_request");
	assert_error(ask(box, &tool_notes_write, "{'ops':[{'op':'delete','itemId':'%s','key':'a','all':true}]}", id),
		"invalid_request");
	assert_error(ask(box, &tool_notes_write, "{'ops':[{'op':'delete','key':'a'}]}"), "invalid_request");
}

/* A busy holder keeps its item */
static void a_write_of_the_holder_prolongs_its_claim(void **state)
{
	struct box *box = *state;
	struct item before;

	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s','ttlSeconds':100}]}",
		id_of(box->e, box->a)));
	before = load(box->e, box->a);
	(void)usleep(5000);
	(void)result_of(upsert(box, box->a, "k", "queue", "x"));
	assert_true(load(box->e, box->a).claim_until > before.claim_until);
	before = load(box->e, box->a);
	(void)usleep(5000);
	(void)result_of(ask_as(box, &box->e->callers[P1], &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'k2','role':'queue','body':'x'}]}", id_of(box->e, box->a)));
	assert_int_equal(load(box->e, box->a).claim_until, before.claim_until);
}

static void ownership_owner_protects_what_is_filled(void **state)
{
	struct box *box = *state;
	struct caller p1 = box->e->callers[P1];
	struct caller p2 = box->e->callers[P2];
	const char *id = id_of(box->e, box->a);
	static const char write[] = "{'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'%s','body':'%s'}]}";

	p1.capabilities = p2.capabilities = CAP_READ | CAP_WRITE_NOTES | CAP_ADVANCE;
	(void)push(box, box->root, "note_ownership: owner\n");
	(void)result_of(ask_as(box, &p1, &tool_notes_write, write, id, "queue", " "));
	(void)result_of(ask_as(box, &p2, &tool_notes_write, write, id, "queue", "mine"));
	assert_error(ask_as(box, &p1, &tool_notes_write, write, id, "queue", "no"), "note_owned_by_other");
	assert_error(ask_as(box, &p1, &tool_notes_write, "{'ops':[{'op':'delete','itemId':'%s','key':'k'}]}", id),
		"note_owned_by_other");
	(void)result_of(ask_as(box, &p2, &tool_notes_write, write, id, "queue", "again"));
	(void)result_of(ask_as(box, &p1, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}", id));
	(void)result_of(ask_as(box, &p1, &tool_notes_write, write, id, "queue", "as holder"));
	(void)result_of(ask(box, &tool_notes_write, write, id, "queue", "as administrator"));
}

/* behaviour 6.32 */
static void attribution_is_hidden_from_those_without_it(void **state)
{
	struct box *box = *state;
	static const char list[] =
		"{'select':'list','itemId':'%s','fields':['actor','verification','createdAt']}";
	json_t *answer;

	(void)result_of(upsert(box, box->a, "k", "queue", "x"));
	answer = ask(box, &tool_notes_read, list, id_of(box->e, box->a));
	assert_string_equal(text_at(data_of(answer), "notes.0.actor.id"), "local");
	assert_string_equal(text_at(data_of(answer), "notes.0.verification.status"), "absent");
	answer = ask_as(box, &box->e->callers[P1], &tool_notes_read, list, id_of(box->e, box->a));
	assert_null(at(data_of(answer), "notes.0.actor"));
	assert_null(at(data_of(answer), "notes.0.verification"));
	assert_non_null(at(data_of(answer), "notes.0.createdAt"));
}

/* behaviour 1.14 */
static void describe_is_inert(void **state)
{
	struct box *box = *state;
	json_t *answer = ask(box, &tool_notes_write,
		"{'describe':true,'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'queue','body':'x'}],"
		"'idempotencyKey':'k'}",
		id_of(box->e, box->a));

	assert_string_equal(text_at(data_of(answer), "tool"), "notes_write");
	assert_non_null(at(data_of(answer), "ops.upsert"));
	assert_int_equal(count(box->e, "SELECT count(*) FROM note"), 0);
	assert_int_equal(count(box->e, "SELECT count(*) FROM idempotency"), 0);
}

static void faults_of_shape_are_reported_together(void **state)
{
	struct box *box = *state;
	json_t *answer = ask(box, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'xyz','key':' ','role':'blocked','body':'a','bodyFromFile':'b'}]}");

	assert_error(answer, "invalid_request");
	assert_int_equal(json_array_size(at(answer, "error.detail.fields")), 4);
	answer = ask(box, &tool_notes_write, "{'ops':[{'op':'upsert','actor':'me'}]}");
	assert_error(answer, "unknown_parameter");
	answer = ask(box, &tool_notes_read, "{'select':'list','itemId':'%s','fields':['bodi']}",
		id_of(box->e, box->a));
	assert_error(answer, "invalid_request");
	assert_string_equal(text_at(answer, "error.detail.fields.0.field"), "fields[0]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_up, box_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_upsert_keeps_identity),
		TEST(the_same_text_again_is_no_version),
		TEST(the_schema_decides_the_role),
		TEST(lengths_count_characters_of_normalised_text),
		TEST(bytes_are_limited_up_front),
		TEST(windows_of_a_body_join_to_the_whole),
		TEST(a_section_of_a_note_is_read_by_its_anchor),
		TEST(a_list_is_metadata_in_schema_order),
		TEST(a_list_with_bodies_stays_within_its_budget),
		TEST(a_body_from_a_file_stays_in_its_directory),
		TEST(only_local_callers_name_files),
		TEST(expected_versions_and_create_only_hold),
		TEST(revisions_are_kept_newest_first),
		TEST(a_write_names_the_next_missing_note),
		TEST(advice_is_computed_anew_on_a_replay),
		TEST(deleting_counts_what_is_not_there),
		TEST(a_write_of_the_holder_prolongs_its_claim),
		TEST(ownership_owner_protects_what_is_filled),
		TEST(attribution_is_hidden_from_those_without_it),
		TEST(describe_is_inert),
		TEST(faults_of_shape_are_reported_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
