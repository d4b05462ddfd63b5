/* What we ask of the server, through the bridge. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"

#include <inttypes.h>

static bool begin(struct opencode *o, struct request *r, const char *kind, const char *method, struct str path, struct agent_out *out)
{
	struct str id;

	if (json_object_size(o->requested) >= LIMIT_OPENCODE_REQUESTS)
		return false;
	r->out = out;
	id = str_printf(out->arena, "%" PRId64, ++o->requests);
	r->row = json_object();
	json_object_set_new(r->row, "kind", json_string(kind));
	json_object_setn_new(o->requested, id.p, id.n, r->row);
	buf_init(&r->text, out->arena, SIZE_MAX);
	json_writer_init(&r->w, &r->text);
	jw_object_begin(&r->w);
	jw_kstr(&r->w, "id", id);
	jw_ktext(&r->w, "method", method);
	jw_kstr(&r->w, "path", path);
	return true;
}

bool opencode_request(struct opencode *o, const char *kind, const char *method, struct str path, struct agent_out *out)
{
	struct request r;

	if (!begin(o, &r, kind, method, path, out))
		return false;
	jw_object_end(&r.w);
	agent_out_line(out, buf_str(&r.text), false);
	return true;
}

bool opencode_request_begin(struct opencode *o, struct request *r, const char *kind, const char *method, struct str path,
	struct agent_out *out)
{
	if (!begin(o, r, kind, method, path, out))
		return false;
	jw_kobject(&r->w, "body");
	return true;
}

void opencode_request_end(struct request *r, bool has_secret)
{
	jw_object_end(&r->w);
	jw_object_end(&r->w);
	agent_out_line(r->out, buf_str(&r->text), has_secret);
}

static void rule(struct json_writer *w, const char *permission, const char *action)
{
	jw_object_begin(w);
	jw_ktext(w, "permission", permission);
	jw_ktext(w, "pattern", "*");
	jw_ktext(w, "action", action);
	jw_object_end(w);
}

/* The last one that matches wins. A sub-agent has a session of its own, without these rules: only full access may have one. */
void opencode_write_rules(const struct opencode *o, enum interaction_mode interaction, struct json_writer *w)
{
	static const char *const harmless[] = {"read", "glob", "grep", "list", "todowrite", "todoread", "question", "dais_*"};
	bool is_read_only = o->is_confined || o->runtime == RUNTIME_READ_ONLY;
	bool is_planning = interaction == INTERACTION_PLAN;

	jw_karray(w, "permission");
	if (o->runtime == RUNTIME_FULL_ACCESS && !is_read_only && !is_planning) {
		rule(w, "*", "allow");
		jw_array_end(w);
		return;
	}
	rule(w, "*", is_read_only ? "deny" : "ask");
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		rule(w, harmless[i], "allow");
	rule(w, "task", "deny");
	if (!is_read_only && is_planning)
		rule(w, "edit", "deny");
	else if (!is_read_only && o->runtime == RUNTIME_AUTO_ACCEPT_EDITS)
		rule(w, "edit", "allow");
	jw_array_end(w);
}
