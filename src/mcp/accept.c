/* Media types of a request: what is sent, and what is taken back. */
#include "mcp/accept.h"

#include <stdlib.h>

/* The next part before `stop`, trimmed; the rest stays in *text. Quoted strings are kept whole. */
static struct str next_part(struct str *text, char stop)
{
	bool quoted = false;
	size_t at = 0;
	struct str part;

	if (text->n == 0) /* an absent header has no address to count from */
		return STR("");
	while (at < text->n && (quoted || text->p[at] != stop)) {
		if (quoted && text->p[at] == '\\' && at + 1 < text->n)
			at++;
		else if (text->p[at] == '"')
			quoted = !quoted;
		at++;
	}
	part = str_trim((struct str){text->p, at});
	at += at < text->n;
	*text = (struct str){text->p + at, text->n - at};
	return part;
}

/* "q=0", "q=0.000": not wanted. */
static bool is_refused(struct str params)
{
	while (params.n > 0) {
		struct str param = next_part(&params, ';');
		bool zero = true;

		if (param.n < 3 || (param.p[0] != 'q' && param.p[0] != 'Q') || param.p[1] != '=')
			continue;
		for (size_t i = 2; i < param.n; i++)
			zero &= param.p[i] == '0' || param.p[i] == '.';
		return zero;
	}
	return false;
}

struct range {
	int rank; /* 0: none; 1: any, 2: type/any, 3: exact. The most exact one decides */
	bool wanted;
};

static void weigh(
	struct range *range, struct str type, struct str exact, struct str family, bool wanted)
{
	int rank = str_eq_nocase(type, exact)    ? 3
	           : str_eq_nocase(type, family) ? 2
	           : str_eq(type, STR("*/*"))    ? 1
	                                         : 0;

	if (rank > range->rank)
		*range = (struct range){rank, wanted};
}

struct accepted accept_read(struct str header)
{
	struct range json = {0, false};
	struct range events = {0, false};

	if (str_trim(header).n == 0)
		return (struct accepted){true, true};
	while (header.n > 0) {
		struct str params = next_part(&header, ',');
		struct str type = next_part(&params, ';');
		bool wanted = !is_refused(params);

		weigh(&json, type, STR("application/json"), STR("application/*"), wanted);
		weigh(&events, type, STR("text/event-stream"), STR("text/*"), wanted);
	}
	return (struct accepted){json.wanted, events.wanted};
}

bool content_type_is_json(struct str header)
{
	struct str type = next_part(&header, ';');

	if (!str_eq_nocase(type, STR("application/json")))
		return false;
	while (header.n > 0) {
		struct str param = next_part(&header, ';');
		struct str name = next_part(&param, '=');

		if (!str_eq_nocase(name, STR("charset")))
			continue;
		if (param.n >= 2 && param.p[0] == '"')
			param = (struct str){param.p + 1, param.n - 2};
		if (!str_eq_nocase(param, STR("utf-8")))
			return false;
	}
	return true;
}
