/* The tree is built from libyaml's events, not by its loader: nesting must stop at our limit (libyaml
 * is quadratic in it), and duplicate keys, tags and merge keys are ours to see. The bytes are checked
 * before libyaml gets them: it would take UTF-16 for granted. */
#include "base/yaml.h"

#include "base/limits.h"

#include <stdlib.h>
#include <yaml.h>

struct frame {
	struct yaml *node;
	size_t cap;
	bool has_key; /* a map's key was read, its value comes next */
	struct str key;
	struct yaml_place key_at;
};

struct anchor {
	struct str name;
	const struct yaml *node;
	struct anchor *next; /* newest first: a name may be given again */
};

struct builder {
	struct arena *arena;
	struct str text;
	struct yaml_error *error;
	struct frame frames[LIMIT_YAML_DEPTH];
	size_t depth;
	struct anchor *anchors;
	size_t aliases;
	size_t documents;
	const struct yaml *root;
};

struct yaml_place yaml_place_of(struct str text, size_t offset)
{
	struct yaml_place place = {1, 1};

	for (size_t i = 0; i < offset && i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c == '\n' || (c == '\r' && !(i + 1 < text.n && text.p[i + 1] == '\n'))) {
			place.line++;
			place.column = 1;
		} else if ((c & 0xc0) != 0x80 && c != '\r') {
			place.column++;
		}
	}
	return place;
}

static struct yaml_place place_of(yaml_mark_t mark)
{
	return (struct yaml_place){(uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

static void add_step(struct buf *out, struct str key)
{
	buf_printf(out, "%s%.*s", out->n > 0 ? "." : "", (int)utf8_offset(key, 80), key.p);
}

/* Containers hang in their parents already: the last entry of each is where we are, but for the
 * innermost one, whose entry comes next. */
static struct str path_of(const struct builder *b)
{
	struct buf out;

	buf_init(&out, b->arena, SIZE_MAX);
	for (size_t i = 0; i < b->depth; i++) {
		const struct frame *frame = &b->frames[i];
		const struct yaml *node = frame->node;
		bool is_last = i + 1 == b->depth;

		if (node->kind == YAML_LIST)
			buf_printf(&out, "[%zu]", is_last ? node->count : node->count - 1);
		else if (!is_last)
			add_step(&out, node->entries[node->count - 1].key);
		else if (frame->has_key)
			add_step(&out, frame->key);
	}
	return buf_str(&out);
}

/* What is wrong where the tree stands now. */
static int refuse(struct builder *b, struct yaml_place at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct builder *b, struct yaml_place at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	b->error->reason = str_of(arena_vprintf(b->arena, fmt, args));
	va_end(args);
	b->error->at = at;
	b->error->path = path_of(b);
	return -1;
}

/* ---- bytes ---- */

static bool is_allowed(uint32_t c)
{
	return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0x7e) || c == 0x85 ||
		(c >= 0xa0 && c <= 0xd7ff) || (c >= 0xe000 && c <= 0xfffd && c != 0xfeff) || c >= 0x10000;
}

static int refuse_byte(struct builder *b, size_t offset, const char *reason)
{
	return refuse(b, yaml_place_of(b->text, offset), "%s", reason);
}

static int check_bytes(struct builder *b)
{
	struct str text = b->text;
	size_t bad;

	if (text.n > LIMIT_YAML_BYTES)
		return refuse_byte(b, 0, "longer than the limit of a YAML text");
	if (str_starts(text, STR("\xff\xfe")) || str_starts(text, STR("\xfe\xff")))
		return refuse_byte(b, 0, "not UTF-8 but UTF-16; save the file as UTF-8");
	bad = utf8_check(text);
	if (bad < text.n)
		return refuse_byte(b, bad, "not UTF-8; save the file as UTF-8");
	for (size_t at = 0; at < text.n;) {
		size_t start = at;
		uint32_t c = utf8_next(text, &at);

		if (c == 0)
			return refuse_byte(b, start, "not UTF-8 text but with NUL bytes; save the file as UTF-8");
		if (!is_allowed(c))
			return refuse(b, yaml_place_of(text, start), "control character U+%04X", (unsigned int)c);
	}
	return 0;
}

/* ---- syntax errors ---- */

/* libyaml's words are about its own insides; ours are for who writes the file. */
static const struct {
	const char *theirs;
	const char *ours;
} problems[] = {
	{"found a tab character that violates indentation", "a tab is used as indentation; use spaces"},
	{"found a tab character where an indentation space is expected",
		"a tab is used as indentation; use spaces"},
	{"found unknown escape character", "bad escape in a quoted text; use \\\\ or single quotes"},
	{"did not find expected hexdecimal number", "bad escape in a quoted text: hexadecimal digits expected"},
	{"found invalid Unicode character escape code",
		"bad escape in a quoted text: no such character (write characters above U+FFFF as \\UXXXXXXXX)"},
	{"found character that cannot start any token", "no value can start with this character; quote the text"},
	{"mapping values are not allowed in this context",
		"a ':' that makes no sense here; quote the text or check the indentation"},
	{"block sequence entries are not allowed in this context",
		"a '-' that makes no sense here; check the indentation"},
	{"block mapping keys are not allowed in this context",
		"a '?' that makes no sense here; check the indentation"},
	{"could not find expected ':'", "a ':' is missing after the key, or a text goes on over several lines"},
	{"did not find expected key", "a key was expected; check indentation and quotes"},
	{"did not find expected '-' indicator", "a '-' was expected; check the indentation"},
	{"did not find expected ',' or ']'", "a ',' or ']' is missing"},
	{"did not find expected ',' or '}'", "a ',' or '}' is missing"},
	{"did not find expected node content", "a value is missing"},
	{"found unexpected end of stream", "a quoted text is not closed"},
	{"found unexpected document indicator", "a quoted text is not closed before the next document"},
	{"did not find expected <document start>", "text after the end of the document"},
	{"found undefined tag handle", "tags are not allowed"},
	{"did not find expected alphabetic or numeric character", "a name is missing after '&' or '*'"},
};

static struct str line_of(struct str text, size_t line)
{
	struct yaml_place place = {1, 1};
	size_t start = 0, end;

	for (size_t i = 0; i < text.n && place.line < line; i++) {
		char c = text.p[i];

		if (c == '\n' || (c == '\r' && !(i + 1 < text.n && text.p[i + 1] == '\n'))) {
			place.line++;
			start = i + 1;
		}
	}
	for (end = start; end < text.n && text.p[end] != '\n' && text.p[end] != '\r';)
		end++;
	return (struct str){text.p + start, end - start};
}

/* Offset of a tab in the white space that the line begins with, or SIZE_MAX. */
static size_t indenting_tab(struct str line)
{
	for (size_t i = 0; i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'); i++)
		if (line.p[i] == '\t')
			return i;
	return SIZE_MAX;
}

static int refuse_syntax(struct builder *b, const yaml_parser_t *parser)
{
	const char *theirs = parser->problem == NULL ? "" : parser->problem;
	const char *ours = "this is not YAML";
	struct yaml_place at = place_of(parser->problem_mark);
	struct str line = line_of(b->text, at.line);
	size_t tab = indenting_tab(line);

	b->depth = 0; /* syntax has no path */
	if (parser->error == YAML_READER_ERROR)
		at = yaml_place_of(b->text, parser->problem_offset);
	for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
		if (strcmp(theirs, problems[i].theirs) == 0)
			ours = problems[i].ours;
	if (tab != SIZE_MAX && at.column == tab + 1)
		return refuse(b, at, "a tab is used as indentation; use spaces");
	if (tab != SIZE_MAX && strstr(ours, "tab") == NULL)
		return refuse(b, at, "%s (the line is indented by a tab; use spaces)", ours);
	return refuse(b, at, "%s", ours);
}

/* ---- the tree ---- */

static void push_entry(struct builder *b, struct frame *frame, struct yaml_entry entry)
{
	struct yaml *node = frame->node;

	if (node->count == frame->cap) {
		size_t cap = frame->cap == 0 ? 4 : frame->cap * 2;

		node->entries = arena_grow(b->arena, node->entries, frame->cap * sizeof(entry), cap * sizeof(entry));
		frame->cap = cap;
	}
	node->entries[node->count++] = entry;
}

static int take_key(struct builder *b, struct frame *frame, const struct yaml *node)
{
	if (node->kind != YAML_TEXT)
		return refuse(b, node->at, "a key must be text, not %s", yaml_kind_name(node));
	if (node->is_plain && str_eq(node->text, STR("<<")))
		return refuse(b, node->at, "merge keys (<<) are not allowed");
	frame->key = node->text;
	frame->key_at = node->at;
	frame->has_key = true;
	return 0;
}

/* Hang a node whose place in its parent is known; `height` of containers comes later. */
static int add(struct builder *b, const struct yaml *node)
{
	struct frame *frame;

	if (b->depth == 0) {
		b->root = node;
		return 0;
	}
	frame = &b->frames[b->depth - 1];
	if (frame->node->kind == YAML_MAP && !frame->has_key)
		return take_key(b, frame, node);
	push_entry(b, frame, (struct yaml_entry){frame->key, frame->key_at, node});
	if (frame->node->kind == YAML_LIST)
		frame->node->entries[frame->node->count - 1].key = STR_NONE;
	frame->has_key = false;
	return 0;
}

static void name_anchor(struct builder *b, const unsigned char *name, const struct yaml *node)
{
	struct anchor *anchor;

	if (name == NULL)
		return;
	anchor = ARENA_NEW(b->arena, struct anchor);
	anchor->name = str_dup(b->arena, str_of((const char *)name));
	anchor->node = node;
	anchor->next = b->anchors;
	b->anchors = anchor;
}

static int on_text(struct builder *b, const yaml_event_t *event)
{
	struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
	struct yaml *node;

	if (event->data.scalar.tag != NULL)
		return refuse(b, place_of(event->start_mark), "tags are not allowed");
	if (memchr(text.p, '\0', text.n) != NULL)
		return refuse(b, place_of(event->start_mark), "text with an embedded NUL (\\0)");
	node = ARENA_NEW(b->arena, struct yaml);
	node->kind = YAML_TEXT;
	node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->at = place_of(event->start_mark);
	node->text = str_dup(b->arena, text);
	name_anchor(b, event->data.scalar.anchor, node);
	return add(b, node);
}

static int on_begin(struct builder *b, const yaml_event_t *event)
{
	bool is_map = event->type == YAML_MAPPING_START_EVENT;
	const unsigned char *tag = is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
	struct yaml *node;

	if (tag != NULL)
		return refuse(b, place_of(event->start_mark), "tags are not allowed");
	if (b->depth == LIMIT_YAML_DEPTH)
		return refuse(b, place_of(event->start_mark), "more than %d levels", LIMIT_YAML_DEPTH);
	node = ARENA_NEW(b->arena, struct yaml);
	node->kind = is_map ? YAML_MAP : YAML_LIST;
	node->at = place_of(event->start_mark);
	name_anchor(b, is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor, node);
	if (add(b, node) != 0)
		return -1;
	b->frames[b->depth++] = (struct frame){.node = node};
	return 0;
}

static int by_key(const void *left, const void *right)
{
	const struct yaml_entry *a = *(const struct yaml_entry *const *)left;
	const struct yaml_entry *b = *(const struct yaml_entry *const *)right;
	int order = str_cmp(a->key, b->key);

	return order != 0 ? order : a < b ? -1 : a > b;
}

/* Sorted, not hashed: no choice of keys makes this slow. */
static int check_duplicates(struct builder *b, const struct yaml *map)
{
	const struct yaml_entry **sorted = ARENA_ARRAY(b->arena, const struct yaml_entry *, map->count);
	const struct yaml_entry *first = NULL, *again = NULL;
	struct frame *frame = &b->frames[b->depth - 1];

	for (size_t i = 0; i < map->count; i++)
		sorted[i] = &map->entries[i];
	qsort(sorted, map->count, sizeof(sorted[0]), by_key);
	for (size_t i = 1; i < map->count; i++)
		if (str_eq(sorted[i - 1]->key, sorted[i]->key) && (again == NULL || sorted[i] < again)) {
			first = sorted[i - 1];
			again = sorted[i];
		}
	if (again == NULL)
		return 0;
	frame->key = again->key;
	frame->has_key = true;
	return refuse(b, again->at, "key \"%.*s\" is given twice, first on line %u and again on line %u",
		(int)utf8_offset(again->key, 80), again->key.p, first->at.line, again->at.line);
}

static int on_end(struct builder *b)
{
	struct yaml *node = b->frames[b->depth - 1].node;

	if (node->kind == YAML_MAP && node->count > 1 && check_duplicates(b, node) != 0)
		return -1;
	node->height = 1;
	for (size_t i = 0; i < node->count; i++)
		if (node->entries[i].value->height >= node->height)
			node->height = (uint8_t)(node->entries[i].value->height + 1);
	b->depth--;
	return 0;
}

static int on_alias(struct builder *b, const yaml_event_t *event)
{
	struct str name = str_of((const char *)event->data.alias.anchor);
	struct yaml_place at = place_of(event->start_mark);
	const struct anchor *anchor = b->anchors;

	if (++b->aliases > LIMIT_YAML_ALIASES)
		return refuse(b, at, "more than %d aliases", LIMIT_YAML_ALIASES);
	while (anchor != NULL && !str_eq(anchor->name, name))
		anchor = anchor->next;
	if (anchor == NULL)
		return refuse(b, at, "no anchor &%.*s stands before this alias", (int)utf8_offset(name, 80), name.p);
	for (size_t i = 0; i < b->depth; i++)
		if (b->frames[i].node == anchor->node)
			return refuse(b, at, "alias *%.*s lies inside what it names", (int)utf8_offset(name, 80), name.p);
	if (b->depth + anchor->node->height > LIMIT_YAML_DEPTH)
		return refuse(b, at, "more than %d levels", LIMIT_YAML_DEPTH);
	return add(b, anchor->node);
}

static int on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++ == 0)
			return 0;
		return refuse(b, place_of(event->start_mark), "more than one document (a second '---')");
	case YAML_SCALAR_EVENT:
		return on_text(b, event);
	case YAML_ALIAS_EVENT:
		return on_alias(b, event);
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT:
		return on_begin(b, event);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return on_end(b);
	default:
		return 0;
	}
}

static int build(struct builder *b, yaml_parser_t *parser)
{
	for (;;) {
		yaml_event_t event;
		bool is_end;
		int rc;

		if (yaml_parser_parse(parser, &event) == 0)
			return refuse_syntax(b, parser);
		is_end = event.type == YAML_STREAM_END_EVENT;
		rc = on_event(b, &event);
		yaml_event_delete(&event);
		if (rc != 0 || is_end)
			return rc;
	}
}

int yaml_read(struct str text, struct arena *arena, const struct yaml **out, struct yaml_error *error)
{
	static const struct yaml nothing = {.kind = YAML_MAP, .height = 1, .at = {1, 1}};
	struct builder b = {.arena = arena, .error = error};
	yaml_parser_t parser;
	int rc;

	if (str_starts(text, STR("\xef\xbb\xbf")))
		text = (struct str){text.p + 3, text.n - 3};
	b.text = text;
	if (check_bytes(&b) != 0)
		return -1;
	if (yaml_parser_initialize(&parser) == 0)
		abort(); /* out of memory */
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)(text.n == 0 ? "" : text.p), text.n);
	rc = build(&b, &parser);
	yaml_parser_delete(&parser);
	if (rc == 0)
		*out = b.root == NULL || yaml_is_null(b.root) ? &nothing : b.root;
	return rc;
}

/* ---- reading the tree ---- */

const struct yaml *yaml_get(const struct yaml *node, struct str key)
{
	if (node == NULL || node->kind != YAML_MAP)
		return NULL;
	for (size_t i = 0; i < node->count; i++)
		if (str_eq(node->entries[i].key, key))
			return node->entries[i].value;
	return NULL;
}

bool yaml_is_null(const struct yaml *node)
{
	return node->kind == YAML_TEXT && node->is_plain &&
		(node->text.n == 0 || str_eq(node->text, STR("~")) || str_eq(node->text, STR("null")));
}

bool yaml_bool(const struct yaml *node, bool *out)
{
	bool is_true = str_eq(node->text, STR("true"));

	if (node->kind != YAML_TEXT || !node->is_plain || (!is_true && !str_eq(node->text, STR("false"))))
		return false;
	*out = is_true;
	return true;
}

bool yaml_looks_boolean(const struct yaml *node)
{
	static const char *const words[] = {"yes", "no", "on", "off", "y", "n", "true", "false"};

	if (node->kind != YAML_TEXT)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq_nocase(node->text, str_of(words[i])))
			return true;
	return false;
}

bool yaml_int(const struct yaml *node, int64_t *out)
{
	return node->kind == YAML_TEXT && node->is_plain && str_to_int(node->text, out);
}

const char *yaml_kind_name(const struct yaml *node)
{
	if (node->kind == YAML_MAP)
		return "a mapping";
	if (node->kind == YAML_LIST)
		return "a list";
	return yaml_is_null(node) ? "nothing" : "text";
}
