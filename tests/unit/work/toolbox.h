/* Tools on a real temporary store, called as a transport calls them: JSON in, envelope out. Items, and nothing
 * else, are put into the store by the engine. */
#ifndef DAIS_TESTS_WORK_TOOLBOX_H
#define DAIS_TESTS_WORK_TOOLBOX_H

#include "engine.h"

#include "tools/tool.h"
#include "tools/tools.h"

struct box {
	struct engine *e;
	struct tools *tools;
	char config_dir[128];
	int64_t root, feature, a, b; /* Harbour, Berth booking, Tide table import, Booking API */
};

int box_up(void **state);
int box_down(void **state);

/* The whole envelope; lives until teardown. `args` is used up. */
json_t *call_as(struct box *box, const struct caller *caller, const struct tool *tool, json_t *args);
/* By `local`, from text with ' for ". */
json_t *ask(struct box *box, const struct tool *tool, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
json_t *ask_as(struct box *box, const struct caller *caller, const struct tool *tool, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The caller that a seat token stands for; -1 when it is refused. */
int seat_caller(struct box *box, const char *token, struct caller *out);
/* Push a project's rules with the tool; must succeed. */
json_t *push(struct box *box, int64_t root, const char *yaml);
/* The first result, or data; asserts that the call succeeded. */
const json_t *result_of(const json_t *envelope);
const json_t *data_of(const json_t *envelope);
void assert_error(const json_t *envelope, const char *code);
bool has_warning(const json_t *envelope, const char *code);
/* "x" * n, until teardown. */
const char *repeat(struct box *box, const char *text, size_t n);

#endif
