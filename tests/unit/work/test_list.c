/* Listings: every order in both directions, in pages of every size, is what sorting would give. */
#include "toolbox.h"

#include <stdlib.h>

#define ITEMS 60

static const char *const keys[] = {"createdAt", "priority", "modifiedAt", "roleChangedAt", "title", "complexity"};

/* Items of few priorities, complexities, ages and titles, so that equal keys abound. */
static int64_t fill(struct box *box)
{
	static const char *const titles[] = {"anchor", "buoy", "crane"};
	int64_t parent = make_item(box->e, box->root, "parent");

	for (int i = 0; i < ITEMS; i++) {
		struct traits traits = {.priority = (enum priority)(i * 7 % 3), .complexity = i * 5 % 12};

		if (traits.complexity == COMPLEXITY_NONE)
			traits.complexity = 0;
		box->e->now += i % 4 == 0;
		make_item_as(box->e, i % 5 == 0 ? 0 : parent, titles[i % 3], traits);
	}
	return parent;
}

/* Ids of a listing, page by page, as an array. */
static json_t *ids_of(struct box *box, const char *order, const char *place, int limit)
{
	const char *cursor = "";
	json_t *ids = json_array();

	arena_at_end(box->e->arena, (void (*)(void *))json_decref, ids);
	for (;;) {
		const json_t *answer = ask(box, &tool_items_read, "{'select':'list','limit':%d%s%s%s%s%s}", limit, order, place,
			cursor[0] == '\0' ? "" : ",'cursor':'", cursor, cursor[0] == '\0' ? "" : "'");
		const json_t *items = at(data_of(answer), "items");

		for (size_t i = 0; i < json_array_size(items); i++)
			json_array_append(ids, json_object_get(json_array_get(items, i), "id"));
		cursor = text_at(answer, "page.nextCursor");
		if (cursor[0] == '\0')
			return ids;
		assert_int_equal(json_array_size(items), limit);
	}
}

static int64_t key_of(const struct item *item, size_t key, bool is_desc)
{
	switch (key) {
	case 0:
		return item->created_at;
	case 1:
		return (int64_t)item->priority;
	case 2:
		return item->modified_at;
	case 3:
		return item->role_changed_at;
	case 4:
		return 0; /* see cmp */
	default:
		return is_desc && item->complexity == COMPLEXITY_NONE ? 0 : item->complexity;
	}
}

/* Negative, zero or positive as a comes before, with or behind b. */
static int cmp(const struct item *a, const struct item *b, size_t key, bool is_desc)
{
	int64_t left = key_of(a, key, is_desc);
	int64_t right = key_of(b, key, is_desc);

	if (key == 4) {
		left = str_cmp(a->title, b->title);
		right = 0;
	}
	if (left != right)
		return (left < right) == !is_desc ? -1 : 1;
	return id_cmp(a->id, b->id);
}

static struct item item_of(struct box *box, const char *id)
{
	struct id_prefix prefix;
	struct snapshot s;
	struct failure f;
	struct item item;
	int64_t n;

	assert_true(id_prefix_parse(str_of(id), &prefix));
	failure_init(&f, box->e->arena);
	assert_int_equal(snapshot_begin(box->e->store, box->e->arena, &s, &f), 0);
	assert_int_equal(query_int(&s, &n, &f, "SELECT n FROM item WHERE id = $1", "b", prefix.low), 1);
	assert_int_equal(item_load(&s, n, &item, &f), 1);
	snapshot_end(&s);
	return item;
}

static void check_order(struct box *box, const json_t *ids, size_t key, bool is_desc)
{
	for (size_t i = 1; i < json_array_size(ids); i++) {
		struct item before = item_of(box, json_string_value(json_array_get(ids, i - 1)));
		struct item item = item_of(box, json_string_value(json_array_get(ids, i)));

		if (cmp(&before, &item, key, is_desc) >= 0)
			fail_msg("%s %s: wrong at %zu", keys[key], is_desc ? "desc" : "asc", i);
	}
}

static void check_place(struct box *box, const char *place, size_t count)
{
	for (size_t i = 0; i < 12; i++) {
		const char *order = arena_printf(box->e->arena, ",'sortBy':'%s','sortDir':'%s'", keys[i / 2],
			i % 2 == 0 ? "asc" : "desc");
		json_t *whole = ids_of(box, order, place, 100);

		assert_int_equal(json_array_size(whole), count);
		check_order(box, whole, i / 2, i % 2 == 1);
		assert_true(json_equal(whole, ids_of(box, order, place, 7)));
		assert_true(json_equal(whole, ids_of(box, order, place, 1)));
	}
}

static void everything_is_listed_in_each_order(void **state)
{
	struct box *box = *state;

	fill(box);
	check_place(box, "", ITEMS + 5);
}

static void filters_leave_the_order_alone(void **state)
{
	struct box *box = *state;

	fill(box);
	check_place(box, ",'priorities':['high','low'],'complexityMin':1,'roles':['queue']", 35);
}

static void a_parent_is_listed_in_each_order(void **state)
{
	struct box *box = *state;
	int64_t parent = fill(box);

	check_place(box, arena_printf(box->e->arena, ",'parentId':'%s'", id_of(box->e, parent)), ITEMS - ITEMS / 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_up, box_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_is_listed_in_each_order),
		TEST(filters_leave_the_order_alone),
		TEST(a_parent_is_listed_in_each_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
