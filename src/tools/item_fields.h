/* tools/item_fields.h - the parameters that every way to make or change an item shares. */
#ifndef DAIS_TOOLS_ITEM_FIELDS_H
#define DAIS_TOOLS_ITEM_FIELDS_H

#include "base/limits.h"
#include "tools/tool.h"
#include "work/items.h"

/* `fixed` are flags of what an item always has (REQUIRED for a title that must be given, NOT_NULL for an update),
 * `open` of what it may lack (NULLABLE for an update). */
#define ITEM_FIELDS(type_, member, fixed, open) \
	FIELD(type_, member.title, "title", FIELD_STR, TRIMMED | NOT_BLANK | (fixed), .min = 1, \
		.max = LIMIT_TITLE_CHARS), \
	FIELD(type_, member.summary, "summary", FIELD_STR, (open), .max = LIMIT_SUMMARY_CHARS), \
	FIELD(type_, member.description, "description", FIELD_STR, NOT_BLANK | IN_BYTES | (open), \
		.max = LIMIT_DESCRIPTION_BYTES), \
	FIELD(type_, member.priority, "priority", FIELD_WORD, (fixed) & ~(unsigned)REQUIRED, .words = priority_words, \
		.fallback = "medium"), \
	FIELD(type_, member.complexity, "complexity", FIELD_INT, (open), .min = 1, .max = 10), \
	FIELD(type_, member.type, "type", FIELD_STR, NOT_BLANK | (open), .min = 1, .max = LIMIT_TYPE_CHARS), \
	FIELD(type_, member.tags, "tags", FIELD_STRS, UNIQUE_ENTRIES | ((fixed) & ~(unsigned)REQUIRED), \
		.max = LIMIT_TAGS, .item_max = LIMIT_TYPE_CHARS, .legal = item_is_tag, \
		.syntax = "lower-case letters, digits and hyphens"), \
	FIELD(type_, member.traits, "traits", FIELD_STRS, UNIQUE_ENTRIES | NOT_BLANK | ((fixed) & ~(unsigned)REQUIRED), \
		.max = LIMIT_TAGS, .item_max = LIMIT_TYPE_CHARS), \
	FIELD(type_, member.requires_verification, "requiresVerification", FIELD_BOOL, 0, .fallback = "false"), \
	FIELD(type_, member.properties, "properties", FIELD_JSON, (open), .max = LIMIT_PROPERTIES_BYTES), \
	FIELD(type_, member.metadata, "metadata", FIELD_STR, IN_BYTES | (open), .max = LIMIT_PROPERTIES_BYTES)

/* What other trackers let one set; here it is earned. */
extern const struct field item_moved_fields[];
#define ITEM_FIELDS_END FIELDS_END_BUT(item_moved_fields)

#endif
