/* Independence of authors. A note's authors are its last writer and everybody who wrote an earlier revision
 * that was not blank: writing it again under another name launders nothing. */
#include "work/independence.h"

SQL(SQL_AUTHOR, /* by primary keys */
	"SELECT n.subject, p.id FROM note n LEFT JOIN principal p ON p.n = n.actor_n WHERE n.n = $1");
SQL(SQL_AUTHORS, /* by note_n */
	"SELECT r.subject, p.id, r.verification FROM note_revision r LEFT JOIN principal p ON p.n = r.actor_n"
	" WHERE r.note_n = $1 AND r.is_filled = 1");

/* Who wrote one note, earlier revisions included. An absent entry: somebody unknown. */
struct authors {
	struct str *v;
	size_t n;
};

static void add_author(struct arena *arena, struct authors *authors, enum verification verification,
	struct str subject, struct str principal)
{
	struct str who = verification == VERIFICATION_VERIFIED && subject.n > 0 ? subject : principal;

	if (who.n == 0)
		who = STR_NONE;
	for (size_t i = 0; i < authors->n; i++)
		if (str_eq(authors->v[i], who))
			return;
	authors->v = arena_grow(arena, authors->v, authors->n * sizeof(who), (authors->n + 1) * sizeof(who));
	authors->v[authors->n++] = who;
}

static int authors_load(struct snapshot *s, const struct note_row *note, struct authors *out, struct failure *f)
{
	AUTO(query_endp) struct query now = {0};
	AUTO(query_endp) struct query before = {0};
	int rc;

	*out = (struct authors){0};
	if (query(s, &now, f, SQL_AUTHOR, "i", note->n) != 0 || (rc = query_next(&now, f)) < 0)
		return -1;
	add_author(s->arena, out, note->verification, rc == 1 ? col_str(&now, 0) : STR_NONE,
		rc == 1 ? col_str(&now, 1) : STR_NONE);
	if (query(s, &before, f, SQL_AUTHORS, "i", note->n) != 0)
		return -1;
	while ((rc = query_next(&before, f)) == 1)
		add_author(s->arena, out, (enum verification)col_int(&before, 2), col_str(&before, 0),
			col_str(&before, 1));
	return rc;
}

static bool share(const struct authors *a, const struct authors *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t j = 0; j < b->n; j++)
			if (a->v[i].n > 0 && str_eq(a->v[i], b->v[j]))
				return true;
	return false;
}

static bool has_unknown(const struct authors *authors)
{
	for (size_t i = 0; i < authors->n; i++)
		if (authors->v[i].n == 0)
			return true;
	return false;
}

struct check {
	struct snapshot *s;
	const struct schema *schema;
	const struct note_rows *rows;
	bool require_verified;
	struct note_findings *findings;
	struct failure *f;
};

static void add(struct check *check, const struct rules_note *entry, enum constraint constraint, struct str seat)
{
	struct note_findings *findings = check->findings;
	struct violation *slot;

	for (size_t i = 0; i < findings->violation_count; i++) {
		slot = &findings->violations[i];
		if (slot->constraint == constraint && str_eq(slot->key, entry->key) &&
			str_eq(slot->conflicting_seat, seat))
			return;
	}
	findings->violations = arena_grow(check->s->arena, findings->violations,
		findings->violation_count * sizeof(*slot), (findings->violation_count + 1) * sizeof(*slot));
	findings->violations[findings->violation_count++] = (struct violation){
		.key = entry->key, .seat = entry->seat, .constraint = constraint, .conflicting_seat = seat};
}

/* `entry` and its note against one note of a seat that it must be independent of. */
static int compare(struct check *check, const struct rules_note *entry, const struct note_row *own,
	const struct authors *own_authors, const struct note_row *other, struct str seat, bool *may_waive)
{
	struct authors authors;

	if (authors_load(check->s, other, &authors, check->f) != 0)
		return -1;
	if (has_unknown(own_authors) || has_unknown(&authors))
		add(check, entry, MISSING_ACTOR, seat);
	if (check->require_verified && other->verification != VERIFICATION_VERIFIED)
		add(check, entry, UNVERIFIED, seat);
	if (!share(own_authors, &authors))
		return 0;
	add(check, entry, SAME_ACTOR, seat);
	*may_waive = *may_waive && own->created_at > other->created_at;
	return 0;
}

static int check_seat(struct check *check, const struct rules_note *entry, const struct note_row *own,
	const struct authors *own_authors, struct str seat, bool *may_waive)
{
	for (size_t i = 0; i < check->schema->note_count; i++) {
		const struct rules_note *owned = &check->schema->notes[i];
		const struct note_row *other;

		if (owned == entry || !str_eq(owned->seat, seat))
			continue;
		other = note_row_filled(check->rows, owned->key);
		if (other != NULL && compare(check, entry, own, own_authors, other, seat, may_waive) != 0)
			return -1;
	}
	return 0;
}

static int check_entry(struct check *check, const struct rules_note *entry)
{
	const struct note_row *own = note_row_filled(check->rows, entry->key);
	size_t first = check->findings->violation_count;
	struct authors authors;
	bool may_waive = true;

	if (own == NULL)
		return 0;
	if (authors_load(check->s, own, &authors, check->f) != 0)
		return -1;
	if (check->require_verified && own->verification != VERIFICATION_VERIFIED)
		add(check, entry, UNVERIFIED, STR_NONE);
	for (size_t i = 0; i < entry->independent_count; i++)
		if (check_seat(check, entry, own, &authors, entry->independent_of[i], &may_waive) != 0)
			return -1;
	for (size_t i = first; i < check->findings->violation_count && own->is_temporal && may_waive; i++)
		if (check->findings->violations[i].constraint == SAME_ACTOR)
			check->findings->violations[i].is_waived = true;
	return 0;
}

static bool declares(const struct schema *schema)
{
	for (size_t i = 0; i < schema->note_count; i++)
		if (schema->notes[i].independent_count > 0)
			return true;
	return false;
}

int independence_check(struct snapshot *s, struct call *call, const struct item *item,
	const struct schema *schema, const struct note_rows *rows, enum note_scope scope,
	struct note_findings *findings, struct failure *f)
{
	struct check check = {.s = s, .schema = schema, .rows = rows, .findings = findings, .f = f};
	const struct rules_view *view;
	enum rules_mode mode;

	if (!declares(schema))
		return 0;
	if (call_view(s, call, item->root_n, &view, f) != 0)
		return -1;
	mode = rules_independence(view, &check.require_verified);
	if (mode == RULES_OFF)
		return 0;
	findings->checks_independence = true;
	for (size_t i = 0; i < schema->note_count; i++) {
		const struct rules_note *entry = &schema->notes[i];

		if (entry->independent_count == 0 || (scope == NOTES_OF_ROLE && entry->role != item->role))
			continue;
		if (check_entry(&check, entry) != 0)
			return -1;
	}
	for (size_t i = 0; i < findings->violation_count && mode == RULES_REJECT; i++)
		findings->is_refused = findings->is_refused || !findings->violations[i].is_waived;
	return 0;
}
