/* Printing for people: nothing that came from outside may steer the terminal. */
#include "cli/cli.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* Control characters, and those that turn or hide what follows them. */
static bool steers(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
		(c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
		(c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

struct str term_text(struct arena *arena, struct str text, size_t columns)
{
	struct buf out;
	size_t used = 0;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t at = 0; at < text.n;) {
		size_t start = at;
		uint32_t c = utf8_next(text, &at);
		int width = wcwidth((wchar_t)c);

		if (steers(c) || width < 0) {
			if (c == '\n' || c == '\t' || c == '\r')
				buf_add_char(&out, ' ');
			else
				buf_add_str(&out, STR("\xef\xbf\xbd"));
			width = 1;
		} else {
			buf_add(&out, text.p + start, at - start);
		}
		used += (size_t)width;
		if (columns > 0 && used >= columns && at < text.n) {
			/* Room for the ellipsis: take the last character back. */
			out.n = utf8_cut(buf_str(&out), out.n - 1);
			buf_add_str(&out, STR("…"));
			break;
		}
	}
	return buf_str(&out);
}

size_t term_width(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	int64_t n;

	if (columns != NULL && str_to_int(str_of(columns), &n) && n >= 20 && n <= 1000)
		return (size_t)n;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return 80;
}

const char *term_dim(const struct cli *cli)
{
	return cli->is_colour ? "\033[2m" : "";
}

const char *term_bold(const struct cli *cli)
{
	return cli->is_colour ? "\033[1m" : "";
}

const char *term_off(const struct cli *cli)
{
	return cli->is_colour ? "\033[0m" : "";
}

const char *term_role(const struct cli *cli, struct str role)
{
	if (!cli->is_colour)
		return "";
	return str_eq(role, STR("work")) ? "\033[33m"
		: str_eq(role, STR("review"))   ? "\033[36m"
		: str_eq(role, STR("blocked"))  ? "\033[31m"
		: str_eq(role, STR("terminal")) ? "\033[32m"
						: "";
}

void print_json(const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (text == NULL)
		return;
	(void)puts(text);
	free(text);
}
