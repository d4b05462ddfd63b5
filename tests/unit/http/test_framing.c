#include "http/framing.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define FIELDS(...) \
	((const struct framing_field[]){__VA_ARGS__}), \
		sizeof((const struct framing_field[]){__VA_ARGS__}) / sizeof(struct framing_field)
#define F(name, value) {STR(name), STR(value)}

static int check(const struct framing_field *fields, size_t n, struct framing *out)
{
	struct framing_head head = {STR("POST"), STR("/mcp"), STR("HTTP/1.1"), fields, n};

	return framing_check(&head, out);
}

static int check_1_0(const struct framing_field *fields, size_t n, struct framing *out)
{
	struct framing_head head = {STR("POST"), STR("/mcp"), STR("HTTP/1.0"), fields, n};

	return framing_check(&head, out);
}

static int check_target(struct str target)
{
	const struct framing_field host = F("Host", "a");
	struct framing_head head = {STR("GET"), target, STR("HTTP/1.1"), &host, 1};
	struct framing out;

	return framing_check(&head, &out);
}

static void a_plain_head_has_no_body(void **state)
{
	struct framing out;

	(void)state;
	assert_int_equal(check(FIELDS(F("Host", "a")), &out), 0);
	assert_false(framing_has_body(&out));
	assert_int_equal(check(FIELDS(F("Host", "a"), F("content-length", "0")), &out), 0);
	assert_false(framing_has_body(&out));
}

static void one_length_or_chunked_frames_a_body(void **state)
{
	struct framing out;

	(void)state;
	assert_int_equal(check(FIELDS(F("Host", "a"), F("CONTENT-length", "12")), &out), 0);
	assert_int_equal(out.length, 12);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("Transfer-Encoding", "Chunked")), &out), 0);
	assert_true(out.chunked);
	assert_int_equal(
		check(FIELDS(F("Host", "a"), F("Content-Length", "999999999999999999")), &out), 0);
}

static void two_lengths_are_refused_even_when_equal(void **state)
{
	struct framing out;

	(void)state;
	assert_int_equal(
		check(FIELDS(F("Host", "a"), F("Content-Length", "5"), F("Content-Length", "5")), &out), 400);
	assert_non_null(out.reason);
}

static void a_length_is_digits_only(void **state)
{
	static const char *const wrong[] = {"+2", "-1", "2,2", "0x2", "2 ", " 2", "", "1e3", "2;"};
	struct framing out;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct framing_field fields[] = {
			F("Host", "a"), {STR("Content-Length"), str_of(wrong[i])}};

		assert_int_equal(check(fields, 2, &out), 400);
	}
	assert_int_equal(
		check(FIELDS(F("Host", "a"), F("Content-Length", "99999999999999999999999")), &out), 413);
}

static void an_encoding_is_chunked_and_alone(void **state)
{
	static const char *const wrong[] = {"gzip", "chunked, chunked", "gzip, chunked", "chunked ", "xchunked", ""};
	struct framing out;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct framing_field fields[] = {
			F("Host", "a"), {STR("Transfer-Encoding"), str_of(wrong[i])}};

		assert_int_equal(check(fields, 2, &out), 400);
	}
	assert_int_equal(check(FIELDS(F("Host", "a"), F("Transfer-Encoding", "chunked"),
				       F("Content-Length", "3")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("Transfer-Encoding", "chunked"),
				       F("Transfer-Encoding", "chunked")), &out), 400);
	assert_int_equal(check_1_0(FIELDS(F("Transfer-Encoding", "chunked")), &out), 400);
}

static void exactly_one_host_is_needed(void **state)
{
	struct framing out;

	(void)state;
	assert_int_equal(check(FIELDS(F("Accept", "a")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("host", "a")), &out), 400);
	assert_int_equal(check_1_0(FIELDS(F("Accept", "a")), &out), 0);
	assert_int_equal(check_1_0(FIELDS(F("Host", "a"), F("Host", "b")), &out), 400);
}

static void names_are_tokens_and_values_have_no_control_bytes(void **state)
{
	struct framing out;

	(void)state;
	assert_int_equal(check(FIELDS(F("Host", "a"), F("Content-Length ", "3")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("", "3")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("X\xc3\xa9", "3")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("X", "a\rb")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("X", "a\0b")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("X", "\x7f")), &out), 400);
	assert_int_equal(check(FIELDS(F("Host", "a"), F("X", "a\tb \xc3\xa9")), &out), 0);
}

static void a_target_is_a_path(void **state)
{
	(void)state;
	assert_int_equal(check_target(STR("/a?b=%20")), 0);
	assert_int_equal(check_target(STR("*")), 0);
	assert_int_equal(check_target(STR("")), 400);
	assert_int_equal(check_target(STR("a")), 400);
	assert_int_equal(check_target(STR("http://evil/")), 400);
	assert_int_equal(check_target(STR("/a b")), 400);
	assert_int_equal(check_target(STR("/a\x01")), 400);
}

static void sizes_have_limits(void **state)
{
	static char text[LIMIT_HTTP_HEAD_BYTES];
	static struct framing_field fields[LIMIT_HTTP_FIELDS + 1];
	struct framing out;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(check_target((struct str){text, LIMIT_HTTP_TARGET_BYTES}), 0);
	assert_int_equal(check_target((struct str){text, LIMIT_HTTP_TARGET_BYTES + 1}), 414);
	fields[0] = (struct framing_field)F("Host", "a");
	for (size_t i = 1; i <= LIMIT_HTTP_FIELDS; i++)
		fields[i] = (struct framing_field)F("x", "y");
	assert_int_equal(check(fields, LIMIT_HTTP_FIELDS, &out), 0);
	assert_int_equal(check(fields, LIMIT_HTTP_FIELDS + 1, &out), 431);
	fields[1].value = (struct str){text, LIMIT_HTTP_FIELD_BYTES - 5};
	assert_int_equal(check(fields, 2, &out), 0);
	fields[1].value.n++;
	assert_int_equal(check(fields, 2, &out), 431);
	for (size_t i = 1; i <= 4; i++)
		fields[i].value = (struct str){text, LIMIT_HTTP_FIELD_BYTES - 5};
	assert_int_equal(check(fields, 4, &out), 0);
	assert_int_equal(check(fields, 5, &out), 431);
}

static void other_versions_are_refused(void **state)
{
	static const char *const wrong[] = {"HTTP/2.0", "HTTP/1.2", "http/1.1", ""};
	const struct framing_field host = F("Host", "a");
	struct framing out;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct framing_head head = {STR("GET"), STR("/"), str_of(wrong[i]), &host, 1};

		assert_int_equal(framing_check(&head, &out), 505);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_head_has_no_body),
		cmocka_unit_test(one_length_or_chunked_frames_a_body),
		cmocka_unit_test(two_lengths_are_refused_even_when_equal),
		cmocka_unit_test(a_length_is_digits_only),
		cmocka_unit_test(an_encoding_is_chunked_and_alone),
		cmocka_unit_test(exactly_one_host_is_needed),
		cmocka_unit_test(names_are_tokens_and_values_have_no_control_bytes),
		cmocka_unit_test(a_target_is_a_path),
		cmocka_unit_test(sizes_have_limits),
		cmocka_unit_test(other_versions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
