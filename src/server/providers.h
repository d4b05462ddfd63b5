/* server/providers.h - inside the server: the provider instances of this server. */
#ifndef DAIS_SERVER_PROVIDERS_H
#define DAIS_SERVER_PROVIDERS_H

#include "base/settings.h"
#include "providers/provider.h"

struct providers {
	const struct provider_instance *all;
	size_t count;
};

/* BAD_CONFIGURATION with file, line and column. The result lives in `arena`. */
int providers_load(const struct settings *settings, struct arena *arena, struct providers *out, struct failure *f);

#endif
