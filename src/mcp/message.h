/* mcp/message.h - the shape of one JSON-RPC message, before anybody asks what it means. */
#ifndef DAIS_MCP_MESSAGE_H
#define DAIS_MCP_MESSAGE_H

#include "mcp/mcp.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_CLIENT_INFO "io.modelcontextprotocol/clientInfo"
#define META_LOG_LEVEL "io.modelcontextprotocol/logLevel"
#define META_SERVER_INFO "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
#define EXTENSION_TASKS "io.modelcontextprotocol/tasks"

/* Why a message is not served: JSON-RPC error and HTTP status. */
struct refusal {
	enum mcp_code code;
	int status;
	struct str message;
	struct str data; /* JSON object, or absent */
};

/* Always -1. */
int refusal_set(struct refusal *r, enum mcp_code code, int status, struct str message);

enum message_kind { MESSAGE_REQUEST, MESSAGE_NOTIFICATION, MESSAGE_RESPONSE };

struct message {
	enum message_kind kind;
	struct str id; /* as JSON text, to be echoed; absent in a notification */
	struct str method;
	json_t *whole;        /* owned by whoever called message_read */
	const json_t *params; /* object, or NULL */
	const json_t *meta;   /* params._meta, or NULL */
	const json_t *claim;  /* the revision the message says it speaks, or NULL */
};

/* The document of a body or line; the caller owns a reference. NULL: refused. */
json_t *message_parse(struct str text, struct refusal *r);
/* `value` is borrowed. out->id is set before anything later is refused, so that errors can echo it.
 * Texts go to `arena` or stay inside `value`. */
int message_read(struct arena *arena, json_t *value, struct message *out, struct refusal *r);

/* A complete error document, without newline; `id` absent: no member. */
void message_error(struct buf *out, struct str id, const struct refusal *r);
/* Message text at most 300 characters. */
void message_error_object(struct json_writer *w, int code, struct str message, struct str data);

/* The revision's text, and back; -1 when unknown. */
struct str revision_text(enum mcp_version version);
int revision_find(struct str text);

/* Text that may name something: valid, within `max`, without NUL. */
bool message_name_fits(struct str text, size_t max);

/* Bits of enum mcp_client_feature in a capabilities object. */
unsigned client_features(const json_t *capabilities);

#endif
