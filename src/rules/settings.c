/* The small sections: labels, note limits, independence, ownership, schema resolution; and how the
 * two layers meet for each of them. */
#include "rules/document.h"

static const char *const label_keys[] = {
	"start", "complete", "block", "hold", "resume", "cancel", "reopen", "cascade", NULL,
};
static const char *const label_defaults[TRIGGER_COUNT] = {
	[TRIGGER_START] = "in-progress", [TRIGGER_COMPLETE] = "done", [TRIGGER_BLOCK] = "blocked",
	[TRIGGER_CANCEL] = "cancelled", [TRIGGER_CASCADE] = "done",
};
static const char *const mode_key[] = {"mode", NULL};
static const char *const independence_keys[] = {"mode", "require_verified", NULL};
static const char *const limit_modes[] = {"warn", "reject", NULL};
static const char *const independence_modes[] = {"off", "warn", "reject", NULL};
static const char *const resolutions[] = {"legacy", "layered", "isolated", NULL};
static const char *const ownerships[] = {"owner", "open", NULL};

static void check_keys(struct reading *r, const struct path *path, const struct yaml *map, const char *const *known)
{
	for (size_t i = 0; i < map->count; i++)
		if (!is_one_of(map->entries[i].key, known))
			remark(r, "W3", PATH_KEY(path, map->entries[i].key), map->entries[i].at,
				"unknown key, ignored%s", near_name(r, map->entries[i].key, known));
}

static struct str shown(const struct yaml *node)
{
	if (node->kind != YAML_TEXT)
		return str_of(yaml_kind_name(node));
	return (struct str){node->text.p, utf8_offset(node->text, 80)};
}

/* ---- labels ---- */

static bool are_labels(const struct yaml *node)
{
	if (node->kind != YAML_MAP)
		return false;
	for (size_t i = 0; i < node->count; i++)
		if (node->entries[i].value->kind != YAML_TEXT)
			return false;
	return true;
}

/* The one section that never refuses a document: labels are only shown. */
void read_labels(struct reading *r, const struct path *path, const struct yaml *node)
{
	struct rules_doc *doc = r->doc;

	if (yaml_is_null(node))
		return;
	if (!are_labels(node)) {
		remark(r, "labels_malformed", path, node->at,
			"expected a mapping of triggers to texts or null; the section is ignored");
		return;
	}
	doc->has_labels = true;
	check_keys(r, path, node, label_keys);
	for (int i = 0; i < TRIGGER_COUNT; i++) {
		const struct yaml *label = yaml_get(node, str_of(label_keys[i]));

		if (label == NULL)
			continue;
		doc->labels[i].is_given = true;
		if (!yaml_is_null(label) && !str_is_blank(label->text))
			doc->labels[i].text = str_dup(doc->arena, label->text);
	}
}

struct str rules_label(const struct rules_view *view, enum trigger trigger)
{
	if (view->project != NULL && view->project->labels[trigger].is_given)
		return view->project->labels[trigger].text;
	if (view->global != NULL && view->global->has_labels)
		return view->global->labels[trigger].text;
	return str_of(label_defaults[trigger]);
}

/* ---- modes ---- */

static enum rules_mode mode_of(struct str text)
{
	return str_eq(text, STR("off")) ? RULES_OFF : str_eq(text, STR("reject")) ? RULES_REJECT : RULES_WARN;
}

/* An unquoted off is a boolean to other readers of YAML; that nobody is caught by it, only the quoted
 * one switches off. */
static enum rules_mode read_mode(struct reading *r, const struct path *path, const struct yaml *map,
	const char *const *known, const char *code)
{
	const struct yaml *mode = yaml_get(map, STR("mode"));
	const struct path *at = PATH_KEY(path, STR("mode"));

	if (mode == NULL)
		return RULES_WARN;
	if (mode->kind == YAML_TEXT && mode->is_plain && yaml_looks_boolean(mode)) {
		remark(r, code, at, mode->at, "unquoted %.*s is a boolean in YAML 1.1%s; the mode is warn", STRF(shown(mode)),
			is_one_of(STR("off"), known) ? " (write \"off\" to switch it off)" : "");
		return RULES_WARN;
	}
	if (mode->kind == YAML_TEXT && is_one_of(mode->text, known))
		return mode_of(mode->text);
	remark(r, code, at, mode->at, "unknown mode %.*s; the mode is warn", STRF(shown(mode)));
	return RULES_WARN;
}

void read_note_limits(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);

	if (map == NULL)
		return;
	check_keys(r, path, map, mode_key);
	r->doc->has_note_limits = yaml_get(map, STR("mode")) != NULL;
	r->doc->note_limits = read_mode(r, path, map, limit_modes, "note_limits_unknown");
}

enum rules_mode rules_note_limits(const struct rules_view *view)
{
	if (view->project != NULL && view->project->has_note_limits)
		return view->project->note_limits;
	return view->global != NULL ? view->global->note_limits : RULES_WARN;
}

void read_independence(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);

	if (map == NULL)
		return;
	check_keys(r, path, map, independence_keys);
	r->doc->has_independence = true;
	r->doc->independence = read_mode(r, path, map, independence_modes, "independence_unknown");
	r->doc->require_verified = read_bool(r, path, map, "require_verified", false);
}

enum rules_mode rules_independence(const struct rules_view *view, bool *require_verified)
{
	const struct rules_doc *doc =
		view->project != NULL && view->project->has_independence ? view->project : view->global;

	*require_verified = doc != NULL && doc->require_verified;
	return doc != NULL ? doc->independence : RULES_WARN;
}

void read_ownership(struct reading *r, const struct path *path, const struct yaml *node)
{
	if (yaml_is_null(node))
		return;
	if (node->kind != YAML_TEXT) {
		refuse(r, path, node->at, "expected owner or open, found %s", yaml_kind_name(node));
		return;
	}
	if (!is_one_of(node->text, ownerships)) {
		remark(r, "ownership_unknown", path, node->at, "expected owner or open, not %.*s; taken as absent",
			STRF(shown(node)));
		return;
	}
	r->doc->has_ownership = true;
	r->doc->is_owner_only = str_eq(node->text, STR("owner"));
}

bool rules_owner_only(const struct rules_view *view)
{
	if (view->project != NULL && view->project->has_ownership)
		return view->project->is_owner_only;
	return view->global != NULL && view->global->is_owner_only;
}

/* ---- resolution ---- */

void read_resolution(struct reading *r, const struct path *path, const struct yaml *node)
{
	if (yaml_is_null(node))
		return;
	if (node->kind != YAML_TEXT) {
		refuse(r, path, node->at, "expected legacy, layered or isolated, found %s", yaml_kind_name(node));
		return;
	}
	for (int i = 0; resolutions[i] != NULL; i++)
		if (str_eq(node->text, str_of(resolutions[i]))) {
			r->doc->has_resolution = true;
			r->doc->resolution = (enum resolution)i;
		}
	if (!r->doc->has_resolution)
		remark(r, "resolution_unknown", path, node->at,
			"expected legacy, layered or isolated, not %.*s; taken as absent%s", STRF(shown(node)),
			near_name(r, node->text, resolutions));
	if (r->doc->is_global && r->doc->resolution == RESOLUTION_ISOLATED) {
		remark(r, "resolution_global_isolated", path, node->at,
			"the global document cannot be isolated from itself; taken as layered");
		r->doc->resolution = RESOLUTION_LAYERED;
	}
}

enum resolution rules_resolution(const struct rules_view *view)
{
	if (view->project != NULL && view->project->has_resolution)
		return view->project->resolution;
	return view->global != NULL ? view->global->resolution : RESOLUTION_LEGACY;
}
