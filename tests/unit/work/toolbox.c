#include "toolbox.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int box_up(void **state)
{
	struct box *box = calloc(1, sizeof(*box));
	void *engine;

	assert_int_equal(engine_up(&engine), 0);
	box->e = engine;
	(void)snprintf(box->config_dir, sizeof(box->config_dir), "%s-config", box->e->dir);
	assert_int_equal(mkdir(box->config_dir, 0700), 0);
	box->tools = tools_create(box->e->store, box->e->rules, box->config_dir);
	box->root = make_item_as(box->e, 0, "Harbour", (struct traits){.type = "project", .priority = PRIORITY_MEDIUM});
	box->feature = make_item(box->e, box->root, "Berth booking");
	box->a = make_item_as(box->e, box->feature, "Tide table import",
		(struct traits){.type = "feature-task", .priority = PRIORITY_MEDIUM});
	box->b = make_item_as(box->e, box->feature, "Booking API",
		(struct traits){.type = "feature-task", .priority = PRIORITY_HIGH});
	*state = box;
	return 0;
}

int box_down(void **state)
{
	struct box *box = *state;
	char command[256];

	tools_destroy(box->tools);
	(void)snprintf(command, sizeof(command), "rm -rf -- '%s'", box->config_dir);
	assert_int_equal(system(command), 0);
	*state = box->e;
	free(box);
	return engine_down(state);
}

static void done(struct tool_call *call)
{
	(void)sem_post(call->context);
}

static void json_drop(void *value)
{
	json_decref(value);
}

json_t *call_as(struct box *box, const struct caller *caller, const struct tool *tool, json_t *args)
{
	struct tool_call *call = ARENA_NEW(box->e->arena, struct tool_call);
	json_error_t error;
	json_t *envelope;
	sem_t ready;

	assert_non_null(args);
	arena_at_end(box->e->arena, json_drop, args);
	(void)sem_init(&ready, 0, 0);
	*call = (struct tool_call){
		.arena = box->e->arena, .caller = *caller, .tool = tool, .args = args, .done = done, .context = &ready};
	call->caller.actor.req_id = call->caller.req_id;
	tools_call(box->tools, call);
	while (sem_wait(&ready) != 0)
		;
	(void)sem_destroy(&ready);
	envelope = json_loadb(call->envelope.p, call->envelope.n, JSON_ALLOW_NUL, &error);
	if (envelope == NULL)
		fail_msg("%s in %.*s", error.text, STRF(call->envelope));
	arena_at_end(box->e->arena, json_drop, envelope);
	return envelope;
}

__attribute__((format(printf, 2, 0))) static json_t *read_args(struct box *box, const char *format, va_list list)
{
	char *text = arena_vprintf(box->e->arena, format, list);
	json_error_t error;
	json_t *args;

	for (char *c = text; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	args = json_loads(text, 0, &error);
	if (args == NULL)
		fail_msg("%s in %s", error.text, text);
	return args;
}

json_t *ask(struct box *box, const struct tool *tool, const char *format, ...)
{
	va_list list;
	json_t *args;

	va_start(list, format);
	args = read_args(box, format, list);
	va_end(list);
	return call_as(box, &box->e->callers[LOCAL], tool, args);
}

json_t *ask_as(struct box *box, const struct caller *caller, const struct tool *tool, const char *format, ...)
{
	va_list list;
	json_t *args;

	va_start(list, format);
	args = read_args(box, format, list);
	va_end(list);
	return call_as(box, caller, tool, args);
}

int seat_caller(struct box *box, const char *token, struct caller *out)
{
	struct snapshot s;
	struct failure f;
	int rc;

	failure_init(&f, box->e->arena);
	assert_int_equal(snapshot_begin(box->e->store, box->e->arena, &s, &f), 0);
	rc = caller_from_token(&s, str_of(token), STR("mcp"), out, &f);
	snapshot_end(&s);
	if (rc != 0)
		assert_int_equal(f.code, FAIL_UNAUTHENTICATED);
	return rc;
}

json_t *push(struct box *box, int64_t root, const char *yaml)
{
	json_t *envelope = call_as(box, &box->e->callers[LOCAL], &tool_config,
		json_pack("{s[{s:s,s:s,s:s}]}", "ops", "op", "push", "rootId", id_of(box->e, root), "yaml", yaml));

	(void)result_of(envelope);
	return envelope;
}

const json_t *result_of(const json_t *envelope)
{
	if (!json_is_true(json_object_get(envelope, "ok")))
		fail_msg("refused: %s", json_dumps(envelope, 0));
	return json_array_get(json_object_get(envelope, "results"), 0);
}

const json_t *data_of(const json_t *envelope)
{
	if (!json_is_true(json_object_get(envelope, "ok")))
		fail_msg("refused: %s", json_dumps(envelope, 0));
	return json_object_get(envelope, "data");
}

void assert_error(const json_t *envelope, const char *code)
{
	if (strcmp(text_at(envelope, "error.code"), code) != 0)
		fail_msg("expected %s: %s", code, json_dumps(envelope, 0));
}

bool has_warning(const json_t *envelope, const char *code)
{
	const json_t *list = json_object_get(envelope, "warnings");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(text_at(json_array_get(list, i), "code"), code) == 0)
			return true;
	return false;
}

const char *repeat(struct box *box, const char *text, size_t n)
{
	size_t size = strlen(text);
	char *out = arena_alloc(box->e->arena, size * n + 1);

	for (size_t i = 0; i < n; i++)
		memcpy(out + i * size, text, size);
	return out;
}
