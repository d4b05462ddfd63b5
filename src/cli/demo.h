/* cli/demo.h - inside `dais demo`: the story as data. */
#ifndef DAIS_CLI_DEMO_H
#define DAIS_CLI_DEMO_H

#include <stdbool.h>

/* A path into an answer, like results.0.newRole; * is any element of a list. */
struct demo_expectation {
	const char *path;
	const char *value; /* {name} stands for what an earlier step kept */
};

struct demo_step {
	const char *tells;	/* what the reader should see happen; NULL: belongs to the step before */
	const char *tool;	/* NULL: kill the server and start it again */
	const char *arguments;
	const char *shows[4];	/* paths of the answer that are printed */
	struct demo_expectation expects[4];
	struct {
		const char *name, *path;
	} keeps[3];
};

extern const struct demo_step demo_steps[]; /* ends with one that has neither tells nor tool */

#endif
