/* advance: move items through their phases, and hold them while working. */
#include "tools/advance_fields.h"

static int transition(struct tx *tx, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return advance_transition(tx, call, args, out, f);
}

static int claim(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return advance_claim(tx, call, args, out, f);
}

static int release(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return advance_release(tx, call, args, out, f);
}

static int heartbeat(struct tx *tx, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return advance_heartbeat(tx, call, args, out, f);
}

static const struct operation ops[] = {
	{
		.name = "transition",
		.summary = "Move an item by a trigger: start, complete, block, hold, resume, cancel, reopen.",
		.fields = transition_fields,
		.args_size = sizeof(struct transition_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_ADVANCE,
		.change = transition,
		.returns = "{itemId,previousRole,newRole,statusLabel?,version,cascadeEvents?,unblockedItems?,"
			   "expectedNotes?,guidanceKey?,skillPointer?,dispatch?,missingBySeat?,violations?,"
			   "noteProgress?,consumedCredentials?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_VERSION_CONFLICT,
			FAIL_SCHEMA_PINNED_CONFLICT, FAIL_NOT_CLAIM_HOLDER, FAIL_INVALID_TRANSITION,
			FAIL_DEPENDENCY_UNMET, FAIL_GATE_BLOCKED, FAIL_RESOURCE_UNAVAILABLE, FAIL_SEAT_FORBIDDEN,
			FAIL_UNAVAILABLE),
		.example = "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"9a60c7d1\",\"trigger\":\"start\"}]}",
		.frees_space = true,
		.fails_clean = true,
	},
	{
		.name = "claim",
		.summary = "Hold one item for a time: by id, or the next one that matches.",
		.fields = claim_fields,
		.args_size = sizeof(struct claim_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_ADVANCE,
		.change = claim,
		.replayed = advance_claim_replayed,
		.returns = "{claimed,itemId,claimedAt,expiresAt,ttlSeconds,claimGen,claimRef?,refreshed?,"
			   "heartbeatEverySeconds,superseded?,item} or {claimed:false,reason,excluded?,retryAfterMs?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_INVALID_TRANSITION, FAIL_CLAIM_HELD),
		.example = "{\"ops\":[{\"op\":\"claim\",\"selector\":{\"ancestorId\":\"c41f9e02\"},\"ttlSeconds\":1200}]}",
	},
	{
		.name = "release",
		.summary = "Give a held item back; its role stays.",
		.fields = release_fields,
		.args_size = sizeof(struct release_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_ADVANCE,
		.change = release,
		.returns = "{itemId,released,reason?,claimRef?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_NOT_CLAIM_HOLDER),
		.example = "{\"ops\":[{\"op\":\"release\",\"itemId\":\"0e93ab57\"}]}",
		.frees_space = true,
	},
	{
		.name = "heartbeat",
		.summary = "Keep holding an item; any write on it by its holder does the same.",
		.fields = heartbeat_fields,
		.args_size = sizeof(struct heartbeat_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_ADVANCE,
		.change = heartbeat,
		.returns = "{itemId,expiresAt,heartbeatEverySeconds}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_NOT_CLAIM_HOLDER),
		.example = "{\"ops\":[{\"op\":\"heartbeat\",\"itemId\":\"0e93ab57\",\"ttlSeconds\":1200}]}",
	},
};

const struct tool tool_advance = {
	.name = "advance",
	.title = "Advance work",
	.description = "Move items through their phases behind gates; claim, hold and release them.",
	.ops = ops,
	.op_count = sizeof(ops) / sizeof(ops[0]),
};
