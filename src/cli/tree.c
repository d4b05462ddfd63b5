/* The tree of items, cut to the width of the terminal. */
#include "cli/items.h"

#include <stdlib.h>
#include <strings.h>

#define LEFT_COLUMNS 18 /* short id, role */
#define LEVEL_COLUMNS 3

struct node {
	const json_t *item;
	struct str id, parent;
	struct node *first, *last, *next; /* children in the order given */
	bool is_child;
};

struct drawing {
	struct cli *cli;
	struct buf prefix; /* what stands before the children of the node at hand */
	size_t columns;
	size_t depth;
	bool is_unicode;
};

static bool speaks_unicode(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value != NULL && value[0] != '\0')
			return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
	}
	return false;
}

static int by_id(const void *a, const void *b)
{
	const struct node *const *x = a;
	const struct node *const *y = b;

	return str_cmp((*x)->id, (*y)->id);
}

static struct node *find(struct node **sorted, size_t n, struct str id)
{
	struct node key = {.id = id};
	struct node *wanted = &key;
	struct node **at = bsearch(&wanted, sorted, n, sizeof(*sorted), by_id);

	return at == NULL ? NULL : *at;
}

static struct node *build(struct arena *arena, const json_t *items, size_t n)
{
	struct node *nodes = ARENA_ARRAY(arena, struct node, n);
	struct node **sorted = ARENA_ARRAY(arena, struct node *, n);

	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(items, i);

		nodes[i] = (struct node){
			.item = item, .id = json_member_str(item, "id"), .parent = json_member_str(item, "parentId")};
		sorted[i] = &nodes[i];
	}
	qsort(sorted, n, sizeof(*sorted), by_id);
	for (size_t i = 0; i < n; i++) {
		struct node *parent = nodes[i].parent.n == 0 ? NULL : find(sorted, n, nodes[i].parent);

		if (parent == NULL)
			continue;
		nodes[i].is_child = true;
		if (parent->last == NULL)
			parent->first = &nodes[i];
		else
			parent->last->next = &nodes[i];
		parent->last = &nodes[i];
	}
	return nodes;
}

static struct str remark(struct cli *cli, const json_t *item)
{
	struct str type = json_member_str(item, "type");
	struct str label = json_member_str(item, "statusLabel");
	struct str priority = json_member_str(item, "priority");
	struct buf out;

	buf_init(&out, cli->arena, SIZE_MAX);
	if (type.n > 0)
		buf_printf(&out, "  %.*s", STRF(term_text(cli->arena, type, 20)));
	if (label.n > 0)
		buf_printf(&out, "  %.*s", STRF(term_text(cli->arena, label, 16)));
	if (str_eq(priority, STR("high")))
		buf_add_str(&out, STR("  high"));
	if (str_eq(json_member_str(json_object_get(item, "claim"), "state"), STR("claimed")))
		buf_add_str(&out, STR("  claimed"));
	return buf_str(&out);
}

static void draw_line(struct drawing *drawing, const struct node *node, bool is_last)
{
	struct cli *cli = drawing->cli;
	struct str role = json_member_str(node->item, "role");
	struct str more = remark(cli, node->item);
	size_t branch = drawing->depth * LEVEL_COLUMNS;
	size_t room = drawing->columns > LEFT_COLUMNS + branch ? drawing->columns - LEFT_COLUMNS - branch : 0;
	size_t title;

	(void)printf("%s%.8s%s %s", term_dim(cli), node->id.p, term_off(cli), term_role(cli, role));
	term_cell(cli, role, 8);
	(void)printf("%s ", term_off(cli));
	if (drawing->depth > 0)
		(void)printf("%s%.*s%s%s", term_dim(cli), STRF(buf_str(&drawing->prefix)),
			!drawing->is_unicode ? is_last ? "`- " : "|- "
			: is_last	     ? "└─ "
					     : "├─ ",
			term_off(cli));
	if (room < 24)
		room = 24; /* very deep: the line runs over rather than saying nothing */
	if (term_columns(more) + 20 > room)
		more = STR("");
	title = room - term_columns(more);
	(void)printf("%s%.*s%s%s%.*s%s\n", drawing->depth == 0 ? term_bold(cli) : "",
		STRF(term_text(cli->arena, json_member_str(node->item, "title"), title)), term_off(cli), term_dim(cli),
		STRF(more), term_off(cli));
}

/* No deeper than the server allows items to be (1000 levels). */
static void draw(struct drawing *drawing, const struct node *node, bool is_last)
{
	size_t length = drawing->prefix.n;

	draw_line(drawing, node, is_last);
	if (drawing->depth > 0)
		buf_add_str(&drawing->prefix, is_last ? STR("   ") : drawing->is_unicode ? STR("│  ") : STR("|  "));
	drawing->depth++;
	for (const struct node *child = node->first; child != NULL; child = child->next)
		draw(drawing, child, child->next == NULL);
	drawing->depth--;
	drawing->prefix.n = length;
}

void items_print_tree(struct cli *cli, const json_t *items)
{
	struct drawing drawing = {.cli = cli, .columns = term_width(), .is_unicode = speaks_unicode()};
	size_t n = json_array_size(items);
	struct node *nodes = build(cli->arena, items, n);

	buf_init(&drawing.prefix, cli->arena, SIZE_MAX);
	for (size_t i = 0; i < n; i++)
		if (!nodes[i].is_child)
			draw(&drawing, &nodes[i], true);
}
