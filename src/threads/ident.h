/* threads/ident.h - ids of the thread half: parts, each percent-encoded as encodeURIComponent does, joined by colons.
 * A part longer than LIMIT_ID_PART_BYTES once encoded is replaced by ~ and 32 hex digits of its SHA-256, so ids that
 * hold ids stay bounded. */
#ifndef DAIS_THREADS_IDENT_H
#define DAIS_THREADS_IDENT_H

#include "base/str.h"

/* `kind` stands first and is not encoded ("command:mcp"); then the parts, the last one with p == NULL. */
struct str ident_make(struct arena *arena, const char *kind, ...);
#define IDENT(arena, kind, ...) ident_make((arena), (kind), __VA_ARGS__, STR_NONE)

struct str ident_random(struct arena *arena, const char *kind);
struct str ident_run(struct arena *arena, struct str thread_id, int64_t ordinal);
/* The ordinal that is written in the id of a run of this thread, or 0. */
int64_t ident_run_ordinal(struct arena *arena, struct str thread_id, struct str run_id);
/* 16 hex digits: scope of request keys. */
struct str ident_namespace(struct arena *arena);
struct str ident_number(struct arena *arena, int64_t number);

#endif
