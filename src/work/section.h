/* work/section.h - headings of a Markdown text and the sections they open. Pure: no store, no call.
 *
 * A heading is a line of up to three blanks, one to six #, then a blank or the end of the line. Lines inside
 * fenced code (``` or ~~~) are text. A section runs from its heading to the next heading of the same or a
 * higher level, so sections nest. */
#ifndef DAIS_WORK_SECTION_H
#define DAIS_WORK_SECTION_H

#include "base/str.h"

struct section {
	struct str title;  /* without # and outer blanks */
	struct str anchor; /* lower case, runs of other characters as one -, unique in its text */
	int level;	   /* 1 to 6 */
	size_t start, end; /* bytes of the text, heading line included */
};

/* All sections in the order of their headings. Titles are views into `text`; the rest lives in `arena`. */
size_t sections_of(struct arena *arena, struct str text, struct section **out);
/* The section with this anchor, or NULL. */
const struct section *section_find(const struct section *sections, size_t n, struct str anchor);
static inline struct str section_text(const struct section *section, struct str text)
{
	return (struct str){text.p + section->start, section->end - section->start};
}

#endif
