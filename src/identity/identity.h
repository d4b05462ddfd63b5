/* identity/identity.h - who is calling and what they may: principals, capabilities, tokens, scope.
 *
 * A caller is made once per request by its transport: the Unix socket gives `local`, a bearer token
 * api:<id>, a seat token of a run seat:<8 hex>. No field of a request names or changes it. */
#ifndef DAIS_IDENTITY_IDENTITY_H
#define DAIS_IDENTITY_IDENTITY_H

#include "base/failure.h"
#include "store/store.h"

enum capability {
	CAP_READ = 1 << 0,
	CAP_WRITE_ITEMS = 1 << 1,
	CAP_WRITE_NOTES = 1 << 2,
	CAP_ADVANCE = 1 << 3,
	CAP_MANAGE_DEPENDENCIES = 1 << 4,
	CAP_WRITE_CONFIG = 1 << 5,
	CAP_MANAGE_RUNS = 1 << 6,
	CAP_ADMIN = 1 << 7, /* implies all */
	CAP_ORCHESTRATION = 1 << 8,
	CAP_ALL = (1 << 9) - 1,
};
/* Words separated by blanks or commas, any case. -1 names the unknown one. */
int capabilities_parse(struct str text, unsigned *out, struct failure *f);
struct str capabilities_text(struct arena *arena, unsigned capabilities);
const char *capability_name(enum capability capability);

/* What an endpoint offers. Work items and threads are apart; the full profile has both. */
enum profile {
	PROFILE_WORK = 1,
	PROFILE_KNOWLEDGE = 2,
	PROFILE_DIRECTOR = 4,
	PROFILE_THREADS = 8,
	PROFILE_FULL = PROFILE_WORK | PROFILE_THREADS,
};
const char *profile_name(enum profile profile);
bool profile_parse(struct str text, enum profile *out);

/* The seat token of a run, when that is what the caller presented. */
struct seat_scope {
	int64_t run_n; /* 0: the caller holds no seat */
	int64_t seat_n;
	struct str seat;
	int64_t root_n;
	int64_t scope_n;	/* subtree that may be written; 0: the whole root */
	int64_t pinned_version; /* 0: rules are not pinned */
};

struct caller {
	struct actor actor;
	unsigned capabilities;
	enum profile profile;
	struct str surface; /* "mcp", "stdio", "rest" */
	bool is_local;	    /* the Unix socket: may name files of this machine */
	bool sees_actors;   /* attribution is shown */
	const int64_t *roots; /* readable projects (item.n of roots); NULL: every one */
	size_t root_count;
	struct seat_scope seat;
	int64_t thread_n;	/* the thread of an agent that dais started; 0: somebody else */
	struct str instance_id; /* its provider instance */
	struct str workspace;	/* where somebody else works: an absolute path, absent: not known */
	char req_id[REQ_ID_SIZE];
	int64_t expires_at; /* of the credential; 0: never */
};

bool caller_may(const struct caller *caller, unsigned capability);
/* FORBIDDEN naming what is missing. */
int caller_need(const struct caller *caller, unsigned capability, struct failure *f);
bool caller_reads_root(const struct caller *caller, int64_t root_n);
/* The principal `local` with all capabilities and a fresh request id. */
void caller_local(struct caller *caller, struct str surface);

/* ---- tokens: 256 random bits, SHA-256 at rest ---- */

struct token_info {
	struct str id; /* principal api:<id> */
	struct str description;
	unsigned capabilities;
	const struct str *root_ids;
	size_t root_count;
	int64_t created_at, expires_at, revoked_at; /* 0: never */
};

/* Makes a token `dais_<43 characters>`; its text is returned once and never stored. DUPLICATE when the id
 * exists. An id is 1 to 64 of [a-z0-9._-]; absent: one is made up. */
int token_create(struct tx *tx, const struct token_info *wanted, struct str *out_id, struct str *out_token,
	struct failure *f);
int token_revoke(struct tx *tx, struct str id, struct failure *f); /* NOT_FOUND */
int token_list(struct snapshot *s, struct token_info **out, size_t *out_count, struct failure *f);

/* The caller that this bearer credential stands for: an API token or a seat token. UNAUTHENTICATED says
 * nothing about why. The result lives in s->arena. */
int caller_from_token(struct snapshot *s, struct str token, struct str surface, struct caller *out,
	struct failure *f);

/* Is the credential behind this principal still good? 1 yes, 0 no (revoked, expired, its run closed), -1. */
int principal_is_live(struct snapshot *s, struct str principal, struct failure *f);
/* Inside the call: a caller over a kept connection was read long ago, and a seat ends with its run.
 * UNAUTHENTICATED. API tokens never come over kept connections. */
int caller_still(struct snapshot *s, const struct caller *caller, struct failure *f);

/* One-time sign-in of the status page: a code good once for 10 minutes, which buys a session of 12 hours. */
int sign_in_create(struct tx *tx, struct str *out_code, struct failure *f);
int sign_in_redeem(struct tx *tx, struct str code, struct str *out_session, struct failure *f);
int caller_from_session(struct snapshot *s, struct str session, struct caller *out, struct failure *f);

#endif
