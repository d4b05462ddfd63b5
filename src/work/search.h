/* work/search.h - full text over titles, summaries and notes: any text is data, none is query syntax. */
#ifndef DAIS_WORK_SEARCH_H
#define DAIS_WORK_SEARCH_H

#include "work/filter.h"

enum search_kind { SEARCH_ITEMS, SEARCH_NOTES };
enum match_mode { MATCH_AUTO, MATCH_SUBSTRING, MATCH_TEXT };

struct search_args {
	struct arg_str query;
	struct arg_ints kinds; /* enum search_kind; unset: both */
	struct arg_int mode;   /* enum match_mode */
	struct arg_str item;
	struct filter_args filter;
	struct arg_bool exclude_terminal;
	struct arg_ints note_roles;
	struct arg_strs note_keys;
	struct arg_int limit;
	struct arg_str cursor;
	struct arg_bool explain;
	struct arg_strs fields;
};
int items_search(struct snapshot *s, struct call *call, const struct search_args *in, struct json_writer *out,
	struct failure *f);

#endif
