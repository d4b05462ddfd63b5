#include "tools/tree_fields.h"

#include "tools/item_fields.h"
#include "work/deps.h"
#include "work/docs.h"

/* clang-format off */
#define REF_CHARS 64

const struct field item_moved_fields[] = {
	{.name = "role", .help = "use the tool advance; an item begins in queue"},
	{.name = "status", .help = "use the tool advance; an item begins in queue"},
	{.name = "state", .help = "use the tool advance; an item begins in queue"},
	{.name = "statusLabel", .help = "use the tool advance, which stamps the labels of the rules"},
	FIELDS_END,
};

static const struct word note_role_words[] = {
	{"queue", ROLE_QUEUE}, {"work", ROLE_WORK}, {"review", ROLE_REVIEW}, WORDS_END,
};

static const struct word threshold_words[] = {
	{"queue", ROLE_QUEUE}, {"work", ROLE_WORK}, {"review", ROLE_REVIEW}, {"terminal", ROLE_TERMINAL}, WORDS_END,
};

static const struct field root_fields[] = {
	FIELD(struct tree_root_args, id, "id", FIELD_ID, 0, .help = "alone: attach below this item"),
	ITEM_FIELDS(struct tree_root_args, item, 0, 0),
	FIELD(struct tree_root_args, parent, "parentId", FIELD_ID, NULLABLE, .help = "null: a new root"),
	ITEM_FIELDS_END,
};

static const struct field anchor_fields[] = {
	FIELD(struct tree_anchor_args, note_key, "noteKey", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1,
		.max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct tree_anchor_args, role, "role", FIELD_WORD, FOLDED, .words = note_role_words),
	FIELD(struct tree_anchor_args, anchor, "anchor", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1, .max = LIMIT_TITLE_CHARS),
	FIELDS_END,
};

static const struct field child_fields[] = {
	FIELD(struct tree_child_args, ref, "ref", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1, .max = REF_CHARS),
	FIELD(struct tree_child_args, parent_ref, "parentRef", FIELD_STR, 0, .min = 1, .max = REF_CHARS, .fallback = "root"),
	ITEM_FIELDS(struct tree_child_args, item, REQUIRED, 0),
	FIELD(struct tree_child_args, anchors, "noteAnchors", FIELD_OBJECTS, 0, .fields = anchor_fields,
		.item_size = sizeof(struct tree_anchor_args), .max = LIMIT_TAGS,
		.help = "sections of the plan that become notes"),
	ITEM_FIELDS_END,
};

static const struct field dep_fields[] = {
	FIELD(struct tree_dep_args, from, "from", FIELD_STR, REQUIRED, .min = 1, .max = REF_CHARS, .help = "a ref"),
	FIELD(struct tree_dep_args, to, "to", FIELD_STR, REQUIRED, .min = 1, .max = REF_CHARS, .help = "a ref"),
	FIELD(struct tree_dep_args, type, "type", FIELD_WORD, 0, .words = dep_type_words, .fallback = "BLOCKS"),
	FIELD(struct tree_dep_args, unblock_at, "unblockAt", FIELD_WORD, FOLDED, .words = threshold_words,
		.fallback = "terminal"),
	FIELDS_END,
};

static const struct field note_fields[] = {
	FIELD(struct tree_note_args, item_ref, "itemRef", FIELD_STR, REQUIRED, .min = 1, .max = REF_CHARS),
	FIELD(struct tree_note_args, key, "key", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1, .max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct tree_note_args, role, "role", FIELD_WORD, FOLDED, .words = note_role_words),
	FIELD(struct tree_note_args, body, "body", FIELD_STR, REQUIRED | IN_BYTES, .max = LIMIT_NOTE_BYTES),
	FIELDS_END,
};

static const struct field doc_fields[] = {
	FIELD(struct tree_doc_args, slug, "slug", FIELD_STR, REQUIRED, .legal = document_is_slug, .syntax = "a slug"),
	FIELD(struct tree_doc_args, root, "rootId", FIELD_ID, 0, .help = "default: the project of the tree"),
	FIELDS_END,
};

const struct field create_tree_fields[] = {
	FIELD(struct create_tree_args, root, "root", FIELD_OBJECT, REQUIRED, .fields = root_fields,
		.item_size = sizeof(struct tree_root_args)),
	FIELD(struct create_tree_args, children, "children", FIELD_OBJECTS, 0, .fields = child_fields,
		.item_size = sizeof(struct tree_child_args), .help = "at most 200"),
	FIELD(struct create_tree_args, deps, "deps", FIELD_OBJECTS, 0, .fields = dep_fields,
		.item_size = sizeof(struct tree_dep_args), .help = "at most 500"),
	FIELD(struct create_tree_args, notes, "notes", FIELD_OBJECTS, 0, .fields = note_fields,
		.item_size = sizeof(struct tree_note_args), .help = "win over sections, sections over blank rows"),
	FIELD(struct create_tree_args, create_notes, "createNotes", FIELD_BOOL, 0, .fallback = "false",
		.help = "blank rows for all notes of the schemas"),
	FIELD(struct create_tree_args, doc, "docRef", FIELD_OBJECT, 0, .fields = doc_fields,
		.item_size = sizeof(struct tree_doc_args), .help = "the plan that the tree adopts"),
	FIELDS_END,
};
/* clang-format on */

int create_tree_check(const void *args, struct str path, struct failure *f)
{
	return items_create_tree_check(args, path, f);
}

unsigned create_tree_needs(const void *args)
{
	const struct create_tree_args *in = args;

	return (in->deps.n > 0 ? CAP_MANAGE_DEPENDENCIES : 0U) |
		(in->notes.n > 0 || in->create_notes.v || in->doc.set ? CAP_WRITE_NOTES : 0U);
}
