/* items_write create_tree: root first, then children, edges, notes, and last of all the plan is adopted. */
#include "work/tree.h"

#include "work/deps.h"
#include "work/docs.h"
#include "work/notes.h"
#include "work/section.h"
#include "work/structure.h"

struct node {
	struct item item;
	struct schema schema;
	bool is_made; /* its item exists */
};

struct tree {
	struct tx *tx;
	struct call *call;
	const struct create_tree_args *in;
	struct node *nodes; /* 0 the root, i + 1 child i */
	int64_t reopened_parent_n;
	struct document doc; /* when docRef is given */
	struct str doc_text;
	struct section *sections;
	size_t section_count;
};

static const struct tree_child_args *child_of(const struct tree *tree, size_t i)
{
	return (const struct tree_child_args *)tree->in->children.v + i;
}

/* ---- items ---- */

static int find_root(struct tree *tree, const struct tree_root_args *in, struct failure *f)
{
	struct node *root = &tree->nodes[0];
	struct snapshot *s = &tree->tx->snapshot;
	bool reopens;

	if (item_find(s, tree->call, in->id.v, STR("root.id"), &root->item, f) != 0 ||
		item_writable(s, tree->call, &root->item, f) != 0 ||
		structure_admits(s, tree->call, &root->item, "create", &reopens, f) != 0 ||
		item_schema(s, tree->call, &root->item, &root->schema, f) != 0)
		return -1;
	root->is_made = true;
	if (reopens && tree->in->children.n > 0)
		tree->reopened_parent_n = root->item.n;
	return claim_touch(tree->tx, tree->call, &root->item, f);
}

static int make_root(struct tree *tree, const struct tree_root_args *in, struct failure *f)
{
	struct node *root = &tree->nodes[0];
	const struct item *parent;
	struct item parent_row;
	bool reopens;

	if (structure_parent(tree->tx, tree->call, &in->parent, STR("root.parentId"), &parent_row, &parent, &reopens,
		    f) != 0 ||
		structure_add(tree->tx, tree->call, &in->item, parent, &root->item, &root->schema, f) != 0)
		return -1;
	root->is_made = true;
	if (reopens)
		tree->reopened_parent_n = parent->n;
	return 0;
}

/* The closed path of refs that child `i` hangs in. */
static int fail_ring(const struct tree *tree, size_t i, struct failure *f)
{
	struct json_writer w;
	struct buf path;
	size_t start = i;

	/* After so many steps up one stands inside the ring for sure. */
	for (size_t k = 0; k < tree->in->children.n; k++)
		start = (size_t)tree_find(tree->in, child_of(tree, start)->parent_ref.v) - 1;
	(void)fail(f, FAIL_CYCLE_DETECTED, "The parentRefs of the children close a ring.");
	buf_init(&path, f->arena, SIZE_MAX);
	json_writer_init(&w, &path);
	jw_array_begin(&w);
	jw_str(&w, child_of(tree, start)->ref.v);
	i = start;
	do {
		i = (size_t)tree_find(tree->in, child_of(tree, i)->parent_ref.v) - 1;
		jw_str(&w, child_of(tree, i)->ref.v);
	} while (i != start);
	jw_array_end(&w);
	fail_detail_raw(f, "path", buf_str(&path));
	return -1;
}

/* Parents before children, whatever the order of the list. */
static int make_children(struct tree *tree, struct failure *f)
{
	size_t left = tree->in->children.n;

	while (left > 0) {
		size_t before = left;
		size_t stuck = 0;

		for (size_t i = 0; i < tree->in->children.n; i++) {
			const struct tree_child_args *child = child_of(tree, i);
			struct node *node = &tree->nodes[i + 1];
			struct node *parent = &tree->nodes[tree_find(tree->in, child->parent_ref.v)];

			if (node->is_made)
				continue;
			stuck = i;
			if (!parent->is_made)
				continue;
			if (structure_add(tree->tx, tree->call, &child->item, &parent->item, &node->item, &node->schema,
				    f) != 0)
				return -1;
			node->is_made = true;
			left--;
		}
		if (left == before)
			return fail_ring(tree, stuck, f);
	}
	return 0;
}

/* ---- edges ---- */

static int fail_repeated(const struct tree_dep_args *dep, struct failure *f)
{
	(void)fail(f, FAIL_DUPLICATE, "The edge %.*s to %.*s is given twice.", STRF(dep->from.v), STRF(dep->to.v));
	fail_detail_str(f, "kind", STR("dependency"));
	return -1;
}

static struct dep_edge edge_of(const struct tree *tree, const struct tree_dep_args *dep)
{
	const struct item *from = &tree->nodes[tree_find(tree->in, dep->from.v)].item;
	const struct item *to = &tree->nodes[tree_find(tree->in, dep->to.v)].item;
	bool is_reversed = dep->type.v == DEP_IS_BLOCKED_BY;

	return (struct dep_edge){
		.from = is_reversed ? to : from,
		.to = is_reversed ? from : to,
		.type = dep->type.v == DEP_RELATES_TO ? DEP_RELATES_TO : DEP_BLOCKS,
		.unblock_at = dep->unblock_at.set ? dep->unblock_at.v : DEP_NO_THRESHOLD,
	};
}

static struct str ref_of(const struct tree *tree, int64_t n, struct failure *f)
{
	struct item item;

	for (size_t i = 0; i <= tree->in->children.n; i++)
		if (tree->nodes[i].item.n == n)
			return i == 0 ? STR("root") : child_of(tree, i - 1)->ref.v;
	return item_load(&tree->tx->snapshot, n, &item, f) == 1 ? id_str(f->arena, item.id) : STR("");
}

/* The path by refs: ids of items that will not exist tell nobody anything. */
static int check_ring(struct tree *tree, const struct dep_edge *edge, struct failure *f)
{
	struct json_writer w;
	struct buf list;
	int64_t *path;
	size_t n;
	int rc;

	if (edge->type != DEP_BLOCKS)
		return 0;
	rc = dep_cycle(&tree->tx->snapshot, edge->from->n, edge->to->n, &path, &n, f);
	if (rc <= 0)
		return rc;
	(void)fail(f, FAIL_CYCLE_DETECTED, "The edge %.*s to %.*s closes a cycle.",
		STRF(ref_of(tree, edge->from->n, f)), STRF(ref_of(tree, edge->to->n, f)));
	buf_init(&list, f->arena, SIZE_MAX);
	json_writer_init(&w, &list);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		jw_str(&w, ref_of(tree, path[i], f));
	jw_array_end(&w);
	fail_detail_raw(f, "path", buf_str(&list));
	return -1;
}

static int make_deps(struct tree *tree, struct json_writer *out, struct failure *f)
{
	const struct tree_dep_args *deps = tree->in->deps.v;
	struct dep_edge *edges = ARENA_ARRAY(tree->call->arena, struct dep_edge, tree->in->deps.n + 1);

	for (size_t i = 0; i < tree->in->deps.n; i++) {
		struct id id;

		edges[i] = edge_of(tree, &deps[i]);
		for (size_t k = 0; k < i; k++)
			if (edges[k].from == edges[i].from && edges[k].to == edges[i].to &&
				edges[k].type == edges[i].type)
				return fail_repeated(&deps[i], f);
		if (check_ring(tree, &edges[i], f) != 0 || dep_insert(tree->tx, tree->call, &edges[i], &id, f) != 0)
			return -1;
		jw_object_begin(out);
		jw_id(out, tree->call, "id", id);
		jw_kstr(out, "from", ref_of(tree, edges[i].from->n, f));
		jw_kstr(out, "to", ref_of(tree, edges[i].to->n, f));
		jw_ktext(out, "type", edges[i].type == DEP_BLOCKS ? "BLOCKS" : "RELATES_TO");
		jw_object_end(out);
	}
	return 0;
}

/* ---- notes ---- */

/* One note by the rules of notes_write; what that tells besides the id is not for this answer. */
static int make_note(struct tree *tree, size_t node, struct str key, const struct arg_int *role, struct str body,
	struct json_writer *out, struct failure *f)
{
	const struct note_upsert_args in = {
		.item = {.v = id_str(tree->call->arena, tree->nodes[node].item.id), .set = true},
		.key = {.v = key, .set = true},
		.role = *role,
		.body = {.v = body, .set = true},
	};
	struct json_error error;
	struct json_writer w;
	struct buf text;
	json_auto_t *told = NULL;

	buf_init(&text, tree->call->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	if (note_upsert(tree->tx, tree->call, &in, &w, f) != 0)
		return -1;
	jw_object_end(&w);
	tree->call->once_members = STR_NONE;
	told = json_read(buf_str(&text), &error);
	jw_object_begin(out);
	jw_kstr(out, "itemRef", node == 0 ? STR("root") : child_of(tree, node - 1)->ref.v);
	jw_kstr(out, "key", key);
	jw_kstr(out, "id", json_member_str(told, "id"));
	jw_object_end(out);
	return 0;
}

/* The caller gives this note itself. */
static bool is_given(const struct tree *tree, size_t node, struct str key)
{
	const struct tree_note_args *notes = tree->in->notes.v;

	for (size_t i = 0; i < tree->in->notes.n; i++)
		if ((size_t)tree_find(tree->in, notes[i].item_ref.v) == node && str_eq(notes[i].key.v, key))
			return true;
	return false;
}

static bool is_anchored(const struct tree *tree, size_t node, struct str key, size_t up_to)
{
	const struct tree_anchor_args *anchors = node == 0 ? NULL : child_of(tree, node - 1)->anchors.v;

	for (size_t i = 0; anchors != NULL && i < child_of(tree, node - 1)->anchors.n && i < up_to; i++)
		if (str_eq(anchors[i].note_key.v, key))
			return true;
	return false;
}

static int make_given(struct tree *tree, struct json_writer *out, struct failure *f)
{
	const struct tree_note_args *notes = tree->in->notes.v;

	for (size_t i = 0; i < tree->in->notes.n; i++)
		if (make_note(tree, (size_t)tree_find(tree->in, notes[i].item_ref.v), notes[i].key.v, &notes[i].role,
			    notes[i].body.v, out, f) != 0)
			return fail_under(f, "notes[%zu].", i);
	return 0;
}

static int make_anchored(struct tree *tree, size_t node, struct json_writer *out, struct failure *f)
{
	const struct tree_child_args *child = child_of(tree, node - 1);
	const struct tree_anchor_args *anchors = child->anchors.v;

	for (size_t i = 0; i < child->anchors.n; i++) {
		const struct section *section = section_find(tree->sections, tree->section_count, anchors[i].anchor.v);

		if (section == NULL)
			return fail_not_found(f, "document",
				str_printf(f->arena, "%.*s#%.*s", STRF(tree->doc.slug), STRF(anchors[i].anchor.v)));
		if (is_given(tree, node, anchors[i].note_key.v) || is_anchored(tree, node, anchors[i].note_key.v, i))
			continue;
		if (make_note(tree, node, anchors[i].note_key.v, &anchors[i].role,
			    section_text(section, tree->doc_text), out, f) != 0)
			return fail_under(f, "children[%zu].noteAnchors[%zu].", node - 1, i);
	}
	return 0;
}

/* An empty row for every note that the schema knows and nobody gave. */
static int make_blanks(struct tree *tree, size_t node, struct json_writer *out, struct failure *f)
{
	const struct schema *schema = &tree->nodes[node].schema;
	const struct arg_int by_schema = {.set = false};

	for (size_t i = 0; i < schema->note_count; i++) {
		struct str key = schema->notes[i].key;
		struct note note;
		int rc;

		if (is_given(tree, node, key) || is_anchored(tree, node, key, SIZE_MAX))
			continue;
		rc = note_load_key(&tree->tx->snapshot, tree->nodes[node].item.n, key, &note, f);
		if (rc == 0)
			rc = make_note(tree, node, key, &by_schema, STR(""), out, f);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int make_notes(struct tree *tree, struct json_writer *out, struct failure *f)
{
	if (make_given(tree, out, f) != 0)
		return -1;
	for (size_t i = 1; i <= tree->in->children.n; i++)
		if (make_anchored(tree, i, out, f) != 0)
			return -1;
	for (size_t i = 0; i <= tree->in->children.n && tree->in->create_notes.v; i++)
		if (make_blanks(tree, i, out, f) != 0)
			return -1;
	return 0;
}

/* ---- the plan ---- */

static int open_plan(struct tree *tree, struct failure *f)
{
	const struct tree_doc_args *in = tree->in->doc.v;
	struct snapshot *s = &tree->tx->snapshot;
	int64_t root_n = tree->nodes[0].item.root_n;
	struct item root;
	int rc;

	if (in == NULL)
		return 0;
	if (in->root.set) {
		if (project_find(s, tree->call, &in->root, &root, f) != 0)
			return fail_under(f, "docRef.");
		root_n = root.n;
	}
	rc = document_find(s, root_n, in->slug.v, &tree->doc, f);
	if (rc != 1)
		return rc < 0 ? -1 : fail_not_found(f, "document", in->slug.v);
	if (tree->doc.kind != DOCUMENT_PLAN) {
		(void)fail_field(f, STR("docRef.slug"), in->slug.v, "is not a plan");
		f->is_shape = false;
		return -1;
	}
	if (document_text(s, &tree->doc, tree->doc.version, &tree->doc_text, f) < 0)
		return -1;
	tree->section_count = sections_of(tree->call->arena, tree->doc_text, &tree->sections);
	return 0;
}

static int adopt_plan(struct tree *tree, struct json_writer *out, struct failure *f)
{
	if (!tree->in->doc.set)
		return 0;
	if (document_adopt(tree->tx, &tree->doc, &tree->nodes[0].item, f) != 0)
		return -1;
	jw_kobject(out, "adopted");
	jw_id_of(out, tree->call, "docId", KIND_DOCUMENT, tree->doc.id);
	jw_kstr(out, "slug", tree->doc.slug);
	jw_object_end(out);
	return 0;
}

/* ---- the answer ---- */

static void write_node(struct tree *tree, const struct node *node, struct json_writer *out)
{
	jw_id(out, tree->call, "id", node->item.id);
	jw_kint(out, "depth", node->item.depth);
	jw_ktext(out, "role", role_name(node->item.role));
	if (node->schema.source == RULES_NONE)
		return;
	jw_kbool(out, "schemaMatch", true);
	jw_karray(out, "expectedNotes");
	for (size_t i = 0; i < node->schema.note_count; i++)
		jw_str(out, node->schema.notes[i].key);
	jw_array_end(out);
}

static void write_items(struct tree *tree, struct json_writer *out)
{
	jw_kobject(out, "root");
	write_node(tree, &tree->nodes[0], out);
	jw_object_end(out);
	if (tree->in->children.n == 0)
		return;
	jw_karray(out, "children");
	for (size_t i = 0; i < tree->in->children.n; i++) {
		jw_object_begin(out);
		jw_kstr(out, "ref", child_of(tree, i)->ref.v);
		write_node(tree, &tree->nodes[i + 1], out);
		jw_object_end(out);
	}
	jw_array_end(out);
}

/* A list member that is left out when it is empty. */
static int write_list(struct tree *tree, const char *key,
	int (*make)(struct tree *tree, struct json_writer *out, struct failure *f), struct json_writer *out,
	struct failure *f)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, tree->call->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	if (make(tree, &w, f) != 0)
		return -1;
	jw_array_end(&w);
	if (text.n > 2)
		jw_kraw(out, key, buf_str(&text));
	return 0;
}

int items_create_tree(struct tx *tx, struct call *call, const struct create_tree_args *in, struct json_writer *out,
	struct failure *f)
{
	struct tree tree = {.tx = tx, .call = call, .in = in};
	const struct tree_root_args *root = in->root.v;

	tree.nodes = ARENA_ARRAY(call->arena, struct node, in->children.n + 1);
	if ((root->id.set ? find_root(&tree, root, f) : make_root(&tree, root, f)) != 0 || open_plan(&tree, f) != 0 ||
		make_children(&tree, f) != 0)
		return -1;
	write_items(&tree, out);
	if (write_list(&tree, "deps", make_deps, out, f) != 0 || write_list(&tree, "notes", make_notes, out, f) != 0 ||
		structure_follow(tx, call, 0, tree.reopened_parent_n, out, f) != 0)
		return -1;
	return adopt_plan(&tree, out, f);
}
