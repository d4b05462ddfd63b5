/* deps_read: edges, graphs, and what is blocked. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/deps.h"

static const struct word direction_words[] = {
	{"incoming", DEP_INCOMING},
	{"outgoing", DEP_OUTGOING},
	{"all", DEP_ALL},
	WORDS_END,
};
static const struct word graph_words[] = {
	{"upstream", GRAPH_UPSTREAM},
	{"downstream", GRAPH_DOWNSTREAM},
	{"both", GRAPH_BOTH},
	WORDS_END,
};

static const struct field edges_fields[] = {
	FIELD(struct dep_edges_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct dep_edges_args, direction, "direction", FIELD_WORD, FOLDED, .words = direction_words,
		.fallback = "all"),
	FIELD(struct dep_edges_args, type, "type", FIELD_WORD, FOLDED, .words = dep_stored_type_words),
	FIELD(struct dep_edges_args, include_items, "includeItems", FIELD_BOOL, 0, .fallback = "false",
		.help = "add the other end"),
	FIELD(struct dep_edges_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LONG_PAGE,
		.fallback = "100"),
	FIELD(struct dep_edges_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};

static const struct field graph_fields[] = {
	FIELD(struct dep_graph_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct dep_graph_args, direction, "direction", FIELD_WORD, FOLDED, .words = graph_words,
		.fallback = "downstream"),
	FIELD(struct dep_graph_args, types, "types", FIELD_WORDS, FOLDED | UNIQUE_ENTRIES,
		.words = dep_stored_type_words, .min = 1, .max = 2, .fallback = "[\"BLOCKS\"]"),
	FIELD(struct dep_graph_args, max_nodes, "maxNodes", FIELD_INT, 0, .min = 1, .max = LIMIT_GRAPH_NODES,
		.fallback = "200"),
	FIELDS_END,
};

static const struct field backlinks_fields[] = {
	FIELD(struct dep_backlinks_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct dep_backlinks_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LONG_PAGE,
		.fallback = "200"),
	FIELD(struct dep_backlinks_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};

static const struct field blocked_fields[] = {
	FILTER_FIELDS(struct dep_blocked_args, filter, role_words),
	FIELD(struct dep_blocked_args, include_blockers, "includeBlockers", FIELD_BOOL, 0, .fallback = "true"),
	FIELD(struct dep_blocked_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LONG_PAGE,
		.fallback = "50"),
	FIELD(struct dep_blocked_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};

static int edges(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return dep_edges(s, call, args, out, f);
}

static int graph(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return dep_graph(s, call, args, out, f);
}

static int backlinks(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return dep_backlinks(s, call, args, out, f);
}

static int blocked(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return dep_blocked(s, call, args, out, f);
}

#define EVERYBODY (PROFILE_WORK | PROFILE_KNOWLEDGE | PROFILE_DIRECTOR)

static const struct operation selects[] = {
	{
		.name = "edges",
		.summary = "Edges of one item.",
		.fields = edges_fields,
		.args_size = sizeof(struct dep_edges_args),
		.profiles = EVERYBODY,
		.capability = CAP_READ,
		.read = edges,
		.returns = "{edges:[{id,from,to,type,unblockAt?,satisfied?,item?}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"edges\",\"itemId\":\"9a60c7d1\",\"direction\":\"incoming\"}",
	},
	{
		.name = "graph",
		.summary = "What depends on an item, or what it depends on, breadth first.",
		.fields = graph_fields,
		.args_size = sizeof(struct dep_graph_args),
		.profiles = EVERYBODY,
		.capability = CAP_READ,
		.read = graph,
		.returns = "{nodes:[{id,title,role,distance}],edges:[…],chain:[id],depth,truncated}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"graph\",\"itemId\":\"0e93ab57\"}",
	},
	{
		.name = "backlinks",
		.summary = "Who points at an item.",
		.fields = backlinks_fields,
		.args_size = sizeof(struct dep_backlinks_args),
		.profiles = EVERYBODY,
		.capability = CAP_READ,
		.read = backlinks,
		.returns = "{backlinks:[{fromItemId,type,fromTitle}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"backlinks\",\"itemId\":\"9a60c7d1\"}",
	},
	{
		.name = "blocked",
		.summary = "Items that are blocked, explicitly or by unmet edges, and by what.",
		.fields = blocked_fields,
		.args_size = sizeof(struct dep_blocked_args),
		.profiles = EVERYBODY,
		.capability = CAP_READ,
		.read = blocked,
		.returns = "{items:[{…ref,blockType,blockerCount,blockedBy?:[{id,title,role,unblockAt,satisfied}]}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"blocked\",\"rootId\":\"5b7d20c4\"}",
	},
};

const struct tool tool_deps_read = {
	.name = "deps_read",
	.title = "Read dependencies",
	.description = "Read dependencies: edges, graph, backlinks, blocked.",
	.selects = selects,
	.select_count = sizeof(selects) / sizeof(selects[0]),
};
