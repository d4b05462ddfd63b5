/* providers/failure_code.h - the closed list of what can go wrong with a turn, for drivers. */
#ifndef DAIS_PROVIDERS_FAILURE_CODE_H
#define DAIS_PROVIDERS_FAILURE_CODE_H

#include "providers/provider.h"

enum provider_failure_code {
#define FAILURE_CODE(name, class, retryable) CODE_##name,
#include "providers/failure_code.def"
#undef FAILURE_CODE
};

struct failure_code_info {
	const char *name;
	enum failure_class class;
	enum agent_yes is_retryable;
};

/* A failure of this code, with its class and whether trying again can help. */
struct agent_failure agent_failure_of(enum provider_failure_code code, struct str message);

#endif
