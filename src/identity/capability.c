#include "identity/identity.h"

static const struct {
	const char *name;
	enum capability capability;
} table[] = {
	{"read", CAP_READ},
	{"write-items", CAP_WRITE_ITEMS},
	{"write-notes", CAP_WRITE_NOTES},
	{"advance", CAP_ADVANCE},
	{"manage-dependencies", CAP_MANAGE_DEPENDENCIES},
	{"write-config", CAP_WRITE_CONFIG},
	{"manage-runs", CAP_MANAGE_RUNS},
	{"admin", CAP_ADMIN},
	{"orchestration", CAP_ORCHESTRATION},
};
#define COUNT (sizeof(table) / sizeof(table[0]))

const char *capability_name(enum capability capability)
{
	for (size_t i = 0; i < COUNT; i++)
		if (table[i].capability == capability)
			return table[i].name;
	return "";
}

static bool is_separator(char c)
{
	return c == ' ' || c == ',' || c == '\t';
}

int capabilities_parse(struct str text, unsigned *out, struct failure *f)
{
	unsigned set = 0;

	for (size_t at = 0; at < text.n;) {
		struct str word = {text.p + at, 0};
		size_t i = 0;

		while (at < text.n && !is_separator(text.p[at])) {
			word.n++;
			at++;
		}
		at++;
		if (word.n == 0)
			continue;
		while (i < COUNT && !str_eq_nocase(word, str_of(table[i].name)))
			i++;
		if (i == COUNT)
			return fail_field(f, STR("capabilities"), word,
				"has an unknown word, %.*s; known are read, write-items, write-notes, advance, "
				"manage-dependencies, write-config, manage-runs, admin, orchestration", (int)(word.n < 40 ? word.n : 40), word.p);
		set |= table[i].capability;
	}
	*out = set;
	return 0;
}

struct str capabilities_text(struct arena *arena, unsigned capabilities)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < COUNT; i++)
		if (capabilities & table[i].capability)
			buf_printf(&out, "%s%s", out.n == 0 ? "" : " ", table[i].name);
	return buf_str(&out);
}

const char *profile_name(enum profile profile)
{
	return profile == PROFILE_KNOWLEDGE ? "knowledge"
		: profile == PROFILE_DIRECTOR   ? "director"
		: profile == PROFILE_THREADS    ? "threads"
		: profile == PROFILE_WORK       ? "work"
						: "full";
}

bool profile_parse(struct str text, enum profile *out)
{
	static const enum profile all[] = {PROFILE_FULL, PROFILE_WORK, PROFILE_KNOWLEDGE, PROFILE_DIRECTOR, PROFILE_THREADS};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (str_eq(text, str_of(profile_name(all[i])))) {
			*out = all[i];
			return true;
		}
	}
	return false;
}
