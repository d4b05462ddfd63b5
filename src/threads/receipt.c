/* Receipts: a command that was accepted once is not done again. */
#include "threads/command.h"

#include "base/id.h"

SQL(SQL_RECEIPT, "SELECT thread_n, fingerprint, result FROM command_receipt WHERE id = $1");
SQL(SQL_RECEIPT_ADD,
	"INSERT INTO command_receipt (id, thread_n, fingerprint, accepted_at, result) VALUES ($1, $2, $3, $4, $5)");

void command_name(struct command *command, struct arena *arena, const struct asking *asking, const char *operation,
	struct str key, struct str args)
{
	if (key.p == NULL)
		key = random_token(arena, 16);
	*command = (struct command){
		.id = IDENT(arena, "command:mcp", asking->thread.namespace, str_of(operation), key),
		.thread_n = asking->thread.n,
		.fingerprint = sha256_hex(arena, args),
	};
}

void command_narrow(struct command *command, struct arena *arena, struct str thread_id, const char *action)
{
	command->id = str_printf(arena, "%.*s:%.*s", STRF(command->id), STRF(IDENT(arena, action, thread_id)));
}

int command_seen(struct tx *tx, struct command *command, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&tx->snapshot, &q, f, SQL_RECEIPT, "s", command->id) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	if (col_int(&q, 0) != command->thread_n)
		return fail(f, FAIL_ORCHESTRATION_ERROR, "This command id was used for another thread.");
	if (!str_eq(col_view(&q, 1), command->fingerprint))
		return fail_field(f, STR("clientRequestId"), STR_NONE,
			"was used before with other arguments: use a new one for new work, or the same arguments to repeat");
	command->result = col_str(&q, 2);
	return 1;
}

int command_accept(struct tx *tx, const struct command *command, struct str result, struct failure *f)
{
	return tx_run(tx, f, SQL_RECEIPT_ADD, "sisis", command->id, command->thread_n, command->fingerprint, tx->snapshot.now,
		       result) < 0
		? -1
		: 0;
}
