/* providers/codex/codex.h - the driver of kind `codex`: the program `codex app-server`. */
#ifndef DAIS_PROVIDERS_CODEX_CODEX_H
#define DAIS_PROVIDERS_CODEX_CODEX_H

#include "providers/provider.h"

extern const struct driver codex_driver;

#endif
