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

#endif
