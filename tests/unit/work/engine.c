#include "engine.h"

#include "base/limits.h"
#include "tools/advance_fields.h"
#include "work/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int engine_up(void **state)
{
	struct engine *e = calloc(1, sizeof(*e));
	static const char *const names[WHO_COUNT] = {"local", "api:p1", "api:p2"};

	e->arena = arena_create();
	e->now = NOW;
	temp_dir_make(e->dir, "engine");
	e->store = temp_store_open(e->dir, "dais.db");
	e->rules = rules_create();
	for (int i = 0; i < WHO_COUNT; i++) {
		caller_local(&e->callers[i], STR("mcp"));
		e->callers[i].actor.id = str_of(names[i]);
		e->callers[i].actor.req_id = e->callers[i].req_id;
		if (i == LOCAL)
			continue;
		e->callers[i].actor.kind = PRINCIPAL_AGENT;
		e->callers[i].actor.verification = VERIFICATION_UNCHECKED;
		e->callers[i].sees_actors = false;
	}
	*state = e;
	return 0;
}

int engine_down(void **state)
{
	struct engine *e = *state;
	int findings = temp_store_check(e->store, e->now);

	rules_destroy(e->rules);
	store_close(e->store);
	temp_dir_remove(e->dir);
	arena_destroy(e->arena);
	free(e);
	return findings == 0 ? 0 : -1;
}

/* ---- transactions ---- */

struct turn {
	struct engine *e;
	int (*run)(struct tx *tx, void *arg, struct failure *f);
	void *arg;
};

static int run_at_now(struct tx *tx, void *arg, struct failure *f)
{
	struct turn *turn = arg;

	tx->snapshot.now = turn->e->now;
	return turn->run(tx, turn->arg, f);
}

int in_tx(struct engine *e, enum who who, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg,
	struct failure *f)
{
	struct turn turn = {.e = e, .run = run, .arg = arg};

	failure_init(f, e->arena);
	return store_write(e->store, run_at_now, &turn, &e->callers[who].actor, e->arena, f);
}

/* ---- putting things into the store ---- */

SQL(SQL_PUT_ITEM,
	"INSERT INTO item (n, id, parent_n, root_n, depth, role, prev_role, priority, complexity, version,"
	" created_at, modified_at, role_changed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $10, $10)");
SQL(SQL_PUT_TEXT, "INSERT INTO item_text (n, title, type, traits, created_by) VALUES ($1, $2, $3, $4, $5)");
SQL(SQL_PUT_DEP,
	"INSERT INTO dep (n, id, from_n, to_n, type, threshold, created_at, created_by)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
SQL(SQL_PUT_NOTE,
	"INSERT INTO note (n, id, item_n, key, role, version, chars, is_filled, is_temporal, created_at,"
	" modified_at, actor_n, verification) VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $9, $10, $11)"
	" ON CONFLICT (item_n, key) DO UPDATE SET version = note.version + 1, is_filled = excluded.is_filled,"
	" is_temporal = excluded.is_temporal, actor_n = excluded.actor_n");
SQL(SQL_PUT_REVISION,
	"INSERT INTO note_revision (note_n, version, role, body, is_filled, actor_n, verification, written_at)"
	" SELECT n, version, role, $3, $4, $5, $6, $7 FROM note WHERE item_n = $1 AND key = $2");
SQL(SQL_PUT_RULES,
	"INSERT INTO config (root_n, yaml, fingerprint, version, updated_at, actor_n)"
	" VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (root_n) DO UPDATE SET yaml = excluded.yaml,"
	" fingerprint = excluded.fingerprint, version = excluded.version");

struct new_item {
	int64_t parent;
	const char *title;
	struct traits traits;
	int64_t n;
};

static int put_item(struct tx *tx, void *arg, struct failure *f)
{
	struct new_item *new = arg;
	int64_t queue = ROLE_QUEUE;
	int64_t complexity = new->traits.complexity == 0 ? COMPLEXITY_NONE : new->traits.complexity;
	struct item parent = {0};
	int64_t me;
	struct id id;

	id_generate(&id);
	if (tx_actor(tx, &me, f) != 0 || tx_next(tx, SEQ_item, &new->n, f) != 0)
		return -1;
	if (new->parent != 0 && item_load(&tx->snapshot, new->parent, &parent, f) != 1)
		return -1;
	if (tx_run(tx, f, SQL_PUT_ITEM, "iboiiioiii", new->n, id, new->parent == 0 ? NULL : &new->parent,
		    new->parent == 0 ? new->n : parent.root_n, new->parent == 0 ? (int64_t)0 : parent.depth + 1,
		    (int64_t)new->traits.role, new->traits.role == ROLE_BLOCKED ? &queue : NULL,
		    (int64_t)new->traits.priority, complexity, tx->snapshot.now) < 0)
		return -1;
	if (tx_run(tx, f, SQL_PUT_TEXT, "izzzi", new->n, new->title, new->traits.type,
		    new->traits.traits == NULL ? "[]" : new->traits.traits, me) < 0)
		return -1;
	return tally_add(tx, new->parent, new->parent == 0 ? new->n : parent.root_n, new->traits.role, 1, f);
}

int64_t make_item_as(struct engine *e, int64_t parent, const char *title, struct traits traits)
{
	struct new_item new = {.parent = parent, .title = title, .traits = traits};
	struct failure f;

	if (in_tx(e, LOCAL, put_item, &new, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
	return new.n;
}

int64_t make_item(struct engine *e, int64_t parent, const char *title)
{
	return make_item_as(e, parent, title, (struct traits){.priority = PRIORITY_MEDIUM});
}

struct many {
	const void *rows;
	int64_t *out; /* of items */
	size_t n;
	int64_t parent;
	const char *title;
};

static int put_items(struct tx *tx, void *arg, struct failure *f)
{
	struct many *many = arg;

	for (size_t i = 0; i < many->n; i++) {
		struct new_item new = {.parent = many->parent, .title = many->title,
			.traits = {.priority = PRIORITY_MEDIUM}};

		if (put_item(tx, &new, f) != 0)
			return -1;
		many->out[i] = new.n;
	}
	return 0;
}

void make_items(struct engine *e, int64_t parent, const char *title, int64_t *out, size_t n)
{
	struct many many = {.out = out, .n = n, .parent = parent, .title = title};
	struct failure f;

	if (in_tx(e, LOCAL, put_items, &many, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
}

struct new_dep {
	int64_t from, to, type, threshold;
};

static int put_dep(struct tx *tx, void *arg, struct failure *f)
{
	struct new_dep *new = arg;
	int64_t n, me;
	struct id id;

	id_generate(&id);
	if (tx_actor(tx, &me, f) != 0 || tx_next(tx, SEQ_dep, &n, f) != 0)
		return -1;
	return tx_run(tx, f, SQL_PUT_DEP, "ibiiiiii", n, id, new->from, new->to, new->type, new->threshold,
		       tx->snapshot.now, me) < 0
		? -1
		: 0;
}

static int put_deps(struct tx *tx, void *arg, struct failure *f)
{
	struct many *many = arg;
	const int64_t(*pairs)[2] = many->rows;

	for (size_t i = 0; i < many->n; i++) {
		struct new_dep new = {pairs[i][0], pairs[i][1], 0, ROLE_TERMINAL};

		if (put_dep(tx, &new, f) != 0)
			return -1;
	}
	return 0;
}

void make_deps(struct engine *e, const int64_t (*pairs)[2], size_t n)
{
	struct many many = {.rows = pairs, .n = n};
	struct failure f;

	if (in_tx(e, LOCAL, put_deps, &many, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
}

void make_dep(struct engine *e, int64_t from, int64_t to, int threshold)
{
	struct new_dep new = {.from = from, .to = to, .threshold = threshold};
	struct failure f;

	assert_int_equal(in_tx(e, LOCAL, put_dep, &new, &f), 0);
}

void make_relation(struct engine *e, int64_t from, int64_t to)
{
	struct new_dep new = {.from = from, .to = to, .type = 1, .threshold = ROLE_TERMINAL};
	struct failure f;

	assert_int_equal(in_tx(e, LOCAL, put_dep, &new, &f), 0);
}

struct new_note {
	int64_t item;
	const char *key;
	enum role role;
	const char *body;
};

static int put_note(struct tx *tx, void *arg, struct failure *f)
{
	struct new_note *new = arg;
	int64_t filled = !str_is_blank(str_of(new->body));
	int64_t temporal = str_starts(str_of(new->body), STR("independence: temporal-only"));
	int64_t verification = tx->actor->verification;
	int64_t n, me;
	struct id id;

	id_generate(&id);
	if (tx_actor(tx, &me, f) != 0 || tx_next(tx, SEQ_note, &n, f) != 0 ||
		tx_run(tx, f, SQL_PUT_NOTE, "ibiziiiiiii", n, id, new->item, new->key, (int64_t)new->role,
			(int64_t)strlen(new->body), filled, temporal, tx->snapshot.now, me, verification) < 0)
		return -1;
	return tx_run(tx, f, SQL_PUT_REVISION, "izziiii", new->item, new->key, new->body, filled, me,
		       verification, tx->snapshot.now) < 0
		? -1
		: 0;
}

void make_note(struct engine *e, enum who who, int64_t item, const char *key, enum role role, const char *body)
{
	struct new_note new = {.item = item, .key = key, .role = role, .body = body};
	struct failure f;

	if (in_tx(e, who, put_note, &new, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
}

struct new_rules {
	struct engine *e;
	int64_t root;
	const char *yaml;
};

static int put_rules(struct tx *tx, void *arg, struct failure *f)
{
	struct new_rules *new = arg;
	int64_t me;

	if (tx_actor(tx, &me, f) != 0)
		return -1;
	return tx_run(tx, f, SQL_PUT_RULES, "izsiii", new->root, new->yaml,
		       rules_fingerprint(tx->snapshot.arena, str_of(new->yaml)), ++new->e->config_version,
		       tx->snapshot.now, me) < 0
		? -1
		: 0;
}

void push_rules(struct engine *e, int64_t root, const char *yaml)
{
	struct new_rules new = {.e = e, .root = root, .yaml = yaml};
	struct warnings warnings;
	struct rules_doc *doc;
	struct failure f;

	failure_init(&f, e->arena);
	warnings_init(&warnings, e->arena, LIMIT_WARNINGS);
	if (rules_parse(str_of(yaml), STR_NONE, root == 0, &warnings, &doc, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
	rules_doc_unref(doc);
	assert_int_equal(in_tx(e, LOCAL, put_rules, &new, &f), 0);
}

/* ---- operations ---- */

static int gate(struct snapshot *s, struct call *call, const void *args, struct json_writer *w, struct failure *f)
{
	return items_gate(s, call, args, w, f);
}

static int next(struct snapshot *s, struct call *call, const void *args, struct json_writer *w, struct failure *f)
{
	return items_next(s, call, args, w, f);
}

static int complete_tree(struct tx *tx, struct call *call, const void *args, struct json_writer *w,
	struct failure *f)
{
	return items_complete_tree(tx, call, args, w, f);
}

static const struct operation others[] = {
	{.name = "gate", .fields = gate_fields, .args_size = sizeof(struct gate_args), .read = gate},
	{.name = "next", .fields = next_fields, .args_size = sizeof(struct next_args), .read = next},
	{.name = "complete_tree", .fields = complete_tree_fields, .args_size = sizeof(struct complete_tree_args),
		.change = complete_tree, .check = complete_tree_check},
};

static const struct operation *find_op(const char *name)
{
	for (size_t i = 0; i < tool_advance.op_count; i++)
		if (strcmp(tool_advance.ops[i].name, name) == 0)
			return &tool_advance.ops[i];
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i].name, name) == 0)
			return &others[i];
	fail_msg("no op %s", name);
	return NULL;
}

struct op_run {
	struct call call;
	const struct operation *operation;
	void *args;
	struct buf text;
	struct failure why;
	bool is_ok;
};

static int run_change(struct tx *tx, void *arg, struct failure *f)
{
	struct op_run *run = arg;
	struct json_writer w;
	int rc;

	json_writer_init(&w, &run->text);
	if (tx_mark(tx, f) != 0)
		return -1;
	rc = run->operation->read != NULL
		? run->operation->read(&tx->snapshot, &run->call, run->args, &w, &run->why)
		: run->operation->change(tx, &run->call, run->args, &w, &run->why);
	run->is_ok = rc == 0;
	if (rc == 0)
		return tx_keep(tx, f);
	if (tx_undo(tx, f) != 0)
		return -1;
	if (run->call.after_failure == NULL)
		return 0;
	return run->call.after_failure(tx, &run->call, run->call.after_failure_arg, f);
}

static struct str answer(struct engine *e, struct op_run *run)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, e->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	if (run->is_ok) {
		jw_members(&w, buf_str(&run->text));
	} else {
		jw_key(&w, "error");
		failure_write(&run->why, &w);
	}
	warnings_write(&run->call.warnings, "warnings", &w);
	jw_object_end(&w);
	return buf_str(&text);
}

static json_t *parse(struct engine *e, struct str text)
{
	struct json_error error;
	json_t *value = json_read(text, &error);

	if (value == NULL)
		fail_msg("%s: %.*s", error.text, STRF(text));
	arena_at_end(e->arena, (void (*)(void *))json_decref, value);
	return value;
}

static json_t *run_text(struct engine *e, enum who who, const char *op, char *text, bool is_atomic)
{
	struct op_run run = {.operation = find_op(op)};
	struct failure f;
	json_t *args;

	for (char *c = text; *c != '\0'; c++)
		*c = *c == '\'' ? '"' : *c;
	args = parse(e, str_of(text));
	call_init(&run.call, e->arena, &e->callers[who], e->rules);
	run.call.is_atomic = is_atomic;
	buf_init(&run.text, e->arena, SIZE_MAX);
	failure_init(&run.why, e->arena);
	run.args = arena_alloc(e->arena, run.operation->args_size);
	if (field_read(run.operation->fields, args, STR(""), NULL, e->arena, &run.call.warnings, run.args,
		    &run.why) == 0 &&
		(run.operation->check == NULL || run.operation->check(run.args, STR(""), &run.why) == 0) &&
		in_tx(e, who, run_change, &run, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
	args = parse(e, answer(e, &run));
	call_finish(&run.call);
	return args;
}

json_t *run_op(struct engine *e, enum who who, const char *op, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = arena_vprintf(e->arena, format, args);
	va_end(args);
	return run_text(e, who, op, text, false);
}

json_t *run_atomic(struct engine *e, enum who who, const char *op, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = arena_vprintf(e->arena, format, args);
	va_end(args);
	return run_text(e, who, op, text, true);
}

json_t *move(struct engine *e, enum who who, int64_t item, const char *trigger)
{
	return run_op(e, who, "transition", "{'itemId':'%s','trigger':'%s'}", id_of(e, item), trigger);
}

json_t *claim(struct engine *e, enum who who, int64_t item, int ttl)
{
	return run_op(e, who, "claim", "{'itemId':'%s','ttlSeconds':%d}", id_of(e, item), ttl);
}

/* ---- looking ---- */

struct item load(struct engine *e, int64_t n)
{
	struct item item = {0};
	struct snapshot s;
	struct failure f;

	failure_init(&f, e->arena);
	assert_int_equal(snapshot_begin(e->store, e->arena, &s, &f), 0);
	assert_int_equal(item_load(&s, n, &item, &f), 1);
	snapshot_end(&s);
	return item;
}

const char *id_of(struct engine *e, int64_t n)
{
	return id_str(e->arena, load(e, n).id).p;
}

int64_t count(struct engine *e, const char *sql)
{
	int64_t rows = -1;
	struct snapshot s;
	struct failure f;

	failure_init(&f, e->arena);
	assert_int_equal(snapshot_begin(e->store, e->arena, &s, &f), 0);
	assert_int_equal(query_int(&s, &rows, &f, sql, ""), 1);
	snapshot_end(&s);
	return rows;
}

int64_t events_of(struct engine *e, int64_t item, enum event_type type)
{
	return count(e, arena_printf(e->arena, "SELECT count(*) FROM event WHERE item_n = %lld AND type = %d",
				(long long)item, (int)type));
}

const char *state_of(struct engine *e, int64_t n)
{
	struct item item = load(e, n);

	return arena_printf(e->arena, "%s %.*s", role_name(item.role), STRF(item.label));
}

const json_t *at(const json_t *value, const char *path)
{
	while (value != NULL && *path != '\0') {
		size_t n = strcspn(path, ".");
		char name[64];

		(void)snprintf(name, sizeof(name), "%.*s", (int)n, path);
		value = json_is_array(value) ? json_array_get(value, (size_t)atoi(name))
					     : json_object_get(value, name);
		path += n + (path[n] == '.');
	}
	return value;
}

const char *text_at(const json_t *value, const char *path)
{
	const char *text = json_string_value(at(value, path));

	return text == NULL ? "" : text;
}

int64_t int_at(const json_t *value, const char *path)
{
	return json_integer_value(at(value, path));
}

void assert_ok(const json_t *answered)
{
	char *text;

	if (json_object_get(answered, "error") == NULL)
		return;
	text = json_dumps(answered, JSON_COMPACT);
	fail_msg("refused: %s", text);
}

void assert_refused(const json_t *answered, const char *code)
{
	if (strcmp(text_at(answered, "error.code"), code) == 0)
		return;
	fail_msg("expected %s, got %s", code, json_dumps(answered, JSON_COMPACT));
}
