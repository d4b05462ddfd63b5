/* The transition table. tests/unit/work/test_table.c walks every state and trigger. */
#include "work/table.h"

#include "base/json.h"

/* Besides roles, a cell may say: */
enum { TO_NEXT_PHASE = 10, TO_PREVIOUS };

/* A row reads: in FROM, TRIGGER leads TO. What is not listed is refused. */
static const struct rule {
	enum role from;
	enum trigger trigger;
	int to;
} rules[] = {
	/* clang-format off */
	{ROLE_QUEUE,    TRIGGER_START,    ROLE_WORK},
	{ROLE_QUEUE,    TRIGGER_COMPLETE, ROLE_TERMINAL},
	{ROLE_QUEUE,    TRIGGER_BLOCK,    ROLE_BLOCKED},
	{ROLE_QUEUE,    TRIGGER_HOLD,     ROLE_BLOCKED},
	{ROLE_QUEUE,    TRIGGER_CANCEL,   ROLE_TERMINAL},
	{ROLE_WORK,     TRIGGER_START,    TO_NEXT_PHASE}, /* review, where the schema has it */
	{ROLE_WORK,     TRIGGER_COMPLETE, ROLE_TERMINAL},
	{ROLE_WORK,     TRIGGER_BLOCK,    ROLE_BLOCKED},
	{ROLE_WORK,     TRIGGER_HOLD,     ROLE_BLOCKED},
	{ROLE_WORK,     TRIGGER_CANCEL,   ROLE_TERMINAL},
	{ROLE_REVIEW,   TRIGGER_START,    ROLE_TERMINAL},
	{ROLE_REVIEW,   TRIGGER_COMPLETE, ROLE_TERMINAL},
	{ROLE_REVIEW,   TRIGGER_BLOCK,    ROLE_BLOCKED},
	{ROLE_REVIEW,   TRIGGER_HOLD,     ROLE_BLOCKED},
	{ROLE_REVIEW,   TRIGGER_CANCEL,   ROLE_TERMINAL},
	{ROLE_BLOCKED,  TRIGGER_RESUME,   TO_PREVIOUS},
	{ROLE_BLOCKED,  TRIGGER_CANCEL,   ROLE_TERMINAL},
	{ROLE_TERMINAL, TRIGGER_REOPEN,   ROLE_QUEUE},
	/* clang-format on */
};

/* A row reads: a parent in FROM, reached by CASCADE, goes TO, or is held by its role. A parent in review is
 * advanced by people only; one that is blocked was parked on purpose. */
static const struct cascade_rule {
	enum role from;
	enum cascade cascade;
	enum cascade_verdict verdict;
	enum role to;
} cascade_rules[] = {
	/* clang-format off */
	{ROLE_QUEUE,    CASCADE_COMPLETE, CASCADE_GOES, ROLE_TERMINAL},
	{ROLE_WORK,     CASCADE_COMPLETE, CASCADE_GOES, ROLE_TERMINAL},
	{ROLE_REVIEW,   CASCADE_COMPLETE, CASCADE_HELD, ROLE_TERMINAL},
	{ROLE_BLOCKED,  CASCADE_COMPLETE, CASCADE_HELD, ROLE_TERMINAL},
	{ROLE_QUEUE,    CASCADE_START,    CASCADE_GOES, ROLE_WORK},
	{ROLE_TERMINAL, CASCADE_REOPEN,   CASCADE_GOES, ROLE_WORK},
	/* clang-format on */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct rule *find(enum role from, enum trigger trigger)
{
	for (size_t i = 0; i < COUNT(rules); i++)
		if (rules[i].from == from && rules[i].trigger == trigger)
			return &rules[i];
	return NULL;
}

static bool is_phase(enum role role)
{
	return role == ROLE_QUEUE || role == ROLE_WORK || role == ROLE_REVIEW;
}

bool table_target(enum role from, enum trigger trigger, bool has_review, enum role prev, enum role *out)
{
	const struct rule *rule = find(from, trigger);

	if (rule == NULL || (rule->to == TO_PREVIOUS && !is_phase(prev)))
		return false;
	if (rule->to == TO_PREVIOUS)
		*out = prev;
	else if (rule->to == TO_NEXT_PHASE)
		*out = has_review ? ROLE_REVIEW : ROLE_TERMINAL;
	else
		*out = (enum role)rule->to;
	return true;
}

struct str table_allowed(struct arena *arena, enum role from, enum role prev)
{
	struct json_writer w;
	struct buf text;
	enum role to;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (int trigger = TRIGGER_START; trigger < TRIGGER_CASCADE; trigger++)
		if (table_target(from, (enum trigger)trigger, true, prev, &to))
			jw_text(&w, trigger_name((enum trigger)trigger));
	jw_array_end(&w);
	return buf_str(&text);
}

const char *cascade_name(enum cascade cascade)
{
	static const char *const names[] = {"", "complete", "start", "reopen"};

	return names[cascade];
}

enum cascade_verdict table_cascade(enum role from, enum cascade cascade, enum role *out_to)
{
	for (size_t i = 0; i < COUNT(cascade_rules); i++) {
		if (cascade_rules[i].from != from || cascade_rules[i].cascade != cascade)
			continue;
		*out_to = cascade_rules[i].to;
		return cascade_rules[i].verdict;
	}
	return CASCADE_SILENT;
}
