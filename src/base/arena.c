/* Chunked bump allocator: chunks double from 4 KB to 64 KB; what is larger gets its own chunk. */
#include "base/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 16U
#define FIRST_CHUNK 4096U
#define LAST_CHUNK 65536U

struct chunk {
	struct chunk *next;
	size_t size;
	size_t used;
	size_t unused_; /* keeps data aligned */
	char data[];
};

struct ending {
	struct ending *next;
	void (*release)(void *value);
	void *value;
};

struct arena {
	struct chunk *head;
	struct ending *endings;
	size_t next_size;
	size_t total;
};

static struct chunk *chunk_create(size_t size)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + size);

	if (chunk == NULL)
		abort();
	chunk->next = NULL;
	chunk->size = size;
	chunk->used = 0;
	return chunk;
}

struct arena *arena_create(void)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (arena == NULL)
		abort();
	arena->next_size = FIRST_CHUNK;
	return arena;
}

void arena_destroy(struct arena *arena)
{
	if (arena == NULL)
		return;
	for (struct ending *ending = arena->endings; ending != NULL; ending = ending->next)
		ending->release(ending->value);
	for (struct chunk *chunk = arena->head; chunk != NULL;) {
		struct chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	free(arena);
}

void arena_destroyp(struct arena **arena)
{
	arena_destroy(*arena);
	*arena = NULL;
}

static size_t round_up(size_t size)
{
	assert(size <= SIZE_MAX - ALIGNMENT);
	return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

void *arena_alloc(struct arena *arena, size_t size)
{
	size_t need = round_up(size == 0 ? 1 : size);
	struct chunk *chunk = arena->head;
	void *p;

	if (chunk == NULL || chunk->size - chunk->used < need) {
		bool big = need > LAST_CHUNK / 2;

		chunk = chunk_create(big ? need : arena->next_size > need ? arena->next_size : LAST_CHUNK);
		if (!big && arena->next_size < LAST_CHUNK)
			arena->next_size *= 2;
		if (big && arena->head != NULL) {
			/* Keep the half-used chunk in front: the big one is full already. */
			chunk->next = arena->head->next;
			arena->head->next = chunk;
		} else {
			chunk->next = arena->head;
			arena->head = chunk;
		}
	}
	p = chunk->data + chunk->used;
	chunk->used += need;
	arena->total += need;
	return memset(p, 0, size);
}

void *arena_grow(struct arena *arena, void *old, size_t old_size, size_t new_size)
{
	struct chunk *chunk = arena->head;
	void *p;

	assert(new_size >= old_size);
	if (old != NULL && chunk != NULL && old_size > 0) {
		size_t had = round_up(old_size);
		size_t need = round_up(new_size);

		if ((char *)old + had == chunk->data + chunk->used &&
			chunk->size - chunk->used >= need - had) {
			chunk->used += need - had;
			arena->total += need - had;
			return old;
		}
	}
	p = arena_alloc(arena, new_size);
	if (old != NULL && old_size > 0)
		memcpy(p, old, old_size);
	return p;
}

char *arena_copy(struct arena *arena, const void *bytes, size_t n)
{
	char *p = arena_alloc(arena, n + 1);

	if (n > 0)
		memcpy(p, bytes, n);
	p[n] = '\0';
	return p;
}

char *arena_vprintf(struct arena *arena, const char *fmt, va_list args)
{
	va_list again;
	int n;
	char *p;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, args);
	assert(n >= 0);
	p = arena_alloc(arena, (size_t)n + 1);
	(void)vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args;
	char *p;

	va_start(args, fmt);
	p = arena_vprintf(arena, fmt, args);
	va_end(args);
	return p;
}

void arena_at_end(struct arena *arena, void (*release)(void *value), void *value)
{
	struct ending *ending = ARENA_NEW(arena, struct ending);

	*ending = (struct ending){arena->endings, release, value};
	arena->endings = ending;
}

size_t arena_used(const struct arena *arena)
{
	return arena->total;
}
