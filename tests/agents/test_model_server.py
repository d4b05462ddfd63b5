"""The model server of these tests, asked as the agents ask it. Loopback only, no program needed."""
import http.client
import json
import socket

import pytest

from mcp_server import McpServer
from model_server import KEY, ModelServer
from model_wire import CACHED, INPUT, OUTPUT

TOOLS = {
    "responses": [{"type": "function", "name": "run"}, {"type": "namespace", "name": "mcp__dais", "tools": [{"name": "echo"}]}],
    "chat": [{"type": "function", "function": {"name": "run"}}],
    "messages": [{"name": "run", "input_schema": {}}],
    "gemini": [{"functionDeclarations": [{"name": "run"}]}],
}
PATHS = {"responses": "/v1/responses", "chat": "/v1/chat/completions", "messages": "/v1/messages?beta=true",
         "gemini": "/v1beta/models/fake-1:streamGenerateContent?alt=sse"}
PROTOCOLS = list(PATHS)


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server
        assert not server.mistakes


def body(protocol, prompt, outputs=(), stream=True):
    """The request of an agent whose user said `prompt` and whose tools gave `outputs` since."""
    if protocol == "responses":
        turns = [{"role": "user", "content": [{"type": "input_text", "text": prompt}]}]
        turns += [{"type": "function_call_output", "call_id": "c", "output": text} for text in outputs]
        return {"model": "fake-1", "stream": stream, "input": turns, "tools": TOOLS[protocol]}
    if protocol == "gemini":
        turns = [{"role": "user", "parts": [{"text": prompt}]}]
        turns += [{"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"output": text}}}]} for text in outputs]
        return {"contents": turns, "tools": TOOLS[protocol]}
    turns = [{"role": "user", "content": prompt}]
    if protocol == "chat":
        turns += [{"role": "tool", "tool_call_id": "c", "content": text} for text in outputs]
    else:
        turns += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]} for text in outputs]
    return {"model": "fake-1", "stream": stream, "messages": turns, "tools": TOOLS[protocol]}


def post(server, path, value, key=KEY):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", path, json.dumps(value), {"Authorization": f"Bearer {key}"})
    return connection.getresponse()


def events(response):
    """The data of each event."""
    blocks = response.read().decode().split("\n\n")
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def ask(server, protocol, prompt, outputs=()):
    response = post(server, PATHS[protocol], body(protocol, prompt, outputs))
    assert response.status == 200, response.read()
    return events(response)


def deltas(protocol, seen):
    """The pieces of text in a stream."""
    if protocol == "responses":
        return [event["delta"] for event in seen if event["type"] == "response.output_text.delta"]
    if protocol == "chat":
        return [c["delta"]["content"] for event in seen for c in event["choices"] if c["delta"].get("content")]
    if protocol == "messages":
        return [event["delta"]["text"] for event in seen if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta"]
    return [p["text"] for event in seen for p in event["candidates"][0]["content"]["parts"] if p.get("text") and not p.get("thought")]


def calls(protocol, seen):
    """The tool calls in a stream, as (name, arguments)."""
    if protocol == "responses":
        return [(event["item"]["name"], json.loads(event["item"]["arguments"])) for event in seen
                if event["type"] == "response.output_item.done" and event["item"]["type"] == "function_call"]
    if protocol == "chat":
        parts = [c["delta"]["tool_calls"][0]["function"] for event in seen for c in event["choices"] if "tool_calls" in c["delta"]]
        return [(parts[0]["name"], json.loads("".join(part["arguments"] for part in parts)))] if parts else []
    if protocol == "messages":
        names = [event["content_block"]["name"] for event in seen if event.get("content_block", {}).get("type") == "tool_use"]
        inputs = [json.loads(event["delta"]["partial_json"]) for event in seen if event.get("delta", {}).get("type") == "input_json_delta"]
        return list(zip(names, inputs))
    return [(p["functionCall"]["name"], p["functionCall"]["args"]) for event in seen
            for p in event["candidates"][0]["content"]["parts"] if "functionCall" in p]


def usage(protocol, seen):
    """All input, the cached part of it, all output."""
    if protocol == "responses":
        told = seen[-1]["response"]["usage"]
        return told["input_tokens"], told["input_tokens_details"]["cached_tokens"], told["output_tokens"]
    if protocol == "chat":
        told = seen[-1]["usage"]
        return told["prompt_tokens"], told["prompt_tokens_details"]["cached_tokens"], told["completion_tokens"]
    if protocol == "messages":
        told = seen[0]["message"]["usage"]
        every = told["input_tokens"] + told["cache_read_input_tokens"] + told["cache_creation_input_tokens"]
        return every, told["cache_read_input_tokens"], seen[-2]["usage"]["output_tokens"]
    told = seen[-1]["usageMetadata"]
    return told["promptTokenCount"], told["cachedContentTokenCount"], told["candidatesTokenCount"] + told["thoughtsTokenCount"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_text_comes_word_by_word_and_its_cost_is_told(model, protocol):
    seen = ask(model, protocol, "please\n@@say hello from here")
    assert deltas(protocol, seen) == ["hello ", "from ", "here"]
    assert usage(protocol, seen) == (INPUT, CACHED, OUTPUT)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_output_of_a_tool_leads_to_the_next_step_and_past_the_last_the_script_ends(model, protocol):
    script = '@@call r.n {"command": "ls"}\n@@saycall run {}\n@@say done'
    assert calls(protocol, ask(model, protocol, script)) == [("run", {"command": "ls"})]
    assert calls(protocol, ask(model, protocol, script, ["a"])) == [("run", {})]
    assert deltas(protocol, ask(model, protocol, script, ["a", "b"])) == ["done"]
    assert "".join(deltas(protocol, ask(model, protocol, script, ["a", "b", "c"]))) == "the script has no further step"
    assert [entry["step"] for entry in model.requests] == [0, 1, 2, 3]
    assert model.requests[-1]["outputs"][-1].find("c") >= 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_a_status_is_an_error_in_the_words_of_the_protocol(model, protocol, status):
    response = post(model, PATHS[protocol], body(protocol, f"@@status {status} some_kind 7"))
    error = json.loads(response.read())["error"]
    assert (response.status, response.headers["retry-after"]) == (status, "7")
    assert "some_kind" in (error.get("type"), error.get("status")) and str(status) in error["message"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wrong_key_is_refused_whatever_was_scripted(model, protocol):
    response = post(model, PATHS[protocol], body(protocol, "@@say never"), key="wrong")
    assert response.status == 401
    assert "wrong" not in json.dumps(model.requests), "the log holds a credential"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_stream_breaks_off_after_two_words(model, protocol):
    response = post(model, PATHS[protocol], body(protocol, "@@half one two three"))
    with pytest.raises(http.client.IncompleteRead) as broken:
        response.read()
    assert b"two" in broken.value.partial and b"three" not in broken.value.partial
    assert model.requests[0]["cut"] is True


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_may_end_in_good_order_but_too_early(model, protocol):
    seen = ask(model, protocol, "@@early one two three")
    assert deltas(protocol, seen) == ["one ", "two "]
    assert not any(word in json.dumps(seen) for word in ("response.completed", "prompt_tokens", "message_stop", "finishReason"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dropped_connection_gives_no_byte(model, protocol):
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        post(model, PATHS[protocol], body(protocol, "@@drop"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hanging_answer_notices_that_the_client_leaves(model, protocol):
    response = post(model, PATHS[protocol], body(protocol, "@@hang first second"))
    seen = b""
    while b"first" not in seen:
        seen += response.read1()
    assert b"second" not in seen and "cut" not in model.requests[0]
    response.close()
    assert model.wait_for(lambda entry: entry.get("cut"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_may_come_inside_the_stream(model, protocol):
    seen = json.dumps(ask(model, protocol, "@@fail server_is_overloaded"))
    assert "soon " in seen and "server_is_overloaded" in seen and "broken" not in seen


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_first_calls_may_fail_and_later_ones_succeed(model, protocol):
    script = "@@first 2 @@status 500\n@@say recovered"
    statuses = [post(model, PATHS[protocol], body(protocol, script)).status for _ in range(3)]
    assert statuses == [500, 500, 200]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_text_may_end_at_the_limit_or_refused(model, protocol):
    words = {"responses": ("max_output_tokens", "completed"), "chat": ("length", "content_filter"), "messages": ("max_tokens", "refusal"),
             "gemini": ("MAX_TOKENS", "SAFETY")}
    for step, word in zip(("@@maxtok so long", "@@refuse no"), words[protocol]):
        assert word in json.dumps(ask(model, protocol, step))


@pytest.mark.parametrize("protocol", ["responses", "chat", "messages"])
def test_an_answer_may_be_asked_for_as_a_whole(model, protocol):
    response = post(model, PATHS[protocol], body(protocol, "@@say hello from here", stream=False))
    assert "hello from here" in response.read().decode()


def test_gemini_is_asked_for_a_whole_answer_by_the_path(model):
    response = post(model, "/v1beta/models/fake-1:generateContent", body("gemini", "@@say hello from here"))
    assert json.loads(response.read())["candidates"][0]["content"]["parts"] == [{"text": "hello from here"}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_thoughts_are_not_text(model, protocol):
    seen = ask(model, protocol, "@@think about boats")
    assert deltas(protocol, seen) == ["thought."]
    assert "boats" in json.dumps(seen)


def test_a_tool_in_a_namespace_is_called_with_it(model):
    seen = ask(model, "responses", "@@call mcp__dais__echo {}")
    item = next(event["item"] for event in seen if event["type"] == "response.output_item.done")
    assert (item["name"], item["namespace"]) == ("echo", "mcp__dais")


def test_a_freeform_tool_gets_its_input_with_line_ends(model):
    seen = ask(model, "responses", "@@custom apply_patch *** Begin Patch\\n*** End Patch")
    item = next(event["item"] for event in seen if event["type"] == "response.output_item.done")
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin Patch\n*** End Patch")


def test_the_program_s_own_reminders_are_no_script(model):
    seen = ask(model, "messages", "<system-reminder>\n@@say wrong\n</system-reminder>\n@@say right")
    assert deltas("messages", seen) == ["right"]


def test_a_later_message_replaces_the_script(model):
    value = body("chat", "@@call run {}\n@@say old", ["a"])
    value["messages"].append({"role": "user", "content": "@@say new"})
    assert deltas("chat", events(post(model, PATHS["chat"], value))) == ["new"]


def test_a_call_without_tools_is_the_program_s_own_and_gets_a_title(model):
    value = body("chat", "@@say the answer")
    del value["tools"]
    assert deltas("chat", events(post(model, PATHS["chat"], value))) == ["a title"]


def test_a_mistake_in_a_script_is_told_to_the_test():
    with ModelServer() as model:
        assert post(model, PATHS["chat"], body("chat", "@@sya hello")).status == 400
        assert model.mistakes == ["no such step: @@sya"]


def test_what_is_no_call_of_the_model_is_answered_beside_it(model):
    assert json.loads(post(model, "/v1/messages/count_tokens", {}).read()) == {"input_tokens": 42}
    assert json.loads(post(model, "/v1beta/models/fake-1:countTokens", {}).read()) == {"totalTokens": 42}
    assert post(model, "/v1/nothing", {}).status == 404


def test_the_log_is_a_file_too(tmp_path):
    with ModelServer(log=tmp_path / "log") as model:
        ask(model, "chat", "@@say hello")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line["protocol"], line["step"]) for line in lines] == [("chat", 0)]


def rpc(server, method, params=None, token=None, **members):
    return post(server, "/mcp", {"jsonrpc": "2.0", "method": method, "params": params or {}, **members}, key=token or server.token)


def test_the_mcp_server_wants_its_token_and_runs_its_tools():
    with McpServer() as mcp:
        refused = rpc(mcp, "initialize", token="wrong", id=0)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        told = rpc(mcp, "initialize", {"protocolVersion": "2025-11-25"}, id=0)
        assert json.loads(told.read())["result"]["protocolVersion"] == "2025-11-25"
        assert rpc(mcp, "notifications/initialized").status == 202
        result = json.loads(rpc(mcp, "tools/call", {"name": "echo", "arguments": {"text": "x"}}, id=1).read())["result"]
        assert result["structuredContent"] == {"echo": "x"} and mcp.calls("echo") == [{"text": "x"}]
        assert json.loads(rpc(mcp, "server/discover", id=2).read())["error"]["code"] == -32601


def test_a_stopped_server_is_gone():
    server = ModelServer().start()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)
