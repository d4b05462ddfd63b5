#include "work/int_map.h"

static struct int_slot *slot_of(const struct int_map *map, int64_t key)
{
	size_t at = ((uint64_t)key * 0x9e3779b97f4a7c15ULL >> 20) & (map->size - 1);

	while (map->slots[at].key != 0 && map->slots[at].key != key)
		at = (at + 1) & (map->size - 1);
	return &map->slots[at];
}

void int_map_init(struct int_map *map, struct arena *arena)
{
	*map = (struct int_map){.arena = arena, .size = 64};
	map->slots = ARENA_ARRAY(arena, struct int_slot, map->size);
}

int64_t *int_map_find(const struct int_map *map, int64_t key)
{
	struct int_slot *slot = slot_of(map, key);

	return slot->key == 0 ? NULL : &slot->value;
}

static void grow(struct int_map *map)
{
	struct int_map larger = {.arena = map->arena, .size = map->size * 2, .used = map->used};

	larger.slots = ARENA_ARRAY(map->arena, struct int_slot, larger.size);
	for (size_t i = 0; i < map->size; i++)
		if (map->slots[i].key != 0)
			*slot_of(&larger, map->slots[i].key) = map->slots[i];
	*map = larger;
}

void int_map_add(struct int_map *map, int64_t key, int64_t value)
{
	if (map->used * 2 >= map->size)
		grow(map);
	*slot_of(map, key) = (struct int_slot){key, value};
	map->used++;
}
