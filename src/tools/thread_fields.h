/* tools/thread_fields.h - inside the room: fields that several thread tools share. */
#ifndef DAIS_TOOLS_THREAD_FIELDS_H
#define DAIS_TOOLS_THREAD_FIELDS_H

#include "base/limits.h"
#include "tools/plain.h"

struct target_arg {
	struct arg_str instance_id, driver, model;
};

extern const struct word runtime_words[], interaction_words[];
extern const struct field target_fields[];

#define THREAD_ID_FIELD(type, member) \
	FIELD(type, member, "threadId", FIELD_STR, REQUIRED, .min = 1, .max = LIMIT_THREAD_ID_CHARS, \
		.help = "a threadId of this project")
#define REQUEST_ID_FIELD(type, member) \
	FIELD(type, member, "clientRequestId", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_CLIENT_REQUEST_ID_CHARS, \
		.help = "the same for each retry of one call, which is then done once; a new one for new work")
#define TIMEOUT_FIELD(type, member) \
	FIELD(type, member, "timeoutMs", FIELD_INT, 0, .fallback = "600000", \
		.help = "longest wait in ms; clients give up early, so 50000 or less is wise")
#define TARGET_FIELD(type, member) \
	FIELD(type, member, "target", FIELD_OBJECT, 0, .fields = target_fields, .item_size = sizeof(struct target_arg), \
		.help = "who shall do it: providerInstanceId, or driverKind, and model; default: as the caller")
#define RUNTIME_FIELD(type, member) \
	FIELD(type, member, "runtimeMode", FIELD_WORD, 0, .words = runtime_words, .fallback = "inherit", \
		.help = "never wider than the caller's own")
#define INTERACTION_FIELD(type, member) \
	FIELD(type, member, "interactionMode", FIELD_WORD, 0, .words = interaction_words, .fallback = "inherit", \
		.help = "never wider than the caller's own")

static inline struct str given(const struct arg_str *arg)
{
	return arg->set && !arg->null ? arg->v : STR_NONE;
}

/* -1: inherit */
static inline int64_t mode_of(const struct arg_int *arg)
{
	return arg->set && !arg->null ? arg->v : -1;
}

struct target target_of(const struct arg_object *arg);
/* Clamped to what a wait may be. */
int64_t timeout_of(const struct arg_int *arg);

#endif
