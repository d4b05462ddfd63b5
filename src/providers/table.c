/* Every driver there is, in the order of listings. */
#include "providers/claude/claude.h"

const struct driver *const driver_table[] = {
	&driver_claude,
	NULL,
};
const size_t driver_count = sizeof(driver_table) / sizeof(driver_table[0]) - 1;

const struct driver *driver_find(struct str kind)
{
	for (size_t i = 0; i < driver_count; i++)
		if (str_eq(kind, str_of(driver_table[i]->kind)))
			return driver_table[i];
	return NULL;
}
