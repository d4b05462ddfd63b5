/* How an item comes into the graph. */
#include "work/structure.h"

#include "work/advance.h"
#include "work/gate.h"

bool item_is_tag(struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i > 0)))
			return false;
	}
	return text.n > 0;
}

int item_fields_check(const struct item_fields *fields, struct str path, struct failure *f)
{
	if (!fields->properties.set || json_object_get(fields->properties.v, "traits") == NULL)
		return 0;
	return fail_field(f, str_printf(f->arena, "%.*sproperties.traits", STRF(path)), STR_NONE,
		"belongs into the parameter traits");
}

int structure_admits(struct snapshot *s, struct call *call, const struct item *parent, const char *trigger,
	bool *reopens, struct failure *f)
{
	struct schema schema;

	*reopens = false;
	if (parent->role != ROLE_TERMINAL)
		return 0;
	if (item_schema(s, call, parent, &schema, f) != 0)
		return -1;
	if (schema.lifecycle == LIFECYCLE_AUTO)
		return fail_transition(f, parent, str_of(trigger), STR("[\"reopen\"]"));
	*reopens = schema.lifecycle == LIFECYCLE_AUTO_REOPEN;
	return 0;
}

int structure_parent(struct tx *tx, struct call *call, const struct arg_str *text, struct str path, struct item *row,
	const struct item **out, bool *reopens, struct failure *f)
{
	*out = NULL;
	*reopens = false;
	if (!text->set || text->null) {
		if (call->caller->seat.run_n == 0)
			return 0;
		(void)fail(f, FAIL_FORBIDDEN, "Your seat's run does not include new projects.");
		fail_detail_str(f, "scope", STR("root"));
		fail_detail_str(f, "required", STR("a parent inside the run's scope"));
		return -1;
	}
	if (item_find(&tx->snapshot, call, text->v, path, row, f) != 0 ||
		item_writable(&tx->snapshot, call, row, f) != 0 ||
		structure_admits(&tx->snapshot, call, row, "create", reopens, f) != 0)
		return -1;
	*out = row;
	return claim_touch(tx, call, row, f);
}

struct str structure_list(struct arena *arena, const struct arg_strs *values)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (size_t i = 0; i < values->n; i++)
		jw_str(&w, values->v[i]);
	jw_array_end(&w);
	return buf_str(&text);
}

SQL(SQL_TAG_ADD, "INSERT INTO item_tag (tag, item_n) VALUES ($1, $2)");
SQL(SQL_TRAIT_ADD, "INSERT INTO item_trait (trait, item_n) VALUES ($1, $2)");

static int add_each(struct tx *tx, const char *sql, int64_t item_n, const struct arg_strs *values,
	struct failure *f)
{
	for (size_t i = 0; i < values->n; i++)
		if (tx_run(tx, f, sql, "si", values->v[i], item_n) < 0)
			return -1;
	return 0;
}

int structure_add_tags(struct tx *tx, int64_t item_n, const struct arg_strs *tags, struct failure *f)
{
	return add_each(tx, SQL_TAG_ADD, item_n, tags, f);
}

int structure_add_traits(struct tx *tx, int64_t item_n, const struct arg_strs *traits, struct failure *f)
{
	return add_each(tx, SQL_TRAIT_ADD, item_n, traits, f);
}

static int fill(struct tx *tx, const struct item_fields *fields, const struct item *parent, struct item *item,
	struct failure *f)
{
	*item = (struct item){
		.role = ROLE_QUEUE,
		.priority = fields->priority.set ? (enum priority)fields->priority.v : PRIORITY_MEDIUM,
		.complexity = fields->complexity.set ? fields->complexity.v : COMPLEXITY_NONE,
		.version = 1,
		.created_at = tx->snapshot.now,
		.modified_at = tx->snapshot.now,
		.role_changed_at = tx->snapshot.now,
		.title = fields->title.v,
		.type = fields->type.v,
		.tags = structure_list(tx->snapshot.arena, &fields->tags),
		.traits = structure_list(tx->snapshot.arena, &fields->traits),
		.summary = fields->summary.set ? fields->summary.v : STR(""),
		.requires_verification = fields->requires_verification.v,
	};
	if (tx_next(tx, SEQ_item, &item->n, f) != 0 || tx_actor(tx, &item->created_by, f) != 0)
		return -1;
	id_generate(&item->id);
	item->root_n = item->n;
	item->root_id = item->id;
	if (parent != NULL) {
		item->parent_n = parent->n;
		item->parent_id = parent->id;
		item->root_n = parent->root_n;
		item->root_id = parent->root_id;
		item->depth = parent->depth + 1;
	}
	return 0;
}

SQL(SQL_ITEM_ADD,
	"INSERT INTO item (n, id, parent_n, root_n, depth, role, priority, complexity, version, created_at,"
	" modified_at, role_changed_at) VALUES ($1, $2, $3, $4, $5, 0, $6, $7, 1, $8, $8, $8)");
SQL(SQL_ITEM_TEXT_ADD,
	"INSERT INTO item_text (n, title, type, tags, traits, summary, requires_verification, created_by,"
	" properties, metadata, description) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");

static int insert(struct tx *tx, const struct item_fields *fields, const struct item *item, struct failure *f)
{
	struct str properties =
		fields->properties.v == NULL ? STR_NONE : json_canonical(tx->snapshot.arena, fields->properties.v);

	if (tx_run(tx, f, SQL_ITEM_ADD, "iboiiiii", item->n, item->id, item->parent_n == 0 ? NULL : &item->parent_n,
		    item->root_n, item->depth, (int64_t)item->priority, item->complexity, item->created_at) < 0)
		return -1;
	if (tx_run(tx, f, SQL_ITEM_TEXT_ADD, "isssssiisss", item->n, item->title, item->type, item->tags,
		    item->traits, item->summary, (int64_t)item->requires_verification, item->created_by, properties,
		    fields->metadata.v, fields->description.v) < 0)
		return -1;
	if (structure_add_tags(tx, item->n, &fields->tags, f) != 0 ||
		structure_add_traits(tx, item->n, &fields->traits, f) != 0)
		return -1;
	return tally_add(tx, item->parent_n, item->root_n, ROLE_QUEUE, 1, f);
}

static int created_event(struct tx *tx, const struct item *item, struct failure *f)
{
	struct str data = STR_NONE;
	char text[ID_TEXT_SIZE];

	if (item->parent_n != 0) {
		id_format(item->parent_id, text);
		data = str_printf(tx->snapshot.arena, "{\"parentId\":\"%s\"}", text);
	}
	return event_add(tx, EVENT_ITEM_CREATED, item->root_n, item->n, item->id, data, f);
}

void structure_warn(struct call *call, const struct item *item, const struct schema *schema)
{
	if (item->type.n > 0 && schema->source == RULES_NONE)
		warn(&call->warnings, "no_schema", STR_NONE, "No schema resolves for the type %.*s.",
			STRF(item->type));
	for (size_t i = 0; i < schema->unknown_trait_count; i++)
		warn(&call->warnings, "trait_unknown", STR_NONE, "No rules define the trait %.*s.",
			STRF(schema->unknown_traits[i]));
}

int structure_add(struct tx *tx, struct call *call, const struct item_fields *fields, const struct item *parent,
	struct item *out, struct schema *schema, struct failure *f)
{
	if (fill(tx, fields, parent, out, f) != 0 || insert(tx, fields, out, f) != 0 ||
		created_event(tx, out, f) != 0 || item_schema(&tx->snapshot, call, out, schema, f) != 0)
		return -1;
	structure_warn(call, out, schema);
	return 0;
}

/* ---- advice ---- */

void structure_expected_notes(struct json_writer *out, const struct schema *schema)
{
	jw_karray(out, "expectedNotes");
	for (size_t i = 0; i < schema->note_count; i++) {
		jw_object_begin(out);
		jw_kstr(out, "key", schema->notes[i].key);
		jw_ktext(out, "role", role_name(schema->notes[i].role));
		jw_kbool(out, "required", schema->notes[i].is_required);
		jw_object_end(out);
	}
	jw_array_end(out);
}

int structure_advice(struct snapshot *s, struct call *call, const struct item *item, const struct schema *schema,
	struct json_writer *out, struct failure *f)
{
	const struct rules_view *view;
	struct rules_type_row *traits;
	size_t n;

	jw_kbool(out, "schemaMatch", schema->source != RULES_NONE);
	if (schema->source == RULES_NONE)
		return 0;
	structure_expected_notes(out, schema);
	if (call_view(s, call, item->root_n, &view, f) != 0)
		return -1;
	n = rules_traits(view, s->arena, &traits);
	if (n == 0)
		return 0;
	jw_karray(out, "availableTraits");
	for (size_t i = 0; i < n; i++)
		jw_str(out, traits[i].name);
	jw_array_end(out);
	return 0;
}

/* ---- what follows ---- */

/* The elements of the list that `member` holds: `"cascadeEvents":[…]` or nothing. */
static struct str elements(const struct buf *member)
{
	struct str text = buf_str(member);
	size_t head = sizeof("\"cascadeEvents\":[") - 1;

	return text.n <= head ? STR("") : (struct str){text.p + head, text.n - head - 1};
}

int structure_follow(struct tx *tx, struct call *call, int64_t left_parent_n, int64_t reopened_parent_n,
	struct json_writer *out, struct failure *f)
{
	struct buf reopened, left;
	struct json_writer w;
	struct str first, second;

	buf_init(&reopened, call->arena, SIZE_MAX);
	buf_init(&left, call->arena, SIZE_MAX);
	json_writer_init(&w, &reopened);
	if (reopened_parent_n != 0 && cascade_reopen_parent(tx, call, reopened_parent_n, &w, f) != 0)
		return -1;
	json_writer_init(&w, &left);
	if (left_parent_n != 0 && cascade_after_structure(tx, call, left_parent_n, &w, f) != 0)
		return -1;
	first = elements(&reopened);
	second = elements(&left);
	if (first.n + second.n > 0)
		jw_kraw(out, "cascadeEvents",
			str_printf(call->arena, "[%.*s%s%.*s]", STRF(first), first.n > 0 && second.n > 0 ? "," : "",
				STRF(second)));
	return 0;
}
