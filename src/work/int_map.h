/* work/int_map.h - inside the work room: row numbers to indexes, for walks over graphs that visit each node once. */
#ifndef DAIS_WORK_INT_MAP_H
#define DAIS_WORK_INT_MAP_H

#include "base/arena.h"

#include <stdint.h>

struct int_map {
	struct arena *arena;
	struct int_slot {
		int64_t key; /* 0: free; row numbers are positive */
		int64_t value;
	} *slots;
	size_t size, used;
};

void int_map_init(struct int_map *map, struct arena *arena);
/* Where the value of `key` is, or NULL; valid until the next int_map_add. */
int64_t *int_map_find(const struct int_map *map, int64_t key);
/* `key` must not be there. */
void int_map_add(struct int_map *map, int64_t key, int64_t value);

#endif
