#include "mcp/interest.h"

#include "base/limits.h"
#include "mcp/mcp.h"

#include <stdlib.h>

void interest_finish(struct interest *in)
{
	for (size_t i = 0; i < in->uri_count; i++)
		free(in->uris[i].uri);
	if (in->total != NULL)
		(void)atomic_fetch_sub(in->total, in->uri_count);
	free(in->uris);
	*in = (struct interest){0};
}

struct interest_uri *interest_find(struct interest *in, struct str uri)
{
	for (size_t i = 0; i < in->uri_count; i++)
		if (mcp_uri_eq((struct str){in->uris[i].uri, in->uris[i].n}, uri))
			return &in->uris[i];
	return NULL;
}

bool interest_add(struct interest *in, struct str uri)
{
	struct interest_uri *slot;

	if (interest_find(in, uri) != NULL)
		return true;
	if (in->uri_count == LIMIT_MCP_LISTEN_URIS)
		return false;
	if (in->uri_count == in->uri_cap) {
		in->uri_cap = in->uri_cap == 0 ? 4 : in->uri_cap * 2;
		in->uris = realloc(in->uris, in->uri_cap * sizeof(*in->uris));
		if (in->uris == NULL)
			abort();
	}
	slot = &in->uris[in->uri_count++];
	*slot = (struct interest_uri){.uri = malloc(uri.n + 1), .n = uri.n};
	if (slot->uri == NULL)
		abort();
	memcpy(slot->uri, uri.p, uri.n);
	slot->uri[uri.n] = '\0';
	if (in->total != NULL)
		(void)atomic_fetch_add(in->total, 1);
	return true;
}

bool interest_remove(struct interest *in, struct str uri)
{
	struct interest_uri *slot = interest_find(in, uri);

	if (slot == NULL)
		return false;
	free(slot->uri);
	*slot = in->uris[--in->uri_count];
	if (in->total != NULL)
		(void)atomic_fetch_sub(in->total, 1);
	return true;
}

bool notice_now(struct notice_clock *clock, int64_t gap_ms, int64_t now)
{
	if (clock->sent_once && now < clock->sent_at + gap_ms) {
		clock->waiting = true;
		return false;
	}
	*clock = (struct notice_clock){.sent_once = true, .sent_at = now};
	return true;
}

int64_t interest_due(const struct interest *in)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < INTEREST_LISTS; i++) {
		const struct notice_clock *clock = &in->list_clock[i];

		if (clock->waiting && clock->sent_at + LIMIT_MCP_LIST_CHANGED_MS < due)
			due = clock->sent_at + LIMIT_MCP_LIST_CHANGED_MS;
	}
	for (size_t i = 0; i < in->uri_count; i++) {
		const struct notice_clock *clock = &in->uris[i].clock;

		if (clock->waiting && clock->sent_at + LIMIT_MCP_UPDATE_MS < due)
			due = clock->sent_at + LIMIT_MCP_UPDATE_MS;
	}
	return due;
}

int interest_take_list(struct interest *in, int64_t now)
{
	for (int i = 0; i < INTEREST_LISTS; i++)
		if (in->list_clock[i].waiting &&
			notice_now(&in->list_clock[i], LIMIT_MCP_LIST_CHANGED_MS, now))
			return i;
	return -1;
}

struct interest_uri *interest_take_uri(struct interest *in, int64_t now)
{
	for (size_t i = 0; i < in->uri_count; i++)
		if (in->uris[i].clock.waiting &&
			notice_now(&in->uris[i].clock, LIMIT_MCP_UPDATE_MS, now))
			return &in->uris[i];
	return NULL;
}
