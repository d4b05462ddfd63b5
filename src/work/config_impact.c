/* What other rules would mean for the open items of a project. */
#include "work/config.h"

#include "base/limits.h"

/* by item_ready; the project's root itself is not in that index */
SQL(SQL_OPEN_ITEMS,
	"SELECT i.n, t.type, t.tags, t.traits FROM item i JOIN item_text t ON t.n = i.n"
	" WHERE i.root_n = $1 AND i.role = $2 AND i.root_n <> i.n AND i.role <> 3 LIMIT $3");
SQL(SQL_OPEN_ROOT,
	"SELECT i.n, t.type, t.tags, t.traits FROM item i JOIN item_text t ON t.n = i.n"
	" WHERE i.n = $1 AND i.role = $2 LIMIT $3");
SQL(SQL_NOTE_IS_FILLED, "SELECT 1 FROM note WHERE item_n = $1 AND key = $2 AND is_filled = 1");

#define KINDS 64

/* Items of equal type, tags and traits resolve alike: most projects have few kinds. */
struct kind {
	struct str type, tags, traits;
	struct schema before, after;
};

struct study {
	struct snapshot *s;
	const struct rules_view *before, *after;
	struct kind kinds[KINDS];
	size_t count;
	struct config_impact impact;
};

static void resolve(struct study *study, const struct query *q, struct kind *out)
{
	struct arena *arena = study->s->arena;
	struct str *tags;
	struct str *traits;
	size_t tag_count;
	size_t trait_count;

	out->type = col_str(q, 1);
	out->tags = col_str(q, 2);
	out->traits = col_str(q, 3);
	tag_count = strings_of(arena, out->tags, &tags);
	trait_count = strings_of(arena, out->traits, &traits);
	rules_schema(study->before, out->type, tags, tag_count, traits, trait_count, arena, &out->before);
	rules_schema(study->after, out->type, tags, tag_count, traits, trait_count, arena, &out->after);
}

static const struct kind *kind_of(struct study *study, const struct query *q, struct kind *spare)
{
	struct str type = col_str(q, 1);
	struct str tags = col_str(q, 2);
	struct str traits = col_str(q, 3);

	for (size_t i = 0; i < study->count; i++)
		if (str_eq(study->kinds[i].type, type) && str_eq(study->kinds[i].tags, tags) &&
			str_eq(study->kinds[i].traits, traits))
			return &study->kinds[i];
	if (study->count == KINDS) {
		resolve(study, q, spare);
		return spare;
	}
	resolve(study, q, &study->kinds[study->count]);
	return &study->kinds[study->count++];
}

static bool requires(const struct schema *schema, struct str key, enum role role)
{
	const struct rules_note *note = schema_note(schema, key);

	return note != NULL && note->is_required && note->role == role;
}

/* Every note that `a` requires in this phase is required by `b` too. */
static bool is_covered(const struct schema *a, const struct schema *b, enum role role)
{
	for (size_t i = 0; i < a->note_count; i++)
		if (a->notes[i].is_required && a->notes[i].role == role && !requires(b, a->notes[i].key, role))
			return false;
	return true;
}

/* 1 when a required note of the phase is not filled. */
static int is_gated(struct study *study, const struct schema *schema, int64_t item_n, enum role role,
	struct failure *f)
{
	for (size_t i = 0; i < schema->note_count; i++) {
		int64_t one;
		int rc;

		if (!schema->notes[i].is_required || schema->notes[i].role != role)
			continue;
		rc = query_int(study->s, &one, f, SQL_NOTE_IS_FILLED, "is", item_n, schema->notes[i].key);
		if (rc <= 0)
			return rc < 0 ? -1 : 1;
	}
	return 0;
}

static int weigh(struct study *study, const struct query *q, enum role role, struct failure *f)
{
	struct kind spare;
	const struct kind *kind = kind_of(study, q, &spare);
	int before;
	int after;

	study->impact.items++;
	if (is_covered(&kind->before, &kind->after, role) && is_covered(&kind->after, &kind->before, role))
		return 0;
	before = is_gated(study, &kind->before, col_int(q, 0), role, f);
	after = is_gated(study, &kind->after, col_int(q, 0), role, f);
	if (before < 0 || after < 0)
		return -1;
	study->impact.newly_gated += !before && after;
	study->impact.no_longer_gated += before && !after;
	return 0;
}

static int weigh_all(struct study *study, const char *sql, int64_t n, enum role role, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t left = LIMIT_IMPACT_ITEMS - study->impact.items;
	int rc;

	if (query(study->s, &q, f, sql, "iii", n, (int64_t)role, left + 1) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (study->impact.items == LIMIT_IMPACT_ITEMS) {
			study->impact.is_cut = true;
			return 0;
		}
		if (weigh(study, &q, role, f) != 0)
			return -1;
	}
	return rc;
}

int config_impact(struct snapshot *s, int64_t root_n, const struct rules_view *before,
	const struct rules_view *after, struct config_impact *out, struct failure *f)
{
	struct study study = {.s = s, .before = before, .after = after};

	for (enum role role = ROLE_QUEUE; role <= ROLE_REVIEW; role++)
		if (weigh_all(&study, SQL_OPEN_ROOT, root_n, role, f) != 0 ||
			weigh_all(&study, SQL_OPEN_ITEMS, root_n, role, f) != 0)
			return -1;
	*out = study.impact;
	return 0;
}
