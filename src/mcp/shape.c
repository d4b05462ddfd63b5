/* What old revisions do not know is left out or told in words they have. */
#include "mcp/inside.h"

static struct str dump(struct mcp_request *req, const json_t *value, bool braces)
{
	struct str text = json_canonical(req->arena, value);

	return braces ? text : (struct str){text.p + 1, text.n - 2};
}

/* A link becomes the text of its address: the content kinds of these revisions are a closed list.
 */
static json_t *old_block(json_t *block, enum mcp_version version)
{
	struct str type = json_member_str(block, "type");
	const char *uri = json_string_value(json_object_get(block, "uri"));
	const char *name = json_string_value(json_object_get(block, "name"));

	if (str_eq(type, STR("resource_link")))
		return json_pack("{s:s,s:s+++}", "type", "text", "text", name == NULL ? "" : name,
			": ", uri == NULL ? "" : uri, "");
	if (str_eq(type, STR("audio")) && version < MCP_2025_03_26)
		return json_pack("{s:s,s:s}", "type", "text", "text", "[audio]");
	return json_incref(block);
}

struct str shape_tool_result(struct mcp_request *req, struct str members)
{
	struct str whole;
	struct str text;
	json_t *result;
	json_t *blocks;
	json_t *content;
	json_t *block;
	size_t i;

	if (req->version >= MCP_2025_06_18)
		return members;
	whole = str_printf(req->arena, "{%.*s}", STRF(members));
	result = json_loadb(whole.p, whole.n, JSON_ALLOW_NUL, NULL);
	if (result == NULL)
		return members;
	blocks = json_array();
	content = json_object_get(result, "content");
	json_array_foreach(content, i, block)(void)
		json_array_append_new(blocks, old_block(block, req->version));
	(void)json_object_set_new(result, "content", blocks);
	(void)json_object_del(result, "structuredContent");
	text = dump(req, result, false);
	json_decref(result);
	return text;
}

struct str shape_tool_list(struct mcp_request *req, struct str array)
{
	struct str text;
	json_t *tools;
	json_t *tool;
	size_t i;

	if (req->version >= MCP_2025_06_18)
		return array;
	tools = json_loadb(array.p, array.n, JSON_ALLOW_NUL, NULL);
	if (tools == NULL)
		return array;
	json_array_foreach(tools, i, tool)
	{
		(void)json_object_del(tool, "outputSchema");
		(void)json_object_del(tool, "execution");
		if (req->version < MCP_2025_03_26)
			(void)json_object_del(tool, "annotations");
	}
	text = dump(req, tools, true);
	json_decref(tools);
	return text;
}
