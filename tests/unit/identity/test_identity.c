/* Principals, capabilities, tokens, sign-in. */
#include "identity/identity.h"

#include "temp_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#undef fail /* ours, not the test library's */

struct place {
	char dir[TEMP_DIR_SIZE];
	char path[96];
	struct arena *arena;
	struct store *store;
	struct failure f;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	temp_dir_make(place->dir, "identity");
	(void)snprintf(place->path, sizeof(place->path), "%s/dais.db", place->dir);
	place->arena = arena_create();
	failure_init(&place->f, place->arena);
	place->store = temp_store_open(place->dir, "dais.db");
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	store_close(place->store);
	temp_dir_remove(place->dir);
	arena_destroy(place->arena);
	free(place);
	return 0;
}

struct making {
	struct token_info wanted;
	int64_t ttl_ms;
	struct str id, token;
};

static int make(struct tx *tx, void *arg, struct failure *f)
{
	struct making *making = arg;

	if (making->ttl_ms != 0)
		making->wanted.expires_at = tx->snapshot.now + making->ttl_ms;
	return token_create(tx, &making->wanted, &making->id, &making->token, f);
}

static int create(struct place *place, struct making *making)
{
	return store_write(place->store, make, making, &actor_system, place->arena, &place->f);
}

static int revoke(struct tx *tx, void *arg, struct failure *f)
{
	return token_revoke(tx, *(const struct str *)arg, f);
}

static int who(struct place *place, struct str token, struct caller *out)
{
	struct snapshot s;
	int rc;

	assert_int_equal(snapshot_begin(place->store, place->arena, &s, &place->f), 0);
	rc = caller_from_token(&s, token, STR("rest"), out, &place->f);
	snapshot_end(&s);
	return rc;
}

static void test_a_token_stands_for_its_principal_and_capabilities(void **state)
{
	struct place *place = *state;
	struct making making = {.wanted = {.id = STR("ci"), .capabilities = CAP_READ | CAP_ADVANCE}};
	struct caller caller;

	assert_int_equal(create(place, &making), 0);
	assert_int_equal(making.token.n, strlen("dais_") + 43);
	assert_int_equal(who(place, making.token, &caller), 0);
	assert_true(str_eq(caller.actor.id, STR("api:ci")));
	assert_true(caller_may(&caller, CAP_ADVANCE));
	assert_false(caller_may(&caller, CAP_WRITE_ITEMS));
	assert_false(caller.sees_actors);
	assert_int_equal(caller_need(&caller, CAP_READ | CAP_WRITE_CONFIG, &place->f), -1);
	assert_int_equal(place->f.code, FAIL_FORBIDDEN);
	assert_non_null(strstr(str_z(place->arena, place->f.detail), "write-config"));
}

static void test_the_text_of_a_token_is_nowhere_in_the_database(void **state)
{
	struct place *place = *state;
	struct making making = {.wanted = {.capabilities = CAP_READ}};
	char command[256];

	assert_int_equal(create(place, &making), 0);
	(void)snprintf(command, sizeof(command), "grep -c -a %.*s %s %s-wal | grep -qv ':0$'", STRF(making.token),
		place->path, place->path);
	assert_int_not_equal(system(command), 0);
}

static void test_wrong_expired_and_revoked_tokens_are_refused_alike(void **state)
{
	struct place *place = *state;
	struct making making = {.wanted = {.id = STR("a"), .capabilities = CAP_READ}, .ttl_ms = 1};
	struct making other = {.wanted = {.id = STR("b"), .capabilities = CAP_READ}};
	struct caller caller;
	struct str said;

	assert_int_equal(who(place, STR("dais_nobody"), &caller), -1);
	said = place->f.message;
	assert_int_equal(place->f.code, FAIL_UNAUTHENTICATED);
	assert_int_equal(create(place, &making), 0);
	while (who(place, making.token, &caller) == 0)
		continue; /* at most until the next millisecond */
	assert_true(str_eq(place->f.message, said));
	assert_int_equal(create(place, &other), 0);
	assert_int_equal(who(place, other.token, &caller), 0);
	assert_int_equal(store_write(place->store, revoke, &other.id, &actor_system, place->arena, &place->f), 0);
	assert_int_equal(who(place, other.token, &caller), -1);
	assert_true(str_eq(place->f.message, said));
	assert_int_equal(who(place, STR("dst_nobody"), &caller), -1);
	assert_true(str_eq(place->f.message, said));
}

static void test_an_id_is_given_once(void **state)
{
	struct place *place = *state;
	struct making making = {.wanted = {.id = STR("ci"), .capabilities = CAP_READ}};

	assert_int_equal(create(place, &making), 0);
	assert_int_equal(create(place, &making), -1);
	assert_int_equal(place->f.code, FAIL_DUPLICATE);
	making.wanted.id = STR("Not Legal");
	assert_int_equal(create(place, &making), -1);
	assert_int_equal(place->f.code, FAIL_INVALID_REQUEST);
}

static void test_admin_implies_every_capability(void **state)
{
	struct place *place = *state;
	struct making making = {.wanted = {.capabilities = CAP_ADMIN}};
	struct caller caller;

	assert_int_equal(create(place, &making), 0);
	assert_int_equal(who(place, making.token, &caller), 0);
	assert_true(caller_may(&caller, CAP_READ | CAP_WRITE_CONFIG | CAP_MANAGE_RUNS));
	assert_true(caller.sees_actors);
}

static void test_capability_words_are_read_in_any_case_and_unknown_ones_named(void **state)
{
	struct place *place = *state;
	unsigned set;

	assert_int_equal(capabilities_parse(STR("Read, write-notes  ADVANCE"), &set, &place->f), 0);
	assert_int_equal(set, CAP_READ | CAP_WRITE_NOTES | CAP_ADVANCE);
	assert_string_equal(str_z(place->arena, capabilities_text(place->arena, set)), "read write-notes advance");
	assert_int_equal(capabilities_parse(STR("read fly"), &set, &place->f), -1);
	assert_true(str_eq(place->f.fields->received, STR("fly")));
}

static void test_a_token_reads_only_the_projects_it_names(void **state)
{
	struct caller caller = {.roots = (const int64_t[]){4, 7}, .root_count = 2};

	(void)state;
	assert_true(caller_reads_root(&caller, 7));
	assert_false(caller_reads_root(&caller, 5));
	caller.roots = NULL;
	assert_true(caller_reads_root(&caller, 5));
}

struct signing {
	struct str code, session;
};

static int begin_sign_in(struct tx *tx, void *arg, struct failure *f)
{
	return sign_in_create(tx, &((struct signing *)arg)->code, f);
}

static int redeem(struct tx *tx, void *arg, struct failure *f)
{
	struct signing *signing = arg;

	return sign_in_redeem(tx, signing->code, &signing->session, f);
}

static void test_a_sign_in_code_is_good_once(void **state)
{
	struct place *place = *state;
	struct signing signing;
	struct caller caller;
	struct snapshot s;

	assert_int_equal(store_write(place->store, begin_sign_in, &signing, &actor_system, place->arena, &place->f), 0);
	assert_int_equal(store_write(place->store, redeem, &signing, &actor_system, place->arena, &place->f), 0);
	assert_int_equal(snapshot_begin(place->store, place->arena, &s, &place->f), 0);
	assert_int_equal(caller_from_session(&s, signing.session, &caller, &place->f), 0);
	assert_false(caller.is_local);
	assert_int_equal(caller_from_session(&s, signing.code, &caller, &place->f), -1);
	snapshot_end(&s);
	assert_int_equal(store_write(place->store, redeem, &signing, &actor_system, place->arena, &place->f), -1);
	assert_int_equal(place->f.code, FAIL_UNAUTHENTICATED);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_a_token_stands_for_its_principal_and_capabilities),
		CASE(test_the_text_of_a_token_is_nowhere_in_the_database),
		CASE(test_wrong_expired_and_revoked_tokens_are_refused_alike),
		CASE(test_an_id_is_given_once),
		CASE(test_admin_implies_every_capability),
		CASE(test_capability_words_are_read_in_any_case_and_unknown_ones_named),
		CASE(test_a_token_reads_only_the_projects_it_names),
		CASE(test_a_sign_in_code_is_good_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
