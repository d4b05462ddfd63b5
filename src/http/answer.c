/* Complete answers, and those that the room makes itself. */
#include "http/server.h"

#include "base/json.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>

static const char *code_of(int status)
{
	switch (status) {
	case 413:
		return failure_info(FAIL_PAYLOAD_TOO_LARGE)->wire;
	case 500:
		return failure_info(FAIL_INTERNAL)->wire;
	case 503:
		return failure_info(FAIL_UNAVAILABLE)->wire;
	default:
		return failure_info(FAIL_INVALID_REQUEST)->wire;
	}
}

struct str answer_error_body(struct arena *arena, int status, const char *reason)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, 4096);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kbool(&w, "ok", false);
	jw_kobject(&w, "error");
	jw_ktext(&w, "code", code_of(status));
	jw_ktext(&w, "message", reason);
	jw_object_end(&w);
	jw_object_end(&w);
	return buf_str(&out);
}

struct str answer_raw(struct arena *arena, int status)
{
	const char *phrase = status == 503 ? "Service Unavailable"
		: status == 408		   ? "Request Timeout"
					   : "Content Too Large";
	const char *reason = status == 503 ? "there are too many connections"
		: status == 408		   ? "the request body came too slowly"
					   : "the body is larger than this route takes";
	struct str body = answer_error_body(arena, status, reason);

	return str_printf(arena,
		"HTTP/1.1 %d %s\r\nConnection: close\r\n%sContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%.*s",
		status, phrase, status == 503 ? "Retry-After: 1\r\n" : "", body.n, STRF(body));
}

void answer_add_fields(struct MHD_Response *response, const struct http_field *fields, size_t n)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	for (size_t i = 0; i < n; i++)
		if (MHD_add_response_header(response, fields[i].name, str_z(arena, fields[i].value))
			!= MHD_YES)
			log_line(LOG_ERROR, "http", "an answer's header was left out: its value is not legal",
				{"name", LOG_TEXT(fields[i].name)});
}

void answer_publish(struct http_exchange *x, int status, struct MHD_Response *response)
{
	assert(!x->answered);
	x->answered = true;
	if (x->connection == NULL || x->gone) {
		MHD_destroy_response(response);
		return;
	}
	x->status = (unsigned)status;
	x->response = response;
	if (!x->suspended)
		return; /* the http thread is about to look */
	x->suspended = false;
	loop_resume(x); /* (3) */
}

void http_reply(struct http_exchange *x, int status, const struct http_field *fields, size_t n,
	struct str body)
{
	/* Only copied from; the cast is the library's lack of const. */
	struct MHD_Response *response = MHD_create_response_from_buffer(
		body.n, (void *)(uintptr_t)body.p, MHD_RESPMEM_MUST_COPY);

	if (response == NULL)
		abort();
	answer_add_fields(response, fields, n);
	(void)pthread_mutex_lock(&x->lock);
	answer_publish(x, status, response);
	(void)pthread_mutex_unlock(&x->lock);
}

void answer_refuse(struct http_exchange *x, int status, const char *reason)
{
	const struct http_field fields[] = {{"Content-Type", STR("application/json")},
		{"Connection", STR("close")}, {"Retry-After", STR("1")}};
	const struct http_options *options = &x->server->options;

	if (options->on_refuse != NULL && options->on_refuse(x, options->app, status, reason))
		return;
	http_reply(x, status, fields, status == 503 ? 3 : 2, answer_error_body(x->arena, status, reason));
}
