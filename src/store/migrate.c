/* Schema versions: numbered, forward only, one transaction each; user_version holds the newest. */
#include "store/private.h"

#include "base/log.h"

int store_schema_version(void)
{
	return migrations[migration_count - 1].number;
}


static int current_version(struct db *db, int64_t *out, struct failure *f)
{
	struct stmt *stmt = db_prepare(db, "PRAGMA user_version", f);
	enum outcome outcome;

	if (stmt == NULL)
		return -1;
	outcome = stmt_step(stmt);
	if (outcome == DB_ROW)
		*out = stmt_int(stmt, 0);
	stmt_release(stmt);
	return outcome == DB_ROW ? 0 : db_fail(db, outcome, "read the schema version", f);
}

static int apply(struct db *db, const struct migration *migration, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *stamp = arena_printf(arena, "PRAGMA user_version = %d; PRAGMA application_id = %d",
		migration->number, APPLICATION_ID);
	enum outcome outcome = db_exec(db, "BEGIN IMMEDIATE");

	if (outcome == DB_OK)
		outcome = db_exec(db, migration->sql);
	if (outcome == DB_OK)
		outcome = db_exec(db, stamp);
	if (outcome == DB_OK)
		outcome = db_exec(db, "COMMIT");
	if (outcome == DB_OK) {
		log_line(LOG_INFO, "store", "schema migrated", {"migration", LOG_TEXT(migration->name)});
		return 0;
	}
	(void)db_fail(db, outcome, migration->name, f);
	(void)db_exec(db, "ROLLBACK");
	return -1;
}

int migrate(struct db *db, const char *path, bool is_new, struct failure *f)
{
	int64_t version;

	if (current_version(db, &version, f) != 0)
		return -1;
	if (version > store_schema_version()) {
		db_keep_log(db);
		return fail(f, FAIL_SCHEMA_NEWER, "%s has schema version %lld, this dais knows %d; it was left untouched.",
			path, (long long)version, store_schema_version());
	}
	if (version < store_schema_version() && !is_new && version > 0) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();

		if (store_backup(path, arena_printf(arena, "%s.v%lld", path, (long long)version), f) != 0)
			return -1;
	}
	for (size_t i = 0; i < migration_count; i++)
		if (migrations[i].number > version && apply(db, &migrations[i], f) != 0)
			return -1;
	return 0;
}
