/* mcp/line.h - what other files of this room do with a line conversation. */
#ifndef DAIS_MCP_LINE_H
#define DAIS_MCP_LINE_H

#include "mcp/mcp.h"

/* One message; the newline is added. Nothing after the line was closed. */
void line_write(struct mcp_line *line, struct str message);

#endif
