/* Lines to the client. They may be of any length: what is big is written piece by piece from where it stands. */
#include "script/private.h"

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <sysexits.h>
#include <unistd.h>

/* The pipe may not block (whoever made it decides): wait then. Nobody left to hear us: nothing left to do. */
static ssize_t write_some(int fd, const struct iovec *parts, int count)
{
	for (;;) {
		ssize_t n = writev(fd, parts, count);

		if (n >= 0)
			return n;
		if (errno == EAGAIN) {
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			(void)poll(&wait, 1, -1);
		} else if (errno != EINTR) {
			_exit(EX_IOERR);
		}
	}
}

static void write_parts(int fd, struct iovec *parts, int count)
{
	while (count > 0) {
		size_t n = (size_t)write_some(fd, parts, count);

		while (count > 0 && n >= parts->iov_len) {
			n -= parts->iov_len;
			parts++;
			count--;
		}
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + n;
			parts->iov_len -= n;
		}
	}
}

static struct iovec part_of(struct str text)
{
	union {
		const char *in;
		void *out;
	} p = {.in = text.p};

	return (struct iovec){p.out, text.n};
}

static void write_line(struct script_agent *agent, const struct str *texts, size_t count)
{
	struct iovec parts[8];

	for (size_t i = 0; i < count; i++)
		parts[i] = part_of(texts[i]);
	(void)pthread_mutex_lock(&agent->output);
	write_parts(agent->out, parts, (int)count);
	(void)pthread_mutex_unlock(&agent->output);
}

void script_write(struct script_agent *agent, struct str line)
{
	const struct str parts[] = {line, STR("\n")};

	write_line(agent, parts, 2);
}

void script_write_bytes(struct script_agent *agent, struct str bytes)
{
	write_line(agent, &bytes, 1);
}

static void begin_message(struct json_writer *w, struct buf *out, const json_t *id)
{
	buf_init(out, NULL, SIZE_MAX);
	json_writer_init(w, out);
	jw_object_begin(w);
	jw_ktext(w, "jsonrpc", "2.0");
	jw_key(w, "id");
	if (id == NULL)
		jw_null(w);
	else
		jw_json(w, id); /* with the type that it came with */
}

void script_answer(struct script_agent *agent, const json_t *id, struct str result)
{
	struct buf out;
	struct json_writer w;

	begin_message(&w, &out, id);
	jw_kraw(&w, "result", result);
	jw_object_end(&w);
	script_write(agent, buf_str(&out));
	buf_finish(&out);
}

void script_refuse(struct script_agent *agent, const json_t *id, const struct rpc_error *error)
{
	struct buf out;
	struct json_writer w;

	begin_message(&w, &out, id);
	jw_kobject(&w, "error");
	jw_kint(&w, "code", error->code);
	jw_kstr(&w, "message", error->message);
	if (error->data.p != NULL)
		jw_kraw(&w, "data", error->data);
	jw_object_end(&w);
	jw_object_end(&w);
	script_write(agent, buf_str(&out));
	buf_finish(&out);
}

void script_refuse_text(struct script_agent *agent, const json_t *id, int64_t code, const char *message)
{
	const struct rpc_error error = {code, str_of(message), STR_NONE};

	script_refuse(agent, id, &error);
}

void script_request(struct script_agent *agent, int64_t id, const char *method, struct str params)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_kint(&w, "id", id);
	jw_ktext(&w, "method", method);
	jw_kraw(&w, "params", params);
	jw_object_end(&w);
	script_write(agent, buf_str(&out));
	buf_finish(&out);
}

#define ENVELOPE "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\""

void script_session_update(struct session *session, struct str update)
{
	const struct str parts[] = {STR(ENVELOPE), str_of(session->id), STR("\",\"update\":"), update, STR("}}\n")};

	write_line(session->agent, parts, sizeof(parts) / sizeof(parts[0]));
}

void script_session_update_members(struct session *session, const char *kind, struct str members)
{
	const struct str parts[] = {STR(ENVELOPE), str_of(session->id), STR("\",\"update\":{\"sessionUpdate\":\""),
		str_of(kind), STR("\","), members, STR("}}}\n")};

	write_line(session->agent, parts, sizeof(parts) / sizeof(parts[0]));
}

void script_session_keep(struct session *session, const char *kind, struct str members)
{
	(void)pthread_mutex_lock(&session->agent->lock);
	buf_add_str(&session->history, STR("{\"sessionUpdate\":\""));
	buf_add_str(&session->history, str_of(kind));
	buf_add_str(&session->history, STR("\","));
	buf_add_str(&session->history, members);
	buf_add_str(&session->history, STR("}\n"));
	(void)pthread_mutex_unlock(&session->agent->lock);
}
