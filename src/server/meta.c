/* Health, readiness, self-description, metrics. */
#include "server/private.h"

#include "base/clock.h"
#include "threads/view.h"
#include "threads/wait.h"


static void begin(struct http_exchange *x, struct buf *out, struct json_writer *w)
{
	buf_init(out, http_arena(x), SIZE_MAX);
	json_writer_init(w, out);
	jw_object_begin(w);
}

SQL(SQL_ALIVE, "SELECT 1");

void meta_health(struct server *server, struct http_exchange *x)
{
	struct snapshot s;
	struct failure f;
	struct buf out;
	struct json_writer w;
	int64_t one = 0;
	bool reachable;

	failure_init(&f, http_arena(x));
	reachable = snapshot_begin(server->store, http_arena(x), &s, &f) == 0;
	if (reachable) {
		reachable = query_int(&s, &one, &f, SQL_ALIVE, "") == 1;
		snapshot_end(&s);
	}
	begin(x, &out, &w);
	jw_ktext(&w, "status", reachable ? "ok" : "degraded");
	jw_kbool(&w, "dbReachable", reachable);
	jw_object_end(&w);
	reply_json(server, x, reachable ? 200 : 503, buf_str(&out), NULL);
}

void meta_ready(struct server *server, struct http_exchange *x)
{
	bool is_ready = atomic_load(&server->is_ready);
	struct buf out;
	struct json_writer w;

	begin(x, &out, &w);
	jw_ktext(&w, "status", is_ready ? "ready" : "stopping");
	jw_object_end(&w);
	reply_json(server, x, is_ready ? 200 : 503, buf_str(&out), NULL);
}

void meta_info(struct server *server, struct http_exchange *x, const struct caller *caller)
{
	static const char *const features[] = {"seats", "dispatchBySeat", "independent_of", "rules", "runs", "ops"};
	struct buf out;
	struct json_writer w;

	begin(x, &out, &w);
	jw_ktext(&w, "serverName", "dais");
	jw_ktext(&w, "version", DAIS_VERSION);
	jw_ktext(&w, "apiVersion", "v1");
	jw_karray(&w, "capabilities");
	for (unsigned bit = 1; bit < CAP_ALL; bit <<= 1)
		if (caller_may(caller, bit))
			jw_text(&w, capability_name((enum capability)bit));
	jw_array_end(&w);
	jw_kobject(&w, "principal");
	jw_kstr(&w, "id", caller->actor.id);
	jw_ktext(&w, "kind", principal_kind_name(caller->actor.kind));
	jw_object_end(&w);
	jw_kbool(&w, "claimModeAvailable", true);
	jw_kbool(&w, "actorAuthenticationEnabled", false);
	jw_karray(&w, "features");
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		jw_text(&w, features[i]);
	jw_array_end(&w);
	jw_ktext(&w, "profile", profile_name(caller->profile));
	jw_object_end(&w);
	reply_json(server, x, 200, buf_str(&out), caller->req_id);
}

static void metric(struct buf *out, const char *name, const char *type, const char *help, int64_t value)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %lld\n", name, help, name, type, name, (long long)value);
}

static void tool_metrics(struct server *server, struct buf *out)
{
	buf_add_str(out, STR("# HELP dais_tool_calls_total Tool calls by outcome.\n"
			     "# TYPE dais_tool_calls_total counter\n"));
	for (size_t i = 0; i < tool_count; i++) {
		buf_printf(out, "dais_tool_calls_total{tool=\"%s\",outcome=\"ok\"} %llu\n", tool_table[i]->name,
			(unsigned long long)atomic_load(&server->counts[i].ok));
		buf_printf(out, "dais_tool_calls_total{tool=\"%s\",outcome=\"error\"} %llu\n", tool_table[i]->name,
			(unsigned long long)atomic_load(&server->counts[i].failed));
	}
	buf_add_str(out, STR("# HELP dais_tool_call_seconds Time from request to answer.\n"
			     "# TYPE dais_tool_call_seconds histogram\n"));
	for (size_t i = 0; i < tool_count; i++) {
		const struct tool_counts *counts = &server->counts[i];
		const char *name = tool_table[i]->name;
		uint64_t sum = 0;
		double bound = 0.00025 / 4;

		for (size_t b = 0; b < LATENCY_BUCKETS; b++) {
			sum += atomic_load(&counts->bucket[b]);
			bound *= 4;
			buf_printf(out, "dais_tool_call_seconds_bucket{tool=\"%s\",le=\"%g\"} %llu\n", name, bound,
				(unsigned long long)sum);
		}
		sum += atomic_load(&counts->bucket[LATENCY_BUCKETS]);
		buf_printf(out, "dais_tool_call_seconds_bucket{tool=\"%s\",le=\"+Inf\"} %llu\n", name,
			(unsigned long long)sum);
		buf_printf(out, "dais_tool_call_seconds_sum{tool=\"%s\"} %.6f\n", name,
			(double)atomic_load(&counts->sum_us) / 1e6);
		buf_printf(out, "dais_tool_call_seconds_count{tool=\"%s\"} %llu\n", name, (unsigned long long)sum);
	}
}

static int thread_metrics(struct server *server, struct arena *arena, struct buf *out, struct failure *f)
{
	struct thread_counts counts;
	struct snapshot s;
	int rc;

	if (snapshot_begin(server->store, arena, &s, f) != 0)
		return -1;
	rc = view_counts(&s, &counts, f);
	snapshot_end(&s);
	if (rc != 0)
		return -1;
	buf_add_str(out, STR("# HELP dais_runs Runs of agents that have not ended.\n# TYPE dais_runs gauge\n"));
	for (int status = 0; status < RUN_COMPLETED; status++)
		buf_printf(out, "dais_runs{status=\"%s\"} %lld\n", run_status_name(status), (long long)counts.runs[status]);
	metric(out, "dais_agent_sessions", "gauge", "Agents that are alive.", counts.sessions);
	metric(out, "dais_requests_pending", "gauge", "Questions of agents that nobody has answered.", counts.requests);
	metric(out, "dais_tasks_open", "gauge", "Delegated tasks without a result.", counts.tasks);
	metric(out, "dais_orders_pending", "gauge", "Orders that no agent has taken yet.", counts.orders);
	metric(out, "dais_calls_waiting", "gauge", "Calls that wait for a thread or a task.", waiters_count());
	return 0;
}

void meta_metrics(struct server *server, struct http_exchange *x)
{
	struct http_field type = {"Content-Type", STR("text/plain; version=0.0.4; charset=utf-8")};
	struct store_facts facts;
	struct http_counts http;
	struct failure f;
	struct buf out;

	failure_init(&f, http_arena(x));
	if (store_facts(server->store, &facts, &f) != 0) {
		reply_failure(server, x, &f, NULL);
		return;
	}
	http_count(server->http, &http);
	buf_init(&out, http_arena(x), SIZE_MAX);
	tool_metrics(server, &out);
	if (thread_metrics(server, http_arena(x), &out, &f) != 0) {
		reply_failure(server, x, &f, NULL);
		return;
	}
	metric(&out, "dais_store_commits_total", "counter", "Commits of the writer.", facts.commits);
	metric(&out, "dais_store_calls_total", "counter", "Mutations committed.", facts.calls);
	metric(&out, "dais_store_queue_length", "gauge", "Mutations that wait for the writer.", facts.queue_depth);
	metric(&out, "dais_store_database_bytes", "gauge", "Size of the database file.", facts.database_bytes);
	metric(&out, "dais_store_wal_bytes", "gauge", "Size of the write-ahead log.", facts.wal_bytes);
	metric(&out, "dais_store_disk_free_bytes", "gauge", "Free space under the database.", facts.free_disk_bytes);
	metric(&out, "dais_store_full", "gauge", "1 while the disk is full.", facts.is_full);
	metric(&out, "dais_events_newest", "gauge", "Newest event number.", store_newest(server->store));
	metric(&out, "dais_http_requests_total", "counter", "HTTP requests.", (int64_t)http.requests);
	metric(&out, "dais_http_connections", "gauge", "Open HTTP connections.", (int64_t)http.connections_open);
	metric(&out, "dais_http_streams", "gauge", "Open event streams.", (int64_t)http.streams_open);
	metric(&out, "dais_http_refused_total", "counter", "HTTP requests refused by framing or limits.",
		(int64_t)http.refused);
	metric(&out, "dais_http_timed_out_total", "counter", "HTTP connections cut at a deadline.",
		(int64_t)http.timed_out);
	metric(&out, "dais_auth_failures_total", "counter", "Failed authentications.",
		(int64_t)atomic_load(&server->auth_failures));
	metric(&out, "dais_mcp_requests_in_flight", "gauge", "MCP requests not yet answered.",
		(int64_t)mcp_server_in_flight(server->mcp));
	metric(&out, "dais_uptime_seconds", "gauge", "Seconds since the start.",
		(clock_mono_ms() - server->started_at) / 1000);
	http_reply(x, 200, &type, 1, buf_str(&out));
}
