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
		if (columns > 0 && (used > columns || (used == columns && at < text.n))) {
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

size_t term_columns(struct str text)
{
	size_t columns = 0;

	for (size_t at = 0; at < text.n;) {
		int width = wcwidth((wchar_t)utf8_next(text, &at));

		columns += width < 0 ? 1 : (size_t)width;
	}
	return columns;
}

void term_cell(struct cli *cli, struct str text, size_t columns)
{
	struct str cell = term_text(cli->arena, text, columns);
	size_t used = term_columns(cell);

	(void)printf("%.*s%*s", STRF(cell), used < columns ? (int)(columns - used) : 0, "");
}

/* The same value, with what could steer a terminal escaped: readers of JSON see no difference. */
static void add_json_char(struct buf *out, struct str text, size_t start, size_t end, uint32_t c)
{
	if (c < 0x7f || !steers(c))
		buf_add(out, text.p + start, end - start);
	else if (c < 0x10000)
		buf_printf(out, "\\u%04x", c);
	else
		buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
}

void print_json_text(struct str text)
{
	struct buf out;

	buf_init(&out, NULL, SIZE_MAX);
	for (size_t at = 0; at < text.n;) {
		size_t start = at;
		uint32_t c = utf8_next(text, &at);

		add_json_char(&out, text, start, at, c);
	}
	buf_add_char(&out, '\n');
	(void)fwrite(out.p, 1, out.n, stdout);
	buf_finish(&out);
}

void print_json(const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (text == NULL)
		return;
	print_json_text(str_of(text));
	free(text);
}

const char *term_bytes(struct arena *arena, int64_t bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes < 1000)
		return arena_printf(arena, "%lld byte%s", (long long)bytes, plural(bytes));
	value /= 1000;
	while (value >= 999.5 && unit < 4) {
		value /= 1000;
		unit++;
	}
	return arena_printf(arena, value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

const char *term_duration(struct arena *arena, int64_t ms)
{
	long long s = ms / 1000;

	if (s < 60)
		return arena_printf(arena, "%lld s", s);
	if (s < 3600)
		return arena_printf(arena, "%lld min %lld s", s / 60, s % 60);
	if (s < 86400)
		return arena_printf(arena, "%lld h %lld min", s / 3600, s / 60 % 60);
	return arena_printf(arena, "%lld d %lld h", s / 86400, s / 3600 % 24);
}
