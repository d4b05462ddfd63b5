/* server/server.h - the program that serves: store, tools, MCP, HTTP and the Unix socket joined.
 *
 * Rooms below know nothing of each other: MCP knows no tools, HTTP no MCP. This one wires them, says who
 * calls and which tools that caller sees, and brings everything up and down in order. */
#ifndef DAIS_SERVER_SERVER_H
#define DAIS_SERVER_SERVER_H

#include "base/failure.h"
#include "base/settings.h"

struct server;

struct server_options {
	const struct settings *settings;
	const char *state_dir; /* made (0700) when it is absent */
	bool may_move;	       /* nobody asked for this port: when it is taken, any other of this machine will do */
};

/* Everything up to and including recovery and listeners; accepts calls when it returns. */
int server_start(const struct server_options *options, struct server **out, struct failure *f);
/* "http://127.0.0.1:3001" */
struct str server_url(const struct server *server, size_t i);
size_t server_url_count(const struct server *server);
/* A fresh link that signs a browser in once, or absent when no sign-in is needed. */
struct str server_sign_in_link(struct server *server, struct arena *arena);
/* Re-reads what may change while running (SIGHUP): the global rules. A bad file changes nothing. */
void server_reload(struct server *server);
/* Orderly: refuse, finish, flush, close. Accepts NULL. */
void server_stop(struct server *server);

/* STATE/dais.sock and its like, in one place. -1 when the path is too long for a socket. */
int state_socket(struct arena *arena, const char *state_dir, const char **out, struct failure *f);
/* The directory (0700) with what leads to it; what exists is left as it is. */
int state_make_dir(const char *path, struct failure *f);
const char *state_database(struct arena *arena, const char *state_dir, struct str store);

/* First line that a program of ours writes on the Unix socket, as a notification; optional for MCP. */
#define LOCAL_METHODS "dais/"
#define LOCAL_HELLO "dais/hello"   /* {profile?, seatToken?, workspace?}: then MCP lines. Sent with an id it is answered first */
#define LOCAL_EVENTS "dais/events" /* {since?}: then one line of JSON for each event */
#define LOCAL_ADMIN "dais/admin"   /* a request of server/admin.h: one line of JSON, and the end */

#endif
