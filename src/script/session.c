/* Sessions: their threads, their queues of prompts, and what cancels them. */
#include "script/private.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct {
	const char *id, *name;
} modes[] = {
	{"default", "Ask before anything risky"},
	{"plan", "Plan, change nothing"},
	{"accept-edits", "Edit without asking"},
	{"full-access", "Do anything without asking"},
};

const char *script_mode(size_t i)
{
	return i < sizeof(modes) / sizeof(modes[0]) ? modes[i].id : NULL;
}

const char *script_mode_name(size_t i)
{
	return modes[i].name;
}

struct session *script_session_find(struct script_agent *agent, struct str id)
{
	for (struct session *session = agent->sessions; session != NULL; session = session->next)
		if (str_eq(id, str_of(session->id)) && !session->is_closing)
			return session;
	return NULL;
}

struct session *script_session_blank(struct script_agent *agent)
{
	struct session *session = calloc(1, sizeof(*session));
	pthread_condattr_t attributes;

	if (session == NULL)
		abort();
	session->agent = agent;
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&session->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	session->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	session->prompts_end = &session->prompts;
	session->scene_uses = calloc(agent->scenario->scene_count + 1, sizeof(int64_t));
	session->memory = json_object();
	session->saved = json_object();
	if (session->wake < 0 || session->scene_uses == NULL)
		abort();
	buf_init(&session->history, NULL, SIZE_MAX);
	session->place = arena_create();
	session->cwd = "/";
	return session;
}

/* ---- prompts ---- */

static void prompt_destroy(struct prompt *prompt)
{
	for (size_t i = 0; i < prompt->steer_count; i++)
		free((void *)(uintptr_t)prompt->steers[i].p);
	free(prompt->steers);
	free((void *)(uintptr_t)prompt->text.p);
	json_decref(prompt->id);
	free(prompt);
}

static struct str heap_copy(struct str text)
{
	char *copy = malloc(text.n + 1);

	if (copy == NULL)
		abort();
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	return (struct str){copy, text.n};
}

void script_session_queue(struct session *session, const json_t *id, struct str text)
{
	struct prompt *prompt = calloc(1, sizeof(*prompt));

	if (prompt == NULL)
		abort();
	prompt->id = id == NULL ? NULL : json_deep_copy(id);
	prompt->text = heap_copy(text);
	*session->prompts_end = prompt;
	session->prompts_end = &prompt->next;
	(void)pthread_cond_broadcast(&session->changed);
}

void script_session_steer(struct session *session, struct str text)
{
	struct prompt *prompt = session->prompts;
	struct str *more = realloc(prompt->steers, (prompt->steer_count + 1) * sizeof(*more));

	if (more == NULL)
		abort();
	more[prompt->steer_count++] = heap_copy(text);
	prompt->steers = more;
	(void)pthread_cond_broadcast(&session->changed);
}

/* Everybody who waits for this session looks again at its running prompt. */
void script_session_stir(struct session *session)
{
	const uint64_t one = 1;

	if (session->prompts != NULL && !session->prompts->ignores_cancel)
		(void)!write(session->wake, &one, sizeof(one)); /* it can only be full, which is as good */
	(void)pthread_cond_broadcast(&session->changed);
}

/* A cancel is about the session: what waits behind the running prompt is not wanted either. */
void script_session_cancel(struct session *session, bool is_end)
{
	if (!is_end && session->prompts != NULL && session->prompts->ignores_cancel)
		return;
	for (struct prompt *prompt = session->prompts; prompt != NULL; prompt = prompt->next)
		prompt->is_cancelled = true;
	script_session_stir(session);
}

void script_session_close(struct session *session)
{
	session->is_closing = true;
	script_session_cancel(session, true);
}

/* ---- the thread ---- */

static struct prompt *next_prompt(struct session *session)
{
	uint64_t stale;

	while (session->prompts == NULL && !session->is_closing)
		(void)pthread_cond_wait(&session->changed, &session->agent->lock);
	(void)!read(session->wake, &stale, sizeof(stale)); /* the cancel of an earlier prompt, or nothing */
	return session->prompts;
}

struct prompt *script_session_detach(struct session *session)
{
	struct prompt *prompt = session->prompts;

	session->prompts = prompt->next;
	if (prompt->next == NULL)
		session->prompts_end = &session->prompts;
	return prompt;
}

static void *play(void *arg)
{
	struct session *session = arg;
	struct prompt *prompt;

	(void)pthread_mutex_lock(&session->agent->lock);
	while ((prompt = next_prompt(session)) != NULL) {
		(void)pthread_mutex_unlock(&session->agent->lock);
		turn_play(session, prompt);
		prompt_destroy(prompt);
		(void)pthread_mutex_lock(&session->agent->lock);
	}
	(void)pthread_mutex_unlock(&session->agent->lock);
	return NULL;
}

void script_session_start(struct session *session)
{
	session->next = session->agent->sessions;
	session->agent->sessions = session;
	if (pthread_create(&session->thread, NULL, play, session) != 0)
		abort();
}

struct session *script_session_create(struct script_agent *agent)
{
	struct session *session = script_session_blank(agent);
	struct id id;

	id_generate(&id);
	id_format(id, session->id);
	return session;
}

void script_session_destroy(struct session *session)
{
	while (session->prompts != NULL)
		prompt_destroy(script_session_detach(session));
	mcp_client_destroy(session->mcp);
	buf_finish(&session->history);
	json_decref(session->memory);
	json_decref(session->saved);
	free(session->scene_uses);
	arena_destroy(session->place);
	(void)close(session->wake);
	(void)pthread_cond_destroy(&session->changed);
	free(session);
}

/* ---- where it works ---- */

static void take_headers(struct arena *arena, const json_t *headers, struct mcp_server *out)
{
	size_t count = json_array_size(headers);
	struct mcp_header *copy = ARENA_ARRAY(arena, struct mcp_header, count);

	for (size_t i = 0; i < count; i++) {
		const json_t *header = json_array_get(headers, i);

		copy[i].name = str_dup(arena, json_member_str(header, "name"));
		copy[i].value = str_dup(arena, json_member_str(header, "value"));
	}
	out->headers = copy;
	out->header_count = count;
}

/* The first server that speaks HTTP. */
static const struct mcp_server *take_server(struct arena *arena, const json_t *servers)
{
	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *server = json_array_get(servers, i);
		struct mcp_server *copy;

		if (!str_eq(json_member_str(server, "type"), STR("http")))
			continue;
		copy = ARENA_NEW(arena, struct mcp_server);
		copy->name = str_dup(arena, json_member_str(server, "name"));
		copy->url = str_dup(arena, json_member_str(server, "url"));
		take_headers(arena, json_object_get(server, "headers"), copy);
		return copy;
	}
	return NULL;
}

void script_session_place(struct session *session, const json_t *params)
{
	struct arena *place = arena_create();

	session->cwd = str_z(place, json_member_str(params, "cwd"));
	session->server = (session->agent->scenario->without & WITHOUT_MCP) != 0
	                          ? NULL
	                          : take_server(place, json_object_get(params, "mcpServers"));
	session->server_serial++;
	arena_destroy(session->place);
	session->place = place;
}
