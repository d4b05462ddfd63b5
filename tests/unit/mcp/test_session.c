/* Sessions outlive the server that made them, through the rows of the application. */
#include "mcp/session.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define ROWS 128

struct row {
	bool used;
	struct arena *arena;
	struct mcp_session_row row;
};

static struct row rows[ROWS];

static struct row *row_find(const unsigned char key[32])
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].used && memcmp(rows[i].row.key, key, 32) == 0)
			return &rows[i];
	return NULL;
}

static void copy_row(
	struct arena *arena, struct mcp_session_row *to, const struct mcp_session_row *from)
{
	*to = *from;
	to->version = str_dup(arena, from->version);
	to->principal = str_dup(arena, from->principal);
	to->client_capabilities = str_dup(arena, from->client_capabilities);
	to->client_info = str_dup(arena, from->client_info);
	to->subscriptions = str_dup(arena, from->subscriptions);
	to->log_level = str_dup(arena, from->log_level);
}

static void save(void *app, const struct mcp_session_row *row)
{
	struct row *slot = row_find(row->key);

	(void)app;
	for (size_t i = 0; slot == NULL && i < ROWS; i++)
		if (!rows[i].used)
			slot = &rows[i];
	assert_non_null(slot);
	arena_destroy(slot->arena);
	slot->arena = arena_create();
	slot->used = true;
	copy_row(slot->arena, &slot->row, row);
}

static bool load(
	void *app, const unsigned char key[32], struct arena *arena, struct mcp_session_row *out)
{
	struct row *slot = row_find(key);

	(void)app;
	if (slot != NULL)
		copy_row(arena, out, &slot->row);
	return slot != NULL;
}

static bool deletes_later; /* as a store does that queues it */

static void forget(void *app, const unsigned char key[32])
{
	struct row *slot = row_find(key);

	(void)app;
	if (slot != NULL && !deletes_later)
		slot->used = false;
}

static void touch(void *app, const unsigned char key[32], int64_t at)
{
	(void)app;
	row_find(key)->row.last_seen_at = at;
}

static const struct mcp_handlers handlers = {.session_save = save,
	.session_load = load,
	.session_delete = forget,
	.session_touch = touch};
static const struct mcp_settings settings = {.handlers = &handlers, .server_info = STR("{}")};

static int setup(void **state)
{
	*state = mcp_server_create(&settings);
	return 0;
}

static int teardown(void **state)
{
	mcp_server_destroy(*state);
	for (size_t i = 0; i < ROWS; i++) {
		arena_destroy(rows[i].arena);
		rows[i] = (struct row){0};
	}
	return 0;
}

static void make(struct mcp_server *server, struct str principal, char id[SESSION_ID_SIZE])
{
	json_t *capabilities = json_loads("{\"elicitation\":{}}", 0, NULL);
	json_t *info = json_loads("{\"name\":\"codex\"}", 0, NULL);
	struct hello hello = {MCP_2025_06_18, capabilities, info};
	struct mcp_session *session = mcp_session_create(server, &hello, principal);

	assert_int_equal(mcp_session_publish(session, id), 0);
	assert_true(interest_add(&session->interest, STR("x:a")));
	session->log_threshold = log_level_find(STR("error"));
	mcp_session_save(session);
	mcp_session_unref(session);
	json_decref(capabilities);
	json_decref(info);
}

static void a_session_survives_a_restart_with_all_it_knew(void **state)
{
	char id[SESSION_ID_SIZE];
	struct mcp_session *session;

	make(*state, STR("ada"), id);
	mcp_server_destroy(*state);
	*state = mcp_server_create(&settings);
	session = mcp_session_find(*state, str_of(id), STR("ada"));
	assert_non_null(session);
	assert_int_equal(session->version, MCP_2025_06_18);
	assert_int_equal(session->client_can, MCP_CAN_ELICIT_FORM);
	assert_true(str_eq(session->client_name, STR("codex")));
	assert_int_equal(session->log_threshold, log_level_find(STR("error")));
	assert_non_null(interest_find(&session->interest, STR("x:a")));
	mcp_session_unref(session);
}

static void subscriptions_are_counted_over_restart_and_end(void **state)
{
	char id[SESSION_ID_SIZE];
	struct mcp_session *session;

	assert_false(mcp_has_resource_subscribers(*state));
	make(*state, STR("ada"), id);
	assert_true(mcp_has_resource_subscribers(*state));
	mcp_server_destroy(*state);
	*state = mcp_server_create(&settings);
	assert_false(mcp_has_resource_subscribers(*state));
	session = mcp_session_find(*state, str_of(id), STR("ada"));
	assert_true(mcp_has_resource_subscribers(*state));
	assert_true(interest_remove(&session->interest, STR("x:a")));
	assert_false(mcp_has_resource_subscribers(*state));
	mcp_session_unref(session);
}

static void the_id_itself_is_not_stored(void **state)
{
	unsigned char key[32];
	char id[SESSION_ID_SIZE];

	make(*state, STR("ada"), id);
	sha256(id, strlen(id), key);
	assert_non_null(row_find(key));
}

static void another_principal_does_not_find_it(void **state)
{
	char id[SESSION_ID_SIZE];

	make(*state, STR("ada"), id);
	assert_null(mcp_session_find(*state, str_of(id), STR("bob")));
	assert_null(mcp_session_find(*state, STR("other"), STR("ada")));
}

static void an_idle_session_is_gone_after_its_time(void **state)
{
	unsigned char key[32];
	char id[SESSION_ID_SIZE];

	make(*state, STR("ada"), id);
	mcp_server_destroy(*state);
	sha256(id, strlen(id), key);
	row_find(key)->row.last_seen_at =
		clock_wall_ms() - LIMIT_MCP_SESSION_HOURS * 3600000LL - 1000;
	*state = mcp_server_create(&settings);
	assert_null(mcp_session_find(*state, str_of(id), STR("ada")));
}

static void the_end_takes_the_row_along(void **state)
{
	char id[SESSION_ID_SIZE];
	struct mcp_session *session;

	make(*state, STR("ada"), id);
	session = mcp_session_find(*state, str_of(id), STR("ada"));
	mcp_session_end(session);
	mcp_session_end(session);
	mcp_session_unref(session);
	assert_null(mcp_session_find(*state, str_of(id), STR("ada")));
}

static void an_ended_session_does_not_come_back_while_its_row_is_still_there(void **state)
{
	char id[SESSION_ID_SIZE];
	struct mcp_session *session;

	make(*state, STR("ada"), id);
	session = mcp_session_find(*state, str_of(id), STR("ada"));
	deletes_later = true;
	mcp_session_end(session);
	deletes_later = false;
	mcp_session_unref(session);
	assert_null(mcp_session_find(*state, str_of(id), STR("ada")));
}

static void the_least_recently_used_idle_one_makes_room(void **state)
{
	char ids[LIMIT_MCP_PRINCIPAL_SESSIONS + 1][SESSION_ID_SIZE];
	struct mcp_session *busy;
	struct mcp_session *session;

	for (size_t i = 0; i < LIMIT_MCP_PRINCIPAL_SESSIONS; i++)
		make(*state, STR("ada"), ids[i]);
	busy = mcp_session_find(*state, str_of(ids[0]), STR("ada"));
	mcp_session_busy(busy, 1);
	for (size_t i = 2; i < LIMIT_MCP_PRINCIPAL_SESSIONS; i++)
		mcp_session_unref(mcp_session_find(*state, str_of(ids[i]), STR("ada")));
	make(*state, STR("ada"), ids[LIMIT_MCP_PRINCIPAL_SESSIONS]);
	session = mcp_session_find(*state, str_of(ids[0]), STR("ada"));
	assert_ptr_equal(session, busy);
	mcp_session_unref(session);
	assert_null(mcp_session_find(*state, str_of(ids[1]), STR("ada")));
	mcp_session_busy(busy, -1);
	mcp_session_unref(busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_session_survives_a_restart_with_all_it_knew, setup, teardown),
		cmocka_unit_test_setup_teardown(
			subscriptions_are_counted_over_restart_and_end, setup, teardown),
		cmocka_unit_test_setup_teardown(the_id_itself_is_not_stored, setup, teardown),
		cmocka_unit_test_setup_teardown(
			another_principal_does_not_find_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_idle_session_is_gone_after_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(the_end_takes_the_row_along, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_ended_session_does_not_come_back_while_its_row_is_still_there, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_least_recently_used_idle_one_makes_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
