/* base/clock.h - wall clock for what is stored, monotonic clock for what waits. */
#ifndef DAIS_BASE_CLOCK_H
#define DAIS_BASE_CLOCK_H

#include "base/str.h"

#include <stdint.h>

int64_t clock_wall_ms(void); /* UTC milliseconds since the epoch */
int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);

/* RFC 3339 with Z or an offset, with or without fraction; a date alone is refused. */
bool time_parse(struct str text, int64_t *out_ms);
#define TIME_TEXT_SIZE 32
/* 2026-03-02T08:15:30.120Z */
void time_format(int64_t ms, char out[TIME_TEXT_SIZE]);

#endif
