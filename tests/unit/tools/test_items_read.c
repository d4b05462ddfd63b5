/* The graph is seen: items, lists, the shape, what goes on, rules, history. */
#include "desk.h"

static const char rules[] =
	"work_item_schemas:\n"
	"  manual:\n    lifecycle: manual\n    notes: []\n"
	"  gated:\n    default_traits: [careful]\n    notes:\n"
	"      - {key: requirements, role: queue, required: true, description: d, guidance: g, skill: spec-quality}\n"
	"      - {key: report, role: work, required: true, description: d}\n"
	"traits:\n  careful:\n    notes: []\n"
	"  swift:\n    notes: []\n";

static json_t *see(struct desk *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static json_t *see(struct desk *d, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = arena_vprintf(d->arena, format, args);
	va_end(args);
	return ask(d, LOCAL, &tool_items_read, "%s", text);
}

static bool lists(const json_t *answer, const char *path, const char *id)
{
	const json_t *list = at(answer, path);

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(text_at(json_array_get(list, i), "id"), id) == 0)
			return true;
	return false;
}

/* behaviours 1.1, 1.2, 1.3 */
static void a_prefix_names_an_item(void **state)
{
	struct desk *d = *state;
	const char *id = new_item(d, NULL, "t", "");
	struct str upper = str_printf(d->arena, "%.10s", id);
	json_t *answer;

	for (size_t i = 0; i < upper.n; i++)
		((char *)(uintptr_t)upper.p)[i] &= upper.p[i] >= 'a' ? ~0x20 : ~0;
	answer = see(d, "{'select':'get','itemId':'%.*s'}", STRF(upper)); /* 9 digits and a hyphen */
	assert_string_equal(text_at(answer, "data.item.id"), id);
	answer = see(d, "{'select':'get','itemId':'%.7s'}", id);
	assert_error(answer, "invalid_request");
	assert_string_equal(text_at(answer, "error.detail.fields.0.field"), "itemId");
}

SQL(SQL_TWIN, "UPDATE item SET id = $2 WHERE id = $1");

struct twin {
	struct id from, to;
};

static int make_twin(struct tx *tx, void *arg, struct failure *f)
{
	const struct twin *twin = arg;

	return tx_run(tx, f, SQL_TWIN, "bb", twin->from, twin->to) == 1 ? 0 : -1;
}

/* Gives `id` the first eight digits of `like`. */
static const char *twin_of(struct desk *d, const char *id, const char *like)
{
	struct id_prefix from, first;
	struct twin twin;
	struct failure f;

	failure_init(&f, d->arena);
	assert_true(id_prefix_parse(str_of(id), &from) && id_prefix_parse(str_of(like), &first));
	twin = (struct twin){from.low, from.low};
	memcpy(twin.to.b, first.low.b, 4);
	assert_int_equal(store_write(d->store, make_twin, &twin, &actor_system, d->arena, &f), 0);
	return str_z(d->arena, id_str(d->arena, twin.to));
}

/* behaviours 1.4, 1.5 */
static void a_shared_prefix_is_ambiguous_among_what_may_be_read(void **state)
{
	struct desk *d = *state;
	const char *one = new_item(d, NULL, "one", "");
	const char *two = twin_of(d, new_item(d, NULL, "two", ""), one);
	json_t *answer = see(d, "{'select':'get','itemId':'%.8s'}", one);

	assert_error(answer, "ambiguous_id");
	assert_string_equal(text_at(answer, "error.detail.prefix"), arena_printf(d->arena, "%.8s", one));
	assert_int_equal(count_at(answer, "error.detail.candidates"), 2);
	assert_true(strcmp(text_at(answer, "error.detail.candidates.0"), text_at(answer, "error.detail.candidates.1")) < 0);
	limit_to(d, P1, two);
	answer = ask(d, P1, &tool_items_read, "{'select':'get','itemId':'%.8s'}", one);
	assert_string_equal(text_at(answer, "data.item.id"), two);
}

/* A short id names its item as long as nothing is added: another project's twin makes it longer only for those
 * who may read both. */
static void a_short_id_is_the_shortest_that_still_resolves(void **state)
{
	struct desk *d = *state;
	const char *one = new_item(d, NULL, "one", "");
	const char *two = twin_of(d, new_item(d, NULL, "two", ""), one);
	const char *alone = new_item(d, NULL, "alone", "");
	json_t *answer = see(d, "{'select':'list','ids':'short','sortBy':'title'}");
	const char *shown = text_at(answer, "data.items.1.id"); /* alone, one, two */

	assert_string_equal(text_at(answer, "data.items.0.id"), arena_printf(d->arena, "%.8s", alone));
	assert_true(strlen(shown) > 8 && strncmp(shown, one, strlen(shown)) == 0);
	assert_string_equal(text_at(see(d, "{'select':'get','itemId':'%s'}", shown), "data.item.id"), one);
	assert_error(see(d, "{'select':'get','itemId':'%.*s'}", (int)strlen(shown) - 1, shown), "ambiguous_id");
	assert_string_equal(text_at(see(d, "{'select':'get','itemId':'%s'}", text_at(answer, "data.items.2.id")), "data.item.id"),
		two);
	limit_to(d, P1, one);
	answer = ask(d, P1, &tool_items_read, "{'select':'list','ids':'short'}");
	assert_string_equal(text_at(answer, "data.items.0.id"), arena_printf(d->arena, "%.8s", one));
}

static void several_items_keep_their_order(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *a = new_item(d, root, "a", "");
	json_t *answer = see(d, "{'select':'get','itemIds':['%s','00000000','%s'],'fields':['ancestors','claim','createdBy']}", a, root);

	assert_ok(answer);
	assert_string_equal(text_at(answer, "data.items.0.id"), a);
	assert_string_equal(text_at(answer, "data.items.0.ancestors.0.id"), root);
	assert_string_equal(text_at(answer, "data.items.0.claim.state"), "unclaimed");
	assert_string_equal(text_at(answer, "data.items.0.createdBy.id"), "local");
	assert_string_equal(text_at(answer, "data.items.1.id"), root);
	assert_string_equal(text_at(answer, "data.missing.0.code"), "not_found");
	answer = ask(d, P1, &tool_items_read, "{'select':'get','itemId':'%s','fields':['createdBy']}", a);
	assert_null(at(answer, "data.item.createdBy"));
	assert_error(see(d, "{'select':'get','itemId':'00000000'}"), "not_found");
	assert_error(see(d, "{'select':'get','itemId':'%s','fields':['everything']}", a), "invalid_request");
}

static void parts_are_added_on_demand(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *a, *b;
	json_t *answer;

	push_rules(d, root, rules);
	a = new_item(d, root, "a", ", 'type':'gated'");
	b = new_item(d, root, "b", "");
	(void)note(d, a, "zeta", "z");
	(void)do_op(d, LOCAL, &tool_notes_write, "{'op':'upsert','itemId':'%s','key':'requirements','body':'x'}", a);
	(void)do_op(d, LOCAL, &tool_deps_write, "{'op':'create','from':'%s','to':'%s'}", b, a);
	answer = see(d, "{'select':'get','itemId':'%s','fields':['notes','noteProgress','dependencies']}", a);
	assert_string_equal(text_at(answer, "data.item.notes.0.key"), "requirements"); /* schema order first */
	assert_string_equal(text_at(answer, "data.item.notes.1.key"), "zeta");
	assert_null(at(answer, "data.item.notes.0.body"));
	assert_int_equal(int_at(answer, "data.item.noteProgress.filled"), 1);
	assert_string_equal(text_at(answer, "data.item.dependencies.incoming.0.id"), b);
	assert_true(json_is_false(at(answer, "data.item.dependencies.incoming.0.satisfied")));
}

static void a_list_obeys_its_filters(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *feature = new_item(d, root, "f", ", 'tags':['x','y'],'complexity':3");
	const char *below = new_item(d, feature, "below", ", 'tags':['x'],'priority':'high','type':'bug'");
	const char *deep = new_item(d, below, "deep", ", 'complexity':8");
	static const struct {
		const char *filter;
		bool root, feature, below, deep;
	} tries[] = {
		{"'parentId':null", true, false, false, false},
		{"'tags':['X']", false, true, true, false},
		{"'tagsAll':['x','y']", false, true, false, false},
		{"'types':['bug']", false, false, true, false},
		{"'types':['Bug']", false, false, false, false},
		{"'priorities':['high']", false, false, true, false},
		{"'complexityMin':4", false, false, false, true},
		{"'complexityMax':3", false, true, false, false},
		{"'roles':['work']", false, false, false, false},
		{"'createdAfter':'2000-01-01T00:00:00Z'", true, true, true, true},
		{"'createdBefore':'2000-01-01T00:00:00Z'", false, false, false, false},
		{"'claimStatus':'unclaimed'", true, true, true, true},
		{"'claimStatus':'claimed'", false, false, false, false},
	};
	json_t *answer;

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		answer = see(d, "{'select':'list',%s}", tries[i].filter);
		assert_ok(answer);
		if (lists(answer, "data.items", root) != tries[i].root || lists(answer, "data.items", feature) != tries[i].feature ||
			lists(answer, "data.items", below) != tries[i].below || lists(answer, "data.items", deep) != tries[i].deep)
			fail_msg("%s: %s", tries[i].filter, json_dumps(answer, 0));
	}
	answer = see(d, "{'select':'list','ancestorId':'%s'}", feature);
	assert_true(lists(answer, "data.items", below) && lists(answer, "data.items", deep));
	assert_false(lists(answer, "data.items", feature));
	assert_int_equal(int_at(answer, "page.total"), 2);
	assert_error(see(d, "{'select':'list','roles':[]}"), "invalid_request");
	assert_error(see(d, "{'select':'list','limit':101}"), "invalid_request");
	assert_error(see(d, "{'select':'list','rootId':'%s'}", feature), "invalid_request");
}

/* A subtree too large to be listed from its top is walked up to. */
static void a_large_subtree_is_the_same_subtree(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *top = new_item(d, root, "top", "");
	const char *other = new_item(d, root, "other", "");
	json_t *answer;

	for (int i = 0; i < 6; i++) {
		struct buf children;

		buf_init(&children, d->arena, SIZE_MAX);
		for (int k = 0; k < 100; k++) {
			buf_printf(&children, "%s{'ref':'c%d','title':'t'", k == 0 ? "" : ",", k);
			if (k >= 10)
				buf_printf(&children, ",'parentRef':'c%d'", k - 10);
			buf_add_char(&children, '}');
		}
		(void)do_op(d, LOCAL, &tool_items_write, "{'op':'create_tree','root':{'id':'%s'},'children':[%.*s]}", top,
			(int)children.n, children.p);
	}
	answer = see(d, "{'select':'list','ancestorId':'%s','limit':100}", top);
	assert_int_equal(count_at(answer, "data.items"), 100);
	assert_int_equal(int_at(answer, "page.total"), 600);
	assert_false(lists(answer, "data.items", other));
	assert_false(lists(answer, "data.items", top));
	answer = see(d, "{'select':'overview','anchorId':'%s'}", root);
	assert_int_equal(int_at(answer, "data.totals.queue"), 602);
}

static void a_trait_is_found_own_or_default(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "r", "");
	const char *own, *by_schema, *none;
	json_t *answer;

	push_rules(d, root, rules);
	own = new_item(d, root, "own", ", 'traits':['careful']");
	by_schema = new_item(d, root, "schema", ", 'type':'gated'");
	none = new_item(d, root, "none", ", 'traits':['swift']");
	answer = see(d, "{'select':'list','traits':['careful']}");
	assert_true(lists(answer, "data.items", own) && lists(answer, "data.items", by_schema));
	assert_false(lists(answer, "data.items", none));
	answer = see(d, "{'select':'search','query':'own','traits':['careful']}");
	assert_int_equal(count_at(answer, "data.hits"), 1);
}

/* behaviours 1.20, 1.21 */
static void pages_neither_skip_nor_repeat(void **state)
{
	struct desk *d = *state;
	static const char *const sorts[] = {"createdAt", "modifiedAt", "roleChangedAt", "priority", "title", "complexity"};
	static const char *const priorities[] = {"high", "medium", "low"};
	char ids[9][40];

	for (int i = 0; i < 9; i++) {
		const char *more = i % 2 ? arena_printf(d->arena, ", 'priority':'%s','complexity':%d", priorities[i % 3], 1 + i % 4)
					 : arena_printf(d->arena, ", 'priority':'%s'", priorities[i % 3]);

		(void)snprintf(ids[i], sizeof(ids[i]), "%s", new_item(d, NULL, i < 4 ? "same" : "other\\u001f", more));
	}
	for (size_t s = 0; s < 2 * sizeof(sorts) / sizeof(sorts[0]); s++) {
		char cursor[700] = "";
		int seen[9] = {0};
		int rows = 0;

		do {
			json_t *answer = see(d, "{'select':'list','sortBy':'%s','sortDir':'%s','limit':2%s}", sorts[s / 2],
				s % 2 ? "desc" : "asc", cursor);

			assert_ok(answer);
			assert_int_equal(int_at(answer, "page.total"), 9);
			for (size_t i = 0; i < count_at(answer, "data.items"); i++, rows++)
				for (int k = 0; k < 9; k++)
					seen[k] += strcmp(ids[k], text_at(json_array_get(at(answer, "data.items"), i), "id")) == 0;
			if (at(answer, "page.nextCursor") == NULL)
				break;
			(void)snprintf(cursor, sizeof(cursor), ",'cursor':'%s'", text_at(answer, "page.nextCursor"));
		} while (rows < 20);
		for (int k = 0; k < 9; k++)
			if (seen[k] != 1)
				fail_msg("sort %s: item %d seen %d times", sorts[s / 2], k, seen[k]);
	}
	{
		json_t *answer = see(d, "{'select':'list','limit':2,'roles':['queue']}");

		assert_error(see(d, "{'select':'list','limit':2,'roles':['work'],'cursor':'%s'}", text_at(answer, "page.nextCursor")),
			"invalid_cursor");
		assert_ok(see(d, "{'select':'list','limit':3,'roles':['queue'],'cursor':'%s'}", text_at(answer, "page.nextCursor")));
		assert_error(see(d, "{'select':'list','cursor':'nonsense'}"), "invalid_cursor");
	}
}

static void what_has_no_complexity_is_last(void **state)
{
	struct desk *d = *state;
	const char *none = new_item(d, NULL, "none", "");
	json_t *answer;

	(void)new_item(d, NULL, "one", ", 'complexity':1");
	(void)new_item(d, NULL, "ten", ", 'complexity':10");
	answer = see(d, "{'select':'list','sortBy':'complexity'}");
	assert_string_equal(text_at(answer, "data.items.0.title"), "one");
	assert_string_equal(text_at(answer, "data.items.2.id"), none);
	answer = see(d, "{'select':'list','sortBy':'complexity','sortDir':'desc'}");
	assert_string_equal(text_at(answer, "data.items.0.title"), "ten");
	assert_string_equal(text_at(answer, "data.items.2.id"), none);
}

/* behaviour 1.19 */
static void a_page_fits_the_answer(void **state)
{
	struct desk *d = *state;
	char cursor[300] = "";
	int rows = 0;
	struct buf text;

	buf_init(&text, d->arena, SIZE_MAX);
	for (int i = 0; i < 30000; i++)
		buf_add_char(&text, 'd');
	for (int i = 0; i < 10; i++)
		(void)do_op(d, LOCAL, &tool_items_write, "{'op':'create','title':'t','description':'%.*s'}", (int)text.n, text.p);
	for (int page = 0; page < 10; page++) {
		json_t *answer = see(d, "{'select':'list','fields':['description']%s}", cursor);
		char *dump = json_dumps(answer, JSON_COMPACT);

		assert_true(strlen(dump) <= 60 * 1024);
		free(dump);
		rows += (int)count_at(answer, "data.items");
		if (at(answer, "page.nextCursor") == NULL)
			break;
		assert_true(warned(answer, "page_shrunk"));
		(void)snprintf(cursor, sizeof(cursor), ",'cursor':'%s'", text_at(answer, "page.nextCursor"));
	}
	assert_int_equal(rows, 10);
}

static void the_overview_shows_the_shape(void **state)
{
	struct desk *d = *state;
	const char *done = new_item(d, NULL, "done", "");
	const char *open = new_item(d, NULL, "open", "");
	const char *feature = new_item(d, open, "feature", "");
	const char *task = new_item(d, feature, "task", "");
	json_t *answer;

	assert_ok(trigger(d, done, "complete"));
	assert_ok(trigger(d, feature, "complete")); /* its task goes on */
	assert_ok(ask(d, LOCAL, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}", task));
	answer = see(d, "{'select':'overview','includeChildren':true}");
	assert_string_equal(text_at(answer, "data.roots.0.id"), open); /* newest first */
	assert_int_equal(int_at(answer, "data.roots.0.childCounts.terminal"), 1);
	assert_string_equal(text_at(answer, "data.roots.0.children.0.id"), feature);
	assert_int_equal(int_at(answer, "data.totals.terminal"), 3);
	assert_int_equal(int_at(answer, "data.totals.queue"), 1);
	assert_int_equal(int_at(answer, "data.claims.active"), 1);
	assert_int_equal(int_at(answer, "page.total"), 2);
	answer = see(d, "{'select':'overview','excludeTerminal':true,'includeChildren':true}");
	assert_int_equal(count_at(answer, "data.roots"), 1);
	assert_int_equal(int_at(answer, "data.roots.0.activeDescendants"), 1); /* closed by its last child's end */
	assert_int_equal(int_at(answer, "data.roots.0.children.0.activeDescendants"), 1);
	answer = see(d, "{'select':'overview','itemId':'%s'}", open);
	assert_string_equal(text_at(answer, "data.item.id"), open);
	assert_string_equal(text_at(answer, "data.children.0.id"), feature);
	assert_int_equal(int_at(answer, "data.children.0.childCounts.queue"), 1);
	answer = see(d, "{'select':'overview','anchorId':'%s'}", open);
	assert_int_equal(int_at(answer, "data.totals.queue"), 1);
	assert_int_equal(int_at(answer, "data.roots.0.subtreeCounts.queue"), 1);
	assert_error(see(d, "{'select':'overview','anchorId':'%s','itemId':'%s'}", open, open), "invalid_request");
}

static void the_context_resumes_a_session(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "root", "");
	const char *working, *gated, *held, *parent, *child;
	json_t *answer;

	push_rules(d, root, rules);
	working = new_item(d, root, "working", ", 'type':'gated'");
	gated = new_item(d, root, "gated", "");
	held = new_item(d, root, "held", "");
	(void)do_op(d, LOCAL, &tool_notes_write, "{'op':'upsert','itemId':'%s','key':'requirements','body':'x'}", working);
	assert_ok(trigger(d, working, "start"));
	(void)do_op(d, LOCAL, &tool_deps_write, "{'op':'create','from':'%s','to':'%s'}", working, gated);
	assert_ok(trigger(d, held, "block"));
	parent = new_item(d, root, "parent", ", 'type':'gated'");
	child = new_item(d, parent, "child", "");
	assert_ok(trigger(d, child, "complete"));
	assert_ok(ask(d, LOCAL, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}", working));
	answer = see(d, "{'select':'context','rootId':'%s','fields':['blockers','ancestors'],'since':'2000-01-01T00:00:00Z'}", root);
	assert_ok(answer);
	assert_true(lists(answer, "data.active", working) && lists(answer, "data.active", root));
	assert_string_equal(text_at(answer, "data.stalled.0.id"), working);
	assert_string_equal(text_at(answer, "data.stalled.0.missing.0"), "report");
	assert_string_equal(text_at(answer, "data.blocked.0.id"), held);
	assert_string_equal(text_at(answer, "data.blocked.0.blockType"), "explicit");
	assert_string_equal(text_at(answer, "data.blocked.1.id"), gated);
	assert_string_equal(text_at(answer, "data.blocked.1.blockType"), "dependency");
	assert_int_equal(int_at(answer, "data.blocked.1.blockerCount"), 1);
	assert_string_equal(text_at(answer, "data.blocked.1.blockers.0.id"), working);
	/* behaviour 4.6 */
	assert_string_equal(text_at(answer, "data.ready_to_close.0.id"), parent);
	assert_string_equal(text_at(answer, "data.ready_to_close.0.reason"), "gateBlocked");
	assert_string_equal(text_at(answer, "data.claims.mine.0.itemId"), working);
	assert_int_equal(int_at(answer, "data.claims.active"), 1);
	assert_int_equal(int_at(answer, "data.counts.active"), 2);
	assert_int_equal(int_at(answer, "data.counts.blocked"), 2);
	assert_int_equal(count_at(answer, "data.recent"), 4);
	answer = see(d, "{'select':'context','limit':1}");
	assert_int_equal(count_at(answer, "data.blocked"), 1);
	assert_int_equal(int_at(answer, "data.truncated.blocked"), 1);
	answer = see(d, "{'select':'context','ancestorId':'%s'}", parent);
	assert_null(at(answer, "data.active"));
	assert_string_equal(text_at(answer, "data.ready_to_close.0.id"), parent);
	assert_int_equal(int_at(answer, "data.counts.active"), 0);
}

/* behaviour 6.32 */
static void history_is_told_and_its_authors_only_to_some(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "root", "");
	const char *feature = new_item(d, root, "feature", "");
	const char *task = new_item(d, feature, "task", "");
	const char *other = new_item(d, NULL, "other", "");
	char cursor[300] = "";
	json_t *answer;
	int rows = 0;

	assert_ok(ask(d, LOCAL, &tool_advance, "{'ops':[{'op':'transition','itemId':'%s','trigger':'start','summary':'go'}]}", task));
	assert_ok(trigger(d, other, "complete"));
	answer = see(d, "{'select':'history','itemId':'%s'}", task);
	assert_int_equal(count_at(answer, "data.entries"), 1);
	assert_string_equal(text_at(answer, "data.entries.0.from"), "queue");
	assert_string_equal(text_at(answer, "data.entries.0.to"), "work");
	assert_string_equal(text_at(answer, "data.entries.0.trigger"), "start");
	assert_string_equal(text_at(answer, "data.entries.0.statusLabel"), "in-progress");
	assert_string_equal(text_at(answer, "data.entries.0.summary"), "go");
	assert_string_equal(text_at(answer, "data.entries.0.actor.id"), "local");
	assert_string_equal(text_at(answer, "data.entries.0.verification.status"), "absent");
	answer = ask(d, P1, &tool_items_read, "{'select':'history','itemId':'%s'}", task);
	assert_null(at(answer, "data.entries.0.actor"));
	assert_null(at(answer, "data.entries.0.verification"));
	assert_int_equal(count_at(see(d, "{'select':'history','rootId':'%s'}", root), "data.entries"), 3);
	assert_int_equal(count_at(see(d, "{'select':'history','ancestorId':'%s'}", feature), "data.entries"), 2);
	assert_int_equal(count_at(see(d, "{'select':'history','includeCascades':false}"), "data.entries"), 2);
	assert_int_equal(count_at(see(d, "{'select':'history','triggers':['complete']}"), "data.entries"), 1);
	assert_int_equal(count_at(see(d, "{'select':'history','until':'2000-01-01T00:00:00Z'}"), "data.entries"), 0);
	do {
		answer = see(d, "{'select':'history','limit':1%s}", cursor);
		rows += (int)count_at(answer, "data.entries");
		(void)snprintf(cursor, sizeof(cursor), ",'cursor':'%s'", text_at(answer, "page.nextCursor"));
	} while (at(answer, "page.nextCursor") != NULL && rows < 20);
	assert_int_equal(rows, 4);
}

static void a_schema_is_told_with_its_text(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "root", "");
	const char *free_item = new_item(d, root, "free", "");
	json_t *answer;

	push_rules(d, root, rules);
	answer = see(d, "{'select':'schema','type':'gated','rootId':'%s'}", root);
	assert_string_equal(text_at(answer, "data.type"), "gated");
	assert_string_equal(text_at(answer, "data.source"), "project");
	assert_int_equal(int_at(answer, "data.configVersion"), 1);
	assert_string_equal(text_at(answer, "data.resolution"), "legacy");
	assert_string_equal(text_at(answer, "data.lifecycle"), "auto");
	assert_string_equal(text_at(answer, "data.notes.0.guidance"), "g");
	assert_string_equal(text_at(answer, "data.notes.0.skill"), "spec-quality");
	assert_string_equal(text_at(answer, "data.traits.0"), "careful");
	assert_string_equal(text_at(answer, "data.statusLabels.start"), "in-progress");
	answer = see(d, "{'select':'schema','itemId':'%s'}", free_item);
	assert_string_equal(text_at(answer, "data.source"), "none");
	assert_true(json_is_array(at(answer, "data.notes")));
	answer = see(d, "{'select':'schema','rootId':'%s'}", root);
	assert_int_equal(count_at(answer, "data.types"), 2);
	assert_int_equal(count_at(answer, "data.traits"), 2);
	assert_error(see(d, "{'select':'schema','itemId':'%s','type':'x'}", free_item), "invalid_request");
}

static void other_selects_answer_too(void **state)
{
	struct desk *d = *state;
	const char *root = new_item(d, NULL, "root", "");

	assert_true(json_is_true(at(see(d, "{'select':'gate','itemId':'%s'}", root), "data.canAdvance")));
	assert_string_equal(text_at(see(d, "{'select':'next'}"), "data.items.0.id"), root);
	assert_error(see(d, "{'select':'nowhere'}"), "invalid_request");
}

int main(void)
{
#define DESK_TEST(name) cmocka_unit_test_setup_teardown(name, desk_up, desk_down)
	const struct CMUnitTest tests[] = {
		DESK_TEST(a_prefix_names_an_item),
		DESK_TEST(a_shared_prefix_is_ambiguous_among_what_may_be_read),
		DESK_TEST(a_short_id_is_the_shortest_that_still_resolves),
		DESK_TEST(several_items_keep_their_order),
		DESK_TEST(parts_are_added_on_demand),
		DESK_TEST(a_list_obeys_its_filters),
		DESK_TEST(a_large_subtree_is_the_same_subtree),
		DESK_TEST(a_trait_is_found_own_or_default),
		DESK_TEST(pages_neither_skip_nor_repeat),
		DESK_TEST(what_has_no_complexity_is_last),
		DESK_TEST(a_page_fits_the_answer),
		DESK_TEST(the_overview_shows_the_shape),
		DESK_TEST(the_context_resumes_a_session),
		DESK_TEST(history_is_told_and_its_authors_only_to_some),
		DESK_TEST(a_schema_is_told_with_its_text),
		DESK_TEST(other_selects_answer_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
