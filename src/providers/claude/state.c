/* The state of a session, saved and loaded by its table. */
#include "providers/claude/claude.h"

#include "base/limits.h"

void claude_state_init(struct claude *c)
{
#define TEXT(name, bytes)
#define NUMBER(name)
#define FLAG(name)
#define AMOUNT(name)
#define TABLE(name) c->name = json_object();
#include "providers/claude/state.def"
#undef TABLE
#define TABLE(name) json_decref(c->name);
}

void claude_state_finish(struct claude *c)
{
#include "providers/claude/state.def"
#undef TEXT
#undef NUMBER
#undef FLAG
#undef AMOUNT
#undef TABLE
}

void claude_save(const struct agent *agent, struct json_writer *w)
{
	const struct claude *c = (const struct claude *)(const void *)agent;

	jw_object_begin(w);
#define TEXT(name, bytes) jw_kstr_opt(w, #name, str_of(c->name));
#define NUMBER(name) jw_kint_opt(w, #name, c->name);
#define FLAG(name) jw_kbool_opt(w, #name, c->name);
#define AMOUNT(name) \
	jw_key(w, #name); \
	jw_real(w, c->name);
#define TABLE(name) \
	if (json_object_size(c->name) > 0) { \
		jw_key(w, #name); \
		jw_json(w, c->name); \
	}
#include "providers/claude/state.def"
#undef TEXT
#undef NUMBER
#undef FLAG
#undef AMOUNT
#undef TABLE
	jw_object_end(w);
}

static void load_table(json_t **table, const json_t *state, const char *name)
{
	const json_t *stored = json_object_get(state, name);

	json_decref(*table);
	*table = json_is_object(stored) ? json_deep_copy(stored) : json_object();
}

int claude_load(struct agent *agent, const json_t *state, struct failure *f)
{
	struct claude *c = (struct claude *)(void *)agent;

	if (!json_is_object(state))
		return fail(f, FAIL_INTERNAL, "The stored state of a Claude session is no object.");
#define TEXT(name, bytes) SET(c, name, json_member_str(state, #name));
#define NUMBER(name) c->name = json_integer_value(json_object_get(state, #name));
#define FLAG(name) c->name = json_is_true(json_object_get(state, #name));
#define AMOUNT(name) c->name = json_number_value(json_object_get(state, #name));
#define TABLE(name) load_table(&c->name, state, #name);
#include "providers/claude/state.def"
#undef TEXT
#undef NUMBER
#undef FLAG
#undef AMOUNT
#undef TABLE
	return 0;
}

void claude_set(char *field, size_t bytes, struct str value)
{
	size_t n = value.n < bytes - 1 ? value.n : bytes - 1;

	for (size_t i = 0; i < n; i++)
		field[i] = value.p[i] >= ' ' && value.p[i] <= '~' ? value.p[i] : '_';
	field[n] = '\0';
}

struct str claude_id(struct arena *arena, struct str id)
{
	char *clean;

	if (id.p == NULL)
		return STR_NONE;
	clean = arena_alloc(arena, LIMIT_CLAUDE_ID_BYTES + 1);
	claude_set(clean, LIMIT_CLAUDE_ID_BYTES + 1, id);
	return str_of(clean);
}

void claude_row_text(json_t *row, const char *key, struct str value)
{
	if (value.p != NULL)
		json_object_set_new(row, key, json_stringn(value.p, value.n));
}
