/* The graph around one item: breadth first, each item once, up to a number of nodes. */
#include "work/dep_row.h"

#include "base/limits.h"
#include "work/int_map.h"

#define NODES_DEFAULT 200
/* Titles are the only texts of a graph; together they stay far below what one answer may be. */
#define TITLE_BYTES (LIMIT_RESULT_HARD_BYTES / 4)

struct node {
	int64_t n;
	struct id id;
	enum role role;
	struct str title;
	int64_t distance;
	size_t waits_for; /* BLOCKS edges from nodes that are not in the chain yet */
};

struct graph {
	struct snapshot *s;
	struct call *call;
	unsigned directions;
	bool blocks, relates;
	size_t max_nodes;
	struct node *nodes;
	size_t count;
	struct int_map index; /* item to node */
	struct dep_row *edges;
	size_t edge_count, edge_room;
	size_t title_bytes;
	bool is_truncated;
};

SQL(SQL_OUTGOING, DEP_ROW_COLUMNS " WHERE d.from_n = $1 ORDER BY t.id, d.type");
SQL(SQL_INCOMING, DEP_ROW_COLUMNS " WHERE d.to_n = $1 ORDER BY f.id, d.type");

static bool is_wanted(const struct graph *g, const struct dep_row *row)
{
	return row->type == DEP_BLOCKS ? g->blocks : g->relates;
}

static int add_node(struct graph *g, int64_t n, int64_t distance, struct failure *f)
{
	struct item item;

	if (int_map_find(&g->index, n) != NULL)
		return 0;
	if (g->count == g->max_nodes || g->title_bytes > TITLE_BYTES) {
		g->is_truncated = true;
		return 0;
	}
	if (item_load_ref(g->s, n, &item, f) != 1)
		return -1;
	int_map_add(&g->index, n, (int64_t)g->count);
	g->nodes[g->count++] = (struct node){
		.n = n, .id = item.id, .role = item.role, .title = item.title, .distance = distance};
	g->title_bytes += item.title.n;
	return 0;
}

static int expand(struct graph *g, size_t at, const char *sql, bool is_outgoing, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(g->s, &q, f, sql, "i", g->nodes[at].n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct dep_row row;
		const struct dep_end *end;

		dep_row_read(&q, g->call, &row);
		end = is_outgoing ? &row.to : &row.from;
		if (is_wanted(g, &row) && end->is_readable &&
			add_node(g, end->n, g->nodes[at].distance + 1, f) != 0)
			return -1;
	}
	return rc;
}

static int walk(struct graph *g, struct failure *f)
{
	for (size_t at = 0; at < g->count; at++) {
		if ((g->directions & GRAPH_DOWNSTREAM) && expand(g, at, SQL_OUTGOING, true, f) != 0)
			return -1;
		if ((g->directions & GRAPH_UPSTREAM) && expand(g, at, SQL_INCOMING, false, f) != 0)
			return -1;
	}
	return 0;
}

/* Edges of which both ends are nodes, in the order of their first end. */
static int collect_edges(struct graph *g, struct failure *f)
{
	for (size_t at = 0; at < g->count; at++) {
		AUTO(query_endp) struct query q = {0};
		int rc;

		if (query(g->s, &q, f, SQL_OUTGOING, "i", g->nodes[at].n) != 0)
			return -1;
		while ((rc = query_next(&q, f)) == 1) {
			struct dep_row row;

			dep_row_read(&q, g->call, &row);
			if (!is_wanted(g, &row) || int_map_find(&g->index, row.to.n) == NULL)
				continue;
			if (g->edge_count == LIMIT_GRAPH_EDGES) {
				g->is_truncated = true;
				return 0;
			}
			if (g->edge_count == g->edge_room) {
				size_t room = g->edge_room == 0 ? 64 : g->edge_room * 2;

				g->edges = arena_grow(g->s->arena, g->edges, g->edge_room * sizeof(row),
					room * sizeof(row));
				g->edge_room = room;
			}
			g->edges[g->edge_count++] = row;
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* Topological order of the BLOCKS edges; among free nodes the one found first. Those edges have no cycle. */
static void write_chain(struct graph *g, struct json_writer *w)
{
	bool *is_done = ARENA_ARRAY(g->s->arena, bool, g->count);

	for (size_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].type == DEP_BLOCKS)
			g->nodes[*int_map_find(&g->index, g->edges[i].to.n)].waits_for++;
	jw_karray(w, "chain");
	for (size_t left = g->count; left > 0; left--) {
		size_t at = 0;

		while (at < g->count && (is_done[at] || g->nodes[at].waits_for > 0))
			at++;
		if (at == g->count)
			break;
		is_done[at] = true;
		jw_str(w, id_shown(g->call, KIND_ITEM, g->nodes[at].id));
		for (size_t i = 0; i < g->edge_count; i++)
			if (g->edges[i].type == DEP_BLOCKS && g->edges[i].from.n == g->nodes[at].n)
				g->nodes[*int_map_find(&g->index, g->edges[i].to.n)].waits_for--;
	}
	jw_array_end(w);
}

static void write_graph(struct graph *g, struct json_writer *w)
{
	int64_t depth = 0;

	jw_karray(w, "nodes");
	for (size_t i = 0; i < g->count; i++) {
		const struct node *node = &g->nodes[i];

		jw_object_begin(w);
		jw_id(w, g->call, "id", node->id);
		jw_kstr(w, "title", node->title);
		jw_ktext(w, "role", role_name(node->role));
		jw_kint(w, "distance", node->distance);
		jw_object_end(w);
		depth = node->distance > depth ? node->distance : depth;
	}
	jw_array_end(w);
	jw_karray(w, "edges");
	for (size_t i = 0; i < g->edge_count; i++) {
		jw_object_begin(w);
		dep_row_write(w, g->call, &g->edges[i]);
		jw_object_end(w);
	}
	jw_array_end(w);
	write_chain(g, w);
	jw_kint(w, "depth", depth);
	jw_kbool(w, "truncated", g->is_truncated);
}

int dep_graph(struct snapshot *s, struct call *call, const struct dep_graph_args *in, struct json_writer *out,
	struct failure *f)
{
	struct graph g = {
		.s = s,
		.call = call,
		.directions = in->direction.set ? (unsigned)in->direction.v : GRAPH_DOWNSTREAM,
		.blocks = !in->types.set,
		.max_nodes = in->max_nodes.set ? (size_t)in->max_nodes.v : NODES_DEFAULT,
	};
	struct item start;

	for (size_t i = 0; i < in->types.n; i++) {
		g.blocks = g.blocks || in->types.v[i] == DEP_BLOCKS;
		g.relates = g.relates || in->types.v[i] == DEP_RELATES_TO;
	}
	if (item_find(s, call, in->item.v, STR("itemId"), &start, f) != 0)
		return -1;
	g.nodes = ARENA_ARRAY(s->arena, struct node, g.max_nodes);
	int_map_init(&g.index, s->arena);
	if (add_node(&g, start.n, 0, f) != 0 || walk(&g, f) != 0 || collect_edges(&g, f) != 0)
		return -1;
	write_graph(&g, out);
	return 0;
}
