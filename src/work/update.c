/* items_write update: what an item says of itself, and perhaps its parent. */
#include "work/structure.h"

/* The texts that an ordinary load leaves out. */
struct long_texts {
	struct str properties, metadata, description;
};

SQL(SQL_LONG_TEXTS, "SELECT properties, metadata, description FROM item_text WHERE n = $1");

static int load_long(struct snapshot *s, int64_t n, struct long_texts *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_LONG_TEXTS, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	*out = (struct long_texts){col_str(&q, 0), col_str(&q, 1), col_str(&q, 2)};
	return 0;
}

enum changed {
	CHANGED_TITLE = 1 << 0,
	CHANGED_SUMMARY = 1 << 1,
	CHANGED_DESCRIPTION = 1 << 2,
	CHANGED_PRIORITY = 1 << 3,
	CHANGED_COMPLEXITY = 1 << 4,
	CHANGED_TYPE = 1 << 5,
	CHANGED_TAGS = 1 << 6,
	CHANGED_TRAITS = 1 << 7,
	CHANGED_VERIFICATION = 1 << 8,
	CHANGED_PROPERTIES = 1 << 9,
	CHANGED_METADATA = 1 << 10,
	CHANGED_PARENT = 1 << 11,
	CHANGED_INDEXED = CHANGED_TITLE | CHANGED_SUMMARY,
	CHANGED_TEXTS = CHANGED_DESCRIPTION | CHANGED_TYPE | CHANGED_TAGS | CHANGED_TRAITS |
		CHANGED_VERIFICATION | CHANGED_PROPERTIES | CHANGED_METADATA,
	CHANGED_SCHEMA = CHANGED_TYPE | CHANGED_TAGS | CHANGED_TRAITS | CHANGED_PARENT,
};

static const char *const changed_names[] = {"title", "summary", "description", "priority", "complexity", "type",
	"tags", "traits", "requiresVerification", "properties", "metadata", "parentId"};

static bool differs(struct str a, struct str b)
{
	return (a.p == NULL) != (b.p == NULL) || !str_eq(a, b);
}

static void set_text(struct str *column, const struct arg_str *to, struct str cleared, unsigned bit,
	unsigned *changed)
{
	struct str value = to->null ? cleared : to->v;

	if (!to->set || !differs(*column, value))
		return;
	*column = value;
	*changed |= bit;
}

static void set_list(struct arena *arena, struct str *column, const struct arg_strs *to, unsigned bit,
	unsigned *changed)
{
	struct str value = structure_list(arena, to);

	if (!to->set || str_eq(*column, value))
		return;
	*column = value;
	*changed |= bit;
}

/* Bring item and texts to what is asked; which columns changed by that. */
static unsigned set_all(struct arena *arena, const struct item_fields *set, struct item *item,
	struct long_texts *texts)
{
	int64_t complexity = set->complexity.null ? COMPLEXITY_NONE : set->complexity.v;
	struct arg_str properties = {.set = set->properties.set, .null = set->properties.null};
	unsigned changed = 0;

	if (set->properties.v != NULL)
		properties.v = json_canonical(arena, set->properties.v);
	set_text(&item->title, &set->title, STR_NONE, CHANGED_TITLE, &changed);
	set_text(&item->summary, &set->summary, STR(""), CHANGED_SUMMARY, &changed);
	set_text(&texts->description, &set->description, STR_NONE, CHANGED_DESCRIPTION, &changed);
	set_text(&item->type, &set->type, STR_NONE, CHANGED_TYPE, &changed);
	set_text(&texts->properties, &properties, STR_NONE, CHANGED_PROPERTIES, &changed);
	set_text(&texts->metadata, &set->metadata, STR_NONE, CHANGED_METADATA, &changed);
	set_list(arena, &item->tags, &set->tags, CHANGED_TAGS, &changed);
	set_list(arena, &item->traits, &set->traits, CHANGED_TRAITS, &changed);
	if (set->priority.set && (int64_t)item->priority != set->priority.v) {
		item->priority = (enum priority)set->priority.v;
		changed |= CHANGED_PRIORITY;
	}
	if (set->complexity.set && item->complexity != complexity) {
		item->complexity = complexity;
		changed |= CHANGED_COMPLEXITY;
	}
	if (set->requires_verification.set && item->requires_verification != set->requires_verification.v) {
		item->requires_verification = set->requires_verification.v;
		changed |= CHANGED_VERIFICATION;
	}
	return changed;
}

SQL(SQL_UPDATE_ITEM, "UPDATE item SET priority = $2, complexity = $3, version = $4, modified_at = $5 WHERE n = $1");
/* Apart from the others: these columns are in the search index, and a statement that names them writes it. */
SQL(SQL_UPDATE_INDEXED, "UPDATE item_text SET title = $2, summary = $3 WHERE n = $1");
SQL(SQL_UPDATE_TEXTS,
	"UPDATE item_text SET type = $2, tags = $3, traits = $4, requires_verification = $5, properties = $6,"
	" metadata = $7, description = $8 WHERE n = $1");
SQL(SQL_TAGS_DROP, "DELETE FROM item_tag WHERE item_n = $1");
SQL(SQL_TRAITS_DROP, "DELETE FROM item_trait WHERE item_n = $1");

static int store_texts(struct tx *tx, const struct item_fields *set, const struct item *item,
	const struct long_texts *texts, unsigned changed, struct failure *f)
{
	if ((changed & CHANGED_INDEXED) != 0 &&
		tx_run(tx, f, SQL_UPDATE_INDEXED, "iss", item->n, item->title, item->summary) < 0)
		return -1;
	if ((changed & CHANGED_TEXTS) != 0 &&
		tx_run(tx, f, SQL_UPDATE_TEXTS, "isssisss", item->n, item->type, item->tags, item->traits,
			(int64_t)item->requires_verification, texts->properties, texts->metadata,
			texts->description) < 0)
		return -1;
	if ((changed & CHANGED_TAGS) != 0 &&
		(tx_run(tx, f, SQL_TAGS_DROP, "i", item->n) < 0 ||
			structure_add_tags(tx, item->n, &set->tags, f) != 0))
		return -1;
	if ((changed & CHANGED_TRAITS) != 0 &&
		(tx_run(tx, f, SQL_TRAITS_DROP, "i", item->n) < 0 ||
			structure_add_traits(tx, item->n, &set->traits, f) != 0))
		return -1;
	return 0;
}

static void write_changed(struct json_writer *w, unsigned changed)
{
	if (changed == 0)
		return;
	jw_karray(w, "changed");
	for (size_t i = 0; i < sizeof(changed_names) / sizeof(changed_names[0]); i++)
		if (changed & (1U << i))
			jw_text(w, changed_names[i]);
	jw_array_end(w);
}

static int updated_event(struct tx *tx, const struct item *item, unsigned changed, struct failure *f)
{
	struct json_writer w;
	struct buf data;

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	write_changed(&w, changed);
	jw_object_end(&w);
	return event_add(tx, EVENT_ITEM_UPDATED, item->root_n, item->n, item->id, buf_str(&data), f);
}

/* A move in the same op has raised the version already. */
static int store(struct tx *tx, const struct item_fields *set, struct item *item, const struct long_texts *texts,
	unsigned changed, bool has_moved, struct failure *f)
{
	if (changed == 0)
		return 0;
	item->version += has_moved ? 0 : 1;
	item->modified_at = tx->snapshot.now;
	if (tx_run(tx, f, SQL_UPDATE_ITEM, "iiiii", item->n, (int64_t)item->priority, item->complexity,
		    item->version, item->modified_at) < 0 ||
		store_texts(tx, set, item, texts, changed, f) != 0)
		return -1;
	return updated_event(tx, item, changed, f);
}

/* What the item's rules expect now that they may be others. */
static int tell_schema(struct tx *tx, struct call *call, const struct item *item, unsigned changed,
	struct json_writer *out, struct failure *f)
{
	struct schema schema;

	if ((changed & CHANGED_SCHEMA) == 0)
		return 0;
	if (item_schema(&tx->snapshot, call, item, &schema, f) != 0)
		return -1;
	structure_warn(call, item, &schema);
	if (schema.source != RULES_NONE)
		structure_expected_notes(out, &schema);
	return 0;
}

int items_update(struct tx *tx, struct call *call, const struct update_args *in, struct json_writer *out,
	struct failure *f)
{
	int64_t moved = 0, reopened = 0, old_parent_n;
	struct long_texts texts;
	struct item item;
	unsigned changed;

	if (item_find(&tx->snapshot, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		item_expect(&item, in->expected_version.set, in->expected_version.v, f) != 0 ||
		item_writable(&tx->snapshot, call, &item, f) != 0 ||
		load_long(&tx->snapshot, item.n, &texts, f) != 0)
		return -1;
	old_parent_n = item.parent_n;
	if (in->parent.set &&
		structure_move(tx, call, &item, &in->parent, STR("parentId"), &moved, &reopened, f) != 0)
		return -1;
	changed = set_all(tx->snapshot.arena, &in->set, &item, &texts);
	if (store(tx, &in->set, &item, &texts, changed, moved > 0, f) != 0 || claim_touch(tx, call, &item, f) != 0)
		return -1;
	changed |= moved > 0 ? CHANGED_PARENT : 0;
	jw_id(out, call, "id", item.id);
	jw_kint(out, "version", item.version);
	write_changed(out, changed);
	if (tell_schema(tx, call, &item, changed, out, f) != 0)
		return -1;
	return structure_follow(tx, call, moved > 0 ? old_parent_n : 0, reopened, out, f);
}
