/* The block actor_authentication of the global document: checked here, so that a wrong one stops the
 * start with its place; used by whoever verifies credentials. */
#include "rules/document.h"

static const char *const block_keys[] = {"enabled", "degraded_mode_policy", "verifier", NULL};
static const char *const policies[] = {"accept-cached", "accept-self-reported", "reject", NULL};
static const char *const verifiers[] = {"noop", "jwks", NULL};
static const char *const verifier_keys[] = {
	"type", "oidc_discovery", "jwks_uri", "jwks_path", "issuer", "audience", "algorithms", "cache_ttl_seconds",
	"require_sub_match", "stale_on_error", "allow_insecure_url", "max_token_lifetime_seconds",
	"jti_replay_protection", "did_allowlist", "did_pattern", "did_strict_relationship", "did_loose_kid_match",
	NULL,
};
/* Asymmetric signatures of JWS; with none or a shared secret anybody could sign. */
static const char *const algorithms[] = {
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", NULL,
};
static const char *const bool_keys[] = {
	"require_sub_match", "stale_on_error", "allow_insecure_url", "jti_replay_protection",
	"did_strict_relationship", "did_loose_kid_match", NULL,
};
static const char *const text_keys[] = {
	"oidc_discovery", "jwks_uri", "jwks_path", "issuer", "audience", "did_pattern", NULL,
};

static void remark_unknown(struct reading *r, const struct path *path, const struct yaml *map, const char *const *known)
{
	for (size_t i = 0; i < map->count; i++)
		if (!is_one_of(map->entries[i].key, known))
			remark(r, "W3", PATH_KEY(path, map->entries[i].key), map->entries[i].at, "unknown key, ignored%s",
				near_name(r, map->entries[i].key, known));
}

/* One of the words, or absent. */
static struct str check_word(struct reading *r, const struct path *path, const struct yaml *map, const char *key,
	const char *const *words, const char *said)
{
	const struct yaml *node = yaml_get(map, str_of(key));

	if (node == NULL || yaml_is_null(node))
		return STR_NONE;
	if (node->kind == YAML_TEXT && is_one_of(node->text, words))
		return node->text;
	refuse(r, PATH_KEY(path, str_of(key)), node->at, "expected %s", said);
	return STR_NONE;
}

/* Present and not blank. */
static struct str check_text(struct reading *r, const struct path *path, const struct yaml *map, const char *key)
{
	const struct yaml *node = yaml_get(map, str_of(key));

	if (node == NULL || yaml_is_null(node))
		return STR_NONE;
	if (node->kind == YAML_TEXT && !str_is_blank(node->text))
		return node->text;
	refuse(r, PATH_KEY(path, str_of(key)), node->at, "expected text");
	return STR_NONE;
}

static void check_number(struct reading *r, const struct path *path, const struct yaml *map, const char *key,
	int64_t low, int64_t high)
{
	const struct yaml *node = yaml_get(map, str_of(key));
	int64_t value;

	if (node == NULL || yaml_is_null(node))
		return;
	if (!yaml_int(node, &value) || value < low || value > high)
		refuse(r, PATH_KEY(path, str_of(key)), node->at, "expected a whole number from %lld to %lld",
			(long long)low, (long long)high);
}

static bool is_loopback(struct str host)
{
	return str_eq_nocase(host, STR("localhost")) || str_eq(host, STR("127.0.0.1")) || str_eq(host, STR("[::1]"));
}

static struct str host_of(struct str rest)
{
	size_t n = 0;

	if (rest.n > 0 && rest.p[0] == '[') {
		while (n < rest.n && rest.p[n] != ']')
			n++;
		return (struct str){rest.p, n < rest.n ? n + 1 : n};
	}
	while (n < rest.n && strchr("/:?#", rest.p[n]) == NULL)
		n++;
	return (struct str){rest.p, n};
}

/* https, or http to this very host when that was allowed. A user part would hide the real host. */
static void check_url(struct reading *r, const struct path *path, const struct yaml *map, const char *key, bool insecure)
{
	const struct yaml *node = yaml_get(map, str_of(key));
	struct str url, host;
	bool is_https;

	if (node == NULL || yaml_is_null(node) || node->kind != YAML_TEXT || str_is_blank(node->text))
		return;
	url = node->text;
	is_https = str_starts(url, STR("https://"));
	if (!is_https && !str_starts(url, STR("http://"))) {
		refuse(r, PATH_KEY(path, str_of(key)), node->at, "expected an https URL");
		return;
	}
	url = is_https ? (struct str){url.p + 8, url.n - 8} : (struct str){url.p + 7, url.n - 7};
	host = host_of(url);
	if (host.n == 0 || memchr(url.p, '@', url.n) != NULL)
		refuse(r, PATH_KEY(path, str_of(key)), node->at, "expected a URL with a host and without user name");
	else if (!is_https && !(insecure && is_loopback(host)))
		refuse(r, PATH_KEY(path, str_of(key)), node->at,
			"http is allowed for loopback hosts only, and with allow_insecure_url: true");
}

/* Names of a list, each not blank; the number of them. */
static size_t check_list(struct reading *r, const struct path *path, const struct yaml *map, const char *key,
	const char *const *words, const char *said)
{
	const struct path *at = PATH_KEY(path, str_of(key));
	const struct yaml *list = want_list(r, at, yaml_get(map, str_of(key)), 1000);

	if (list == NULL)
		return 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml *one = list->entries[i].value;

		if (one->kind != YAML_TEXT || str_is_blank(one->text) || (words != NULL && !is_one_of(one->text, words)))
			refuse(r, PATH_ITEM(at, i), one->at, "expected %s", said);
	}
	return list->count;
}

/* Keys come from one place: one of the three addresses, or the documents of trusted DIDs. An address
 * written beside oidc_discovery overrides what was discovered. */
static void check_sources(struct reading *r, const struct path *path, const struct yaml *map, size_t dids)
{
	bool has_discovery = yaml_get(map, STR("oidc_discovery")) != NULL;
	bool has_uri = yaml_get(map, STR("jwks_uri")) != NULL;
	bool has_path = yaml_get(map, STR("jwks_path")) != NULL;
	bool has_did = dids > 0 || yaml_get(map, STR("did_pattern")) != NULL;
	int sources = (has_discovery || has_uri) + has_path + has_did;

	if (sources != 1)
		refuse(r, path, map->at, "a jwks verifier takes its keys from exactly one of oidc_discovery, jwks_uri, "
			"jwks_path, or did_allowlist and did_pattern; %s given", sources == 0 ? "none is" : "several are");
}

static void check_verifier(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);
	bool insecure;
	size_t algorithm_count, dids;
	struct str type;

	if (map == NULL)
		return;
	remark_unknown(r, path, map, verifier_keys);
	type = check_word(r, path, map, "type", verifiers, "noop or jwks");
	for (int i = 0; bool_keys[i] != NULL; i++)
		(void)read_bool(r, path, map, bool_keys[i], false);
	for (int i = 0; text_keys[i] != NULL; i++)
		(void)check_text(r, path, map, text_keys[i]);
	check_number(r, path, map, "cache_ttl_seconds", 1, 31536000);
	check_number(r, path, map, "max_token_lifetime_seconds", 1, 3153600000);
	insecure = false;
	if (yaml_get(map, STR("allow_insecure_url")) != NULL)
		(void)yaml_bool(yaml_get(map, STR("allow_insecure_url")), &insecure);
	check_url(r, path, map, "oidc_discovery", insecure);
	check_url(r, path, map, "jwks_uri", insecure);
	algorithm_count = check_list(r, path, map, "algorithms", algorithms,
		"an asymmetric JWS algorithm like RS256 or ES256 (none and HMAC are refused)");
	dids = check_list(r, path, map, "did_allowlist", NULL, "a DID");
	if (!str_eq(type, STR("jwks")))
		return;
	check_sources(r, path, map, dids);
	if (algorithm_count == 0)
		refuse(r, PATH_KEY(path, STR("algorithms")), map->at, "a jwks verifier needs at least one algorithm");
}

void check_authentication(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);

	if (map == NULL)
		return;
	remark_unknown(r, path, map, block_keys);
	(void)read_bool(r, path, map, "enabled", false);
	(void)check_word(r, path, map, "degraded_mode_policy", policies, "accept-cached, accept-self-reported or reject");
	check_verifier(r, PATH_KEY(path, STR("verifier")), yaml_get(map, STR("verifier")));
}
