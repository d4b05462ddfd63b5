/* One item for a person: where it stands, what it needs, what was written. */
#include "cli/items.h"

#include <unistd.h>

#define MARGIN 11 /* columns of the names at the left */

/* What the view shows, each the "data" of one read. */
struct reading {
	json_t *item, *gate, *notes, *edges;
};

static int read_one(struct cli *cli, const char *tool, json_t *arguments, json_t **out, struct failure *f)
{
	json_auto_t *owned = arguments;

	return client_tool(cli, tool, json_canonical(cli->arena, owned), out, f);
}

static int read_all(struct cli *cli, struct str id, struct reading *reading, struct failure *f)
{
	const char *item = str_z(cli->arena, id);

	if (read_one(cli, "items_read",
		    json_pack("{s:s, s:s, s:[s,s,s,s,s,s]}", "select", "get", "itemId", item, "fields", "ancestors",
			    "description", "childCounts", "claim", "createdBy", "properties"),
		    &reading->item, f) != 0)
		return -1;
	return read_one(cli, "items_read", json_pack("{s:s, s:s}", "select", "gate", "itemId", item), &reading->gate,
		       f) != 0 ||
			read_one(cli, "notes_read", json_pack("{s:s, s:s, s:[s]}", "select", "list", "itemId", item,
				"fields", "actor"), &reading->notes, f) != 0 ||
			read_one(cli, "deps_read",
				json_pack("{s:s, s:s, s:b}", "select", "edges", "itemId", item, "includeItems", 1),
				&reading->edges, f) != 0
		? -1
		: 0;
}

static void name(struct cli *cli, const char *text)
{
	(void)printf("%s%-*s%s", term_dim(cli), MARGIN, text, term_off(cli));
}

static void row(struct cli *cli, const char *label, struct str text)
{
	if (text.n == 0)
		return;
	name(cli, label);
	(void)printf("%.*s\n", STRF(term_text(cli->arena, text, term_width() - MARGIN)));
}

/* Bytes at the start of `word` that take at most `columns`, one character at least. */
static size_t fitting(struct str word, size_t columns)
{
	size_t fits = 0;
	size_t used = 0;

	for (size_t at = 0; at < word.n;) {
		size_t start = at;

		(void)utf8_next(word, &at);
		used += term_columns((struct str){word.p + start, at - start});
		if (used > columns && fits > 0)
			break;
		fits = at;
	}
	return fits;
}

/* Words of one line of text, wrapped. */
static void wrap_line(struct cli *cli, struct str line, size_t columns)
{
	struct str text = term_text(cli->arena, line, 0);
	size_t used = 0;

	for (size_t at = 0; at < text.n;) {
		const char *blank = memchr(text.p + at, ' ', text.n - at);
		struct str word = {text.p + at, blank == NULL ? text.n - at : (size_t)(blank - text.p) - at};
		size_t width = term_columns(word);
		bool is_broken = width > columns;

		if (is_broken) {
			/* Longer than a line, or of a language without blanks. */
			word.n = fitting(word, used > 0 && used + 1 < columns ? columns - used - 1 : columns);
			width = term_columns(word);
		}
		if (used > 0 && used + 1 + width > columns) {
			(void)putchar('\n');
			used = 0;
		}
		(void)printf("%s%.*s", used > 0 ? " " : "", STRF(word));
		used += width + (used > 0);
		at += word.n + (is_broken ? 0 : 1);
	}
	(void)putchar('\n');
}

static void paragraphs(struct cli *cli, struct str text)
{
	size_t columns = term_width();

	if (text.n == 0)
		return;
	(void)putchar('\n');
	while (text.n > 0) {
		const char *end = memchr(text.p, '\n', text.n);
		struct str line = {text.p, end == NULL ? text.n : (size_t)(end - text.p)};

		wrap_line(cli, line, columns);
		text.p += line.n + (end != NULL);
		text.n -= line.n + (end != NULL);
	}
}

static struct str joined(struct cli *cli, const json_t *texts, const char *member, const char *between)
{
	struct buf out;
	size_t i;
	json_t *value;

	buf_init(&out, cli->arena, SIZE_MAX);
	json_array_foreach (texts, i, value) {
		buf_add_str(&out, i == 0 ? STR("") : str_of(between));
		buf_add_str(&out, member == NULL ? json_str(value) : json_member_str(value, member));
	}
	return buf_str(&out);
}

static void show_head(struct cli *cli, const json_t *item)
{
	struct str role = json_member_str(item, "role");
	struct str label = json_member_str(item, "statusLabel");
	const json_t *claim = json_object_get(item, "claim");

	(void)printf("%s%.*s%s\n", term_bold(cli),
		STRF(term_text(cli->arena, json_member_str(item, "title"), term_width())), term_off(cli));
	row(cli, "id", json_member_str(item, "id"));
	row(cli, "under", joined(cli, json_object_get(item, "ancestors"), "title", " › "));
	name(cli, "role");
	(void)printf("%s%.*s%s%s%.*s, since %.*s\n", term_role(cli, role), STRF(role), term_off(cli),
		label.n > 0 ? ", " : "", STRF(term_text(cli->arena, label, 30)),
		STRF(json_member_str(item, "roleChangedAt")));
	row(cli, "type", json_member_str(item, "type"));
	row(cli, "priority", json_member_str(item, "priority"));
	row(cli, "tags", joined(cli, json_object_get(item, "tags"), NULL, ", "));
	row(cli, "traits", joined(cli, json_object_get(item, "traits"), NULL, ", "));
	if (str_eq(json_member_str(claim, "state"), STR("claimed")))
		row(cli, "claim",
			str_printf(cli->arena, "%.*s until %.*s", STRF(json_member_str(claim, "claimedBy")),
				STRF(json_member_str(claim, "expiresAt"))));
	row(cli, "made by", json_member_str(json_object_get(item, "createdBy"), "id"));
	row(cli, "changed",
		str_printf(cli->arena, "%.*s, version %lld", STRF(json_member_str(item, "modifiedAt")),
			(long long)json_integer_value(json_object_get(item, "version"))));
	paragraphs(cli, json_member_str(item, "summary"));
	paragraphs(cli, json_member_str(item, "description"));
}

static void show_children(struct cli *cli, json_t *counts)
{
	struct buf out;
	const char *role;
	json_t *n;

	buf_init(&out, cli->arena, SIZE_MAX);
	json_object_foreach (counts, role, n)
		buf_printf(&out, "%s%lld %s", out.n == 0 ? "" : ", ", (long long)json_integer_value(n), role);
	row(cli, "children", buf_str(&out));
}

static void show_gate(struct cli *cli, const json_t *gate)
{
	struct str trigger = json_member_str(gate, "trigger");
	struct str target = json_member_str(gate, "targetRole");
	const json_t *missing = json_object_get(gate, "missing");
	size_t i;
	json_t *value;

	if (str_eq(json_member_str(gate, "role"), STR("terminal")))
		return;
	name(cli, "next");
	if (json_is_true(json_object_get(gate, "canAdvance")))
		(void)printf("%.*s → %s%.*s%s is open\n", STRF(trigger), term_role(cli, target), STRF(target), term_off(cli));
	else
		(void)printf("%.*s%s%.*s is held back by: %.*s\n", STRF(trigger), target.n > 0 ? " → " : "", STRF(target),
			STRF(term_text(cli->arena, joined(cli, json_object_get(gate, "blockedBy"), NULL, ", "), 60)));
	json_array_foreach (missing, i, value) {
		name(cli, i == 0 ? "missing" : "");
		(void)printf("note %.*s (%.*s)\n", STRF(term_text(cli->arena, json_member_str(value, "key"), 50)),
			STRF(json_member_str(value, "role")));
	}
}

static void show_notes(struct cli *cli, const json_t *notes)
{
	size_t i;
	json_t *note;

	json_array_foreach (notes, i, note) {
		if (i == 0)
			(void)printf("\n%snotes%s\n", term_bold(cli), term_off(cli));
		(void)printf("  ");
		term_cell(cli, json_member_str(note, "key"), 30);
		(void)printf(" ");
		term_cell(cli, json_member_str(note, "role"), 7);
		(void)printf("v%-3lld %6lld characters  %.*s\n",
			(long long)json_integer_value(json_object_get(note, "version")),
			(long long)json_integer_value(json_object_get(note, "bodyLength")),
			STRF(term_text(cli->arena, json_member_str(json_object_get(note, "actor"), "id"), 16)));
	}
}

static void show_edges(struct cli *cli, const json_t *edges, struct str id)
{
	size_t i;
	json_t *edge;

	json_array_foreach (edges, i, edge) {
		const json_t *other = json_object_get(edge, "item");
		bool is_incoming = str_eq(json_member_str(edge, "to"), id);
		bool is_block = str_eq(json_member_str(edge, "type"), STR("BLOCKS"));
		struct str role = json_member_str(other, "role");

		if (i == 0)
			(void)printf("\n%sdependencies%s\n", term_bold(cli), term_off(cli));
		(void)printf("  %-12s %s%.8s%s %s", !is_block ? "relates to" : is_incoming ? "waits for" : "blocks",
			term_dim(cli), json_member_str(other, "id").p, term_off(cli), term_role(cli, role));
		term_cell(cli, role, 9);
		(void)printf("%s%.*s%s\n", term_off(cli),
			STRF(term_text(cli->arena, json_member_str(other, "title"), term_width() - 48)),
			is_block && is_incoming && json_is_true(json_object_get(edge, "satisfied")) ? "  (satisfied)" : "");
	}
}

static void show(struct cli *cli, const struct reading *reading)
{
	const json_t *item = json_object_get(reading->item, "item");

	show_head(cli, item);
	(void)putchar('\n');
	show_children(cli, json_object_get(item, "childCounts"));
	show_gate(cli, reading->gate);
	show_notes(cli, json_object_get(reading->notes, "notes"));
	show_edges(cli, json_object_get(reading->edges, "edges"), json_member_str(item, "id"));
}

int item_show(struct cli *cli, struct str id, bool json, struct failure *f)
{
	struct reading reading = {.item = NULL};
	int rc = read_all(cli, id, &reading, f);

	if (rc == 0 && json) {
		json_auto_t *all = json_pack("{s:O*, s:O*, s:O*, s:O*}", "item", json_object_get(reading.item, "item"), "gate",
			reading.gate, "notes", json_object_get(reading.notes, "notes"), "edges",
			json_object_get(reading.edges, "edges"));

		print_json(all);
	} else if (rc == 0) {
		show(cli, &reading);
	}
	json_decref(reading.item);
	json_decref(reading.gate);
	json_decref(reading.notes);
	json_decref(reading.edges);
	return rc;
}
