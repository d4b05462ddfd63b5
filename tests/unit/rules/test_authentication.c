#include "story.h"

#define JWKS(rest) "actor_authentication: {verifier: {type: jwks, algorithms: [RS256], " rest "}}\n"
#define AT "actor_authentication.verifier"

static void a_good_block_is_accepted(void **state)
{
	struct story *s = *state;

	global(s, "actor_authentication: {enabled: true, degraded_mode_policy: reject, verifier: {type: noop}}\n");
	global(s, JWKS("jwks_uri: 'https://a.example/keys', issuer: i, audience: a, cache_ttl_seconds: 60"));
	global(s, JWKS("oidc_discovery: 'https://a.example', jwks_uri: 'https://a.example/keys'"));
	global(s, JWKS("jwks_path: /etc/keys.json, max_token_lifetime_seconds: 3153600000, stale_on_error: false"));
	global(s, JWKS("did_allowlist: ['did:web:a.example'], did_pattern: 'did:web:*.example'"));
	global(s, JWKS("jwks_uri: 'http://127.0.0.1:8080/keys', allow_insecure_url: true"));
	global(s, JWKS("jwks_uri: 'http://[::1]:8080/keys', allow_insecure_url: true"));
	assert_int_equal(s->warnings.count, 0);
}

static void words_numbers_and_booleans_are_checked(void **state)
{
	struct story *s = *state;

	refused_global(s, "actor_authentication: []\n", "actor_authentication", "expected a mapping");
	refused_global(s, "actor_authentication: {enabled: yes}\n", "actor_authentication.enabled", "true or false");
	refused_global(s, "actor_authentication: {degraded_mode_policy: ignore}\n",
		"actor_authentication.degraded_mode_policy", "accept-cached");
	refused_global(s, "actor_authentication: {verifier: {type: jwk}}\n", AT ".type", "noop or jwks");
	refused_global(s, JWKS("jwks_path: x, max_token_lifetime_seconds: 0"), AT ".max_token_lifetime_seconds", "from 1 to 3153600000");
	refused_global(s, JWKS("jwks_path: x, cache_ttl_seconds: soon"), AT ".cache_ttl_seconds", "whole number");
	refused_global(s, JWKS("jwks_path: x, require_sub_match: 'false'"), AT ".require_sub_match", "true or false");
	refused_global(s, JWKS("jwks_path: ['x']"), AT ".jwks_path", "expected text");
}

static void keys_come_from_exactly_one_source(void **state)
{
	struct story *s = *state;

	refused_global(s, JWKS("issuer: x"), AT, "none is given");
	refused_global(s, JWKS("jwks_uri: 'https://a.example', jwks_path: x"), AT, "several are given");
	refused_global(s, JWKS("did_pattern: x, jwks_path: x"), AT, "several are given");
}

static void only_asymmetric_algorithms_are_allowed(void **state)
{
	struct story *s = *state;

	refused_global(s, "actor_authentication: {verifier: {type: jwks, jwks_path: x}}\n", AT ".algorithms", "at least one");
	refused_global(s, "actor_authentication: {verifier: {type: jwks, jwks_path: x, algorithms: []}}\n", AT ".algorithms", "at least one");
	refused_global(s, "actor_authentication: {verifier: {type: jwks, jwks_path: x, algorithms: [RS256, none]}}\n", AT ".algorithms[1]", "asymmetric");
	refused_global(s, "actor_authentication: {verifier: {type: jwks, jwks_path: x, algorithms: [HS256]}}\n", AT ".algorithms[0]", "asymmetric");
}

static void http_is_for_loopback_with_permission(void **state)
{
	struct story *s = *state;

	refused_global(s, JWKS("jwks_uri: 'http://127.0.0.1/keys'"), AT ".jwks_uri", "loopback");
	refused_global(s, JWKS("jwks_uri: 'http://a.example/keys', allow_insecure_url: true"), AT ".jwks_uri", "loopback");
	refused_global(s, JWKS("jwks_uri: 'http://127.0.0.1.evil.example/', allow_insecure_url: true"), AT ".jwks_uri", "loopback");
	refused_global(s, JWKS("jwks_uri: 'http://localhost@evil.example/', allow_insecure_url: true"), AT ".jwks_uri", "without user");
	refused_global(s, JWKS("jwks_uri: 'ftp://a.example'"), AT ".jwks_uri", "https");
	refused_global(s, JWKS("jwks_uri: 'https://'"), AT ".jwks_uri", "host");
}

static void a_project_cannot_authenticate_anybody(void **state)
{
	struct story *s = *state;
	const struct str *ignored;

	project(s, "actor_authentication: {verifier: {type: nonsense}}\n");
	assert_int_equal(s->warnings.count, 0);
	assert_int_equal(rules_doc_ignored(s->project, &ignored), 1);
	is(ignored[0], "actor_authentication");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_good_block_is_accepted),
		STORY(words_numbers_and_booleans_are_checked),
		STORY(keys_come_from_exactly_one_source),
		STORY(only_asymmetric_algorithms_are_allowed),
		STORY(http_is_for_loopback_with_permission),
		STORY(a_project_cannot_authenticate_anybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
