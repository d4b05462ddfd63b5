/* work/body.h - inside the work room: texts that people write (notes, documents, reports): line ends, files,
 * and the part of a text that fits an answer. */
#ifndef DAIS_WORK_BODY_H
#define DAIS_WORK_BODY_H

#include "base/limits.h"
#include "work/work.h"

/* CR LF and CR become LF, which is all that is ever changed; warns body_normalised when it was. */
struct str body_normalise(struct call *call, struct str text);
/* The value of bodyFromFile: a regular file below call->config_dir, reached without a link. Only for callers
 * on the Unix socket. It reads a disk: never on the writer thread. `max` bytes. */
int body_from_file(struct call *call, struct str name, int64_t max, struct str *out, struct failure *f);

/* What one body may take of an answer; the rest is for its envelope. */
#define EXCERPT_BYTES (LIMIT_ANSWER_BYTES - 4096)

struct excerpt {
	struct str text;
	bool is_cut;
	int64_t next_offset; /* characters, when cut */
};
/* From character `offset`, at most `max_chars` (0: all) and `max_bytes` of JSON text. What does not fit is cut
 * behind a line when there is one, else behind a character. */
void excerpt_of(struct str body, int64_t offset, int64_t max_chars, size_t max_bytes, struct excerpt *out);
/* "body", "truncated"?, "nextOffset"? */
void excerpt_write(struct json_writer *w, const struct excerpt *excerpt);

struct section;
/* "outline":[{anchor,level,title,bytes}], from character `offset` on; "truncated" and "nextOffset" when it does
 * not fit. */
void outline_write(struct json_writer *w, struct arena *arena, struct str body, int64_t offset, size_t max_bytes);

#endif
