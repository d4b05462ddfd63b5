/* orchestrator_capabilities: what a caller could delegate to. */
#include "threads/commands.h"

#include "base/limits.h"

#define MAX_CONSTRAINTS 4

static void write_instance(const struct asker *asker, const struct provider_instance *instance, struct arena *arena,
	struct json_writer *w)
{
	struct str constraints[MAX_CONSTRAINTS];
	size_t count = instance_constraints(asker->threads, instance, arena, constraints, MAX_CONSTRAINTS);

	jw_object_begin(w);
	jw_kstr(w, "providerInstanceId", instance->id);
	jw_ktext(w, "driverKind", instance->driver->kind);
	if (instance->display_name.p == NULL) {
		jw_key(w, "displayName");
		jw_null(w);
	} else {
		jw_kstr(w, "displayName", instance->display_name);
	}
	jw_karray(w, "models");
	for (size_t i = 0; i < instance->model_count; i++) {
		jw_object_begin(w);
		jw_kstr(w, "id", instance->models[i]);
		jw_key(w, "label");
		jw_null(w);
		jw_object_end(w);
	}
	jw_array_end(w);
	jw_kbool(w, "canRunChildTask", count == 0);
	jw_kbool(w, "canRunCrossProviderChildTask", count == 0);
	jw_karray(w, "constraints");
	for (size_t i = 0; i < count; i++)
		jw_str(w, constraints[i]);
	jw_array_end(w);
	jw_object_end(w);
}

static void write_features(struct json_writer *w)
{
	jw_kobject(w, "features");
	jw_kbool(w, "appOwnedSubagents", true);
	jw_kbool(w, "asyncPolling", true);
	jw_kbool(w, "cancellation", true);
	jw_kbool(w, "batchThreadCreation", true);
	jw_kbool(w, "threadManagement", true);
	jw_kbool(w, "incrementalThreadRead", true);
	jw_kint(w, "maxBatchThreads", LIMIT_BATCH_THREADS);
	jw_object_end(w);
}

int command_capabilities(struct tx *tx, struct asked *asked, struct json_writer *w, struct failure *f)
{
	const struct provider_instance *all;
	struct asking asking;
	size_t count;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0)
		return -1;
	jw_kstr(w, "parentThreadId", asking.thread.id);
	jw_kstr(w, "inheritedProviderInstanceId", asking.thread.instance_id);
	if (asking.thread.model.p == NULL) {
		jw_key(w, "inheritedModel");
		jw_null(w);
	} else {
		jw_kstr(w, "inheritedModel", asking.thread.model);
	}
	jw_ktext(w, "runtimeMode", runtime_mode_names[asking.thread.runtime_mode]);
	jw_ktext(w, "interactionMode", interaction_mode_names[asking.thread.interaction_mode]);
	jw_karray(w, "providers");
	all = threads_instances(asked->asker->threads, &count);
	for (size_t i = 0; i < count; i++)
		write_instance(asked->asker, &all[i], tx->snapshot.arena, w);
	jw_array_end(w);
	write_features(w);
	return 0;
}
