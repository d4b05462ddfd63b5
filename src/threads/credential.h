/* threads/credential.h - the credentials of live sessions. Only digests are kept here. */
#ifndef DAIS_THREADS_CREDENTIAL_H
#define DAIS_THREADS_CREDENTIAL_H

#include "threads/threads.h"

struct credentials;

struct credentials *credentials_create(void);
void credentials_destroy(struct credentials *credentials);
/* A new token, `dais_agent_` and 43 characters. */
struct str credential_make(struct arena *arena);
/* It stands for this scope from now on; what the session had before does not. */
void credential_grant(struct credentials *credentials, struct str token, const struct thread_scope *scope);
void credential_revoke(struct credentials *credentials, int64_t session_n);
bool credential_find(struct credentials *credentials, struct str token, struct thread_scope *out);

#endif
