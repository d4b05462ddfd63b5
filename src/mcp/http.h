/* mcp/http.h - between the two halves of the HTTP transport. */
#ifndef DAIS_MCP_HTTP_H
#define DAIS_MCP_HTTP_H

#include "http/guard.h"
#include "mcp/session.h"

/* Does the version header name a modern revision? */
bool http_speaks_modern(const struct http_exchange *x);
/* The session of the header, with a reference; NULL: answered with 400 or 404. */
struct mcp_session *http_session(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, const struct mcp_caller *caller, struct str id);
void http_post(struct mcp_server *server, const struct http_guard *guard, struct http_exchange *x,
	const struct mcp_caller *caller);

#endif
