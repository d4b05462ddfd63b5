/* The framing filter on arbitrary heads. Input: lines; the first is method SP target SP version, the
 * others name ':' value. What the filter accepts must have one reading. */
#include "http/framing.h"

#include "base/limits.h"

#include <stdlib.h>

#define MAX_FIELDS 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str next(struct str *rest, char separator)
{
	const char *end = rest->n == 0 ? NULL : memchr(rest->p, separator, rest->n);
	struct str piece = {rest->p, end == NULL ? rest->n : (size_t)(end - rest->p)};

	rest->p += end == NULL ? rest->n : piece.n + 1;
	rest->n -= end == NULL ? rest->n : piece.n + 1;
	return piece;
}

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void check_accepted(const struct framing_head *head, const struct framing *out)
{
	size_t lengths = 0, encodings = 0;

	for (size_t i = 0; i < head->n; i++) {
		lengths += str_eq_nocase(head->fields[i].name, STR("content-length"));
		encodings += str_eq_nocase(head->fields[i].name, STR("transfer-encoding"));
		must(memchr(head->fields[i].value.p, '\r', head->fields[i].value.n) == NULL);
	}
	must(lengths + encodings <= 1);
	must(out->chunked == (encodings == 1));
	must(!out->chunked || out->length == 0);
	must(head->n <= LIMIT_HTTP_FIELDS && head->target.n <= LIMIT_HTTP_TARGET_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, line = next(&rest, '\n');
	static struct framing_field fields[MAX_FIELDS];
	struct framing_head head = {.fields = fields};
	struct framing out;
	int status;

	if (size == 0)
		return 0;
	head.method = next(&line, ' ');
	head.target = next(&line, ' ');
	head.version = line;
	while (rest.n > 0 && head.n < MAX_FIELDS) {
		line = next(&rest, '\n');
		fields[head.n].name = next(&line, ':');
		fields[head.n++].value = line;
	}
	status = framing_check(&head, &out);
	if (status == 0)
		check_accepted(&head, &out);
	else
		must(status >= 400 && out.reason != NULL);
	return 0;
}
