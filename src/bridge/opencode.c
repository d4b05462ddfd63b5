/* The loop: lines of our input, what the server writes, and transfers. */
#include "bridge/private.h"

#include "base/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void bridge_say(struct buf *line)
{
	size_t done = 0;

	buf_add_char(line, '\n');
	while (done < line->n) {
		ssize_t n = write(STDOUT_FILENO, line->p + done, line->n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			exit(1); /* the server follows: PR_SET_PDEATHSIG */
		done += (size_t)n;
	}
}

struct input {
	struct buf text;
	bool is_closed;
};

static void hear_input(struct input *in, struct transfers *all)
{
	char bytes[65536];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
	const char *end;

	if (n < 0 && errno == EINTR)
		return;
	if (n > 0)
		buf_add(&in->text, bytes, (size_t)n);
	in->is_closed = n <= 0 || in->text.overflow;
	while (in->text.n > 0 && (end = memchr(in->text.p, '\n', in->text.n)) != NULL) {
		size_t length = (size_t)(end - in->text.p);

		transfers_ask(all, (struct str){in->text.p, length});
		buf_consume(&in->text, length + 1);
	}
}

/* A request before {"ready":true} finds nobody: it is answered with status 0. */
static int serve(struct child *child, struct transfers *all, struct input *in)
{
	bool is_streaming = false;
	int running;

	while (!in->is_closed) {
		struct curl_waitfd fds[] = {{.fd = child->out, .events = CURL_WAIT_POLLIN}, {.fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN}};

		if (curl_multi_poll(transfers_multi(all), fds, 2, 1000, NULL) != CURLM_OK)
			return 1;
		if (fds[0].revents != 0 && !child_hear(child))
			return 1;
		if (child->is_listening && !is_streaming) {
			transfers_open_stream(all);
			is_streaming = true;
		}
		if (fds[1].revents != 0)
			hear_input(in, all);
		(void)curl_multi_perform(transfers_multi(all), &running);
		transfers_settle(all);
	}
	return 0;
}

int bridge_opencode(const char *const *argv, struct failure *f)
{
	struct child child;
	struct transfers *all;
	struct input in = {.is_closed = false};
	int rc;

	(void)signal(SIGPIPE, SIG_IGN);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || child_start(&child, argv, f) != 0)
		return -1;
	buf_init(&in.text, NULL, LIMIT_AGENT_LINE_BYTES);
	all = transfers_create(&child);
	rc = serve(&child, all, &in);
	child_end(&child);
	transfers_destroy(all);
	buf_finish(&in.text);
	curl_global_cleanup();
	return rc;
}
