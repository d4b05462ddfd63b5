#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id, int64_t per_second)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts); /* cannot fail for these clocks */
	return ts.tv_sec * per_second + ts.tv_nsec / (1000000000 / per_second);
}

int64_t clock_wall_ms(void)
{
	return read_clock(CLOCK_REALTIME, 1000);
}

int64_t clock_mono_ms(void)
{
	return read_clock(CLOCK_MONOTONIC, 1000);
}

int64_t clock_mono_us(void)
{
	return read_clock(CLOCK_MONOTONIC, 1000000);
}

/* Exactly `n` digits at *at. */
static bool digits(struct str s, size_t *at, size_t n, int *out)
{
	int value = 0;

	if (s.n - *at < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = s.p[*at + i];

		if (c < '0' || c > '9')
			return false;
		value = value * 10 + (c - '0');
	}
	*at += n;
	*out = value;
	return true;
}

static bool literal(struct str s, size_t *at, char c)
{
	if (*at >= s.n || s.p[*at] != c)
		return false;
	(*at)++;
	return true;
}

static bool fraction(struct str s, size_t *at, int *ms)
{
	int scale = 100;
	size_t start;

	*ms = 0;
	if (!literal(s, at, '.'))
		return true;
	start = *at;
	while (*at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9') {
		*ms += (s.p[*at] - '0') * scale;
		scale /= 10;
		(*at)++;
	}
	return *at > start;
}

static bool offset(struct str s, size_t *at, int *minutes)
{
	int sign;
	int h;
	int m;

	*minutes = 0;
	if (literal(s, at, 'Z') || literal(s, at, 'z'))
		return true;
	if (*at >= s.n || (s.p[*at] != '+' && s.p[*at] != '-'))
		return false;
	sign = s.p[*at] == '-' ? -1 : 1;
	(*at)++;
	if (!digits(s, at, 2, &h) || !literal(s, at, ':') || !digits(s, at, 2, &m) || h > 23 || m > 59)
		return false;
	*minutes = sign * (h * 60 + m);
	return true;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

bool time_parse(struct str s, int64_t *out_ms)
{
	struct tm tm = {0};
	size_t at = 0;
	int year, month, day, hour, minute, second, ms, minutes;

	if (!digits(s, &at, 4, &year) || !literal(s, &at, '-') || !digits(s, &at, 2, &month) ||
		!literal(s, &at, '-') || !digits(s, &at, 2, &day))
		return false;
	if (!literal(s, &at, 'T') && !literal(s, &at, 't') && !literal(s, &at, ' '))
		return false;
	if (!digits(s, &at, 2, &hour) || !literal(s, &at, ':') || !digits(s, &at, 2, &minute) ||
		!literal(s, &at, ':') || !digits(s, &at, 2, &second) || !fraction(s, &at, &ms) ||
		!offset(s, &at, &minutes) || at != s.n)
		return false;
	if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
		minute > 59 || second > 60)
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	tm.tm_hour = hour;
	tm.tm_min = minute;
	tm.tm_sec = second;
	*out_ms = ((int64_t)timegm(&tm) - (int64_t)minutes * 60) * 1000 + ms;
	return true;
}

/* `width` digits, without printf: an item shows three times, a page of them hundreds. */
static char *put(char *p, int value, int width)
{
	for (int i = width - 1; i >= 0; i--, value /= 10)
		p[i] = (char)('0' + value % 10);
	return p + width;
}

void time_format(int64_t ms, char out[TIME_TEXT_SIZE])
{
	time_t seconds = (time_t)(ms / 1000);
	int rest = (int)(ms % 1000);
	struct tm tm = {.tm_year = 0};
	char *p = out;

	if (rest < 0) {
		rest += 1000;
		seconds--;
	}
	(void)gmtime_r(&seconds, &tm);
	p = put(p, (tm.tm_year + 1900) % 10000, 4);
	*p++ = '-';
	p = put(p, tm.tm_mon + 1, 2);
	*p++ = '-';
	p = put(p, tm.tm_mday, 2);
	*p++ = 'T';
	p = put(p, tm.tm_hour, 2);
	*p++ = ':';
	p = put(p, tm.tm_min, 2);
	*p++ = ':';
	p = put(p, tm.tm_sec, 2);
	*p++ = '.';
	p = put(p, rest, 3);
	*p++ = 'Z';
	*p = '\0';
}
