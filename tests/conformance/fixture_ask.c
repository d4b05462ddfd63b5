/* Tools that ask the client: legacy ones by a request of their own, modern ones by input_required.
 */
#include "base/limits.h"
#include "fixture.h"

#define NAME_SCHEMA                                                                                \
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}"
#define ELICIT(message, schema)                                                                    \
	"{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"" message  \
	"\",\"requestedSchema\":" schema "}}"
#define SAMPLE(text, tokens)                                                                                                  \
	"{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\"," \
	"\"text\":\"" text "\"}}],\"maxTokens\":" tokens "}}"
#define ROOTS "{\"method\":\"roots/list\",\"params\":{}}"

/* ---- legacy ---- */

static void sampled(struct mcp_request *req, void *context, const json_t *result)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(result, "content"), "text"));

	(void)context;
	finish_text(req, text == NULL, "LLM response: %s", text == NULL ? "none" : text);
}

static void sampling(struct mcp_request *req, const json_t *arguments)
{
	struct arena *arena = mcp_request_arena(req);
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out,
		STR("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\""));
	json_escape(&out, json_member_str(arguments, "prompt"));
	buf_add_str(&out, STR("\"}}],\"maxTokens\":100}"));
	if (!mcp_ask(req, STR("sampling/createMessage"), buf_str(&out), 0, sampled, NULL))
		finish_text(req, true, "The client cannot sample.");
}

static void elicited(struct mcp_request *req, void *context, const json_t *result)
{
	struct arena *arena = mcp_request_arena(req);
	struct str content = STR("{}");

	if (json_object_get(result, "content") != NULL)
		content = json_canonical(arena, json_object_get(result, "content"));
	finish_text(req, result == NULL, "%s: action=%.*s, content=%.*s", (const char *)context,
		result == NULL ? 4 : (int)json_member_str(result, "action").n,
		result == NULL ? "none" : json_member_str(result, "action").p, STRF(content));
}

static char response_word[] = "User response";
static char completed_word[] = "Elicitation completed";

static void elicit(struct mcp_request *req, struct str message, const char *schema, char *word)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr(&w, "message", message);
	jw_kraw(&w, "requestedSchema", str_of(schema));
	jw_object_end(&w);
	if (!mcp_ask(req, STR("elicitation/create"), buf_str(&out), 0, elicited, word))
		finish_text(req, true, "The client cannot be asked.");
}

static void elicitation(struct mcp_request *req, const json_t *arguments)
{
	elicit(req, json_member_str(arguments, "message"),
		"{\"type\":\"object\",\"properties\":{\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
		"\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}},"
		"\"required\":[\"username\",\"email\"]}",
		response_word);
}

static void elicit_defaults(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	elicit(req, STR("Please review and update the form fields with defaults"),
		"{\"type\":\"object\",\"properties\":{"
		"\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},\"age\":{\"type\":\"integer\",\"default\":30},"
		"\"score\":{\"type\":\"number\",\"default\":95.5},"
		"\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
		"\"verified\":{\"type\":\"boolean\",\"default\":true}},\"required\":[]}",
		completed_word);
}

static void elicit_enums(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	elicit(req, STR("Please select options from the enum fields"),
		"{\"type\":\"object\",\"properties\":{"
		"\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
		"\"titledSingle\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"value1\",\"title\":\"First Option\"},"
		"{\"const\":\"value2\",\"title\":\"Second Option\"},{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
		"\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
		"\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
		"\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
		"\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
		"\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"value1\",\"title\":\"First Choice\"},"
		"{\"const\":\"value2\",\"title\":\"Second Choice\"},{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}},"
		"\"required\":[]}",
		completed_word);
}

static void reconnected(void *context)
{
	finish_text(context, false, "Reconnection test completed successfully");
}

static void reconnection(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_close_stream(req);
	later(100, reconnected, req);
}

/* ---- modern: ask until the answer is there ---- */

static const json_t *answer(const struct mcp_request *req, const char *key)
{
	const json_t *value = json_object_get(mcp_input_responses(req), key);

	return json_is_object(value) ? value : NULL;
}

static struct str answer_text(const struct mcp_request *req, const char *key, const char *field)
{
	return json_member_str(json_object_get(answer(req, key), "content"), field);
}

struct str given_name(const struct mcp_request *req)
{
	return answer_text(req, "user_name", "name");
}

static void modern_elicitation(struct mcp_request *req, const json_t *arguments)
{
	struct str name = given_name(req);

	(void)arguments;
	if (name.p == NULL)
		mcp_finish_input_required(req,
			STR("{\"user_name\":" ELICIT("What is your name?", NAME_SCHEMA) "}"),
			STR_NONE);
	else
		finish_text(req, false, "Hello, %.*s!", STRF(name));
}

static void modern_sampling(struct mcp_request *req, const json_t *arguments)
{
	const json_t *given = answer(req, "capital_question");
	struct str text = json_member_str(json_object_get(given, "content"), "text");

	(void)arguments;
	if (given == NULL)
		mcp_finish_input_required(req,
			STR("{\"capital_question\":" SAMPLE(
				"What is the capital of France?", "100") "}"),
			STR_NONE);
	else
		finish_text(req, false, "The model said: %.*s", STRF(text));
}

static void modern_roots(struct mcp_request *req, const json_t *arguments)
{
	const json_t *roots = json_object_get(answer(req, "client_roots"), "roots");

	(void)arguments;
	if (!json_is_array(roots))
		mcp_finish_input_required(req, STR("{\"client_roots\":" ROOTS "}"), STR_NONE);
	else
		finish_text(req, false, "Roots: %.*s",
			STRF(json_canonical(mcp_request_arena(req), roots)));
}

static void modern_state(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	if (answer(req, "confirm") == NULL || mcp_sealed_state(req).p == NULL)
		mcp_finish_input_required(req,
			STR("{\"confirm\":" ELICIT("Please confirm",
				"{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"}},\"required\":[\"ok\"]}") "}"),
			STR("confirm"));
	else
		finish_text(req, false, "state-ok");
}

static void modern_inputs(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	if (answer(req, "user_name") == NULL || answer(req, "greeting") == NULL ||
		answer(req, "client_roots") == NULL)
		mcp_finish_input_required(req,
			STR("{\"user_name\":" ELICIT("What is your name?",
				NAME_SCHEMA) ",\"greeting\":" SAMPLE("Generate a greeting",
				"50") ",\"client_roots\":" ROOTS "}"),
			STR("inputs"));
	else
		finish_text(req, false, "Everything was answered by %.*s", STRF(given_name(req)));
}

static void modern_rounds(struct mcp_request *req, const json_t *arguments)
{
	struct str state = mcp_sealed_state(req);
	struct str color = answer_text(req, "step2", "color");

	(void)arguments;
	if (str_starts(state, STR("2 ")) && color.p != NULL)
		finish_text(
			req, false, "%.*s likes %.*s", (int)state.n - 2, state.p + 2, STRF(color));
	else if (state.p != NULL && answer(req, "step1") != NULL)
		mcp_finish_input_required(req,
			STR("{\"step2\":" ELICIT("Step 2: What is your favorite color?",
				"{\"type\":\"object\",\"properties\":{\"color\":{\"type\":\"string\"}},\"required\":[\"color\"]}") "}"),
			str_printf(mcp_request_arena(req), "2 %.*s",
				STRF(answer_text(req, "step1", "name"))));
	else
		mcp_finish_input_required(req,
			STR("{\"step1\":" ELICIT("Step 1: What is your name?", NAME_SCHEMA) "}"),
			STR("1"));
}

static void modern_capabilities(struct mcp_request *req, const json_t *arguments)
{
	struct buf out;

	(void)arguments;
	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	if (mcp_client_can(req, MCP_CAN_ELICIT_FORM))
		buf_printf(&out, ",\"user_name\":%s", ELICIT("What is your name?", NAME_SCHEMA));
	if (mcp_client_can(req, MCP_CAN_SAMPLE))
		buf_printf(&out, ",\"greeting\":%s", SAMPLE("Generate a greeting", "50"));
	if (mcp_client_can(req, MCP_CAN_LIST_ROOTS))
		buf_printf(&out, ",\"client_roots\":%s", ROOTS);
	if (out.n == 0 || mcp_input_responses(req) != NULL) {
		finish_text(req, out.n == 0, out.n == 0 ? "approval_required" : "answered");
		return;
	}
	out.p[0] = '{';
	buf_add_char(&out, '}');
	mcp_finish_input_required(req, buf_str(&out), STR_NONE);
}

/* ---- an approval, as the product's tools are to ask for one: only a plain yes is a yes ---- */

#define APPROVAL_ROUNDS 3
#define APPROVAL_SCHEMA                                                                            \
	"{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\",\"enum\":[\"approve\",\"deny\"]}}," \
	"\"required\":[\"decision\"]}"

static void not_approved(struct mcp_request *req)
{
	finish_text(req, true, "approval_required");
}

/* False: the answer is none that was asked for. */
static bool decided(struct mcp_request *req, const json_t *response)
{
	struct str decision = json_member_str(json_object_get(response, "content"), "decision");
	bool is_accepted = str_eq(json_member_str(response, "action"), STR("accept"));

	if (is_accepted && str_eq(decision, STR("approve")))
		finish_text(req, false, "approved");
	else if (!is_accepted || str_eq(decision, STR("deny")))
		not_approved(req);
	else
		return false;
	return true;
}

static void approval_answered(struct mcp_request *req, void *context, const json_t *result)
{
	(void)context;
	if (result == NULL || !decided(req, result))
		not_approved(req);
}

static void approval(struct mcp_request *req, const json_t *arguments)
{
	int64_t deadline_ms = json_integer_value(json_object_get(arguments, "deadlineMs"));
	int64_t round = 0;

	if (!mcp_request_is_modern(req)) {
		if (!mcp_ask(req, STR("elicitation/create"),
			    STR("{\"message\":\"May it?\",\"requestedSchema\":" APPROVAL_SCHEMA "}"),
			    deadline_ms, approval_answered, NULL))
			not_approved(req);
		return;
	}
	(void)str_to_int(mcp_sealed_state(req), &round);
	if (!mcp_client_can(req, MCP_CAN_ELICIT_FORM))
		not_approved(req);
	else if (round > 0 && answer(req, "approval_1") != NULL && decided(req, answer(req, "approval_1")))
		return;
	else if (round == APPROVAL_ROUNDS)
		not_approved(req);
	else
		mcp_finish_input_required(req, STR("{\"approval_1\":" ELICIT("May it?", APPROVAL_SCHEMA) "}"),
			str_printf(mcp_request_arena(req), "%lld", (long long)round + 1));
}

static void modern_streaming(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_progress(req, 1, -1, STR("about to ask"));
	modern_elicitation(req, arguments);
}

void ask_prompt(struct mcp_request *req)
{
	struct arena *arena = mcp_request_arena(req);
	struct str context = answer_text(req, "user_context", "context");
	struct buf out;

	if (context.p == NULL) {
		mcp_finish_input_required(req,
			STR("{\"user_context\":" ELICIT("What context should the prompt use?",
				"{\"type\":\"object\",\"properties\":{\"context\":{\"type\":\"string\"}},\"required\":[\"context\"]}") "}"),
			STR_NONE);
		return;
	}
	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out,
		STR("\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Use this context: "));
	json_escape(&out, context);
	buf_add_str(&out, STR("\"}}]"));
	mcp_finish_result(req, buf_str(&out));
}

#define ONE_STRING(name)                                                                           \
	"{\"type\":\"object\",\"properties\":{\"" name                                             \
	"\":{\"type\":\"string\"}},\"required\":[\"" name "\"]}"

/* clang-format off */
const struct fixture_tool ask_tools[] = {
	{"test_sampling", "Asks the client's model.", ONE_STRING("prompt"), sampling, false, 0, NULL, 0},
	{"test_elicitation", "Asks the client's user.", ONE_STRING("message"), elicitation, false, 0, NULL, 0},
	{"test_elicitation_sep1034_defaults", "Asks with defaults.", NO_ARGUMENTS, elicit_defaults, false, 0, NULL, 0},
	{"test_elicitation_sep1330_enums", "Asks with choices.", NO_ARGUMENTS, elicit_enums, false, 0, NULL, 0},
	{"test_reconnection", "Closes its stream before it answers.", NO_ARGUMENTS, reconnection, true, 0, NULL, 0},
	{"test_streaming_elicitation", "Asks while it streams.", NO_ARGUMENTS, modern_streaming, true, 0, NULL, 0},
	{"test_input_required_result_elicitation", "Asks for a name.", NO_ARGUMENTS, modern_elicitation, false, 0, NULL, 0},
	{"test_input_required_result_sampling", "Asks a model.", NO_ARGUMENTS, modern_sampling, false, 0, NULL, 0},
	{"test_input_required_result_list_roots", "Asks for roots.", NO_ARGUMENTS, modern_roots, false, 0, NULL, 0},
	{"test_input_required_result_request_state", "Asks with a state.", NO_ARGUMENTS, modern_state, false, 0, NULL, 0},
	{"test_input_required_result_multiple_inputs", "Asks three things.", NO_ARGUMENTS, modern_inputs, false, 0, NULL, 0},
	{"test_input_required_result_multi_round", "Asks twice.", NO_ARGUMENTS, modern_rounds, false, 0, NULL, 0},
	{"test_input_required_result_tampered_state", "Asks with a state.", NO_ARGUMENTS, modern_state, false, 0, NULL, 0},
	{"test_approval", "Asks whether it may.", NO_ARGUMENTS, approval, false, 0, NULL, 0},
	{"test_input_required_result_capabilities", "Asks what the client can be asked.", NO_ARGUMENTS, modern_capabilities, false, 0, NULL, 0},
};
/* clang-format on */
const size_t ask_tool_count = sizeof(ask_tools) / sizeof(ask_tools[0]);
