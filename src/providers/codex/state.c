/* The state of a session between two inputs, as it is stored: one table for both directions, and three lists. */
#include "providers/codex/private.h"

#include <stdlib.h>

enum row_kind { ROW_STR, ROW_INT, ROW_BOOL, ROW_ENUM };

static const struct state_row {
	const char *name;
	enum row_kind kind;
	size_t offset;
	int count; /* of the words of an enum */
} rows[] = {
#define ROW(name, kind, member, count) {name, kind, offsetof(struct codex, member), count}
	ROW("phase", ROW_ENUM, phase, CODEX_DEAD + 1),
	ROW("runtime", ROW_ENUM, selected.runtime, RUNTIME_FULL_ACCESS + 1),
	ROW("interaction", ROW_ENUM, selected.interaction, INTERACTION_DEFAULT + 1),
	ROW("model", ROW_STR, selected.model, 0),
	ROW("effort", ROW_STR, selected.effort, 0),
	ROW("tier", ROW_STR, selected.tier, 0),
	ROW("version", ROW_STR, program_version, 0),
	ROW("thread", ROW_STR, thread, 0),
	ROW("effectiveModel", ROW_STR, effective_model, 0),
	ROW("isResumed", ROW_BOOL, is_resumed, 0),
	ROW("turnPhase", ROW_ENUM, turn_phase, TURN_RUNNING + 1),
	ROW("turn", ROW_STR, turn, 0),
	ROW("turnCall", ROW_INT, turn_call, 0),
	ROW("isInterruptWanted", ROW_BOOL, is_interrupt_wanted, 0),
	ROW("isInterruptSent", ROW_BOOL, is_interrupt_sent, 0),
	ROW("hasPassedOver", ROW_BOOL, has_passed_over, 0),
	ROW("terminalDueAt", ROW_INT, terminal_due_at, 0),
	ROW("closeDueAt", ROW_INT, close_due_at, 0),
	ROW("hasClosedStdin", ROW_BOOL, has_closed_stdin, 0),
	ROW("nextId", ROW_INT, next_id, 0),
	ROW("notices", ROW_INT, notices, 0),
	ROW("strangeLines", ROW_INT, strange_lines, 0),
	ROW("totalInput", ROW_INT, total.input, 0),
	ROW("totalCached", ROW_INT, total.cached, 0),
	ROW("totalOutput", ROW_INT, total.output, 0),
	ROW("totalReasoning", ROW_INT, total.reasoning, 0),
	ROW("baseInput", ROW_INT, turn_base.input, 0),
	ROW("baseCached", ROW_INT, turn_base.cached, 0),
	ROW("baseOutput", ROW_INT, turn_base.output, 0),
	ROW("baseReasoning", ROW_INT, turn_base.reasoning, 0),
	ROW("hasTurnUsage", ROW_BOOL, has_turn_usage, 0),
	ROW("contextUsed", ROW_INT, context_used, 0),
	ROW("contextSize", ROW_INT, context_size, 0),
#undef ROW
};

/* All enums here are of the size of this one. */
static void *member_of(const struct codex *codex, const struct state_row *row)
{
	return (char *)(uintptr_t)codex + row->offset;
}

static void save_lists(const struct codex *codex, struct json_writer *w)
{
	jw_karray(w, "calls");
	for (const struct codex_call *call = codex->calls; call != NULL; call = call->next) {
		jw_object_begin(w);
		jw_kint(w, "id", call->id);
		jw_kint(w, "method", call->method);
		jw_kint(w, "dueAt", call->due_at);
		jw_kstr_opt(w, "key", call->key);
		jw_object_end(w);
	}
	jw_array_end(w);
	jw_karray(w, "items");
	for (const struct codex_item *item = codex->items; item != NULL; item = item->next) {
		jw_object_begin(w);
		jw_kint(w, "kind", item->kind);
		jw_kstr(w, "key", item->key);
		jw_kstr_opt(w, "title", item->title);
		jw_kint(w, "sent", item->sent);
		jw_kint(w, "sentHash", item->sent_hash);
		jw_kbool_opt(w, "isBackground", item->is_background);
		jw_object_end(w);
	}
	jw_array_end(w);
	jw_karray(w, "asks");
	for (const struct codex_ask_entry *entry = codex->asks; entry != NULL; entry = entry->next) {
		jw_object_begin(w);
		jw_kint(w, "ask", entry->ask);
		jw_kstr(w, "id", entry->id);
		jw_kstr_opt(w, "detail", entry->detail);
		jw_object_end(w);
	}
	jw_array_end(w);
}

void codex_save(const struct agent *agent, struct json_writer *w)
{
	const struct codex *codex = (const struct codex *)agent;

	jw_object_begin(w);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct state_row *row = &rows[i];
		const void *member = member_of(codex, row);

		switch (row->kind) {
		case ROW_STR:
			jw_kstr_opt(w, row->name, *(const struct str *)member);
			break;
		case ROW_INT:
			jw_kint(w, row->name, *(const int64_t *)member);
			break;
		case ROW_BOOL:
			jw_kbool(w, row->name, *(const bool *)member);
			break;
		case ROW_ENUM:
			jw_kint(w, row->name, *(const unsigned *)member);
			break;
		}
	}
	save_lists(codex, w);
	jw_object_end(w);
}

static bool load_row(struct codex *codex, const struct state_row *row, const json_t *value)
{
	void *member = member_of(codex, row);

	switch (row->kind) {
	case ROW_STR:
		codex_keep(member, json_str(value));
		return value == NULL || json_is_string(value);
	case ROW_INT:
		*(int64_t *)member = json_integer_value(value);
		return json_is_integer(value);
	case ROW_BOOL:
		*(bool *)member = json_is_true(value);
		return json_is_boolean(value);
	case ROW_ENUM:
		if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= row->count)
			return false;
		*(unsigned *)member = (unsigned)json_integer_value(value);
		return true;
	}
	return false;
}

static int64_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool load_calls(struct codex *codex, const json_t *list)
{
	struct codex_call **end = &codex->calls;
	size_t i;
	const json_t *stored;

	json_array_foreach (list, i, stored) {
		int64_t method = number(stored, "method");

		if (method < 0 || method >= CODEX_METHODS)
			return false;
		*end = calloc(1, sizeof(**end));
		if (*end == NULL)
			abort();
		(*end)->id = number(stored, "id");
		(*end)->method = (enum codex_method)method;
		(*end)->due_at = number(stored, "dueAt");
		codex_keep(&(*end)->key, json_member_str(stored, "key"));
		end = &(*end)->next;
	}
	return true;
}

static bool load_items(struct codex *codex, const json_t *list)
{
	size_t i;
	const json_t *stored;

	json_array_foreach (list, i, stored) {
		int64_t kind = number(stored, "kind");
		struct str key = json_member_str(stored, "key");
		struct codex_item *item;

		if (kind < 0 || kind > ITEM_NOTICE || key.p == NULL || number(stored, "sent") < 0)
			return false;
		item = codex_item_open(codex, (enum agent_item_kind)kind, key, json_member_str(stored, "title"));
		if (item == NULL)
			return false;
		item->sent = number(stored, "sent");
		item->sent_hash = (uint32_t)number(stored, "sentHash");
		item->is_background = json_is_true(json_object_get(stored, "isBackground"));
	}
	return true;
}

static bool load_asks(struct codex *codex, const json_t *list)
{
	size_t i;
	const json_t *stored;

	json_array_foreach (list, i, stored) {
		int64_t ask = number(stored, "ask");
		struct str id = json_member_str(stored, "id");

		if (ask < 0 || ask > ASK_FORM || id.p == NULL ||
			!codex_ask_keep(codex, (enum codex_ask)ask, id, json_member_str(stored, "detail")))
			return false;
	}
	return true;
}

int codex_load(struct agent *agent, const json_t *state, struct failure *f)
{
	struct codex *codex = codex_of(agent);
	bool is_fine = true;

	codex_forget(codex);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && is_fine; i++)
		is_fine = load_row(codex, &rows[i], json_object_get(state, rows[i].name));
	is_fine = is_fine && load_calls(codex, json_object_get(state, "calls")) &&
		load_items(codex, json_object_get(state, "items")) && load_asks(codex, json_object_get(state, "asks"));
	return is_fine ? 0 : fail(f, FAIL_INTERNAL, "The stored state of a codex session cannot be read.");
}

void codex_forget(struct codex *codex)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].kind == ROW_STR)
			codex_keep(member_of(codex, &rows[i]), STR_NONE);
	while (codex->calls != NULL) {
		struct codex_call *call = codex->calls;

		codex->calls = call->next;
		codex_call_free(call);
	}
	while (codex->items != NULL) {
		struct codex_item *item = codex->items;

		codex->items = item->next;
		codex_item_free(item);
	}
	while (codex->asks != NULL) {
		struct codex_ask_entry *entry = codex->asks;

		codex->asks = entry->next;
		codex_ask_free(entry);
	}
}
