/* Search finds what people type. */
#include "desk.h"

#include "base/limits.h"

static json_t *find(struct desk *d, enum who who, const char *mode, const char *query, const char *more)
{
	json_t *args = json_pack("{s:s,s:s,s:s}", "select", "search", "query", query, "matchMode", mode);
	struct str text = json_canonical(d->arena, args);

	json_decref(args);
	if (*more != '\0') {
		char *rest = arena_printf(d->arena, "%.*s,%s}", (int)text.n - 1, text.p, more);

		for (char *c = rest + text.n - 1; *c != '\0'; c++)
			*c = *c == '\'' ? '"' : *c;
		text = str_of(rest);
	}
	return ask_text(d, who, &tool_items_read, text);
}

static bool has(const json_t *answer, const char *id)
{
	for (size_t i = 0; i < count_at(answer, "data.hits"); i++)
		if (strcmp(text_at(json_array_get(at(answer, "data.hits"), i), "id"), id) == 0)
			return true;
	return false;
}

static const char *const bodies[] = {
	"compile with --error-on-warnings enabled",
	"don't drop the parser's state",
	"std::vector a::b notes",
	"version 38.101 of the spec",
	"C++ and C# builds",
	"NOT AND OR NEAR words",
	"日本語のテスト",
	"naïve café",
	"a-b-c dash 50% off \"quoted\"",
	"Walker's and Rider's Guild",
};

/* A07, behaviour 6.25 */
static void any_text_is_data(void **state)
{
	struct desk *d = *state;
	static const struct {
		const char *query;
		int text, substring, automatic; /* note that must be found; 0: none at all; -1: refused; -2: any */
	} tries[] = {
		{"--error-on-warnings", 1, 1, 1},
		{"don't", 2, 2, 2},
		{"a::b", 3, 3, 3},
		{"38.101", 4, 4, 4},
		{"C++", 5, 5, 5},
		{"NOT", 6, 6, 6},
		{"foo AND", 0, 0, 0},
		{"NEAR(", 6, 0, 6},
		{"\"unbalanced", 0, 0, 0},
		{"*", 0, -1, 0},
		{"(", 0, -1, 0},
		{":", 0, -1, 0},
		{"-word", -2, 0, -2},
		{"title:x* OR -(", 0, 0, 0},
		{"^start", 0, 0, 0},
		{"50%", 9, 9, 9},
		{"café", 8, 8, 8},
		{"cafe", 8, 0, 8},
		{"Walker's and Rider's", 10, 10, 10},
		{"日本", 0, -1, 7},
		{"日本語", 0, 7, 7},
		{"\"", 0, -1, 0},
	};
	static const char *const modes[] = {"text", "substring", "auto"};
	const char *item = new_item(d, NULL, "holder", "");
	const char *titled = new_item(d, NULL, "日本語のテスト", "");
	const char *notes[11];
	char key[8];
	struct buf many;

	for (int i = 0; i < 10; i++) {
		(void)snprintf(key, sizeof(key), "n%d", i + 1);
		notes[i + 1] = note(d, item, key, bodies[i]);
	}
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		const int expected[] = {tries[i].text, tries[i].substring, tries[i].automatic};

		for (size_t k = 0; k < 3; k++) {
			json_t *answer = find(d, LOCAL, modes[k], tries[i].query, "");

			if (expected[k] == -1) {
				assert_error(answer, "invalid_request");
				continue;
			}
			assert_ok(answer);
			if (expected[k] == 0 && count_at(answer, "data.hits") != 0)
				fail_msg("%s in %s: %s", tries[i].query, modes[k], json_dumps(answer, 0));
			if (expected[k] > 0 && !has(answer, notes[expected[k]]))
				fail_msg("%s in %s: %s", tries[i].query, modes[k], json_dumps(answer, 0));
		}
	}
	/* two code points: found in title and body by a scan that says so */
	assert_true(has(find(d, LOCAL, "auto", "日本", ""), titled));
	assert_true(warned(find(d, LOCAL, "auto", "日本", ""), "search_fallback"));
	assert_false(warned(find(d, LOCAL, "auto", "日本語", ""), "search_fallback"));
	assert_error(find(d, LOCAL, "auto", "   ", ""), "invalid_request");
	buf_init(&many, d->arena, SIZE_MAX);
	for (int i = 0; i < 500; i++)
		buf_add_char(&many, '(');
	assert_int_equal(count_at(find(d, LOCAL, "auto", str_z(d->arena, buf_str(&many)), ""), "data.hits"), 0);
	buf_add_char(&many, '(');
	assert_error(find(d, LOCAL, "auto", str_z(d->arena, buf_str(&many)), ""), "invalid_request");
}

/* behaviour 6.26 */
static void short_terms_have_their_answer(void **state)
{
	struct desk *d = *state;
	const char *id = new_item(d, NULL, "the ab team", "");

	assert_error(find(d, LOCAL, "substring", "ab", ""), "invalid_request");
	assert_true(has(find(d, LOCAL, "auto", "ab", ""), id));
	assert_true(has(find(d, LOCAL, "auto", "te", ""), id)); /* inside a word: by the scan */
	assert_true(has(find(d, LOCAL, "substring", "ab team", ""), id)); /* short terms are dropped there */
}

static void a_hit_says_where_and_what(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "Harbour", "");
	const char *item = new_item(d, root, "Booking API", ", 'summary':'berth of the hull','priority':'high'");
	const char *id = note(d, item, "requirements", "Reject a berth shorter than the hull.");
	json_t *answer = find(d, LOCAL, "auto", "hull berth", "'kinds':['note'],'explain':true,'fields':['ancestors']");
	const json_t *hit = at(answer, "data.hits.0");

	assert_int_equal(int_at(answer, "page.total"), 1);
	assert_string_equal(text_at(hit, "kind"), "note");
	assert_string_equal(text_at(hit, "id"), id);
	assert_string_equal(text_at(hit, "itemId"), item);
	assert_string_equal(text_at(hit, "key"), "requirements");
	assert_string_equal(text_at(hit, "noteRole"), "work");
	assert_string_equal(text_at(hit, "title"), "Booking API");
	assert_string_equal(text_at(hit, "field"), "body");
	assert_string_equal(text_at(hit, "snippet"), "Reject a <mark>berth</mark> shorter than the <mark>hull</mark>.");
	assert_int_equal(count_at(hit, "matchedIn"), 2);
	assert_string_equal(text_at(hit, "ancestors.0.id"), root);
	/* behaviour 6.29 */
	assert_int_equal(int_at(hit, "trigramRank"), 1);
	assert_int_equal(int_at(hit, "textRank"), 1);
	assert_int_equal(int_at(hit, "rrfK"), 60);
	assert_true(json_real_value(at(hit, "score")) > 0.03278 && json_real_value(at(hit, "score")) < 0.0328);
	answer = find(d, LOCAL, "text", "hull", "'kinds':['item']");
	assert_string_equal(text_at(answer, "data.hits.0.field"), "summary");
	assert_string_equal(text_at(answer, "data.hits.0.priority"), "high");
	assert_string_equal(text_at(find(d, LOCAL, "text", "booking", ""), "data.hits.0.field"), "title");
}

static void filters_speak_of_the_owning_item(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *a = new_item(d, root, "a", ", 'tags':['x'],'type':'bug'");
	const char *b = new_item(d, a, "b", "");
	const char *in_a = note(d, a, "one", "needle");
	const char *in_b = note(d, b, "two", "needle");
	json_t *answer = find(d, LOCAL, "auto", "needle", "'tags':['X']");

	assert_true(has(answer, in_a) && !has(answer, in_b));
	answer = find(d, LOCAL, "auto", "needle", "'types':['bug']");
	assert_true(has(answer, in_a) && !has(answer, in_b));
	answer = find(d, LOCAL, "auto", "needle", "'noteKeys':['two']");
	assert_true(!has(answer, in_a) && has(answer, in_b));
	answer = find(d, LOCAL, "auto", "needle", arena_printf(d->arena, "'itemId':'%s'", a));
	assert_true(has(answer, in_a) && !has(answer, in_b));
	answer = find(d, LOCAL, "auto", "needle", arena_printf(d->arena, "'ancestorId':'%s'", a));
	assert_true(has(answer, in_a) && has(answer, in_b)); /* the ancestor itself too */
	assert_ok(trigger(d, b, "complete"));
	answer = find(d, LOCAL, "auto", "needle", "'excludeTerminal':true,'noteRoles':['work']");
	assert_false(has(answer, in_b));
}

/* behaviour 6.27 */
static void what_is_hidden_displaces_nothing(void **state)
{
	struct desk *d = *state;
	const char *hidden = new_item(d, NULL, "hidden", "");
	const char *open = new_item(d, NULL, "open", "");
	const char *mine = new_item(d, open, "a long title about a needle somewhere in the hay", "");
	json_t *answer;

	for (int i = 0; i < 300; i++)
		(void)new_item(d, hidden, "needle", "");
	limit_to(d, P1, open);
	answer = find(d, P1, "auto", "needle", "");
	assert_int_equal(count_at(answer, "data.hits"), 1);
	assert_true(has(answer, mine));
	assert_int_equal(int_at(answer, "page.total"), 1);
}

/* behaviour 6.28 */
static void the_total_is_the_same_on_every_page(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	char more[512] = "'limit':40";
	char seen[128][40];
	size_t count = 0;

	for (int i = 0; i < 250; i++)
		(void)new_item(d, root, "needle", "");
	for (int page = 0; page < 3; page++) {
		json_t *answer = find(d, LOCAL, "text", "needle", more);

		assert_int_equal(int_at(answer, "page.total"), 100);
		assert_true(json_is_true(at(answer, "data.truncated")));
		for (size_t i = 0; i < count_at(answer, "data.hits"); i++) {
			const char *id = text_at(json_array_get(at(answer, "data.hits"), i), "id");

			for (size_t k = 0; k < count; k++)
				assert_string_not_equal(seen[k], id);
			(void)snprintf(seen[count++], sizeof(seen[0]), "%s", id);
		}
		(void)snprintf(more, sizeof(more), "'limit':40,'cursor':'%s'", text_at(answer, "page.nextCursor"));
		assert_true((page == 2) == (at(answer, "page.nextCursor") == NULL));
	}
	assert_int_equal(count, 100);
}

/* behaviour 6.30 */
static void the_index_follows_its_texts_and_nothing_else(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *id = new_item(d, root, "before", "");
	const char *in_note = note(d, id, "k", "vanishing");
	int64_t writes;

	(void)do_op(d, LOCAL, &tool_items_write, "{'op':'update','itemId':'%s','title':'afterwards'}", id);
	assert_false(has(find(d, LOCAL, "auto", "before", ""), id));
	assert_true(has(find(d, LOCAL, "auto", "afterwards", ""), id));
	writes = number(d, "SELECT count(*) FROM item_fts_text_data");
	assert_ok(trigger(d, id, "start"));
	(void)do_op(d, LOCAL, &tool_items_write, "{'op':'update','itemId':'%s','priority':'high','description':'x'}", id);
	assert_int_equal(number(d, "SELECT count(*) FROM item_fts_text_data"), writes);
	assert_true(has(find(d, LOCAL, "auto", "vanishing", ""), in_note));
	(void)do_op(d, LOCAL, &tool_notes_write, "{'op':'delete','itemId':'%s','key':'k'}", id);
	assert_int_equal(count_at(find(d, LOCAL, "auto", "vanishing", ""), "data.hits"), 0);
	(void)note(d, id, "k", "vanishing");
	(void)do_op(d, LOCAL, &tool_items_write, "{'op':'delete','itemId':'%s','recursive':true}", root);
	assert_int_equal(count_at(find(d, LOCAL, "auto", "vanishing", ""), "data.hits"), 0);
	assert_int_equal(count_at(find(d, LOCAL, "auto", "afterwards", ""), "data.hits"), 0);
}

static void a_snippet_is_short_whatever_the_note(void **state)
{
	struct desk *d = *state;
	const char *item = new_item(d, NULL, "i", "");
	struct buf body;
	const char *snippet;

	buf_init(&body, d->arena, SIZE_MAX);
	for (int i = 0; i < 5000; i++)
		buf_add_str(&body, STR("💦"));
	buf_add_str(&body, STR("needle"));
	for (int i = 0; i < 5000; i++)
		buf_add_str(&body, STR("é"));
	(void)note(d, item, "k", str_z(d->arena, buf_str(&body)));
	snippet = text_at(find(d, LOCAL, "substring", "needle", ""), "data.hits.0.snippet");
	assert_true(strlen(snippet) > 0 && strlen(snippet) < 1200);
	assert_non_null(strstr(snippet, "<mark>needle</mark>"));
	assert_int_equal(utf8_check(str_of(snippet)), strlen(snippet));
}

static void write_items(struct desk *d, const char *parent, const char *title, int n)
{
	for (int i = 0; i < n; i += 50) {
		struct buf ops;

		buf_init(&ops, d->arena, SIZE_MAX);
		for (int k = 0; k < 50; k++)
			buf_printf(&ops, "%s{\"op\":\"create\",\"parentId\":\"%s\",\"title\":\"%s\"}", k == 0 ? "" : ",", parent,
				title);
		assert_ok(ask_text(d, LOCAL, &tool_items_write,
			str_printf(d->arena, "{\"ops\":[%.*s]}", STRF(buf_str(&ops)))));
	}
}

/* 6.27 where the scope is too large to be listed at once, and all that is newer lies outside of it */
static void a_large_scope_is_not_displaced_either(void **state)
{
	struct desk *d = *state;
	const char *hidden = new_item(d, NULL, "hidden", "");
	const char *open = new_item(d, NULL, "open", "");
	const char *mine = new_item(d, open, "a needle here", ", 'priority':'high'");
	json_t *answer;

	write_items(d, open, "hay", LIMIT_SEARCH_SMALL + 50);
	write_items(d, hidden, "needle", LIMIT_SEARCH_LOOKUPS + 50);
	limit_to(d, P1, open);
	for (int i = 0; i < 3; i++) {
		static const char *const modes[] = {"auto", "text", "substring"};

		answer = find(d, P1, modes[i], "needle", "");
		assert_int_equal(int_at(answer, "page.total"), 1);
		assert_true(has(answer, mine));
		assert_true(at(answer, "data.truncated") == NULL);
		answer = find(d, LOCAL, modes[i], "needle", "'priorities':['high']"); /* no index leads to it */
		assert_int_equal(int_at(answer, "page.total"), 1);
		assert_true(has(answer, mine));
	}
	answer = find(d, LOCAL, "auto", "needle", "");
	assert_int_equal(int_at(answer, "page.total"), 100);
	assert_true(json_is_true(at(answer, "data.truncated")));
}

static void parts_of_words_are_found_and_marked(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *item = new_item(d, root, "Straßenkreuzung ÀÉÎ", ", 'summary':'catalogue of catalogues'");
	const char *in_note = note(d, item, "k", "abcdefghijklmnopqrstuvwxyz");
	static const char *const whole = "abcdefghijklmnopqrstuvwxyz";
	json_t *answer;

	for (size_t n = 3; n <= 26; n++) /* shorter than a gram, as long, and longer, at every place */
		for (size_t from = 0; from + n <= 26; from++) {
			const char *part = arena_printf(d->arena, "%.*s", (int)n, whole + from);

			assert_true(has(find(d, LOCAL, "substring", part, ""), in_note));
		}
	assert_int_equal(count_at(find(d, LOCAL, "substring", "abcdefghij klmnopqrstvwxyz", ""), "data.hits"), 0);
	assert_int_equal(count_at(find(d, LOCAL, "substring", "abcdx", ""), "data.hits"), 0);
	answer = find(d, LOCAL, "auto", "ATALOG", "'explain':true");
	assert_string_equal(text_at(answer, "data.hits.0.id"), item);
	assert_string_equal(text_at(answer, "data.hits.0.field"), "summary");
	assert_string_equal(text_at(answer, "data.hits.0.snippet"), "c<mark>atalog</mark>ue of c<mark>atalog</mark>ues");
	assert_int_equal(count_at(answer, "data.hits.0.matchedIn"), 1);
	assert_string_equal(text_at(answer, "data.hits.0.matchedIn.0"), "trigram");
	/* letters beyond ASCII: case does not matter there either, and the text is shown as it is */
	answer = find(d, LOCAL, "substring", "àéî STRAßEN", "");
	assert_string_equal(text_at(answer, "data.hits.0.field"), "title");
	assert_string_equal(text_at(answer, "data.hits.0.snippet"), "<mark>Straßen</mark>kreuzung <mark>ÀÉÎ</mark>");
}

static void words_in_plenty_leave_parts_no_place_of_their_own(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *part;
	json_t *answer;

	write_items(d, root, "needle", LIMIT_SEARCH_CANDIDATES + 50);
	part = new_item(d, root, "xneedlex", "");
	answer = find(d, LOCAL, "auto", "needle", "'limit':100");
	assert_int_equal(count_at(answer, "data.hits"), 100);
	assert_true(json_is_true(at(answer, "data.truncated")));
	assert_false(has(answer, part));
	for (size_t i = 0; i < 100; i++) /* yet what is told of each is so */
		assert_int_equal(count_at(json_array_get(at(answer, "data.hits"), i), "matchedIn"), 2);
	assert_true(has(find(d, LOCAL, "substring", "needlex", ""), part));
	assert_true(has(find(d, LOCAL, "auto", "eedlex", ""), part));
}

/* The better of two texts is the one with more of the words in fewer. */
static void the_best_comes_first_whatever_finds_it(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *best = new_item(d, root, "needle needle", "");
	const char *good = new_item(d, root, "needle hay", "");
	const char *worst = new_item(d, root, "needle hay hay hay hay hay hay hay hay hay hay hay", "");
	static const char *const modes[] = {"auto", "text", "substring"};

	for (int i = 0; i < 3; i++) {
		json_t *answer = find(d, LOCAL, modes[i], "needle", "");

		assert_string_equal(text_at(answer, "data.hits.0.id"), best);
		assert_string_equal(text_at(answer, "data.hits.1.id"), good);
		assert_string_equal(text_at(answer, "data.hits.2.id"), worst);
	}
	assert_string_equal(text_at(find(d, LOCAL, "text", "needle hay", ""), "data.hits.0.id"), good);
}

/* How far the walk for several words goes is guessed from how often each stands somewhere: here they stand together
 * where nobody would guess. Rows: 4,000 of each of three kinds. */
static void words_stand_together_where_they_do(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *old, *young, *best, *rare;
	json_t *answer;

	old = new_item(d, root, "alpha beta", "");
	rare = new_item(d, root, "hay needle", "");
	write_items(d, root, "alpha epsilon zeta", 3600);
	best = new_item(d, root, "epsilon zeta epsilon", "");
	write_items(d, root, "alpha epsilon zeta", 400);
	young = new_item(d, root, "alpha beta", "");
	write_items(d, root, "beta hay gamma delta", 4000);
	write_items(d, root, "hay", 4000);
	answer = find(d, LOCAL, "text", "alpha beta", ""); /* fewer than guessed, and an old one */
	assert_int_equal(int_at(answer, "page.total"), 2);
	assert_true(has(answer, old) && has(answer, young));
	assert_true(at(answer, "data.truncated") == NULL);
	answer = find(d, LOCAL, "text", "epsilon zeta", ""); /* somewhat more than guessed */
	assert_int_equal(int_at(answer, "page.total"), 100);
	assert_string_equal(text_at(answer, "data.hits.0.id"), best);
	answer = find(d, LOCAL, "text", "gamma delta", ""); /* far more */
	assert_int_equal(int_at(answer, "page.total"), 100);
	assert_true(json_is_true(at(answer, "data.truncated")));
	answer = find(d, LOCAL, "auto", "hay needle", ""); /* a rare word finds all */
	assert_int_equal(int_at(answer, "page.total"), 1);
	assert_true(has(answer, rare));
	assert_int_equal(int_at(find(d, LOCAL, "auto", "alpha nowhere", ""), "page.total"), 0);
	/* more texts hold the parts than the newest that are ranked */
	answer = find(d, LOCAL, "substring", "psilo eta", "");
	assert_int_equal(int_at(answer, "page.total"), 100);
	assert_string_equal(text_at(answer, "data.hits.0.id"), best);
}

int main(void)
{
#define DESK_TEST(name) cmocka_unit_test_setup_teardown(name, desk_up, desk_down)
	const struct CMUnitTest tests[] = {
		DESK_TEST(any_text_is_data),
		DESK_TEST(short_terms_have_their_answer),
		DESK_TEST(a_hit_says_where_and_what),
		DESK_TEST(filters_speak_of_the_owning_item),
		DESK_TEST(what_is_hidden_displaces_nothing),
		DESK_TEST(a_large_scope_is_not_displaced_either),
		DESK_TEST(parts_of_words_are_found_and_marked),
		DESK_TEST(words_in_plenty_leave_parts_no_place_of_their_own),
		DESK_TEST(the_best_comes_first_whatever_finds_it),
		DESK_TEST(words_stand_together_where_they_do),
		DESK_TEST(the_total_is_the_same_on_every_page),
		DESK_TEST(the_index_follows_its_texts_and_nothing_else),
		DESK_TEST(a_snippet_is_short_whatever_the_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
