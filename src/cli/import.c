/* dais import: what export wrote, into an empty database. */
#include "cli/cli.h"

#include "base/limits.h"
#include "store/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct reading {
	const char *file; /* NULL: stdin */
	int fd;
	struct buf bytes;
	size_t at; /* start of the next line in bytes */
	bool is_ended;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct reading *reading = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (reading->file != NULL)
			argp_error(state, "too many arguments");
		reading->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (reading->file == NULL)
			argp_error(state, "which file? - is stdin. For example: dais import work.jsonl");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_more(struct reading *reading, struct failure *f)
{
	char bytes[65536];
	ssize_t n;

	if (reading->bytes.n - reading->at > LIMIT_MESSAGE_BYTES)
		return fail(f, FAIL_INVALID_REQUEST, "A line is longer than %d bytes; nothing was imported.",
			LIMIT_MESSAGE_BYTES);
	buf_consume(&reading->bytes, reading->at);
	reading->at = 0;
	do {
		n = read(reading->fd, bytes, sizeof(bytes));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return fail(f, FAIL_INVALID_REQUEST, "The file cannot be read; nothing was imported.");
	buf_add(&reading->bytes, bytes, (size_t)n);
	reading->is_ended = n == 0;
	return 0;
}

static int next_line(void *context, struct str *line, struct failure *f)
{
	struct reading *reading = context;

	for (;;) {
		struct str rest = buf_str(&reading->bytes);
		const char *end;

		rest.p += reading->at;
		rest.n -= reading->at;
		end = rest.n == 0 ? NULL : memchr(rest.p, '\n', rest.n);
		if (end == NULL && !reading->is_ended) {
			if (read_more(reading, f) != 0)
				return -1;
			continue;
		}
		*line = (struct str){rest.p, end == NULL ? rest.n : (size_t)(end - rest.p)};
		reading->at += line->n + (end != NULL);
		if (line->n > 0 && !str_is_blank(*line))
			return 1;
		if (end == NULL)
			return 0;
	}
}

static int import(struct cli *cli, struct reading *reading, struct transfer_source *source, struct failure *f)
{
	struct settings *settings;
	struct store_options how = {.may_create = true, .is_exclusive = true};
	struct store *store;
	int rc;

	if (cli_settings(cli, &settings, f) != 0)
		return -1;
	reading->fd = strcmp(reading->file, "-") == 0 ? STDIN_FILENO : open(reading->file, O_RDONLY | O_CLOEXEC);
	if (reading->fd < 0)
		return fail(f, FAIL_INVALID_REQUEST, "%s cannot be read.", reading->file);
	how.path = state_database(cli->arena, cli->state_dir, settings_text(settings, SETTING_STORE));
	if (state_make_dir(cli->state_dir, f) != 0 || store_open(&how, &store, f) != 0)
		return -1;
	rc = store_write(store, transfer_import, source, &actor_system, cli->arena, f);
	store_close(store);
	return rc;
}

int cmd_import(struct cli *cli, int argc, char **argv)
{
	struct reading reading = {.fd = -1};
	struct transfer_source source = {.next = next_line, .context = &reading};
	struct failure f;
	int rc;

	failure_init(&f, cli->arena);
	buf_init(&reading.bytes, NULL, SIZE_MAX);
	if (cli_parse(cli, argc, argv, NULL, parse, "FILE|-",
		    "Read what dais export wrote into a database that is new or empty, all or nothing. No server may run on "
		    "this state directory. Tokens are not part of it: make new ones."
		    "\vExample:\n  dais import --state ~/dais-copy work.jsonl",
		    &reading) != 0)
		return 64;
	rc = import(cli, &reading, &source, &f);
	buf_finish(&reading.bytes);
	if (rc != 0)
		return cli_fail(cli, &f);
	(void)fprintf(stderr, "dais: %lld row%s imported.\n", (long long)source.rows, plural(source.rows));
	return 0;
}
