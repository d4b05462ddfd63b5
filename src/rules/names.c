/* The words of the room: roles, triggers, lifecycles, modes and the grammar of keys. */
#include "rules/document.h"

#include "base/limits.h"

static const char *const role_names[] = {"blocked", "queue", "work", "review", "terminal"};
static const char *const trigger_names[] = {
	"start", "complete", "block", "hold", "resume", "cancel", "reopen", "cascade",
};
static const char *const lifecycle_names[] = {"auto", "manual", "permanent", "auto-reopen"};
static const char *const resolution_names[] = {"legacy", "layered", "isolated"};
static const char *const mode_names[] = {"off", "warn", "reject"};
static const char *const source_names[] = {"none", "project", "global"};

const char *const phase_words[] = {"queue", "work", "review", NULL};

const char *role_name(enum role role)
{
	return role_names[role + 1];
}

bool role_parse(struct str text, enum role *out)
{
	for (int i = 0; i < ROLE_COUNT; i++)
		if (str_eq_nocase(text, str_of(role_names[i]))) {
			*out = (enum role)(i - 1);
			return true;
		}
	return false;
}

bool phase_parse(struct str text, enum role *out)
{
	for (int i = 0; phase_words[i] != NULL; i++)
		if (str_eq(text, str_of(phase_words[i]))) {
			*out = (enum role)i;
			return true;
		}
	return false;
}

const char *trigger_name(enum trigger trigger)
{
	return trigger_names[trigger];
}

bool trigger_parse(struct str text, enum trigger *out)
{
	for (int i = 0; i < TRIGGER_CASCADE; i++)
		if (str_eq_nocase(text, str_of(trigger_names[i]))) {
			*out = (enum trigger)i;
			return true;
		}
	return false;
}

const char *lifecycle_name(enum lifecycle lifecycle)
{
	return lifecycle_names[lifecycle];
}

const char *resolution_name(enum resolution resolution)
{
	return resolution_names[resolution];
}

const char *rules_mode_name(enum rules_mode mode)
{
	return mode_names[mode];
}

const char *rules_source_name(enum rules_source source)
{
	return source_names[source];
}

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_key(struct str key, size_t max, const char *more)
{
	if (key.n == 0 || key.n > max || !is_lower_alnum(key.p[0]))
		return false;
	for (size_t i = 1; i < key.n; i++)
		if (!is_lower_alnum(key.p[i]) && (key.p[i] == '\0' || strchr(more, key.p[i]) == NULL))
			return false;
	return true;
}

bool rules_is_rule_key(struct str key)
{
	return is_key(key, 100, "._-");
}

bool rules_is_resource_key(struct str key)
{
	return is_key(key, LIMIT_RESOURCE_KEY_CHARS, "-_./");
}
