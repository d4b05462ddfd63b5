/* cli/relay.h - what the stdio relay remembers of a conversation, so that it can be taken up again. */
#ifndef DAIS_CLI_RELAY_H
#define DAIS_CLI_RELAY_H

#include "base/clock.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "server/stand_in.h"

#define RELAY_LINE_BYTES LIMIT_MESSAGE_BYTES
#define RELAY_STALL_BYTES (8 * 1024 * 1024)
#define RELAY_PENDING 1024

/* A request that the server has not answered. */
struct pending {
	char *id; /* canonical JSON text */
	char *line;
	bool may_repeat; /* it does no harm when the server gets it twice */
	bool is_sent;
};

struct relay {
	struct cli *cli;
	bool no_spawn;
	int socket; /* -1: not connected */
	int out_fd; /* the client's stdout */
	bool was_connected; /* a server that was there is waited for when it is gone */
	struct buf from_client, from_server;
	struct buf to_server; /* what the socket did not take at once */
	struct buf to_client; /* of which `written` bytes are out already */
	size_t written;
	bool is_discarding; /* inside a line over the limit */
	bool has_begun;	    /* the first byte was seen (a BOM may stand before it) */
	bool is_ending;
	int64_t end_at;
	struct stand_in *stand_in; /* answers while there is no server; NULL: there is one */
	struct failure why;	   /* there is none; in why_arena */
	struct arena *why_arena;
	bool is_muted;		   /* what the stand-in says was said before */
	char *initialize, *initialized; /* the legacy session as the client opened it */
	bool swallow_initialize;	/* the next answer with that id is ours, not the client's */
	char *initialize_id;
	char *log_level;
	char **subscriptions; /* lines of resources/subscribe */
	size_t subscription_count;
	struct pending pending[RELAY_PENDING];
	size_t pending_count;
};

void relay_init(struct relay *relay);
void relay_finish(struct relay *relay);
void relay_from_client(struct relay *relay, struct str bytes);
void relay_from_server(struct relay *relay, struct str bytes);
/* After a new connection: session, subscriptions, and requests that may be repeated. */
int relay_replay(struct relay *relay);
/* The server died: answer what must not be sent again. */
void relay_drop_unrepeatable(struct relay *relay);
/* There is no server and none can be had now: the stand-in answers what is pending, and says why. */
void relay_stand_in(struct relay *relay, const struct failure *f);
/* There is one again. */
void relay_step_back(struct relay *relay);
/* The socket takes bytes again. */
void relay_flush(struct relay *relay);
/* Bytes that the client has not taken. */
size_t relay_unread(const struct relay *relay);

#endif
