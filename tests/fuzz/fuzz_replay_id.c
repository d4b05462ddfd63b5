/* Last-Event-ID of a legacy stream: what is found is a stream of this session whose number the input spells, and
 * every id that the writer gave leads back to its place. */
#include "base/limits.h"
#include "mcp/session.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct mcp_handlers no_handlers;

static void check_own(struct mcp_session *session, const struct replay *stream)
{
	const struct event *last = &stream->events[(stream->first + stream->count - 1) % LIMIT_MCP_REPLAY_EVENTS];
	const char *id = last->text + strlen("event: message\nid: ");
	const char *end = memchr(id, '\n', last->n - (size_t)(id - last->text));
	struct str text = {id, end == NULL ? 0 : (size_t)(end - id)};
	uint64_t seq = 0;

	if (replay_find(session, text, &seq) != stream || seq != last->seq)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mcp_settings settings = {
		.handlers = &no_handlers, .server_info = STR("{\"name\":\"f\",\"version\":\"1\"}")};
	static struct mcp_server *server;
	struct mcp_session *session;
	struct replay *found;
	uint64_t seq = 0;
	bool is_own = false;

	if (server == NULL)
		server = mcp_server_create(&settings);
	session = mcp_session_new(server);
	for (int i = 0; i < 40; i++) {
		struct replay *stream = replay_create(session, true);

		for (int n = 0; n <= i; n++)
			replay_send(stream, STR("{}"), false);
		check_own(session, stream);
	}
	found = replay_find(session, (struct str){(const char *)data, size}, &seq);
	for (const struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		is_own = is_own || stream == found;
	if (found != NULL && (!is_own || size < 3 || memchr(data, '.', size) == NULL))
		abort();
	mcp_session_unref(session);
	return 0;
}
