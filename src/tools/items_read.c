/* items_read: see the graph: items, lists, search, the shape, what goes on, gates, rules, history. */
#include "tools/advance_fields.h"
#include "work/items.h"
#include "work/parts.h"
#include "work/search.h"

#include "base/limits.h"

/* clang-format off */
#define FIELDS_FIELD(type_) \
	FIELD(type_, fields, "fields", FIELD_STRS, UNIQUE_ENTRIES, .min = 1, .max = 20, .item_max = 40)

static const struct word claim_status_words[] = {
	{"claimed", CLAIM_STATUS_CLAIMED}, {"unclaimed", CLAIM_STATUS_UNCLAIMED}, {"expired", CLAIM_STATUS_EXPIRED},
	WORDS_END,
};

static const struct word sort_words[] = {
	{"priority", SORT_PRIORITY}, {"createdAt", SORT_CREATED}, {"modifiedAt", SORT_MODIFIED},
	{"roleChangedAt", SORT_ROLE_CHANGED}, {"title", SORT_TITLE}, {"complexity", SORT_COMPLEXITY}, WORDS_END,
};

static const struct word dir_words[] = {{"asc", SORT_ASC}, {"desc", SORT_DESC}, WORDS_END};

static const struct word trigger_words[] = {
	{"start", TRIGGER_START}, {"complete", TRIGGER_COMPLETE}, {"block", TRIGGER_BLOCK}, {"hold", TRIGGER_HOLD},
	{"resume", TRIGGER_RESUME}, {"cancel", TRIGGER_CANCEL}, {"reopen", TRIGGER_REOPEN},
	{"cascade", TRIGGER_CASCADE}, WORDS_END,
};

static const struct word kind_words[] = {{"item", SEARCH_ITEMS}, {"note", SEARCH_NOTES}, WORDS_END};

static const struct word mode_words[] = {
	{"auto", MATCH_AUTO}, {"substring", MATCH_SUBSTRING}, {"text", MATCH_TEXT}, WORDS_END,
};

static const struct word note_role_words[] = {
	{"queue", ROLE_QUEUE}, {"work", ROLE_WORK}, {"review", ROLE_REVIEW}, WORDS_END,
};

static const struct field get_fields[] = {
	FIELD(struct get_args, item, "itemId", FIELD_ID, 0, .group = "target"),
	FIELD(struct get_args, items, "itemIds", FIELD_IDS, 0, .min = 1, .max = LIMIT_GET_ITEMS, .group = "target"),
	FIELDS_FIELD(struct get_args),
	FIELDS_END,
};

static const struct field list_fields[] = {
	FILTER_FIELDS(struct list_args, filter, role_words),
	FIELD(struct list_args, exclude_terminal, "excludeTerminal", FIELD_BOOL, 0, .fallback = "false"),
	FIELD(struct list_args, claim_status, "claimStatus", FIELD_WORD, 0, .words = claim_status_words),
	FIELD(struct list_args, sort_by, "sortBy", FIELD_WORD, 0, .words = sort_words, .fallback = "createdAt"),
	FIELD(struct list_args, sort_dir, "sortDir", FIELD_WORD, 0, .words = dir_words,
		.fallback = "desc; asc for priority, title, complexity"),
	FIELD(struct list_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LIST_PAGE, .fallback = "50"),
	FIELD(struct list_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_FIELD(struct list_args),
	FIELDS_END,
};

static const struct field search_fields[] = {
	FIELD(struct search_args, query, "query", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1, .max = LIMIT_QUERY_CHARS,
		.help = "plain words; nothing in it is syntax"),
	FIELD(struct search_args, kinds, "kinds", FIELD_WORDS, UNIQUE_ENTRIES, .words = kind_words, .min = 1, .max = 2,
		.fallback = "both"),
	FIELD(struct search_args, mode, "matchMode", FIELD_WORD, 0, .words = mode_words, .fallback = "auto"),
	FIELD(struct search_args, item, "itemId", FIELD_ID, 0, .help = "this item and its notes"),
	FILTER_FIELDS(struct search_args, filter, role_words),
	FIELD(struct search_args, exclude_terminal, "excludeTerminal", FIELD_BOOL, 0, .fallback = "false"),
	FIELD(struct search_args, note_roles, "noteRoles", FIELD_WORDS, UNIQUE_ENTRIES | FOLDED, .words = note_role_words,
		FILTER_LIST),
	FIELD(struct search_args, note_keys, "noteKeys", FIELD_STRS, UNIQUE_ENTRIES, FILTER_LIST,
		.item_max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct search_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_SEARCH_HITS, .fallback = "20"),
	FIELD(struct search_args, cursor, "cursor", FIELD_STR, 0),
	FIELD(struct search_args, explain, "explain", FIELD_BOOL, 0, .fallback = "false"),
	FIELDS_FIELD(struct search_args),
	FIELDS_END,
};

static const struct field overview_fields[] = {
	FIELD(struct overview_args, item, "itemId", FIELD_ID, 0, .help = "that item and its children"),
	FIELD(struct overview_args, anchor, "anchorId", FIELD_ID, 0, .help = "its children, with counts of whole subtrees"),
	FIELD(struct overview_args, include_children, "includeChildren", FIELD_BOOL, 0, .fallback = "false"),
	FIELD(struct overview_args, exclude_terminal, "excludeTerminal", FIELD_BOOL, 0, .fallback = "false"),
	FIELD(struct overview_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LIST_PAGE, .fallback = "50"),
	FIELD(struct overview_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_FIELD(struct overview_args),
	FIELDS_END,
};

static const struct field context_fields[] = {
	FIELD(struct context_args, ancestor, "ancestorId", FIELD_ID, 0),
	FIELD(struct context_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct context_args, since, "since", FIELD_TIME, 0, .help = "with it context adds the 10 newest transitions after it"),
	FIELD(struct context_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LONG_PAGE, .fallback = "50",
		.help = "rows of each bucket"),
	FIELDS_FIELD(struct context_args),
	FIELDS_END,
};

static const struct field schema_fields[] = {
	FIELD(struct schema_args, item, "itemId", FIELD_ID, 0),
	FIELD(struct schema_args, type, "type", FIELD_STR, NOT_BLANK, .max = LIMIT_TYPE_CHARS),
	FIELD(struct schema_args, root, "rootId", FIELD_ID, 0),
	FIELDS_END,
};

static const struct field history_fields[] = {
	FIELD(struct history_args, item, "itemId", FIELD_ID, 0),
	FIELD(struct history_args, ancestor, "ancestorId", FIELD_ID, 0, .help = "it and all below it"),
	FIELD(struct history_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct history_args, since, "since", FIELD_TIME, 0),
	FIELD(struct history_args, until, "until", FIELD_TIME, 0),
	FIELD(struct history_args, triggers, "triggers", FIELD_WORDS, FOLDED | UNIQUE_ENTRIES, .words = trigger_words,
		FILTER_LIST),
	FIELD(struct history_args, include_cascades, "includeCascades", FIELD_BOOL, 0, .fallback = "true"),
	FIELD(struct history_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LONG_PAGE, .fallback = "10"),
	FIELD(struct history_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};
/* clang-format on */

static int excludes(bool a, bool b, struct str path, const char *name, const char *other, struct failure *f)
{
	if (!a || !b)
		return 0;
	return fail_field(f, str_printf(f->arena, "%.*s%s", STRF(path), name), STR_NONE, "excludes %s", other);
}

static int get(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_get(s, call, args, out, f);
}

static int get_check(const void *args, struct str path, struct failure *f)
{
	return parts_check(&((const struct get_args *)args)->fields, PART_ALL, path, f);
}

static int list(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_list(s, call, args, out, f);
}

static int list_check(const void *args, struct str path, struct failure *f)
{
	return parts_check(&((const struct list_args *)args)->fields, PART_ALL, path, f);
}

static int search(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_search(s, call, args, out, f);
}

static int search_check(const void *args, struct str path, struct failure *f)
{
	const struct search_args *in = args;

	(void)parts_check(&in->fields, PART_ANCESTORS, path, f);
	return excludes(in->item.set, in->filter.ancestor.set, path, "itemId", "ancestorId", f);
}

static int overview(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return items_overview(s, call, args, out, f);
}

static int overview_check(const void *args, struct str path, struct failure *f)
{
	const struct overview_args *in = args;

	(void)parts_check(&in->fields, PART_ALL, path, f);
	return excludes(in->item.set, in->anchor.set, path, "itemId", "anchorId", f);
}

static int context(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_context(s, call, args, out, f);
}

static int context_check(const void *args, struct str path, struct failure *f)
{
	const struct context_args *in = args;

	(void)context_fields_check(&in->fields, path, f);
	return excludes(in->ancestor.set, in->root.set, path, "ancestorId", "rootId", f);
}

static int gate(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_gate(s, call, args, out, f);
}

static int next(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_next(s, call, args, out, f);
}

static int schema(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_schema(s, call, args, out, f);
}

static int schema_check(const void *args, struct str path, struct failure *f)
{
	const struct schema_args *in = args;

	(void)excludes(in->item.set, in->type.set, path, "itemId", "type", f);
	return excludes(in->item.set, in->root.set, path, "itemId", "rootId", f);
}

static int history(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_history(s, call, args, out, f);
}

static int history_check(const void *args, struct str path, struct failure *f)
{
	const struct history_args *in = args;

	(void)excludes(in->item.set, in->ancestor.set, path, "itemId", "ancestorId", f);
	(void)excludes(in->item.set, in->root.set, path, "itemId", "rootId", f);
	return excludes(in->ancestor.set, in->root.set, path, "ancestorId", "rootId", f);
}

#define PROFILES_ALL (PROFILE_WORK | PROFILE_KNOWLEDGE | PROFILE_DIRECTOR)

static const struct operation selects[] = {
	{
		.name = "get",
		.summary = "One item, or several, with the parts that fields names.",
		.fields = get_fields,
		.args_size = sizeof(struct get_args),
		.profiles = PROFILES_ALL,
		.capability = CAP_READ,
		.read = get,
		.check = get_check,
		.returns = "{item} or {items,missing?:[{id,code}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"get\",\"itemId\":\"9a60c7d1\",\"fields\":[\"ancestors\",\"childCounts\"]}",
		.is_quick = true,
	},
	{
		.name = "list",
		.summary = "Items that match filters, page by page.",
		.fields = list_fields,
		.args_size = sizeof(struct list_args),
		.profiles = PROFILES_ALL,
		.capability = CAP_READ,
		.read = list,
		.check = list_check,
		.returns = "{items}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"list\",\"parentId\":\"c41f9e02\",\"roles\":[\"queue\",\"work\"],\"sortBy\":\"priority\"}",
	},
	{
		.name = "search",
		.summary = "Full text over titles, summaries and notes.",
		.fields = search_fields,
		.args_size = sizeof(struct search_args),
		.profiles = PROFILES_ALL,
		.capability = CAP_READ,
		.read = search,
		.check = search_check,
		.returns = "{hits,truncated?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"search\",\"query\":\"hull berth\",\"kinds\":[\"note\"],\"ancestorId\":\"c41f9e02\"}",
	},
	{
		.name = "overview",
		.summary = "The shape of the hierarchy, with counts by role.",
		.fields = overview_fields,
		.args_size = sizeof(struct overview_args),
		.profiles = PROFILES_ALL,
		.capability = CAP_READ,
		.read = overview,
		.check = overview_check,
		.returns = "{roots,totals,claims?} or {item,children?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"overview\",\"excludeTerminal\":true}",
	},
	{
		.name = "context",
		.summary = "Resume a session: what is active, blocked, stalled, ready to close, and held.",
		.fields = context_fields,
		.args_size = sizeof(struct context_args),
		.profiles = PROFILE_WORK | PROFILE_DIRECTOR,
		.capability = CAP_READ,
		.read = context,
		.check = context_check,
		.returns = "{active?,blocked?,stalled?,ready_to_close?,claims?,counts,truncated?,recent?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"context\",\"rootId\":\"5b7d20c4\"}",
	},
	{
		.name = "gate",
		.summary = "Whether a trigger would pass, and everything that stands against it.",
		.fields = gate_fields,
		.args_size = sizeof(struct gate_args),
		.profiles = PROFILE_WORK | PROFILE_DIRECTOR,
		.capability = CAP_READ,
		.read = gate,
		.returns = "{itemId,role,trigger,canAdvance,targetRole?,blockedBy?,missing?,missingBySeat?,violations?,"
			   "blockers?,resources?,noteProgress,guidanceKey?,skillPointer?,dispatch?,lifecycle,schema?,"
			   "claim?,lease?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"gate\",\"itemId\":\"9a60c7d1\"}",
	},
	{
		.name = "next",
		.summary = "What to work on, without claiming it.",
		.fields = next_fields,
		.args_size = sizeof(struct next_args),
		.profiles = PROFILE_WORK | PROFILE_DIRECTOR,
		.capability = CAP_READ,
		.read = next,
		.returns = "{items,none?:{reason,excluded?,retryAfterMs?}}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"next\",\"ancestorId\":\"c41f9e02\"}",
	},
	{
		.name = "schema",
		.summary = "The effective rules of an item or a type, with all their text.",
		.fields = schema_fields,
		.args_size = sizeof(struct schema_args),
		.profiles = PROFILES_ALL,
		.capability = CAP_READ,
		.read = schema,
		.check = schema_check,
		.returns = "{type?,source,configFingerprint?,configVersion?,resolution,lifecycle,notes,traits,seats?,resources?,"
			   "dispatch?,dispatchBySeat?,statusLabels?,features} or {types,traits}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"schema\",\"type\":\"feature-task\",\"rootId\":\"5b7d20c4\"}",
	},
	{
		.name = "history",
		.summary = "Transitions, newest first.",
		.fields = history_fields,
		.args_size = sizeof(struct history_args),
		.profiles = PROFILES_ALL,
		.capability = CAP_READ,
		.read = history,
		.check = history_check,
		.returns = "{entries}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"history\",\"since\":\"2026-03-01T17:00:00Z\",\"rootId\":\"5b7d20c4\",\"limit\":1}",
	},
};

const struct tool tool_items_read = {
	.name = "items_read",
	.title = "Read items",
	.description = "See work items: get, list, search, overview, context, gate, next, schema, history.",
	.selects = selects,
	.select_count = sizeof(selects) / sizeof(selects[0]),
};
