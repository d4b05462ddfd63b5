/* bench/client.h - the client side of a measurement: kept HTTP connections and latencies.
 *
 * Only what our own server sends: Content-Length bodies (load) or an event stream (streams). Faults of the
 * server end the program with a message: a measurement of refused calls is worth nothing. */
#ifndef DAIS_BENCH_CLIENT_H
#define DAIS_BENCH_CLIENT_H

#include "base/str.h"

struct target {
	char host[64];
	char port[8];
	char authorization[256]; /* whole header line, or empty */
};

/* "http://127.0.0.1:3001"; exits when it is not of that form. */
void target_parse(struct target *target, const char *url, const char *token_file);
/* A connected, non-blocking socket without Nagle's delay; -1 when the server is not there. */
int target_connect(const struct target *target);
/* One POST with everything but the body's bytes given; appended to `out`. */
void target_post(const struct target *target, struct buf *out, const char *path, struct str body);

struct response {
	int status;
	struct str body; /* inside the bytes given */
	size_t bytes;	 /* of the whole message */
};
/* 1 whole response, 0 more bytes are needed, -1 no HTTP response that we understand. */
int response_parse(struct str bytes, struct response *out);

/* Every latency is kept, so percentiles are exact. */
struct latencies {
	uint32_t *us;
	size_t n, cap;
};
void latencies_add(struct latencies *all, int64_t us);
/* {"p50":…,"p90":…,"p99":…,"max":…} in ms; sorts. */
void latencies_print(struct latencies *all);

/* Whole file as lines without their ends; memory lives as long as the program. */
size_t lines_read(const char *file, char ***out);
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
