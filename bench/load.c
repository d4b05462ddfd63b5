/* A closed-loop load on POST /api/v1/ops/{tool}: N kept connections, each sends its next call when the last
 * one was answered. One thread, epoll.
 *
 *   load --url URL --path PATH [--token-file F] [--connections N] [--seconds S] [--warm-up S]
 *        [--words FILE [--window N]] [--journal FILE] [--seed N] BODY…
 *
 * $WORD in a BODY stands for a line of the words file. With one BODY, or without --window, each call takes
 * the next body and a random word. With --window each connection owns a part of the words and takes them
 * window by window through all bodies in order (start all, complete all, reopen all), so that each word sees
 * every step in turn but not while its pages are still warm from the last one. After the time is up the
 * steps that are left are finished, untimed: the state is as it was, and the next run finds it so.
 *
 * --journal writes "WORD VERSION" for each call that was acknowledged, for crash tests; there the end of the
 * server is no fault. Prints one JSON object; exit status 1 when any call failed. */
#include "bench/client.h"

#include "base/clock.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct connection {
	int fd;
	struct buf out, in;
	size_t sent;
	int64_t began; /* of the call in flight, monotonic µs */
	size_t calls;
	/* with --window: words [first, first + count), a window of `size` at `at`, of which `done` saw `step` */
	size_t first, count, at, size, done, step;
	size_t word; /* of the call in flight */
	bool is_idle;
};

static struct {
	const char *url, *path, *token_file, *words_file, *journal_file;
	size_t connections, window;
	double seconds, warm_up;
	unsigned seed;
	char **bodies;
	size_t body_count;
} asked = {.connections = 1, .seconds = 3, .warm_up = 0.3, .seed = 1};

static struct target target;
static char **words;
static size_t word_count;
static FILE *journal;
static int epoll_fd;
static struct latencies latencies;
static int64_t measure_from, measure_to; /* monotonic µs */
static size_t failed, by_status[600], in_flight, measured;
static char first_failure[400];
static bool is_over; /* no new rounds */

enum {
	KEY_URL = 1000, KEY_PATH, KEY_TOKEN, KEY_CONNECTIONS, KEY_SECONDS, KEY_WARM_UP, KEY_WORDS, KEY_WINDOW, KEY_JOURNAL,
	KEY_SEED,
};
static const struct argp_option options[] = {
	{"url", KEY_URL, "URL", 0, "Where the server is", 0},
	{"path", KEY_PATH, "PATH", 0, "What to POST to", 0},
	{"token-file", KEY_TOKEN, "FILE", 0, "Bearer token", 0},
	{"connections", KEY_CONNECTIONS, "N", 0, "Kept connections", 0},
	{"seconds", KEY_SECONDS, "S", 0, "How long is measured", 0},
	{"warm-up", KEY_WARM_UP, "S", 0, "Before that, not counted", 0},
	{"words", KEY_WORDS, "FILE", 0, "Values of $WORD", 0},
	{"window", KEY_WINDOW, "N", 0, "Words that go through the bodies together", 0},
	{"journal", KEY_JOURNAL, "FILE", 0, "What was acknowledged", 0},
	{"seed", KEY_SEED, "N", 0, "Of the random choice", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case KEY_URL:
		asked.url = arg;
		return 0;
	case KEY_PATH:
		asked.path = arg;
		return 0;
	case KEY_TOKEN:
		asked.token_file = arg;
		return 0;
	case KEY_CONNECTIONS:
		asked.connections = strtoul(arg, NULL, 10);
		return 0;
	case KEY_SECONDS:
		asked.seconds = strtod(arg, NULL);
		return 0;
	case KEY_WARM_UP:
		asked.warm_up = strtod(arg, NULL);
		return 0;
	case KEY_WORDS:
		asked.words_file = arg;
		return 0;
	case KEY_WINDOW:
		asked.window = strtoul(arg, NULL, 10);
		return 0;
	case KEY_JOURNAL:
		asked.journal_file = arg;
		return 0;
	case KEY_SEED:
		asked.seed = (unsigned)strtoul(arg, NULL, 10);
		return 0;
	case ARGP_KEY_ARGS:
		asked.bodies = state->argv + state->next;
		asked.body_count = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		if (asked.url == NULL || asked.path == NULL || asked.body_count == 0 || asked.connections == 0)
			argp_error(state, "--url, --path and a BODY are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {options, parse, "BODY…", "Measure calls of one server.", NULL, NULL, NULL};

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The body of the next call of this connection, or NULL when it has nothing more to do. */
static const char *choose(struct connection *c)
{
	if (asked.window == 0) {
		c->word = word_count == 0 ? 0 : (size_t)random() % word_count;
		return is_over ? NULL : asked.bodies[c->calls % asked.body_count];
	}
	if (is_over && c->step == 0)
		c->size = c->done; /* no word is begun any more; those that were see all steps */
	if (c->size == 0)
		return NULL;
	if (c->done == c->size) {
		c->done = 0;
		c->step++;
	}
	if (c->step == asked.body_count) {
		c->step = 0;
		c->at = c->at + c->size >= c->count ? 0 : c->at + c->size;
		c->size = smaller(asked.window, c->count - c->at);
		if (is_over)
			return NULL;
	}
	c->word = c->first + c->at + c->done++;
	return asked.bodies[c->step];
}

static void fill_in(struct buf *out, const char *body, const char *word)
{
	const char *hole;

	while ((hole = strstr(body, "$WORD")) != NULL) {
		buf_add(out, body, (size_t)(hole - body));
		buf_add(out, word, strlen(word));
		body = hole + strlen("$WORD");
	}
	buf_add(out, body, strlen(body));
}

static void set_interest(struct connection *c, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event) != 0)
		die("epoll_ctl: %m");
}

static void flush_out(struct connection *c)
{
	ssize_t n = write(c->fd, c->out.p + c->sent, c->out.n - c->sent);

	if (n > 0)
		c->sent += (size_t)n;
	/* A failed write is seen again as the end of the connection. */
	if (c->sent < c->out.n)
		set_interest(c, EPOLLIN | EPOLLOUT);
}

static void send_next(struct connection *c)
{
	const char *body = choose(c);
	struct buf text;

	if (body == NULL) {
		c->is_idle = true;
		in_flight--;
		return;
	}
	buf_init(&text, NULL, SIZE_MAX);
	fill_in(&text, body, word_count == 0 ? "" : words[c->word]);
	c->out.n = 0;
	c->sent = 0;
	target_post(&target, &c->out, asked.path, buf_str(&text));
	buf_finish(&text);
	c->calls++;
	c->began = clock_mono_us();
	flush_out(c);
}

static void write_journal(const struct connection *c, struct str body)
{
	const char *version = memmem(body.p, body.n, "\"version\":", 10);

	if (journal != NULL && version != NULL)
		(void)fprintf(journal, "%s %ld\n", words[c->word], strtol(version + 10, NULL, 10));
}

static void take(struct connection *c, const struct response *response)
{
	int64_t now = clock_mono_us();
	bool is_ok = response->status == 200 && memmem(response->body.p, response->body.n, "\"ok\":true", 9) != NULL &&
		memmem(response->body.p, response->body.n, "\"ok\":false", 10) == NULL;

	by_status[response->status < 600 ? response->status : 0]++;
	if (!is_ok && failed++ == 0)
		(void)snprintf(first_failure, sizeof(first_failure), "%.*s", STRF(response->body));
	if (is_ok)
		write_journal(c, response->body);
	/* What began in the measured time and what ended in it differ by the connections' last calls. */
	if (c->began >= measure_from && now <= measure_to) {
		measured++;
		latencies_add(&latencies, now - c->began);
	}
}

/* The server is gone: the end of a crash test, a fault in any other. */
static void lose(struct connection *c)
{
	if (journal == NULL)
		die("the server closed a connection");
	(void)close(c->fd);
	c->is_idle = true;
	in_flight--;
	is_over = true;
}

static void receive(struct connection *c)
{
	char bytes[65536];
	ssize_t n = read(c->fd, bytes, sizeof(bytes));
	struct response response;
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		lose(c);
		return;
	}
	buf_add(&c->in, bytes, (size_t)n);
	rc = response_parse(buf_str(&c->in), &response);
	if (rc < 0)
		die("not an answer: %.*s", STRF(buf_str(&c->in)));
	if (rc == 0)
		return;
	take(c, &response);
	buf_consume(&c->in, response.bytes);
	send_next(c);
}

static void open_connection(struct connection *c, size_t i)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
	size_t share = word_count / asked.connections;

	c->fd = target_connect(&target);
	if (c->fd < 0)
		die("connect to %s:%s: %m", target.host, target.port);
	buf_init(&c->out, NULL, SIZE_MAX);
	buf_init(&c->in, NULL, SIZE_MAX);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
		die("epoll_ctl: %m");
	c->first = i * share;
	c->count = share;
	c->size = smaller(asked.window, share);
	if (asked.window > 0 && share == 0)
		die("fewer words than connections");
}

static void serve(struct epoll_event *event)
{
	struct connection *c = event->data.ptr;

	if (c->is_idle)
		return;
	if ((event->events & EPOLLOUT) != 0) {
		set_interest(c, EPOLLIN);
		flush_out(c);
	}
	if ((event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
		receive(c);
}

/* Words next to each other were made next to each other, and share pages. */
static void shuffle(void)
{
	for (size_t i = word_count; i > 1; i--) {
		size_t j = (size_t)random() % i;
		char *word = words[i - 1];

		words[i - 1] = words[j];
		words[j] = word;
	}
}

static void run(void)
{
	struct epoll_event events[256];

	while (in_flight > 0) {
		int n = epoll_wait(epoll_fd, events, 256, 10000);

		if (n == 0)
			die("no answer within 10 s, %zu calls open", in_flight);
		is_over = is_over || clock_mono_us() > measure_to;
		for (int i = 0; i < n; i++)
			serve(&events[i]);
	}
}

static void report(void)
{
	(void)printf("{\"calls\":%zu,\"perSecond\":%.1f,\"failed\":%zu,\"byStatus\":{", measured,
		(double)measured / asked.seconds, failed);
	for (size_t i = 0, n = 0; i < 600; i++)
		if (by_status[i] > 0)
			(void)printf("%s\"%zu\":%zu", n++ > 0 ? "," : "", i, by_status[i]);
	(void)printf("},\"ms\":");
	latencies_print(&latencies);
	(void)printf("}\n");
	if (failed > 0)
		(void)fprintf(stderr, "load: %zu calls failed, the first: %s\n", failed, first_failure);
}

int main(int argc, char **argv)
{
	struct connection *connections;
	int64_t now;

	if (argp_parse(&argp, argc, argv, 0, NULL, NULL) != 0)
		return 64;
	srandom(asked.seed);
	target_parse(&target, asked.url, asked.token_file);
	if (asked.words_file != NULL)
		word_count = lines_read(asked.words_file, &words);
	shuffle();
	if (asked.journal_file != NULL && (journal = fopen(asked.journal_file, "we")) == NULL)
		die("%s: %m", asked.journal_file);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	connections = calloc(asked.connections, sizeof(*connections));
	if (epoll_fd < 0 || connections == NULL)
		die("%m");
	for (size_t i = 0; i < asked.connections; i++)
		open_connection(&connections[i], i);
	now = clock_mono_us();
	measure_from = now + (int64_t)(asked.warm_up * 1e6);
	measure_to = measure_from + (int64_t)(asked.seconds * 1e6);
	in_flight = asked.connections;
	for (size_t i = 0; i < asked.connections; i++)
		send_next(&connections[i]);
	run();
	report();
	if (journal != NULL)
		(void)fclose(journal);
	return failed > 0;
}
