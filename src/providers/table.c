/* Every driver there is, in the order of listings. */
#include "providers/provider.h"

extern const struct driver driver_acp, driver_antigravity, driver_claude, driver_codex, driver_cursor, driver_gemini, driver_grok,
	driver_opencode, driver_pi, driver_script;

const struct driver *const driver_table[] = {&driver_acp, &driver_antigravity, &driver_claude, &driver_codex, &driver_cursor,
	&driver_gemini, &driver_grok, &driver_opencode, &driver_pi, &driver_script};
const size_t driver_count = sizeof(driver_table) / sizeof(driver_table[0]);

const struct driver *driver_find(struct str kind)
{
	for (size_t i = 0; i < driver_count; i++)
		if (str_eq(kind, str_of(driver_table[i]->kind)))
			return driver_table[i];
	return NULL;
}
