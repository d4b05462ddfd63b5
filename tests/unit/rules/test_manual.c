/* Every example of docs/rules.md is a document that this program reads, without a warning. */
#include "story.h"

#include <stdio.h>
#include <stdlib.h>

static void every_example_of_the_manual_is_accepted(void **state)
{
	struct story *s = *state;
	char *line = NULL;
	size_t cap = 0;
	FILE *file = fopen(MANUAL, "r");
	struct buf text;
	bool inside = false, is_global = false;
	int examples = 0;

	assert_non_null(file);
	buf_init(&text, s->arena, SIZE_MAX);
	while (getline(&line, &cap, file) >= 0) {
		if (strncmp(line, "```yaml", 7) == 0) {
			inside = true;
			is_global = strstr(line, "global") != NULL;
			text.n = 0;
		} else if (inside && strncmp(line, "```", 3) == 0) {
			inside = false;
			examples++;
			buf_add_char(&text, '\0');
			(is_global ? global : project)(s, text.p);
			rules_check_layers(s->project, NULL, &s->warnings);
			if (s->warnings.first != NULL)
				fail_msg("example %d: %s %s: %s", examples, s->warnings.first->code,
					s->warnings.first->path.p, s->warnings.first->message.p);
		} else if (inside) {
			buf_add(&text, line, strlen(line));
		}
	}
	free(line);
	fclose(file);
	assert_true(examples >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {STORY(every_example_of_the_manual_is_accepted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
