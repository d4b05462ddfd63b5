/* Items as JSON: the default projections hold no long text. */
#include "work/work.h"

void jw_id_of(struct json_writer *w, struct call *call, const char *key, enum id_kind kind, struct id id)
{
	char text[ID_TEXT_SIZE];

	if (call->short_ids) {
		jw_kstr(w, key, id_shown(call, kind, id));
		return;
	}
	id_format(id, text);
	jw_ktext(w, key, text);
}

void jw_id(struct json_writer *w, struct call *call, const char *key, struct id id)
{
	jw_id_of(w, call, key, KIND_ITEM, id);
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

SQL(SQL_RUN_ID, "SELECT id FROM run WHERE n = $1");

/* A run that is gone with its project left no id to show. */
static int write_run_id(struct json_writer *w, struct snapshot *s, struct call *call, int64_t run_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (run_n == 0)
		return 0;
	if (query(s, &q, f, SQL_RUN_ID, "i", run_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		jw_id_of(w, call, "runId", KIND_RUN, col_id(&q, 0));
	return rc < 0 ? -1 : 0;
}

int actor_write(struct json_writer *w, struct snapshot *s, struct call *call, const char *key, int64_t actor_n,
	int64_t run_n, struct str seat, struct failure *f)
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
	if (write_run_id(w, s, call, run_n, f) != 0)
		return -1;
	jw_object_end(w);
	return 0;
}

/* A credential that carries no proof is taken by the verifier that checks none. */
static struct str verifier_of(enum verification verification, struct str verifier)
{
	return verifier.n == 0 && verification == VERIFICATION_UNCHECKED ? STR("noop") : verifier;
}

void verification_write(struct json_writer *w, struct call *call, enum verification verification, struct str verifier,
	struct str reason)
{
	if (!call->caller->sees_actors)
		return;
	jw_kobject(w, "verification");
	jw_ktext(w, "status", verification_name(verification));
	jw_kstr_opt(w, "verifier", verifier_of(verification, verifier));
	jw_kstr_opt(w, "reason", reason);
	jw_object_end(w);
}
