/* http/framing.h - is this request head framed in one way only? A pure function: no socket, no clock.
 *
 * The parser below us is lenient (first Content-Length wins, Transfer-Encoding beats it silently).
 * Behind a reverse proxy that reads such a head differently, one request becomes two. So every head
 * that two readers could frame differently is refused, and its connection closed.
 *
 * Not visible here, since the parser has normalised it away: bare LF line ends, folded headers, and
 * what follows a NUL byte inside a value. A strict proxy in front is the remedy. */
#ifndef DAIS_HTTP_FRAMING_H
#define DAIS_HTTP_FRAMING_H

#include "base/str.h"

struct framing_field {
	struct str name;
	struct str value; /* exactly as sent: trailing blanks are still there */
};

struct framing_head {
	struct str method;
	struct str target; /* raw, with query */
	struct str version; /* "HTTP/1.1" */
	const struct framing_field *fields;
	size_t n;
};

struct framing {
	bool chunked;
	uint64_t length;    /* announced; 0 when there is none */
	const char *reason; /* of a refusal, for people */
};

/* 0 with *out filled, or the HTTP status of the refusal (400, 413, 414, 431, 505) with out->reason. */
int framing_check(const struct framing_head *head, struct framing *out);

static inline bool framing_has_body(const struct framing *framing)
{
	return framing->chunked || framing->length > 0;
}

#endif
