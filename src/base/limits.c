#include "base/limits.h"

const struct limit limits[] = {
#define LIMIT(name, value, unit, why) {#name, (value), unit, why},
#include "base/limits.def"
#undef LIMIT
};

const size_t limit_count = sizeof(limits) / sizeof(limits[0]);
