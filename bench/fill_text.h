/* bench/fill_text.h - invented text whose words are as unevenly frequent as those of a real one. */
#ifndef DAIS_BENCH_FILL_TEXT_H
#define DAIS_BENCH_FILL_TEXT_H

#include "base/str.h"

#include <stdio.h>

/* The same seed makes the same text. */
void text_seed(unsigned seed);
/* Append `words` words. */
void text_add(struct buf *out, int words);
/* One query for the search per line: a common word, a rare one, two together, in turn. */
void text_write_queries(FILE *out, int lines);

#endif
