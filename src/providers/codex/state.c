/* The state of a session between two inputs, as it is stored: a table for each struct, used in both directions. */
#include "providers/codex/private.h"

#include <stdlib.h>

static const struct state_field session_fields[] = {
	STATE_RANGE(codex, phase, CODEX_NEW, CODEX_DEAD),
	STATE_RANGE(codex, selected.runtime, RUNTIME_READ_ONLY, RUNTIME_FULL_ACCESS),
	STATE_RANGE(codex, selected.interaction, INTERACTION_PLAN, INTERACTION_DEFAULT),
	STATE_FIELD(codex, selected.model, STATE_TEXT),
	STATE_FIELD(codex, selected.effort, STATE_TEXT),
	STATE_FIELD(codex, selected.tier, STATE_TEXT),
	STATE_FIELD(codex, program_version, STATE_TEXT),
	STATE_FIELD(codex, thread, STATE_TEXT),
	STATE_FIELD(codex, effective_model, STATE_TEXT),
	STATE_FIELD(codex, is_resumed, STATE_BOOL),
	STATE_RANGE(codex, turn_phase, TURN_NONE, TURN_RUNNING),
	STATE_FIELD(codex, turn, STATE_TEXT),
	STATE_FIELD(codex, turn_call, STATE_INT),
	STATE_FIELD(codex, is_interrupt_wanted, STATE_BOOL),
	STATE_FIELD(codex, is_interrupt_sent, STATE_BOOL),
	STATE_FIELD(codex, has_passed_over, STATE_BOOL),
	STATE_FIELD(codex, terminal_due_at, STATE_INT),
	STATE_FIELD(codex, close_due_at, STATE_INT),
	STATE_FIELD(codex, has_closed_stdin, STATE_BOOL),
	STATE_FIELD(codex, notices, STATE_INT),
	STATE_FIELD(codex, total.input, STATE_INT),
	STATE_FIELD(codex, total.cached, STATE_INT),
	STATE_FIELD(codex, total.output, STATE_INT),
	STATE_FIELD(codex, total.reasoning, STATE_INT),
	STATE_FIELD(codex, turn_base.input, STATE_INT),
	STATE_FIELD(codex, turn_base.cached, STATE_INT),
	STATE_FIELD(codex, turn_base.output, STATE_INT),
	STATE_FIELD(codex, turn_base.reasoning, STATE_INT),
	STATE_FIELD(codex, has_turn_usage, STATE_BOOL),
	STATE_FIELD(codex, context_used, STATE_INT),
	STATE_FIELD(codex, context_size, STATE_INT),
	STATE_FIELDS_END,
};

static const struct state_field item_fields[] = {
	STATE_RANGE(codex_item, kind, ITEM_TEXT, ITEM_NOTICE),
	STATE_FIELD(codex_item, key, STATE_TEXT),
	STATE_FIELD(codex_item, title, STATE_TEXT),
	STATE_RANGE(codex_item, sent, 0, INT64_MAX),
	STATE_FIELD(codex_item, sent_hash, STATE_INT),
	STATE_FIELD(codex_item, is_background, STATE_BOOL),
	STATE_FIELDS_END,
};

static const struct state_field ask_fields[] = {
	STATE_RANGE(codex_ask_entry, ask, ASK_COMMAND, ASK_FORM),
	STATE_FIELD(codex_ask_entry, id, STATE_TEXT),
	STATE_FIELD(codex_ask_entry, detail, STATE_TEXT),
	STATE_FIELDS_END,
};

void codex_item_free(struct codex_item *item)
{
	state_free(item_fields, item);
	free(item);
}

void codex_ask_free(struct codex_ask_entry *entry)
{
	state_free(ask_fields, entry);
	free(entry);
}

void codex_save(const struct agent *agent, struct json_writer *w)
{
	const struct codex *codex = (const struct codex *)agent;

	jw_object_begin(w);
	jw_key(w, "session");
	state_save(session_fields, codex, w);
	jw_key(w, "rpc");
	rpc_save(&codex->rpc, w);
	jw_karray(w, "items");
	for (const struct codex_item *item = codex->items; item != NULL; item = item->next)
		state_save(item_fields, item, w);
	jw_array_end(w);
	jw_karray(w, "asks");
	for (const struct codex_ask_entry *entry = codex->asks; entry != NULL; entry = entry->next)
		state_save(ask_fields, entry, w);
	jw_array_end(w);
	jw_object_end(w);
}

static int load_items(struct codex *codex, const json_t *list, struct failure *f)
{
	size_t i;
	const json_t *stored;

	json_array_foreach (list, i, stored) {
		struct codex_item read = {0};
		struct codex_item *item;

		if (state_load(item_fields, stored, &read, f) != 0)
			return -1;
		item = read.key.p == NULL ? NULL : codex_item_open(codex, (enum agent_item_kind)read.kind, read.key, read.title);
		if (item != NULL) {
			item->sent = read.sent;
			item->sent_hash = read.sent_hash;
			item->is_background = read.is_background;
		}
		state_free(item_fields, &read);
		if (item == NULL)
			return fail(f, FAIL_INTERNAL, "The stored state of codex has a bad item.");
	}
	return 0;
}

static int load_asks(struct codex *codex, const json_t *list, struct failure *f)
{
	size_t i;
	const json_t *stored;

	json_array_foreach (list, i, stored) {
		struct codex_ask_entry read = {0};
		bool is_kept;

		if (state_load(ask_fields, stored, &read, f) != 0)
			return -1;
		is_kept = read.id.p != NULL && codex_ask_keep(codex, (enum codex_ask)read.ask, read.id, read.detail);
		state_free(ask_fields, &read);
		if (!is_kept)
			return fail(f, FAIL_INTERNAL, "The stored state of codex has a bad request.");
	}
	return 0;
}

static bool has_known_methods(const struct rpc *rpc)
{
	for (int64_t i = 0; i < rpc->call_count; i++)
		if (rpc->calls[i].method < 0 || rpc->calls[i].method >= CODEX_METHODS)
			return false;
	return true;
}

int codex_load(struct agent *agent, const json_t *state, struct failure *f)
{
	struct codex *codex = codex_of(agent);

	codex_forget(codex);
	if (state_load(session_fields, json_object_get(state, "session"), codex, f) != 0 ||
		rpc_load(&codex->rpc, json_object_get(state, "rpc"), f) != 0 ||
		load_items(codex, json_object_get(state, "items"), f) != 0 ||
		load_asks(codex, json_object_get(state, "asks"), f) != 0)
		return -1;
	if (!has_known_methods(&codex->rpc))
		return fail(f, FAIL_INTERNAL, "The stored state of codex has a call of an unknown method.");
	return 0;
}

void codex_forget(struct codex *codex)
{
	state_free(session_fields, codex);
	rpc_finish(&codex->rpc);
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
