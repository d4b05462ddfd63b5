/* Resources, prompts and completions. */
#include "fixture.h"

static const char resources[] =
	"[{\"uri\":\"test://static-text\",\"name\":\"static-text\",\"mimeType\":\"text/plain\"},"
	"{\"uri\":\"test://static-binary\",\"name\":\"static-binary\",\"mimeType\":\"image/png\"},"
	"{\"uri\":\"test://watched-resource\",\"name\":\"watched-resource\",\"mimeType\":\"text/plain\"}]";

static const char templates[] =
	"[{\"uriTemplate\":\"test://template/{id}/data\",\"name\":\"template\",\"mimeType\":\"application/json\"}]";

static const char prompts[] =
	"[{\"name\":\"test_simple_prompt\",\"description\":\"A prompt without arguments.\"},"
	"{\"name\":\"test_prompt_with_arguments\",\"description\":\"A prompt with two arguments.\",\"arguments\":["
	"{\"name\":\"arg1\",\"description\":\"First test argument\",\"required\":true},"
	"{\"name\":\"arg2\",\"description\":\"Second test argument\",\"required\":true}]},"
	"{\"name\":\"test_prompt_with_embedded_resource\",\"description\":\"A prompt with a resource.\",\"arguments\":["
	"{\"name\":\"resourceUri\",\"description\":\"URI of the resource to embed\",\"required\":true}]},"
	"{\"name\":\"test_prompt_with_image\",\"description\":\"A prompt with an image.\"},"
	"{\"name\":\"test_input_required_result_prompt\",\"description\":\"A prompt that asks first.\"}]";

/* Pages of two: the second begins where `after` says. */
static void finish_paged(struct mcp_request *req, struct str after)
{
	if (after.p == NULL)
		mcp_finish_list(req, str_of(resources), STR_NONE);
	else
		mcp_finish_list(req, STR("[]"), STR_NONE);
}

void fixture_list(struct mcp_request *req, enum mcp_list what, struct str after)
{
	switch (what) {
	case MCP_TOOLS:
		mcp_finish_list(req, fixture_tool_list(mcp_request_arena(req)), STR_NONE);
		break;
	case MCP_RESOURCES:
		finish_paged(req, after);
		break;
	case MCP_RESOURCE_TEMPLATES:
		mcp_finish_list(req, str_of(templates), STR_NONE);
		break;
	case MCP_PROMPTS:
		mcp_finish_list(req, str_of(prompts), STR_NONE);
		break;
	}
}

static bool match_template(struct arena *arena, struct str uri, struct str *id)
{
	struct mcp_uri_match match;

	if (!mcp_uri_match(arena, STR("test://template/{id}/data"), uri, &match))
		return false;
	*id = match.value[0];
	return true;
}

bool fixture_resource_visible(void *app, const struct mcp_caller *caller, struct str uri)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str id;

	(void)app;
	(void)caller;
	return mcp_uri_eq(uri, STR("test://static-text")) ||
	       mcp_uri_eq(uri, STR("test://static-binary")) ||
	       mcp_uri_eq(uri, STR("test://watched-resource")) || match_template(arena, uri, &id);
}

/* [{"uri","mimeType",kind:text}] */
static void finish_one(struct mcp_request *req, struct str uri, const char *mime, const char *kind,
	struct str text)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	jw_object_begin(&w);
	jw_kstr(&w, "uri", uri);
	jw_ktext(&w, "mimeType", mime);
	jw_kstr(&w, kind, text);
	jw_object_end(&w);
	jw_array_end(&w);
	mcp_finish_contents(req, buf_str(&out), 60000);
}

static struct str template_text(struct arena *arena, struct str id)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr(&w, "id", id);
	jw_kbool(&w, "templateTest", true);
	jw_kstr(&w, "data", str_printf(arena, "Data for ID: %.*s", STRF(id)));
	jw_object_end(&w);
	return buf_str(&out);
}

static void read_for_a_name(struct mcp_request *req, struct str uri)
{
	if (given_name(req).p == NULL)
		mcp_finish_input_required(req, STR(ASK_NAME), STR_NONE);
	else
		finish_one(req, uri, "text/plain", "text", given_name(req));
}

void fixture_resource_read(struct mcp_request *req, struct str uri)
{
	struct arena *arena = mcp_request_arena(req);
	struct str id;

	if (mcp_uri_eq(uri, STR("test://static-text")))
		finish_one(req, uri, "text/plain", "text",
			STR("This is the content of the static text resource."));
	else if (mcp_uri_eq(uri, STR("test://static-binary")))
		finish_one(req, uri, "image/png", "blob", STR(PNG_BASE64));
	else if (mcp_uri_eq(uri, STR("test://watched-resource")))
		finish_one(req, uri, "text/plain", "text", STR("Watched resource content"));
	else if (mcp_uri_eq(uri, STR("test://for-a-name")))
		read_for_a_name(req, uri);
	else if (match_template(arena, uri, &id))
		finish_one(req, uri, "application/json", "text", template_text(arena, id));
	else
		mcp_finish_resource_missing(req, uri);
}

/* {"messages":[{"role":"user","content":…},…]} without the braces */
static void finish_messages(struct mcp_request *req, struct str first, struct str second)
{
	struct arena *arena = mcp_request_arena(req);
	struct str more =
		second.p == NULL
			? STR("")
			: str_printf(arena, ",{\"role\":\"user\",\"content\":%.*s}", STRF(second));

	mcp_finish_result(
		req, str_printf(arena, "\"messages\":[{\"role\":\"user\",\"content\":%.*s}%.*s]",
			     STRF(first), STRF(more)));
}

static struct str text_block(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out, STR("{\"type\":\"text\",\"text\":\""));
	json_escape(&out, text);
	buf_add_str(&out, STR("\"}"));
	return buf_str(&out);
}

static void prompt_with_arguments(struct mcp_request *req, const json_t *arguments)
{
	struct arena *arena = mcp_request_arena(req);
	struct str one = json_member_str(arguments, "arg1");
	struct str two = json_member_str(arguments, "arg2");

	if (one.p == NULL || two.p == NULL)
		mcp_finish_error(
			req, MCP_INVALID_PARAMS, STR("arg1 and arg2 are required."), STR_NONE);
	else
		finish_messages(req,
			text_block(arena,
				str_printf(arena, "Prompt with arguments: arg1='%.*s', arg2='%.*s'",
					STRF(one), STRF(two))),
			STR_NONE);
}

static void prompt_with_resource(struct mcp_request *req, const json_t *arguments)
{
	struct arena *arena = mcp_request_arena(req);
	struct str uri = json_member_str(arguments, "resourceUri");
	struct buf out;
	struct json_writer w;

	if (uri.p == NULL) {
		mcp_finish_error(
			req, MCP_INVALID_PARAMS, STR("resourceUri is required."), STR_NONE);
		return;
	}
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "type", "resource");
	jw_kobject(&w, "resource");
	jw_kstr(&w, "uri", uri);
	jw_ktext(&w, "mimeType", "text/plain");
	jw_ktext(&w, "text", "Embedded resource content for testing.");
	jw_object_end(&w);
	jw_object_end(&w);
	finish_messages(req, buf_str(&out),
		text_block(arena, STR("Please process the embedded resource above.")));
}

void fixture_prompt_get(struct mcp_request *req, struct str name, const json_t *arguments)
{
	struct arena *arena = mcp_request_arena(req);

	if (str_eq(name, STR("test_simple_prompt")))
		finish_messages(req, text_block(arena, STR("This is a simple prompt for testing.")),
			STR_NONE);
	else if (str_eq(name, STR("test_prompt_with_arguments")))
		prompt_with_arguments(req, arguments);
	else if (str_eq(name, STR("test_prompt_with_embedded_resource")))
		prompt_with_resource(req, arguments);
	else if (str_eq(name, STR("test_prompt_with_image")))
		finish_messages(req,
			STR("{\"type\":\"image\",\"data\":\"" PNG_BASE64
			    "\",\"mimeType\":\"image/png\"}"),
			text_block(arena, STR("Please analyze the image above.")));
	else if (str_eq(name, STR("test_input_required_result_prompt")))
		ask_prompt(req);
	else
		mcp_finish_error(
			req, MCP_INVALID_PARAMS, STR("There is no such prompt."), STR_NONE);
}

void fixture_complete(struct mcp_request *req, const struct mcp_completion *what)
{
	static const struct str words[] = {STR("paris"), STR("park"), STR("party")};
	struct str fitting[3];
	size_t n = 0;
	bool known = what->of_prompt ? str_eq(what->ref, STR("test_prompt_with_arguments"))
	                             : str_eq(what->ref, STR("test://template/{id}/data"));

	if (!known) {
		mcp_finish_error(req, MCP_INVALID_PARAMS,
			STR("There is no such prompt or template."), STR_NONE);
		return;
	}
	for (size_t i = 0; i < 3 && str_starts(what->argument, STR("arg")); i++)
		if (str_starts(words[i], what->value))
			fitting[n++] = words[i];
	mcp_finish_completion(req, fitting, n, (int64_t)n);
}
