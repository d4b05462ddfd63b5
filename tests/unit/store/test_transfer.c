/* Export and import by themselves: complete against the schema, the same bytes again, all or nothing. */
#include "store/store.h"
#include "store/transfer.h"
#include "store/transfer_table.h"

#include "temp_store.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#undef fail /* ours, not the test library's */

struct place {
	char dir[TEMP_DIR_SIZE];
	struct arena *arena;
	struct failure f;
	struct store *store;
};

static void open_store(struct place *place, const char *name)
{
	struct store_options options = {
		.path = arena_printf(place->arena, "%s/%s", place->dir, name), .may_create = true, .is_exclusive = true};

	store_close(place->store);
	assert_int_equal(store_open(&options, &place->store, &place->f), 0);
}

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	temp_dir_make(place->dir, "transfer");
	place->arena = arena_create();
	failure_init(&place->f, place->arena);
	open_store(place, "a.db");
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	store_close(place->store);
	temp_dir_remove(place->dir);
	arena_destroy(place->arena);
	free(place);
	return 0;
}

/* ---- against the schema ---- */

/* What stays behind, with the reason. */
static const char *const stays[][2] = {
	{"meta", "nothing of people's"},
	{"child_tally", "counted again"},
	{"root_tally", "counted again"},
	{"idempotency", "answers to calls of the last day"},
	{"call_log", "a log"},
	{"token", "a credential"},
	{"sign_in", "a credential"},
	{"mcp_session", "a connection"},
	{"item.claim_by", "a running claim"},
	{"item.claim_at", "a running claim"},
	{"item.claim_first_at", "a running claim"},
	{"item.claim_until", "a running claim"},
	{"item.claim_ttl", "a running claim"},
	{"item.claim_lapse_seen", "a running claim"},
};

static bool is_exempt(const char *name)
{
	for (size_t i = 0; i < sizeof(stays) / sizeof(stays[0]); i++)
		if (strcmp(stays[i][0], name) == 0)
			return true;
	return false;
}

static const struct transfer_table *find_table(const char *name)
{
	for (size_t i = 0; i < transfer_table_count; i++)
		if (strcmp(transfer_tables[i].name, name) == 0)
			return &transfer_tables[i];
	return NULL;
}

static void check_column(const struct transfer_table *table, struct arena *arena, const char *name, bool may_be_null)
{
	for (const struct transfer_column *c = table->columns; c->name != NULL; c++) {
		if (strcmp(c->name, name) != 0)
			continue;
		if ((isupper(c->kind) != 0) != may_be_null)
			print_error("%s.%s: whether it may be NULL\n", table->name, name);
		assert_int_equal(isupper(c->kind) != 0, may_be_null);
		return;
	}
	if (!is_exempt(arena_printf(arena, "%s.%s", table->name, name)))
		print_error("%s.%s does not travel\n", table->name, name);
	assert_true(is_exempt(arena_printf(arena, "%s.%s", table->name, name)));
}

static void check_table(struct snapshot *s, const char *name, struct failure *f)
{
	const struct transfer_table *table = find_table(name);
	AUTO(query_endp) struct query q = {0};

	if (table == NULL && !is_exempt(name))
		print_error("table %s does not travel\n", name);
	assert_true(table != NULL || is_exempt(name));
	if (table == NULL)
		return;
	assert_int_equal(query(s, &q, f, arena_printf(s->arena, "PRAGMA table_info(%s)", name), ""), 0);
	while (query_next(&q, f) == 1)
		check_column(table, s->arena, str_z(s->arena, col_str(&q, 1)), col_int(&q, 3) == 0 && col_int(&q, 5) == 0);
}

static void every_table_and_column_travels_or_is_exempt(void **state)
{
	struct place *place = *state;
	AUTO(query_endp) struct query q = {0};
	struct snapshot s;

	assert_int_equal(snapshot_begin(place->store, place->arena, &s, &place->f), 0);
	assert_int_equal(query(&s, &q, &place->f,
				 "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%_fts_%'", ""),
		0);
	while (query_next(&q, &place->f) == 1)
		check_table(&s, str_z(place->arena, col_str(&q, 0)), &place->f);
	query_end(&q);
	snapshot_end(&s);
}

/* ---- there and back ---- */

static const char *const rows[] = {
	"{\"dais\":\"export\",\"schema\":2,\"version\":\"" DAIS_VERSION "\"}",
	"{\"in\":\"principal\",\"n\":7,\"id\":\"local\",\"kind\":0}",
	/* a parent with the higher number comes first */
	"{\"in\":\"item\",\"n\":9,\"id\":\"5b7d20c4-91e3-4f06-a8c2-0d4e6f1b7a35\",\"root_n\":9,\"depth\":0,\"role\":1,"
	"\"priority\":1,\"complexity\":11,\"version\":4,\"created_at\":10,\"modified_at\":20,\"role_changed_at\":20,"
	"\"claim_gen\":3}",
	"{\"in\":\"item\",\"n\":2,\"id\":\"c41f9e02-6a7b-4d18-9c35-2e80b7d6f914\",\"parent_n\":9,\"root_n\":9,\"depth\":1,"
	"\"role\":-1,\"prev_role\":1,\"priority\":0,\"complexity\":3,\"version\":1,\"created_at\":11,\"modified_at\":12,"
	"\"role_changed_at\":12,\"label\":\"held\",\"claim_gen\":0}",
	"{\"in\":\"item_text\",\"n\":2,\"title\":\"\xe6\x95\xb0\xe6\x8d\xae \\\"x\\\" \\u0001\",\"tags\":\"[\\\"a\\\"]\","
	"\"traits\":\"[]\",\"summary\":\"\",\"requires_verification\":0,\"created_by\":7}",
	"{\"in\":\"item_text\",\"n\":9,\"title\":\"root\",\"tags\":\"[]\",\"traits\":\"[]\",\"summary\":\"\","
	"\"requires_verification\":0,\"created_by\":7,\"properties\":\"{}\"}",
	"{\"in\":\"event\",\"seq\":1000000000005,\"id\":\"0e93ab57-d2c4-4b60-8f1a-73c5e9140b2d\",\"at\":12,\"type\":1,"
	"\"root_n\":9,\"item_n\":2,\"actor_n\":7,\"verification\":0,\"data\":\"{}\"}",
	/* a run at work, as it stands: its agent is in the middle of a sentence */
	"{\"in\":\"project\",\"n\":1,\"id\":\"project:1\",\"title\":\"P\",\"root_n\":9,\"workspace_root\":\"/srv/p\",\"kind\":0,"
	"\"created_at\":10,\"updated_at\":10}",
	"{\"in\":\"thread\",\"n\":3,\"id\":\"thread:3\",\"project_n\":1,\"kind\":0,\"title\":\"T\",\"instance_id\":\"one\","
	"\"runtime_mode\":3,\"interaction_mode\":1,\"workspace\":0,\"relationship\":0,\"root_n\":3,\"depth\":0,\"created_by\":0,"
	"\"creation_source\":5,\"namespace\":\"0123456789abcdef\",\"created_at\":10,\"updated_at\":12}",
	"{\"in\":\"message\",\"n\":1,\"id\":\"message:1\",\"thread_n\":3,\"run_n\":1,\"role\":0,\"text\":\"go\",\"created_by\":0,"
	"\"creation_source\":5,\"is_monitor\":0,\"created_at\":10,\"updated_at\":10}",
	"{\"in\":\"thread_run\",\"n\":1,\"thread_n\":3,\"ordinal\":1,\"instance_id\":\"one\",\"message_n\":1,\"status\":3,"
	"\"is_held\":0,\"is_wake\":0,\"requested_at\":10,\"started_at\":11,\"cohort\":0,\"cohort_generation\":0}",
	"{\"in\":\"turn_item\",\"n\":1,\"id\":\"turn-item:1\",\"thread_n\":3,\"run_n\":1,\"ordinal\":0,\"type\":1,\"status\":1,"
	"\"updated_at\":12}",
	"{\"in\":\"item_chunk\",\"item_n\":1,\"at\":0,\"bytes\":10,\"text\":\"half a sen\"}",
	"{\"in\":\"provider_session\",\"n\":1,\"id\":\"provider-session:1\",\"thread_n\":3,\"driver\":\"script\","
	"\"instance_id\":\"one\",\"status\":2,\"cwd\":\"/srv/p\",\"runtime_mode\":3,\"interaction_mode\":1,"
	"\"capabilities\":\"{}\",\"created_at\":11,\"updated_at\":11}",
	"{\"in\":\"session_state\",\"session_n\":1,\"spool_offset\":77,\"line_seq\":2,\"driver_state\":\"{\\\"a\\\":1}\"}",
	"{\"in\":\"session_line\",\"session_n\":1,\"seq\":2,\"has_secret\":1,\"text\":\"{}\"}",
	"{\"in\":\"effect\",\"n\":1,\"thread_n\":3,\"run_n\":1,\"type\":2,\"status\":0,\"attempts\":0,\"available_at\":12}",
	"{\"end\":true,\"rows\":16}",
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define END (ROWS - 1)

struct lines {
	const char *lines[ROWS + 2];
	size_t count, at;
};

static struct lines all_rows(void)
{
	struct lines lines = {.count = ROWS};

	memcpy(lines.lines, rows, sizeof(rows));
	return lines;
}

static int next(void *context, struct str *line, struct failure *f)
{
	struct lines *lines = context;

	(void)f;
	if (lines->at == lines->count)
		return 0;
	*line = str_of(lines->lines[lines->at++]);
	return 1;
}

static int import(struct place *place, struct lines *lines)
{
	struct transfer_source source = {.next = next, .context = lines};

	return store_write(place->store, transfer_import, &source, &actor_system, place->arena, &place->f);
}

static int add_line(void *context, struct str line, struct failure *f)
{
	(void)f;
	buf_add_str(context, line);
	return 0;
}

static struct str export(struct place *place)
{
	struct snapshot s;
	struct buf out;

	buf_init(&out, place->arena, SIZE_MAX);
	assert_int_equal(snapshot_begin(place->store, place->arena, &s, &place->f), 0);
	assert_int_equal(transfer_export(&s, add_line, &out, &place->f), 0);
	snapshot_end(&s);
	return buf_str(&out);
}

static struct str joined(struct arena *arena)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < ROWS; i++)
		buf_printf(&out, "%s\n", rows[i]);
	return buf_str(&out);
}

static void what_comes_out_is_what_went_in(void **state)
{
	struct place *place = *state;
	struct lines lines = all_rows();
	struct str out;

	assert_int_equal(import(place, &lines), 0);
	out = export(place);
	assert_string_equal(str_z(place->arena, out), str_z(place->arena, joined(place->arena)));
}

static void counts_and_event_numbers_are_right_afterwards(void **state)
{
	struct place *place = *state;
	struct lines lines = all_rows();
	struct snapshot s;
	int64_t n;

	assert_int_equal(import(place, &lines), 0);
	open_store(place, "a.db");
	assert_int_equal(store_newest(place->store), INT64_C(1000000000005));
	assert_int_equal(snapshot_begin(place->store, place->arena, &s, &place->f), 0);
	assert_int_equal(query_int(&s, &n, &place->f, "SELECT blocked FROM child_tally WHERE item_n = 9", ""), 1);
	assert_int_equal(n, 1);
	assert_int_equal(query_int(&s, &n, &place->f, "SELECT work * 10 + blocked FROM root_tally WHERE root_n = 9", ""), 1);
	assert_int_equal(n, 11);
	snapshot_end(&s);
}

static void a_second_import_is_refused(void **state)
{
	struct place *place = *state;
	struct lines lines = all_rows();

	assert_int_equal(import(place, &lines), 0);
	lines.at = 0;
	assert_int_equal(import(place, &lines), -1);
	assert_int_equal(place->f.code, FAIL_CANNOT_CREATE);
}

/* Refused with this code and these words, and the database is as empty as before. */
static void assert_refused(struct place *place, struct lines *lines, enum failure_code code, const char *says)
{
	struct str before = export(place);

	assert_int_equal(import(place, lines), -1);
	if (place->f.code != code || memmem(place->f.message.p, place->f.message.n, says, strlen(says)) == NULL)
		print_error("got: %.*s\n", STRF(place->f.message));
	assert_int_equal(place->f.code, code);
	assert_non_null(memmem(place->f.message.p, place->f.message.n, says, strlen(says)));
	assert_true(str_eq(before, export(place)));
}

static void what_cannot_be_right_is_refused_whole(void **state)
{
	static const struct {
		size_t line; /* from 0 */
		const char *text;
		enum failure_code code;
		const char *says;
	} cases[] = {
		{0, "{\"dais\":\"export\",\"schema\":99}", FAIL_SCHEMA_NEWER, "schema version 99"},
		{0, "{\"a\":1}", FAIL_INVALID_REQUEST, "Line 1 is not the header"},
		{1, "[]", FAIL_INVALID_REQUEST, "Line 2 is not an object"},
		{1, "{\"in\":\"token\",\"id\":\"x\"}", FAIL_INVALID_REQUEST, "Line 2 names no table"},
		{1, "{\"in\":\"principal\",\"n\":7,\"id\":\"local\",\"kind\":0,\"x\":1}", FAIL_INVALID_REQUEST, "does not know"},
		{1, "{\"in\":\"principal\",\"n\":\"7\",\"id\":\"local\",\"kind\":0}", FAIL_INVALID_REQUEST,
			"Line 2: n must be a whole number"},
		{1, "{\"in\":\"principal\",\"n\":7,\"kind\":0}", FAIL_INVALID_REQUEST, "Line 2: id must be text"},
		{1, "{\"in\":\"principal\",\"n\":7,\"id\":\"a\\u0000b\",\"kind\":0}", FAIL_INVALID_REQUEST, "id must be text"},
		{4, "{\"in\":\"principal\",\"n\":7,\"id\":\"again\",\"kind\":0}", FAIL_INVALID_REQUEST,
			"Line 5 cannot be stored"},
		{5, "{\"in\":\"principal\",\"n\":8,\"id\":\"ada\",\"kind\":1}", FAIL_INVALID_REQUEST, "1 items without text"},
		{END, "{\"end\":true,\"rows\":5}", FAIL_INVALID_REQUEST, "counts other rows"},
		{END, "{\"in\":\"principal\",\"n\":8,\"id\":\"ada\",\"kind\":1}", FAIL_INVALID_REQUEST, "cut off after line 18"},
	};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lines lines = all_rows();

		lines.lines[cases[i].line] = cases[i].text;
		failure_init(&place->f, place->arena);
		assert_refused(place, &lines, cases[i].code, cases[i].says);
	}
}

static void lines_after_the_end_are_refused(void **state)
{
	struct place *place = *state;
	struct lines lines = all_rows();

	lines.lines[lines.count++] = rows[1];
	assert_refused(place, &lines, FAIL_INVALID_REQUEST, "Line 19 comes after the end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_table_and_column_travels_or_is_exempt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_comes_out_is_what_went_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counts_and_event_numbers_are_right_afterwards, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_second_import_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_right_is_refused_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_after_the_end_are_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
