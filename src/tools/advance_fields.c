/* Argument tables of the workflow engine. */
#include "tools/advance_fields.h"

#include "base/limits.h"
#include "work/select.h"

/* clang-format off */
static const struct word trigger_words[] = {
	{"start", TRIGGER_START}, {"complete", TRIGGER_COMPLETE}, {"block", TRIGGER_BLOCK},
	{"hold", TRIGGER_HOLD}, {"resume", TRIGGER_RESUME}, {"cancel", TRIGGER_CANCEL},
	{"reopen", TRIGGER_REOPEN}, WORDS_END,
};

static const struct word tree_trigger_words[] = {
	{"complete", TRIGGER_COMPLETE}, {"cancel", TRIGGER_CANCEL}, WORDS_END,
};

static const struct word order_words[] = {
	{"priority", SELECT_BY_PRIORITY}, {"oldest", SELECT_OLDEST}, {"newest", SELECT_NEWEST}, WORDS_END,
};

const struct field gate_fields[] = {
	FIELD(struct gate_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct gate_args, trigger, "trigger", FIELD_WORD, FOLDED, .words = trigger_words, .fallback = "start"),
	FIELDS_END,
};

const struct field next_fields[] = {
	FILTER_FIELDS(struct next_args, filter, open_role_words),
	FIELD(struct next_args, order, "orderBy", FIELD_WORD, FOLDED, .words = order_words, .fallback = "priority"),
	FIELD(struct next_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_NEXT_ITEMS, .fallback = "1"),
	FIELD(struct next_args, include_claimed, "includeClaimed", FIELD_BOOL, 0, .fallback = "false"),
	FIELD(struct next_args, include_details, "includeDetails", FIELD_BOOL, 0, .fallback = "false",
		.help = "adds summary, tags"),
	FIELD(struct next_args, fields, "fields", FIELD_STRS, UNIQUE_ENTRIES, .min = 1, .max = 10, .item_max = 40,
		.help = "ancestors, noteProgress"),
	FIELDS_END,
};

const struct field complete_tree_fields[] = {
	FIELD(struct complete_tree_args, item, "itemId", FIELD_ID, 0, .group = "target"),
	FIELD(struct complete_tree_args, items, "itemIds", FIELD_IDS, UNIQUE_ENTRIES, .min = 1, .group = "target"),
	FIELD(struct complete_tree_args, trigger, "trigger", FIELD_WORD, FOLDED, .words = tree_trigger_words,
		.fallback = "complete"),
	FIELD(struct complete_tree_args, include_root, "includeRoot", FIELD_BOOL, 0, .fallback = "true",
		.help = "itemId itself too"),
	FIELD(struct complete_tree_args, summary, "summary", FIELD_STR, 0, .max = LIMIT_SUMMARY_CHARS),
	FIELDS_END,
};

const struct field transition_fields[] = {
	FIELD(struct transition_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct transition_args, trigger, "trigger", FIELD_STR, REQUIRED | TRIMMED, .min = 1, .max = 100,
		.help = "start, complete, block, hold, resume, cancel or reopen"),
	FIELD(struct transition_args, summary, "summary", FIELD_STR, 0, .max = LIMIT_SUMMARY_CHARS,
		.help = "kept in the history"),
	FIELD(struct transition_args, credentials, "consumedCredentials", FIELD_STRS, UNIQUE_ENTRIES,
		.max = LIMIT_CREDENTIALS, .item_max = LIMIT_RESOURCE_KEY_CHARS, .legal = rules_is_resource_key,
		.syntax = "resource keys: lower-case letters, digits, - _ . /"),
	FIELD(struct transition_args, expected_version, "expectedVersion", FIELD_INT, 0, .min = 1, .max = INT64_MAX),
	FIELD(struct transition_args, expected_role, "expectedRole", FIELD_WORD, FOLDED, .words = role_words),
	FIELD(struct transition_args, assert_config, "assertConfig", FIELD_INT, 0, .max = INT64_MAX,
		.help = "configVersion that this was planned with"),
	FIELD(struct transition_args, claim_gen, "claimGen", FIELD_INT, 0, .max = INT64_MAX,
		.help = "from claim: fails when that claim has ended"),
	FIELDS_END,
};

static const struct field selector_fields[] = {
	FILTER_FIELDS(struct selector_args, filter, open_role_words),
	FIELD(struct selector_args, order, "orderBy", FIELD_WORD, FOLDED, .words = order_words, .fallback = "priority"),
	FIELDS_END,
};

const struct field claim_fields[] = {
	FIELD(struct claim_args, item, "itemId", FIELD_ID, 0, .group = "target"),
	FIELD(struct claim_args, selector, "selector", FIELD_OBJECT, 0, .group = "target", .fields = selector_fields,
		.item_size = sizeof(struct selector_args), .help = "the next item that matches; {} is any"),
	FIELD(struct claim_args, ttl, "ttlSeconds", FIELD_INT, 0, .min = 1, .max = LIMIT_CLAIM_TTL_SECONDS,
		.fallback = "900"),
	FIELD(struct claim_args, claim_ref, "claimRef", FIELD_STR, 0, .max = LIMIT_CLAIM_REF_CHARS,
		.help = "echoed, not stored"),
	FIELDS_END,
};

const struct field release_fields[] = {
	FIELD(struct release_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct release_args, claim_ref, "claimRef", FIELD_STR, 0, .max = LIMIT_CLAIM_REF_CHARS),
	FIELD(struct release_args, summary, "summary", FIELD_STR, 0, .max = LIMIT_SUMMARY_CHARS),
	FIELDS_END,
};

const struct field heartbeat_fields[] = {
	FIELD(struct heartbeat_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct heartbeat_args, ttl, "ttlSeconds", FIELD_INT, 0, .min = 1, .max = LIMIT_CLAIM_TTL_SECONDS,
		.fallback = "that of the claim"),
	FIELD(struct heartbeat_args, claim_gen, "claimGen", FIELD_INT, 0, .max = INT64_MAX),
	FIELDS_END,
};
/* clang-format on */

int complete_tree_check(const void *args, struct str path, struct failure *f)
{
	const struct complete_tree_args *in = args;

	if (in->items.n > LIMIT_COMPLETE_ITEMS) {
		(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "At most %d items can be ended at once, got %zu.",
			LIMIT_COMPLETE_ITEMS, in->items.n);
		fail_detail_int(f, "max", LIMIT_COMPLETE_ITEMS);
		fail_detail_int(f, "actual", (int64_t)in->items.n);
		return -1;
	}
	if (in->items.set && in->include_root.set)
		return fail_field(f, str_printf(f->arena, "%.*sincludeRoot", STRF(path)), STR_NONE,
			"belongs to itemId, not to itemIds");
	return 0;
}
