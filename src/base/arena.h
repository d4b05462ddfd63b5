/* base/arena.h - memory that is freed whole: one arena per request, transaction or snapshot.
 *
 * Allocation never returns NULL: running out of memory aborts, since recovery from a crash is
 * designed and tested (see docs/architecture.md). Sizes that others choose are checked against
 * base/limits.def before they get here. An arena is not thread-safe; it may change owner. */
#ifndef DAIS_BASE_ARENA_H
#define DAIS_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct arena *arena_create(void);
/* Frees everything taken from it; accepts NULL. */
void arena_destroy(struct arena *arena);
void arena_destroyp(struct arena **arena);

/* `size` zeroed bytes, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
/* A larger copy of the `old_size` bytes at `old` (NULL allowed); in place when it was the last one. */
void *arena_grow(struct arena *arena, void *old, size_t old_size, size_t new_size);
/* NUL-terminated copy of `n` bytes. */
char *arena_copy(struct arena *arena, const void *bytes, size_t n);
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
/* Call `release(value)` when the arena ends, newest first: for what the arena cannot hold itself. */
void arena_at_end(struct arena *arena, void (*release)(void *value), void *value);
/* Bytes handed out so far; for limits and tests. */
size_t arena_used(const struct arena *arena);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, n) ((type *)arena_alloc((arena), sizeof(type) * (n)))

/* AUTO(arena_destroyp) struct arena *a = arena_create(); frees itself at the end of the scope. */
#define AUTO(fn) __attribute__((cleanup(fn)))
#define STEAL(ptr) \
	__extension__({ \
		__typeof__(ptr) stolen_ = (ptr); \
		(ptr) = NULL; \
		stolen_; \
	})

#endif
