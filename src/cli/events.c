/* dais events: follow what happens. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/id.h"
#include "store/store.h"

#include <time.h>
#include <unistd.h>

enum { KEY_SINCE = 2000, KEY_TYPE, KEY_COUNT, KEY_JSON };

#define MAX_TYPES 32
#define TYPE_COLUMNS 24 /* the longest, provider-session.updated */
#define HEAD_COLUMNS (44 + TYPE_COLUMNS) /* time, type, item or end of the thread's id, actor */

struct events {
	struct cli *cli;
	int64_t since, count; /* count 0: no end */
	int64_t shown;
	struct str types[MAX_TYPES];
	size_t type_count;
	bool json;
};

static const struct argp_option options[] = {
	{"since", KEY_SINCE, "SEQ", 0, "Begin after this event; 0: with the oldest (default: what happens from now on)", 0},
	{"type", KEY_TYPE, "TYPE", 0, "Only this type, like item.transitioned, or its family, like item; may repeat", 0},
	{"count", KEY_COUNT, "N", 0, "End after N events", 0},
	{"json", KEY_JSON, NULL, 0, "Print each event as one line of JSON", 0},
	{0},
};

static bool in_family(struct str type, struct str family)
{
	return str_eq(type, family) || (str_starts(type, family) && type.p[family.n] == '.');
}

static bool is_type(struct str family)
{
#define EVENT(name, number, wire, stream, data) \
	if (in_family(STR(wire), family)) \
		return true;
#include "store/event.def"
#undef EVENT
	return false;
}

static void add_type(struct events *events, char *arg, struct argp_state *state)
{
	if (!is_type(str_of(arg)))
		argp_error(state, "there is no type %s", arg);
	else if (events->type_count == MAX_TYPES)
		argp_error(state, "too many types");
	else
		events->types[events->type_count++] = str_of(arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct events *events = state->input;

	switch (key) {
	case KEY_SINCE:
		if (!str_to_int(str_of(arg), &events->since) || events->since < 0)
			argp_error(state, "--since must be the number of an event, got %s", arg);
		if (events->since < EVENT_FIRST_SEQ)
			events->since = EVENT_FIRST_SEQ;
		return 0;
	case KEY_TYPE:
		add_type(events, arg, state);
		return 0;
	case KEY_COUNT:
		if (!str_to_int(str_of(arg), &events->count) || events->count < 1)
			argp_error(state, "--count must be 1 or more, got %s", arg);
		return 0;
	case KEY_JSON:
		events->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void add_value(struct cli *cli, struct buf *out, const char *key, const json_t *value)
{
	struct str text = json_str(value);
	struct id_prefix prefix;

	if (json_is_object(value) || json_is_array(value))
		return;
	if (text.p == NULL)
		text = json_received(cli->arena, value);
	if (id_prefix_parse(text, &prefix) && prefix.digits == 32)
		text.n = 8; /* as people type ids */
	buf_printf(out, "  %s %.*s", key, STRF(text));
}

static void print_data(struct cli *cli, struct str type, json_t *data, size_t columns)
{
	struct str to = json_member_str(data, "to");
	struct buf out;
	const char *key;
	json_t *value;

	if (str_eq(type, STR("item.transitioned"))) {
		(void)printf("  %.*s → %s%.*s%s  %.*s", STRF(json_member_str(data, "from")), term_role(cli, to), STRF(to),
			term_off(cli), STRF(json_member_str(data, "trigger")));
		return;
	}
	buf_init(&out, cli->arena, SIZE_MAX);
	json_object_foreach (data, key, value)
		add_value(cli, &out, key, value);
	(void)printf("%.*s", STRF(term_text(cli->arena, buf_str(&out), columns)));
}

static void print_time(struct str at)
{
	char text[32] = "";
	struct tm local;
	int64_t ms;
	time_t seconds;

	if (!time_parse(at, &ms))
		return;
	seconds = (time_t)(ms / 1000);
	if (localtime_r(&seconds, &local) != NULL)
		(void)strftime(text, sizeof(text), "%F %T", &local);
	(void)fputs(text, stdout);
}

static void print_event(struct cli *cli, const json_t *event)
{
	struct str type = json_member_str(event, "type");
	struct str item = json_member_str(event, "itemId");
	struct str thread = json_member_str(event, "threadId");
	size_t width = term_width() < HEAD_COLUMNS + 16 ? HEAD_COLUMNS + 16 : term_width();

	if (item.p == NULL)
		item = json_member_str(event, "entityId");
	/* Ids of threads differ at their ends. */
	if (item.p == NULL && thread.n > 8)
		item = (struct str){thread.p + thread.n - 8, 8};
	print_time(json_member_str(event, "at"));
	(void)printf("  %s", term_bold(cli));
	term_cell(cli, type, TYPE_COLUMNS);
	(void)printf("%s ", term_off(cli));
	term_cell(cli, (struct str){item.p == NULL ? "" : item.p, item.n < 8 ? item.n : 8}, 8);
	(void)printf(" ");
	term_cell(cli, json_member_str(json_object_get(event, "actor"), "id"), 12);
	/* In a file or a pipe nothing is cut. */
	print_data(cli, type, json_object_get(event, "data"), isatty(STDOUT_FILENO) != 0 ? width - HEAD_COLUMNS : 0);
	(void)putchar('\n');
}

static bool is_wanted(const struct events *events, struct str type)
{
	if (events->count != 0 && events->shown == events->count)
		return false;
	for (size_t i = 0; i < events->type_count; i++)
		if (in_family(type, events->types[i]))
			return true;
	return events->type_count == 0;
}

static void take(void *context, struct str line)
{
	struct events *events = context;
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct cli round = *events->cli;
	struct json_error error;
	json_auto_t *event = json_read(line, &error);

	round.arena = arena;
	if (!is_wanted(events, json_member_str(event, "type")))
		return;
	events->shown++;
	if (events->json)
		print_json_text(line);
	else
		print_event(&round, event);
}

/* Whoever reads us sees an event when it happens; when nobody reads any more, that is the end. */
static int settle(void *context, struct failure *f)
{
	const struct events *events = context;

	(void)f;
	return fflush(stdout) != 0 || (events->count != 0 && events->shown == events->count) ? 1 : 0;
}

int cmd_events(struct cli *cli, int argc, char **argv)
{
	struct events events = {.cli = cli};
	struct following following = {.take = take, .settle = settle, .context = &events};
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, NULL,
		    "Follow the event log, until interrupted. When the server restarts, go on where it stood."
		    "\vExamples:\n"
		    "  dais events --type item.transitioned\n"
		    "  dais events --since 0 --json | grep note",
		    &events) != 0)
		return 64;
	following.since = events.since;
	return follow_events(cli, &following, &f) == 0 ? 0 : cli_fail(cli, &f);
}
