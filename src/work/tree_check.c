/* Shape of a create_tree across its parts: refs, forms, sizes. */
#include "work/tree.h"

#include "work/deps.h"

#define ROOT_REF STR("root")

int tree_find(const struct create_tree_args *in, struct str ref)
{
	const struct tree_child_args *children = in->children.v;

	if (ref.p == NULL || str_eq(ref, ROOT_REF))
		return 0;
	for (size_t i = 0; i < in->children.n; i++)
		if (str_eq(ref, children[i].ref.v))
			return (int)i + 1;
	return -1;
}

struct checking {
	const struct create_tree_args *in;
	struct str path;
	struct failure *f;
};

static struct str at(const struct checking *c, const char *list, size_t i, const char *member)
{
	return str_printf(c->f->arena, "%.*s%s[%zu].%s", STRF(c->path), list, i, member);
}

static void check_ref(const struct checking *c, const struct arg_str *ref, const char *list, size_t i,
	const char *member)
{
	if (ref->set && ref->v.n > 0 && tree_find(c->in, ref->v) < 0)
		(void)fail_field(c->f, at(c, list, i, member), ref->v, "names no child of this tree");
}

static bool has_any(const struct item_fields *item)
{
	return item->title.set || item->summary.set || item->description.set || item->priority.set ||
		item->complexity.set || item->type.set || item->tags.set || item->traits.set ||
		item->requires_verification.set || item->properties.set || item->metadata.set;
}

static void check_root(const struct checking *c)
{
	const struct tree_root_args *root = c->in->root.v;
	struct str path = str_printf(c->f->arena, "%.*sroot.", STRF(c->path));

	if (root == NULL)
		return;
	(void)item_fields_check(&root->item, path, c->f);
	if (!root->id.set && !root->item.title.set)
		(void)fail_field(c->f, str_printf(c->f->arena, "%.*stitle", STRF(path)), STR_NONE,
			"is required for a new root; id attaches the children to an item that exists");
	if (root->id.set && (root->parent.set || has_any(&root->item)))
		(void)fail_field(c->f, str_printf(c->f->arena, "%.*sid", STRF(path)), STR_NONE,
			"stands alone: the item exists, and this op does not change it");
}

static void check_children(const struct checking *c)
{
	const struct tree_child_args *children = c->in->children.v;

	for (size_t i = 0; i < c->in->children.n; i++) {
		const struct tree_child_args *child = &children[i];

		(void)item_fields_check(
			&child->item, str_printf(c->f->arena, "%.*schildren[%zu].", STRF(c->path), i), c->f);
		check_ref(c, &child->parent_ref, "children", i, "parentRef");
		if (child->anchors.n > 0 && !c->in->doc.set)
			(void)fail_field(c->f, at(c, "children", i, "noteAnchors"), STR_NONE, "needs docRef");
		if (child->ref.v.n == 0)
			continue; /* told already */
		if (str_eq(child->ref.v, ROOT_REF))
			(void)fail_field(c->f, at(c, "children", i, "ref"), child->ref.v, "is the ref of the root");
		else if (tree_find(c->in, child->ref.v) != (int)i + 1)
			(void)fail_field(c->f, at(c, "children", i, "ref"), child->ref.v, "is given twice");
	}
}

static void check_deps(const struct checking *c)
{
	const struct tree_dep_args *deps = c->in->deps.v;

	for (size_t i = 0; i < c->in->deps.n; i++) {
		check_ref(c, &deps[i].from, "deps", i, "from");
		check_ref(c, &deps[i].to, "deps", i, "to");
		if (deps[i].from.v.n > 0 && str_eq(deps[i].from.v, deps[i].to.v))
			(void)fail_field(c->f, at(c, "deps", i, "to"), deps[i].to.v, "an item cannot depend on itself");
		if (deps[i].type.v == DEP_RELATES_TO && deps[i].unblock_at.set)
			(void)fail_field(c->f, at(c, "deps", i, "unblockAt"), STR_NONE,
				"does not belong to RELATES_TO, which never blocks");
	}
}

static void check_notes(const struct checking *c)
{
	const struct tree_note_args *notes = c->in->notes.v;

	for (size_t i = 0; i < c->in->notes.n; i++) {
		check_ref(c, &notes[i].item_ref, "notes", i, "itemRef");
		for (size_t k = 0; k < i && notes[i].key.v.n > 0; k++)
			if (str_eq(notes[i].key.v, notes[k].key.v) && str_eq(notes[i].item_ref.v, notes[k].item_ref.v))
				(void)fail_field(c->f, at(c, "notes", i, "key"), notes[i].key.v,
					"is given twice for this item");
	}
}

static void check_doc(const struct checking *c)
{
	const struct tree_doc_args *doc = c->in->doc.v;

	if (doc != NULL && str_starts(doc->slug.v, STR("rule/")))
		(void)fail_field(c->f, str_printf(c->f->arena, "%.*sdocRef.slug", STRF(c->path)), doc->slug.v,
			"is a rule; a tree adopts plans");
}

/* A list over its limit has a code of its own; other faults of the call win, they cost nothing to mend. */
static void check_size(const struct checking *c, const char *name, size_t n, size_t max)
{
	if (n <= max || c->f->is_shape)
		return;
	(void)fail(c->f, FAIL_PAYLOAD_TOO_LARGE, "%.*s%s has %zu entries, at most %zu are taken.", STRF(c->path), name,
		n, max);
	fail_detail_int(c->f, "max", (int64_t)max);
	fail_detail_int(c->f, "actual", (int64_t)n);
	c->f->is_shape = true;
}

int items_create_tree_check(const struct create_tree_args *in, struct str path, struct failure *f)
{
	const struct checking c = {.in = in, .path = path, .f = f};

	check_size(&c, "children", in->children.n, LIMIT_TREE_CHILDREN);
	check_size(&c, "deps", in->deps.n, LIMIT_TREE_DEPS);
	check_size(&c, "notes", in->notes.n, LIMIT_TREE_NOTES);
	if (f->is_shape)
		return -1;
	check_root(&c);
	check_children(&c);
	check_deps(&c);
	check_notes(&c);
	check_doc(&c);
	return f->is_shape ? -1 : 0;
}
