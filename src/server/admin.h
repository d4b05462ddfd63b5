/* server/admin.h - administration: one request object, one answer object.
 *
 * The command line sends it over the Unix socket while a server runs, and runs it on the store itself when
 * none does. Requests: {"op":"token.create","id"?,"description"?,"capabilities","roots"?,"ttlSeconds"?},
 * {"op":"token.list"}, {"op":"token.revoke","id"}, {"op":"sign_in"}, {"op":"status"}. */
#ifndef DAIS_SERVER_ADMIN_H
#define DAIS_SERVER_ADMIN_H

#include "base/failure.h"
#include "store/store.h"

/* Writes the members of the answer. UNKNOWN ops are INVALID_REQUEST. */
int admin_run(struct store *store, const json_t *request, struct arena *arena, struct json_writer *out,
	struct failure *f);

/* ---- threads: of a running server only ---- */

struct threads;

struct admin_desk {
	struct store *store;
	struct threads *threads; /* NULL: this server runs no agents */
	const struct actor *actor; /* who asks: stands in the events */
};

/* Requests {"op":"threads.list","project"?,"status"?,"archived"?,"limit"?}, "threads.show" (id, limit?: items),
 * "threads.requests" (id?), "threads.providers", "threads.start" (place, text, title?, provider?, model?, runtimeMode?,
 * interactionMode?), "threads.send" (id, text, mode?), "threads.interrupt", "threads.archive", "threads.delete" (id),
 * "threads.respond" (id, decision or answers). Those that read also answer "seq": events after it are news. */
bool admin_is_of_threads(struct str op);
int admin_threads(const struct admin_desk *desk, const json_t *request, struct arena *arena, struct json_writer *out,
	struct failure *f);

#endif
