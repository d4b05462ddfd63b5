/* Which provider and model, and how far it may go. */
#include "threads/command.h"

#include "base/limits.h"

#include <stdlib.h>
#include <unistd.h>

#define MAX_CONSTRAINTS 4

/* ---- what an instance can do now ---- */

static bool on_path(const char *program, const char *path)
{
	while (path != NULL && *path != '\0') {
		size_t n = strcspn(path, ":");
		char file[4096];

		if (snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, program) < (int)sizeof(file) && access(file, X_OK) == 0)
			return true;
		path += path[n] == ':' ? n + 1 : n;
	}
	return false;
}

static bool is_installed(const struct provider_instance *instance)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const char *program = instance->command_count > 0 ? str_z(arena, instance->command[0]) : instance->driver->program;

	if (program == NULL)
		return true;
	return strchr(program, '/') != NULL ? access(program, X_OK) == 0 : on_path(program, getenv("PATH"));
}

size_t instance_constraints(const struct threads *threads, const struct provider_instance *instance, struct arena *arena,
	struct str *out, size_t room)
{
	size_t count = 0;

	(void)threads;
	if (instance->driver->constraint != NULL && count < room)
		out[count++] = str_of(instance->driver->constraint);
	else if (!is_installed(instance) && count < room)
		out[count++] = str_printf(arena, "Its program %s is not installed.",
			instance->command_count > 0 ? str_z(arena, instance->command[0]) : instance->driver->program);
	return count;
}

static bool can_run(const struct threads *threads, const struct provider_instance *instance, struct arena *arena)
{
	struct str constraints[MAX_CONSTRAINTS];

	return instance_constraints(threads, instance, arena, constraints, MAX_CONSTRAINTS) == 0;
}

/* ---- choosing ---- */

static const struct provider_instance *first_of(const struct asking *asking, struct str driver, struct arena *arena)
{
	const struct threads *threads = asking->asker->threads;
	const struct provider_instance *own = threads_instance(threads, asking->thread.instance_id);
	const struct provider_instance *all;
	size_t count;

	if (own != NULL && (driver.p == NULL || str_eq(driver, str_of(own->driver->kind))) && can_run(threads, own, arena))
		return own;
	all = threads_instances(threads, &count);
	for (size_t i = 0; i < count; i++)
		if ((driver.p == NULL || str_eq(driver, str_of(all[i].driver->kind))) && can_run(threads, &all[i], arena))
			return &all[i];
	return NULL;
}

static int choose_instance(struct tx *tx, const struct asking *asking, const struct target *target,
	const struct provider_instance **out, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	const struct threads *threads = asking->asker->threads;

	if (target->instance_id.p != NULL) {
		*out = threads_instance(threads, target->instance_id);
		if (*out == NULL)
			return fail(f, FAIL_PROVIDER_UNAVAILABLE, "There is no provider instance %.*s.", STRF(target->instance_id));
		if (target->driver.p != NULL && !str_eq(target->driver, str_of((*out)->driver->kind)))
			return fail_field(f, STR("target.driverKind"), target->driver, "is not the driver of %.*s, which is %s",
				STRF(target->instance_id), (*out)->driver->kind);
		return 0;
	}
	if (target->driver.p != NULL) {
		*out = first_of(asking, target->driver, arena);
		return *out != NULL ? 0
				    : fail(f, FAIL_PROVIDER_UNAVAILABLE, "No provider instance of driver %.*s can run anything now.",
					      STRF(target->driver));
	}
	/* Who is no agent of ours has no instance to hand on. */
	*out = asking->thread.kind == THREAD_EXTERNAL ? first_of(asking, STR_NONE, arena)
						      : threads_instance(threads, asking->thread.instance_id);
	return *out != NULL ? 0 : fail(f, FAIL_PROVIDER_UNAVAILABLE, "No provider instance is configured that could run it.");
}

static bool offers(const struct provider_instance *instance, struct str model)
{
	for (size_t i = 0; i < instance->model_count; i++)
		if (str_eq(instance->models[i], model))
			return true;
	return instance->model_count == 0;
}

static int choose_model(const struct asking *asking, const struct target *target, struct chosen *out, struct failure *f)
{
	if (target->model.p != NULL) {
		if (!offers(out->instance, target->model))
			return fail(f, FAIL_MODEL_UNAVAILABLE, "%.*s does not offer the model %.*s.", STRF(out->instance->id),
				STRF(target->model));
		out->model = target->model;
	} else if (str_eq(out->instance->id, asking->thread.instance_id)) {
		out->model = asking->thread.model;
	} else if (out->instance->model_count > 0) {
		out->model = out->instance->models[0];
	}
	return 0;
}

int target_choose(struct tx *tx, const struct asking *asking, const struct target *target, struct chosen *out,
	struct failure *f)
{
	struct str constraints[MAX_CONSTRAINTS];
	struct buf why;
	size_t count;

	*out = (struct chosen){0};
	if (choose_instance(tx, asking, target, &out->instance, f) != 0)
		return -1;
	count = instance_constraints(asking->asker->threads, out->instance, tx->snapshot.arena, constraints, MAX_CONSTRAINTS);
	if (count == 0)
		return choose_model(asking, target, out, f);
	buf_init(&why, tx->snapshot.arena, SIZE_MAX);
	for (size_t i = 0; i < count; i++)
		buf_printf(&why, " %.*s", STRF(constraints[i]));
	return fail(f, FAIL_PROVIDER_UNAVAILABLE, "%.*s cannot run anything now.%.*s", STRF(out->instance->id), STRF(buf_str(&why)));
}

/* ---- modes ---- */


static int refuse_runtime(const struct asking *asking, int64_t wanted, struct failure *f)
{
	return fail(f, FAIL_RUNTIME_MODE_ESCALATION_DENIED, "%s is wider than the caller's %s.", runtime_mode_names[wanted],
		runtime_mode_names[asking->thread.runtime_mode]);
}

static int refuse_interaction(const struct asking *asking, int64_t wanted, struct failure *f)
{
	return fail(f, FAIL_INTERACTION_MODE_ESCALATION_DENIED, "%s is wider than the caller's %s.", interaction_mode_names[wanted],
		interaction_mode_names[asking->thread.interaction_mode]);
}

int modes_choose(const struct asking *asking, int64_t runtime, int64_t interaction, enum runtime_mode *out_runtime,
	enum interaction_mode *out_interaction, struct failure *f)
{
	if (runtime > asking->thread.runtime_mode)
		return refuse_runtime(asking, runtime, f);
	if (interaction > asking->thread.interaction_mode)
		return refuse_interaction(asking, interaction, f);
	*out_runtime = (enum runtime_mode)(runtime < 0 ? asking->thread.runtime_mode : runtime);
	*out_interaction = (enum interaction_mode)(interaction < 0 ? asking->thread.interaction_mode : interaction);
	return 0;
}

int modes_cover(const struct asking *asking, const struct thread_row *other, struct failure *f)
{
	if (other->runtime_mode > asking->thread.runtime_mode)
		return refuse_runtime(asking, other->runtime_mode, f);
	if (other->interaction_mode > asking->thread.interaction_mode)
		return refuse_interaction(asking, other->interaction_mode, f);
	return 0;
}
