#include "http/listen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

struct fixture {
	struct arena *arena;
	struct failure f;
};

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture.arena = arena_create();
	failure_init(&fixture.f, fixture.arena);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	arena_destroy(fixture->arena);
	return 0;
}

static bool mentions(const struct failure *f, const char *text)
{
	return memmem(f->message.p, f->message.n, text, strlen(text)) != NULL;
}

static void addresses_are_read(void **state)
{
	struct fixture *fixture = *state;
	struct listen_address address;

	assert_int_equal(listen_parse(STR("127.0.0.1:3001"), &address, &fixture->f), 0);
	assert_string_equal(address.host, "127.0.0.1");
	assert_int_equal(address.port, 3001);
	assert_int_equal(listen_parse(STR("[::1]:0"), &address, &fixture->f), 0);
	assert_string_equal(address.host, "::1");
	assert_true(address.is_v6);
	assert_int_equal(listen_parse(STR("localhost:65535"), &address, &fixture->f), 0);
	assert_int_equal(address.port, 65535);
}

static void a_wrong_address_is_named(void **state)
{
	static const char *const wrong[] = {"127.0.0.1:99999", ":3001", "127.0.0.1", "127.0.0.1:", "::1:3001",
		"[::1]", "[]:1", "[zz]:1", "a b:1", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:1x", "h:000080"};
	struct fixture *fixture = *state;
	struct listen_address address;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		failure_init(&fixture->f, fixture->arena);
		assert_int_equal(listen_parse(str_of(wrong[i]), &address, &fixture->f), -1);
		assert_int_equal(fixture->f.code, FAIL_BAD_CONFIGURATION);
		assert_true(mentions(&fixture->f, wrong[i]));
	}
	assert_int_equal(listen_parse(STR_NONE, &address, &fixture->f), -1);
}

static void port_0_gets_a_real_one(void **state)
{
	struct fixture *fixture = *state;
	struct listen_address address;
	struct listen_sockets sockets;

	assert_int_equal(listen_parse(STR("localhost:0"), &address, &fixture->f), 0);
	assert_int_equal(listen_open(&address, &sockets, &fixture->f), 0);
	assert_true(sockets.port > 0);
	listen_close(&sockets);
}

static void a_taken_port_names_its_holder(void **state)
{
	struct fixture *fixture = *state;
	struct listen_address address;
	struct listen_sockets first, second;
	char text[64];

	assert_int_equal(listen_parse(STR("127.0.0.1:0"), &address, &fixture->f), 0);
	assert_int_equal(listen_open(&address, &first, &fixture->f), 0);
	address.port = first.port;
	assert_int_equal(listen_open(&address, &second, &fixture->f), -1);
	assert_int_equal(fixture->f.code, FAIL_CANNOT_CREATE);
	(void)snprintf(text, sizeof(text), "127.0.0.1:%u", first.port);
	assert_true(mentions(&fixture->f, text));
	(void)snprintf(text, sizeof(text), "process %d", (int)getpid());
	assert_true(mentions(&fixture->f, text));
	listen_close(&first);
}

static void a_foreign_address_cannot_be_listened_on(void **state)
{
	struct fixture *fixture = *state;
	struct listen_address address;
	struct listen_sockets sockets;

	assert_int_equal(listen_parse(STR("192.0.2.1:3001"), &address, &fixture->f), 0);
	assert_int_equal(listen_open(&address, &sockets, &fixture->f), -1);
	assert_int_equal(fixture->f.code, FAIL_CANNOT_CREATE);
	assert_true(mentions(&fixture->f, "192.0.2.1:3001"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(addresses_are_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_wrong_address_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(port_0_gets_a_real_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_taken_port_names_its_holder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_foreign_address_cannot_be_listened_on, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
