/* Items as JSON: the default projections hold no long text. */
#include "work/work.h"

void jw_id(struct json_writer *w, struct call *call, const char *key, struct id id)
{
	char text[ID_TEXT_SIZE];

	id_format(id, text);
	/* Short ids are hints for typing. Eight digits collide once in four billion pairs; what does not
	 * resolve is answered by ambiguous_id with the candidates. */
	if (call->short_ids)
		text[8] = '\0';
	jw_ktext(w, key, text);
}

static void ref_members(struct json_writer *w, struct call *call, const struct item *item)
{
	jw_id(w, call, "id", item->id);
	jw_kstr(w, "title", item->title);
	jw_ktext(w, "role", role_name(item->role));
	jw_ktext(w, "priority", priority_name(item->priority));
	jw_kstr_opt(w, "type", item->type);
	if (item->parent_n != 0)
		jw_id(w, call, "parentId", item->parent_id);
	jw_kstr_opt(w, "statusLabel", item->label);
}

void item_write_ref(struct json_writer *w, struct call *call, const struct item *item)
{
	ref_members(w, call, item);
}

void item_write_full(struct json_writer *w, struct call *call, const struct item *item)
{
	ref_members(w, call, item);
	jw_id(w, call, "rootId", item->root_id);
	jw_kint(w, "depth", item->depth);
	jw_kstr_opt(w, "summary", item->summary);
	if (item->tags.n > 2)
		jw_kraw(w, "tags", item->tags);
	if (item->traits.n > 2)
		jw_kraw(w, "traits", item->traits);
	if (item->complexity != COMPLEXITY_NONE)
		jw_kint(w, "complexity", item->complexity);
	jw_kbool_opt(w, "requiresVerification", item->requires_verification);
	if (item->role == ROLE_BLOCKED)
		jw_ktext(w, "previousRole", role_name(item->prev_role));
	jw_kint(w, "version", item->version);
	jw_ktime(w, "createdAt", item->created_at);
	jw_ktime(w, "modifiedAt", item->modified_at);
	jw_ktime(w, "roleChangedAt", item->role_changed_at);
}

SQL(SQL_PRINCIPAL_ROW, "SELECT id, kind, parent FROM principal WHERE n = $1");

int actor_write(struct json_writer *w, struct snapshot *s, struct call *call, const char *key, int64_t actor_n,
	struct str seat, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (!call->caller->sees_actors)
		return 0;
	if (query(s, &q, f, SQL_PRINCIPAL_ROW, "i", actor_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	jw_kobject(w, key);
	jw_kstr(w, "id", col_str(&q, 0));
	jw_ktext(w, "kind", principal_kind_name((enum principal_kind)col_int(&q, 1)));
	jw_kstr_opt(w, "parent", col_str(&q, 2));
	jw_kstr_opt(w, "seat", seat);
	jw_object_end(w);
	return 0;
}
