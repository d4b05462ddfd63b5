/* base/failure.h - the one way to fail: return -1 with a struct failure filled.
 *
 * Success leaves *f alone, failure leaves *out alone. The codes are the closed catalogue of
 * base/failure.def. The lowest function that knows says what it expected and what it got; each
 * level above adds its step of the path with fail_under(). Messages are for the caller: no SQL, no
 * library text, no path of the server, no secret; such causes go to the log. */
#ifndef DAIS_BASE_FAILURE_H
#define DAIS_BASE_FAILURE_H

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

enum failure_code {
#define FAILURE(name, wire, http, kind, exit_code, fix, meaning) FAIL_##name,
#include "base/failure.def"
#undef FAILURE
	FAILURE_CODES,
};

enum failure_kind { FAILURE_P, FAILURE_T, FAILURE_S };

struct failure_info {
	enum failure_code code;
	const char *wire;
	int http_status;
	enum failure_kind kind;
	int exit_code;
	const char *fix;
	const char *meaning;
};

/* One bad field: `path` like ops[0].title. */
struct failure_field {
	struct str path;
	struct str reason;
	struct str received; /* may be absent; already shortened */
	struct failure_field *next;
};

struct failure {
	struct arena *arena; /* where everything below lives */
	enum failure_code code;
	struct str message;
	struct failure_field *fields; /* in the order found; of INVALID_REQUEST, UNKNOWN_PARAMETER,
					 CONFIG_INVALID */
	size_t field_count;
	struct str detail; /* members of the detail object, JSON without braces */
	int64_t retry_after_ms; /* 0: none */
	int index; /* element of a batch, -1: none */
	bool is_shape; /* the request itself is wrong, whatever the state: may be remembered (idempotency) */
};

void failure_init(struct failure *f, struct arena *arena);
const struct failure_info *failure_info(enum failure_code code);
/* The entry with this wire name, or NULL. */
const struct failure_info *failure_find(struct str wire);

/* All return -1, so that `return fail(…)` reads well. */
int fail(struct failure *f, enum failure_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Internal failure of the operating system: errno goes to the log, a fixed text to the caller. */
int fail_errno(struct failure *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add one bad field; the first one sets the code to INVALID_REQUEST unless already shape-failing.
 * `received` may be STR_NONE. At most LIMIT_FAILURE_FIELDS are kept. */
int fail_field(struct failure *f, struct str path, struct str received, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int fail_unknown(struct failure *f, struct str path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Put `prefix` (like "ops[3].") before every field path; call it on the way up. */
int fail_under(struct failure *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Members of `detail`, added one by one. Call after fail(). */
void fail_detail_str(struct failure *f, const char *key, struct str value);
void fail_detail_int(struct failure *f, const char *key, int64_t value);
/* `json` is a complete JSON value. */
void fail_detail_raw(struct failure *f, const char *key, struct str json);

/* {"code","kind","message","fix"?,"detail"?,"retryAfterMs"?,"index"?} */
void failure_write(const struct failure *f, struct json_writer *w);
/* Copy into another arena. */
void failure_copy(struct failure *to, struct arena *arena, const struct failure *from);

#endif
