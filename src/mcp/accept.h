/* mcp/accept.h - the Accept and Content-Type of a request. */
#ifndef DAIS_MCP_ACCEPT_H
#define DAIS_MCP_ACCEPT_H

#include "base/str.h"

struct accepted {
	bool json;
	bool events;
};

/* An absent header takes everything; q=0 takes nothing of its range. */
struct accepted accept_read(struct str header);
/* application/json in UTF-8. */
bool content_type_is_json(struct str header);

#endif
