/* script/template.h - {{…}} in the texts of a scenario.
 *
 * A path is a name and, behind dots, members and indices of a saved result: {{made.results.0.id}}. */
#ifndef DAIS_SCRIPT_TEMPLATE_H
#define DAIS_SCRIPT_TEMPLATE_H

#include "base/str.h"

/* The names that are always there. */
enum template_name {
	NAME_PROMPT,
	NAME_TURN,
	NAME_SESSION,
	NAME_MODEL,
	NAME_MODE,
	NAME_ANSWER,
	NAME_STEER,
	NAME_OPEN,  /* {{open}} is how to write {{ itself */
	NAME_OTHER, /* a saved result */
};
enum template_name template_name_of(struct str name);

/* Letters, digits and _, not beginning with a digit. */
bool template_is_name(struct str text);

/* One thing after the other: text up to the next {{…}}, then its path. */
struct template_part {
	struct str text; /* what stands before */
	struct str name; /* absent: the text ended */
	struct str path; /* behind the name, without its first dot; absent: none */
};
/* Move *at behind the next part; false at the end. `text` has passed template_check(). */
bool template_next(struct str text, size_t *at, struct template_part *out);

/* NULL, or what is wrong; `saved` are the names of the scenario. */
const char *template_check(struct arena *arena, struct str text, const struct str *saved, size_t saved_count);
/* The text is one {{…}} and nothing else. */
bool template_is_whole(struct str text, struct template_part *out);

#endif
