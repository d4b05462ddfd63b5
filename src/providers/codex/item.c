/* Items: each that the program begins is told, remembered while it is open, and ended exactly once. */
#include "providers/codex/private.h"

#include <stdlib.h>

/* ---- what is open ---- */

struct codex_item *codex_item_find(const struct codex *codex, struct str key)
{
	for (struct codex_item *item = codex->items; item != NULL && key.p != NULL; item = item->next)
		if (str_eq(item->key, key))
			return item;
	return NULL;
}

struct codex_item *codex_item_open(struct codex *codex, enum agent_item_kind kind, struct str key, struct str title)
{
	struct codex_item **end = &codex->items;
	size_t n = 0;

	for (; *end != NULL; end = &(*end)->next, n++)
		if (str_eq((*end)->key, key))
			return *end;
	if (n >= LIMIT_CODEX_OPEN_ITEMS)
		return NULL; /* it is told, but nothing can close it before the program does */
	*end = calloc(1, sizeof(**end));
	if (*end == NULL)
		abort();
	(*end)->kind = kind;
	(*end)->sent_hash = CODEX_HASH_START;
	state_text(&(*end)->key, key);
	state_text(&(*end)->title, title);
	return *end;
}

/* Whether it was one of the background. */
static bool forget(struct codex *codex, struct str key)
{
	struct codex_item **at = &codex->items;
	struct codex_item *item;
	bool was_background;

	while (*at != NULL && !str_eq((*at)->key, key))
		at = &(*at)->next;
	item = *at;
	if (item == NULL)
		return false;
	was_background = item->is_background;
	*at = item->next;
	codex_item_free(item);
	return was_background;
}

static void tell_background(const struct codex *codex, struct agent_out *out)
{
	struct buf text;
	struct json_writer w;

	buf_init(&text, out->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (const struct codex_item *item = codex->items; item != NULL; item = item->next) {
		if (!item->is_background)
			continue;
		jw_object_begin(&w);
		jw_kstr(&w, "taskId", item->key);
		jw_kstr_opt(&w, "description", item->title);
		jw_ktext(&w, "taskType", "command");
		jw_object_end(&w);
	}
	jw_array_end(&w);
	agent_out_event(out, EVENT_BACKGROUND)->body = buf_str(&text);
}

/* ---- telling ---- */

static struct agent_item *tell(enum agent_item_kind kind, struct str key, enum agent_status status, struct agent_out *out)
{
	struct agent_item *item = &agent_out_event(out, EVENT_ITEM)->item;

	item->kind = kind;
	item->key = str_dup(out->arena, key);
	item->status = status;
	return item;
}

void codex_notice(struct codex *codex, const char *severity, struct str message, struct str retry, struct agent_out *out)
{
	struct agent_item *item;
	struct buf body;
	struct json_writer w;

	if (codex->turn_phase != TURN_RUNNING || message.p == NULL)
		return; /* what is said at the start is of interest to nobody while all goes well */
	item = tell(ITEM_NOTICE, str_printf(out->arena, "notice-%lld", (long long)++codex->notices), AGENT_COMPLETED, out);
	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_ktext(&w, "severity", severity);
	jw_kstr(&w, "message", message);
	if (retry.p != NULL)
		jw_kraw(&w, "retry", retry);
	jw_object_end(&w);
	item->body = buf_str(&body);
}

/* FNV-1a */
static uint32_t hash_more(uint32_t hash, struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		hash = (hash ^ (unsigned char)text.p[i]) * 16777619u;
	return hash;
}

void codex_item_delta(struct codex *codex, enum agent_item_kind kind, struct str key, struct str delta,
	struct agent_out *out)
{
	struct codex_item *item;

	if (key.p == NULL || key.n == 0 || key.n > LIMIT_CODEX_ID_BYTES || delta.p == NULL || delta.n == 0)
		return;
	item = codex_item_open(codex, kind, key, STR_NONE);
	if (item == NULL || item->kind != (int64_t)kind)
		return; /* its end brings the whole */
	item->sent += (int64_t)delta.n;
	item->sent_hash = hash_more((uint32_t)item->sent_hash, delta);
	tell(kind, key, AGENT_RUNNING, out)->delta = str_dup(out->arena, delta);
}

/* What is missing of the whole text after the deltas. Where they differ, what was told stays. */
static struct str rest_of(const struct codex_item *item, struct str whole)
{
	size_t sent = item == NULL ? 0 : (size_t)item->sent;

	if (whole.p == NULL || sent >= whole.n ||
		(item != NULL && hash_more(CODEX_HASH_START, (struct str){whole.p, sent}) != (uint32_t)item->sent_hash))
		return STR_NONE;
	return (struct str){whole.p + sent, whole.n - sent};
}

static void end_text(struct codex *codex, enum agent_item_kind kind, struct str key, struct str whole,
	struct agent_out *out)
{
	struct str rest = rest_of(codex_item_find(codex, key), whole);

	tell(kind, key, AGENT_COMPLETED, out)->delta = str_dup(out->arena, rest);
	(void)forget(codex, key); /* only commands go on in the background */
}

static enum agent_status status_of(const json_t *item, bool is_over)
{
	static const struct {
		const char *word;
		enum agent_status status;
	} words[] = {{"completed", AGENT_COMPLETED}, {"failed", AGENT_FAILED}, {"declined", AGENT_CANCELLED},
		{"interrupted", AGENT_INTERRUPTED}};
	struct str word = json_member_str(item, "status");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq(word, str_of(words[i].word)))
			return words[i].status;
	return is_over ? AGENT_COMPLETED : AGENT_RUNNING;
}

/* One item with a body: begun, or over. */
static void tell_whole(struct codex *codex, const struct codex_shape *shape, struct str key, const json_t *item,
	bool is_over, struct agent_out *out)
{
	enum agent_status status = status_of(item, is_over);
	struct str title = shape->title == NULL ? STR_NONE : codex_title(shape->title(item, out->arena), out->arena);
	struct agent_item *told = tell(shape->kind, key, status, out);
	struct buf body;
	struct json_writer w;

	told->title = title;
	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	shape->body(item, &w, out->arena);
	jw_object_end(&w);
	told->body = buf_str(&body);
	if (!is_over)
		(void)codex_item_open(codex, shape->kind, key, title);
	else if (forget(codex, key))
		tell_background(codex, out);
}

/* The program changes many files in one item; here each is one. */
static void tell_files(struct codex *codex, struct str key, const json_t *item, bool is_over, struct agent_out *out)
{
	size_t i;
	const json_t *change;

	json_array_foreach (json_object_get(item, "changes"), i, change) {
		struct str file_key = i == 0 ? key : str_printf(out->arena, "%.*s#%zu", STRF(key), i + 1);
		json_auto_t *one = json_copy((json_t *)(uintptr_t)change);

		(void)json_object_set(one, "status", json_object_get(item, "status"));
		tell_whole(codex, &codex_file_shape, file_key, one, is_over, out);
	}
}

static struct str joined(const json_t *parts, struct arena *arena)
{
	struct buf text;
	size_t i;
	const json_t *part;

	buf_init(&text, arena, SIZE_MAX);
	json_array_foreach (parts, i, part) {
		if (i > 0)
			buf_add_str(&text, STR("\n\n"));
		buf_add_str(&text, json_str(part));
	}
	return buf_str(&text);
}

static void end_reasoning(struct codex *codex, struct str key, const json_t *item, struct agent_out *out)
{
	struct str summary = joined(json_object_get(item, "summary"), out->arena);
	struct str whole = summary.n > 0 ? summary : joined(json_object_get(item, "content"), out->arena);

	if (whole.n > 0 || codex_item_find(codex, key) != NULL)
		end_text(codex, ITEM_REASONING, key, whole, out);
}

static void tell_item(struct codex *codex, const json_t *item, bool is_over, struct agent_out *out)
{
	struct str key = json_member_str(item, "id");
	struct str type = json_member_str(item, "type");

	if (key.p == NULL || key.n == 0 || key.n > LIMIT_CODEX_ID_BYTES || type.p == NULL)
		return;
	if (str_eq(type, STR("userMessage")))
		return; /* ours */
	if (str_eq(type, STR("agentMessage"))) {
		if (is_over)
			end_text(codex, ITEM_TEXT, key, json_member_str(item, "text"), out);
		else
			codex_item_delta(codex, ITEM_TEXT, key, json_member_str(item, "text"), out);
	} else if (str_eq(type, STR("reasoning"))) {
		if (is_over)
			end_reasoning(codex, key, item, out);
	} else if (str_eq(type, STR("fileChange"))) {
		tell_files(codex, key, item, is_over, out);
	} else {
		tell_whole(codex, codex_shape_of(type), key, item, is_over, out);
	}
}

void codex_item_started(struct codex *codex, const json_t *item, struct agent_out *out)
{
	tell_item(codex, item, false, out);
}

void codex_item_completed(struct codex *codex, const json_t *item, struct agent_out *out)
{
	tell_item(codex, item, true, out);
}

void codex_todo(struct codex *codex, const json_t *params, struct agent_out *out)
{
	struct agent_item *told = tell(ITEM_TODO, str_printf(out->arena, "todo-%.*s", STRF(codex->turn)), AGENT_COMPLETED, out);
	struct str explanation = json_member_str(params, "explanation");
	struct buf body;
	struct json_writer w;
	size_t i;
	const json_t *step;

	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_karray(&w, "steps");
	json_array_foreach (json_object_get(params, "plan"), i, step) {
		struct str status = json_member_str(step, "status");

		jw_object_begin(&w);
		jw_kstr(&w, "id", str_printf(out->arena, "%zu", i + 1));
		jw_kstr(&w, "text", json_member_str(step, "step"));
		jw_kstr(&w, "status", str_eq(status, STR("inProgress")) ? STR("in_progress") : status);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_kstr_opt(&w, "explanation", explanation);
	jw_object_end(&w);
	told->body = buf_str(&body);
}

/* ---- the end of the turn ---- */

/* A command that the model left running goes on when the turn ends by itself; an interrupted turn takes all along. */
static bool goes_on(const struct codex *codex, const struct codex_item *item, enum agent_status turn_status,
	bool is_program_alive)
{
	return is_program_alive && item->kind == ITEM_COMMAND && turn_status != AGENT_INTERRUPTED &&
		(item->is_background || !codex->has_passed_over);
}

void codex_items_end(struct codex *codex, enum agent_status turn_status, bool is_program_alive, struct agent_out *out)
{
	struct codex_item **at = &codex->items;
	bool is_roster_changed = false;

	while (*at != NULL) {
		struct codex_item *item = *at;

		if (goes_on(codex, item, turn_status, is_program_alive)) {
			is_roster_changed = is_roster_changed || !item->is_background;
			item->is_background = true;
			at = &item->next;
			continue;
		}
		is_roster_changed = is_roster_changed || item->is_background;
		(void)tell((enum agent_item_kind)item->kind, item->key,
			item->kind == ITEM_TEXT || item->kind == ITEM_REASONING ? turn_status : AGENT_CANCELLED, out);
		*at = item->next;
		codex_item_free(item);
	}
	if (is_roster_changed)
		tell_background(codex, out);
}
