/* The cache of parsed documents: one entry per project, looked up by its stored fingerprint. */
#include "rules/cache.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 256

struct entry {
	struct entry *next;
	int64_t root_n;
	char fingerprint[65];	/* of `doc` */
	struct rules_doc *doc;	/* the last good parse */
	char refused[65];	/* a stored text that this program's grammar refuses */
};

struct rules {
	pthread_mutex_t lock; /* guards the buckets and their entries */
	struct entry *buckets[BUCKETS];
};

struct rules *rules_create(void)
{
	struct rules *rules = calloc(1, sizeof(*rules));

	if (rules == NULL)
		abort();
	(void)pthread_mutex_init(&rules->lock, NULL);
	return rules;
}

void rules_destroy(struct rules *rules)
{
	if (rules == NULL)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (rules->buckets[i] != NULL) {
			struct entry *entry = rules->buckets[i];

			rules->buckets[i] = entry->next;
			rules_doc_unref(entry->doc);
			free(entry);
		}
	}
	(void)pthread_mutex_destroy(&rules->lock);
	free(rules);
}

/* With the lock held. */
static struct entry *entry_of(struct rules *rules, int64_t root_n)
{
	struct entry **at = &rules->buckets[(uint64_t)root_n % BUCKETS];

	for (; *at != NULL; at = &(*at)->next)
		if ((*at)->root_n == root_n)
			return *at;
	*at = calloc(1, sizeof(**at));
	if (*at == NULL)
		abort();
	(*at)->root_n = root_n;
	return *at;
}

SQL(SQL_CONFIG_HEAD, "SELECT fingerprint, version FROM config WHERE root_n = $1");
SQL(SQL_CONFIG_TEXT, "SELECT yaml FROM config WHERE root_n = $1");
SQL(SQL_CONFIG_VERSION, "SELECT yaml, fingerprint FROM config_version WHERE root_n = $1 AND version = $2");

struct layer {
	struct rules_doc *doc; /* a reference, or NULL */
	struct str fingerprint;
	int64_t version;
	bool is_degraded;
};

static void keep(char to[65], struct str fingerprint)
{
	size_t n = fingerprint.n > 64 ? 64 : fingerprint.n;

	memcpy(to, fingerprint.p, n);
	to[n] = '\0';
}

/* The parse of the current text; a text that is refused degrades to the last good one, or to none. */
static int parse_current(struct rules *rules, struct snapshot *s, int64_t root_n, struct layer *layer,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct failure refused;
	struct rules_doc *doc = NULL;
	struct entry *entry;
	int rc;

	if (query(s, &q, f, SQL_CONFIG_TEXT, "i", root_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc < 0)
		return -1;
	failure_init(&refused, s->arena);
	if (rc == 1)
		rc = rules_parse(col_str(&q, 0), STR_NONE, root_n == 0, NULL, &doc, &refused);
	(void)pthread_mutex_lock(&rules->lock);
	entry = entry_of(rules, root_n);
	if (doc != NULL) {
		rules_doc_unref(entry->doc);
		entry->doc = doc;
		keep(entry->fingerprint, layer->fingerprint);
	} else {
		keep(entry->refused, layer->fingerprint);
		layer->is_degraded = true;
		log_line(LOG_WARN, "rules", "a stored configuration is refused; an earlier one is served",
			{"project", LOG_INT(root_n)});
	}
	layer->doc = entry->doc == NULL ? NULL : rules_doc_ref(entry->doc);
	(void)pthread_mutex_unlock(&rules->lock);
	(void)rc;
	return 0;
}

static int load_layer(struct rules *rules, struct snapshot *s, int64_t root_n, struct layer *layer,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct entry *entry;
	bool is_known;
	int rc = query(s, &q, f, SQL_CONFIG_HEAD, "i", root_n);

	*layer = (struct layer){.doc = NULL};
	if (rc == 0)
		rc = query_next(&q, f);
	if (rc == 0)
		return 0;
	(void)pthread_mutex_lock(&rules->lock);
	entry = entry_of(rules, root_n);
	if (rc == 1) {
		layer->fingerprint = col_str(&q, 0);
		layer->version = col_int(&q, 1);
		layer->is_degraded = str_eq(layer->fingerprint, str_of(entry->refused));
		is_known = layer->is_degraded || str_eq(layer->fingerprint, str_of(entry->fingerprint));
	} else {
		/* A read error is not absence: an earlier parse, or nothing at all. */
		layer->is_degraded = true;
		is_known = entry->doc != NULL;
	}
	if (is_known && entry->doc != NULL)
		layer->doc = rules_doc_ref(entry->doc);
	(void)pthread_mutex_unlock(&rules->lock);
	if (is_known)
		return 0;
	if (rc == 1)
		return parse_current(rules, s, root_n, layer, f);
	(void)fail(f, FAIL_UNAVAILABLE, "The rules of the project cannot be read.");
	f->retry_after_ms = 1000;
	return -1;
}

static int load_pinned(struct snapshot *s, int64_t root_n, int64_t version, struct layer *layer,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*layer = (struct layer){.version = version};
	if (query(s, &q, f, SQL_CONFIG_VERSION, "ii", root_n, version) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return fail(f, FAIL_NOT_FOUND, "Version %lld of the rules is not kept any more.",
			(long long)version);
	layer->fingerprint = col_str(&q, 1);
	return rules_parse(col_str(&q, 0), STR_NONE, root_n == 0, NULL, &layer->doc, f);
}

static void view_release(struct rules_view *view)
{
	/* The view borrowed two references; it shows the documents as constants to everybody else. */
	rules_doc_unref((struct rules_doc *)(uintptr_t)view->project);
	rules_doc_unref((struct rules_doc *)(uintptr_t)view->global);
	*view = (struct rules_view){.project = NULL};
}

void rules_views_finish(struct rules_views *views)
{
	for (size_t i = 0; i < views->count; i++)
		view_release(&views->held[i].view);
	views->count = 0;
}

static struct rules_held *slot_of(struct rules_views *views)
{
	struct rules_held *held;

	if (views->count < RULES_VIEWS)
		return &views->held[views->count++];
	held = &views->held[views->next++ % RULES_VIEWS];
	view_release(&held->view);
	return held;
}

int rules_view(struct rules *rules, struct snapshot *s, struct rules_views *views, int64_t root_n,
	int64_t pinned, const struct rules_view **out, struct failure *f)
{
	struct layer project = {.doc = NULL};
	struct layer global;
	struct rules_held *held;

	for (size_t i = 0; i < views->count; i++) {
		if (views->held[i].root_n == root_n && views->held[i].pinned == pinned) {
			*out = &views->held[i].view;
			return 0;
		}
	}
	if (root_n != 0 && load_layer(rules, s, root_n, &project, f) != 0)
		return -1;
	if (load_layer(rules, s, 0, &global, f) != 0) {
		rules_doc_unref(project.doc);
		return -1;
	}
	if (pinned > 0) {
		struct layer *layer = project.version != 0 ? &project : &global;
		struct layer old;

		if (pinned != layer->version) {
			if (load_pinned(s, layer == &project ? root_n : 0, pinned, &old, f) != 0) {
				rules_doc_unref(project.doc);
				rules_doc_unref(global.doc);
				return -1;
			}
			rules_doc_unref(layer->doc);
			*layer = old;
		}
	}
	held = slot_of(views);
	held->root_n = root_n;
	held->pinned = pinned;
	held->view = (struct rules_view){
		.project = project.doc,
		.global = global.doc,
		.version = project.version != 0 ? project.version : global.version,
		.fingerprint = project.version != 0 ? project.fingerprint : global.fingerprint,
		.is_degraded = project.is_degraded || global.is_degraded,
	};
	*out = &held->view;
	return 0;
}
