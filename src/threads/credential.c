/* The credentials of live sessions: looked up by digest, so that time tells nothing of the token. */
#include "threads/credential.h"

#include "base/id.h"

#include <pthread.h>
#include <stdlib.h>

#define PREFIX "dais_agent_"

struct grant {
	unsigned char digest[32];
	struct thread_scope scope;
};

struct credentials {
	pthread_mutex_t lock;
	struct grant *grants;
	size_t count, room;
};

struct credentials *credentials_create(void)
{
	struct credentials *credentials = calloc(1, sizeof(*credentials));

	if (credentials == NULL)
		abort();
	pthread_mutex_init(&credentials->lock, NULL);
	return credentials;
}

void credentials_destroy(struct credentials *credentials)
{
	if (credentials == NULL)
		return;
	pthread_mutex_destroy(&credentials->lock);
	free(credentials->grants);
	free(credentials);
}

struct str credential_make(struct arena *arena)
{
	return str_join(arena, STR(PREFIX), random_token(arena, 32));
}

static void remove_session(struct credentials *credentials, int64_t session_n)
{
	for (size_t i = 0; i < credentials->count;) {
		if (credentials->grants[i].scope.session_n == session_n)
			credentials->grants[i] = credentials->grants[--credentials->count];
		else
			i++;
	}
}

void credential_grant(struct credentials *credentials, struct str token, const struct thread_scope *scope)
{
	struct grant *grant;

	pthread_mutex_lock(&credentials->lock);
	remove_session(credentials, scope->session_n);
	if (credentials->count == credentials->room) {
		size_t room = credentials->room * 2 + 16;
		struct grant *more = realloc(credentials->grants, room * sizeof(*more));

		if (more == NULL)
			abort();
		credentials->grants = more;
		credentials->room = room;
	}
	grant = &credentials->grants[credentials->count++];
	sha256(token.p, token.n, grant->digest);
	grant->scope = *scope;
	pthread_mutex_unlock(&credentials->lock);
}

void credential_revoke(struct credentials *credentials, int64_t session_n)
{
	pthread_mutex_lock(&credentials->lock);
	remove_session(credentials, session_n);
	pthread_mutex_unlock(&credentials->lock);
}

bool credential_find(struct credentials *credentials, struct str token, struct thread_scope *out)
{
	unsigned char digest[32];
	bool is_found = false;

	if (!str_starts(token, STR(PREFIX)))
		return false;
	sha256(token.p, token.n, digest);
	pthread_mutex_lock(&credentials->lock);
	for (size_t i = 0; i < credentials->count; i++)
		if (bytes_equal(credentials->grants[i].digest, digest, sizeof(digest))) {
			*out = credentials->grants[i].scope;
			is_found = true;
		}
	pthread_mutex_unlock(&credentials->lock);
	return is_found;
}
