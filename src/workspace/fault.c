#include "workspace/private.h"

#include <errno.h>

static const struct {
	const char *wire;
	enum failure_code code;
} table[] = {
#define FAULT(name, wire, code, meaning) {wire, FAIL_##code},
#include "workspace/fault.def"
#undef FAULT
};

const char *fault_name(enum fault fault)
{
	return table[fault].wire;
}

int fault(struct failure *f, enum fault fault, const char *fmt, ...)
{
	va_list args;
	const char *message;

	va_start(args, fmt);
	message = arena_vprintf(f->arena, fmt, args);
	va_end(args);
	(void)fail(f, table[fault].code, "%s", message);
	fail_detail_str(f, "cause", str_of(table[fault].wire));
	return -1;
}

int fault_errno(struct failure *f, const char *doing, const char *path)
{
	if (errno == ENOSPC || errno == EDQUOT)
		return fault(f, FAULT_DISK_FULL, "No space is left to %s %s.", doing, path);
	if (errno == EACCES || errno == EPERM || errno == EROFS)
		return fault(f, FAULT_NOT_PERMITTED, "It is not permitted to %s %s.", doing, path);
	if (errno == ENOENT)
		return fault(f, FAULT_FOLDER_MISSING,
			"It is not possible to %s %s: it does not exist.", doing, path);
	if (errno == ENOTDIR || errno == EEXIST)
		return fault(f, FAULT_PATH_TAKEN,
			"It is not possible to %s %s: something else is there.", doing, path);
	return fail_errno(f, "%s %s", doing, path);
}

struct str fault_cause(const struct failure *f, struct arena *arena)
{
	struct str text = str_printf(arena, "{%.*s}", STRF(f->detail));
	json_t *detail = json_loadb(text.p, text.n, 0, NULL);
	struct str cause = str_dup(arena, json_str(json_object_get(detail, "cause")));

	json_decref(detail);
	return cause;
}

bool fault_is(const struct failure *f, enum fault fault)
{
	return str_eq(fault_cause(f, f->arena), str_of(table[fault].wire));
}
