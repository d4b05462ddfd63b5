/* providers/exit.h - what the end of a program means, the same for every driver. */
#ifndef DAIS_PROVIDERS_EXIT_H
#define DAIS_PROVIDERS_EXIT_H

#include "providers/failure_code.h"

/* The code of the cause that the attempt host or the engine gave; process_exit: the program ended by itself. */
enum provider_failure_code exit_code_of(const struct agent_exit *exit);
/* The same with a sentence about it and the last line that the program wrote to stderr. */
struct agent_failure exit_failure(const struct agent_exit *exit, struct arena *arena);
/* That line, at most LIMIT_AGENT_LAST_WORDS_BYTES of it; empty: it wrote nothing. */
struct str exit_last_words(const struct agent_exit *exit);

#endif
