"""The protocol library over HTTP, by the behaviours it promises."""
import base64
import json
import time

import pytest
from mcp_fixture import Fixture
from wire import BOTH, CAPS, MODERN, SERVER, TAG, TASKS, VERSION, eventually


@pytest.fixture(scope="module")
def fx():
    fixture = Fixture()
    yield fixture
    fixture.stop()


def code(answer):
    return answer.json()["error"]["code"]


# ---- negotiation ----

def test_discover_cold():
    fixture = Fixture()
    answer = fixture.modern("server/discover", id="server-discover-probe-1")
    body = answer.json()
    fixture.stop()
    assert answer.status == 200 and body["id"] == "server-discover-probe-1"
    result = body["result"]
    assert result["resultType"] == "complete" and result["supportedVersions"] == [MODERN]
    assert result["ttlMs"] >= 0 and result["cacheScope"] in ("public", "private")
    assert result["_meta"][SERVER]["name"] == "dais-mcp-fixture"
    assert "tasks" not in result["capabilities"] and "logging" not in result["capabilities"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_init_each(fx, version):
    body = fx.initialize(version).json()["result"]
    assert body["protocolVersion"] == version
    assert "logging" in body["capabilities"] and "extensions" not in body["capabilities"]
    assert "resultType" not in body and "_meta" not in body


@pytest.mark.parametrize("version", ["2030-01-01", "2026-07-28", "1.0"])
def test_init_future(fx, version):
    """mcp 6.1 init-future, init-modern-version: the newest of the old ones is offered, never an error."""
    answer = fx.initialize(version)
    assert answer.status == 200 and answer.json()["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 1, "capabilities": {}, "clientInfo": {}},
                                    {"protocolVersion": "2025-11-25", "clientInfo": {}},
                                    {"protocolVersion": "2025-11-25", "capabilities": {}}])
def test_init_incomplete(fx, params):
    assert code(fx.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})) == -32602


def test_two_eras_one_port(fx):
    session = fx.session()
    slow = session.call("slow_compute", {"seconds": 0.3})
    modern = fx.call("test_simple_text").json()["result"]
    assert modern["resultType"] == "complete"
    legacy = slow.result()["result"]
    assert "resultType" not in legacy and "ttlMs" not in session.request("tools/list").json()["result"]


@pytest.mark.parametrize("meta", [None, {}, {VERSION: MODERN}, {CAPS: {}, VERSION: 7}, {VERSION: MODERN, CAPS: []}])
def test_meta_missing(fx, meta):
    """mcp 6.1 meta-missing, claim-not-string, caps-missing."""
    body = {"jsonrpc": "2.0", "id": 77, "method": "tools/list", "params": {} if meta is None else {"_meta": meta}}
    answer = fx.post(body, [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")])
    body = answer.json()
    assert answer.status == 400 and body["error"]["code"] == -32602 and body["id"] == 77


def test_clientinfo_absent(fx):
    assert fx.modern("tools/list").status == 200


def test_claim_legacy_version(fx):
    answer = fx.post(fx.envelope("tools/list", version="2025-11-25"),
                     [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/list")])
    error = answer.json()["error"]
    assert answer.status == 400 and error["code"] == -32022
    assert error["data"] == {"supported": [MODERN], "requested": "2025-11-25"}


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
                                    "initialize", "tasks/list", "tasks/result", "nonsense"])
def test_removed_methods(fx, method):
    answer = fx.modern(method, {"uri": "test://static-text"}, id="x")
    body = answer.json()
    assert answer.status == 404 and body["error"]["code"] == -32601 and body["id"] == "x"


def test_legacy_shape(fx):
    session = fx.session("2025-03-26")
    result = session.call("test_links").json()["result"]
    assert result["content"] == [{"type": "text", "text": "static-text: test://static-text"}]
    assert "structuredContent" not in result
    newer = fx.session("2025-06-18").call("test_links").json()["result"]
    assert newer["content"][0]["type"] == "resource_link" and newer["structuredContent"] == {"linked": True}


def test_caps_per_request(fx):
    name = "test_input_required_result_capabilities"
    asked = fx.call(name, caps={"elicitation": {}}).json()["result"]
    assert asked["resultType"] == "input_required"
    assert fx.call(name).json()["result"]["isError"] is True


def test_modern_header_without_claim(fx):
    headers = [("MCP-Protocol-Version", MODERN)]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    answer = fx.post(hello, headers)
    assert (answer.status, code(answer)) == (400, -32020)
    assert fx.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers).status == 202


# ---- HTTP ----

@pytest.mark.parametrize("accept,status,stream", [
    (BOTH, 200, True), ("text/event-stream, application/json", 200, True), (None, 200, True), ("*/*", 200, True),
    ("application/json", 200, False), ("application/*, text/*", 200, True), ("text/html", 406, None),
    ("application/json;q=0, text/html", 406, None), ("APPLICATION/JSON , Text/Event-Stream", 200, True),
    ("application/json;q=0.5, text/event-stream;q=0.1", 200, True),
    ("application/json, text/event-stream;q=0", 200, False), ("*/*, text/event-stream;q=0.000", 200, False)])
def test_accept_variants(fx, accept, status, stream):
    answer = fx.call("test_tool_with_progress", meta={"progressToken": 0}, accept=accept)
    assert answer.status == status
    if status == 200:
        assert answer.is_stream == stream


@pytest.mark.parametrize("ctype,status", [("application/json; charset=UTF-8", 200), ("Application/JSON", 200),
                                          ('application/json;charset="utf-8";x=y', 200), ("text/plain", 415),
                                          ("application/json; charset=latin1", 415), (None, 415)])
def test_ctype_charset(fx, ctype, status):
    assert fx.modern("tools/list", ctype=ctype).status == status


def test_content_encoding(fx):
    assert fx.modern("tools/list", extra=[("Content-Encoding", "gzip")]).status == 415


def b64(text):
    return "=?base64?" + base64.b64encode(text.encode()).decode() + "?="


@pytest.mark.parametrize("headers,drop,extra,ok", [
    ({}, [], [], True),
    ({}, ["MCP-Protocol-Version"], [], False), ({}, ["Mcp-Method"], [], False), ({}, ["Mcp-Name"], [], False),
    ({"MCP-Protocol-Version": "2025-11-25"}, [], [], False), ({"Mcp-Method": "tools/list"}, [], [], False),
    ({"Mcp-Name": "other"}, [], [], False), ({"Mcp-Method": "Tools/Call"}, [], [], False),
    ({"Mcp-Name": "TEST_simple_text"}, [], [], False), ({"Mcp-Name": "  test_simple_text  "}, [], [], True),
    ({"Mcp-Name": b64("test_simple_text")}, [], [], True),
    ({"Mcp-Name": b64("test_simple_text")[:-3] + "?="}, [], [], False),
    ({"Mcp-Name": "=?BASE64?dGVzdA==?="}, [], [], False), ({"Mcp-Name": "=?base64?/w==?="}, [], [], False),
    ({}, [], [("Mcp-Name", "test_simple_text")], True), ({}, [], [("Mcp-Name", "other")], False),
    ({}, [], [("mcp-method", "tools/call")], True)])
def test_hdr_mismatch(fx, headers, drop, extra, ok):
    answer = fx.call("test_simple_text", headers=headers, drop=drop, extra=extra)
    if ok:
        assert answer.status == 200
    else:
        assert (answer.status, code(answer)) == (400, -32020)


@pytest.mark.parametrize("args,params,ok", [
    ({"region": "eu"}, {"Region": "eu"}, True), ({"region": "eu"}, {}, False), ({"region": "eu"}, {"Region": "us"}, False),
    ({"region": "eu", "level": 42}, {"Region": "eu", "Level": "42.0"}, True),
    ({"region": "eu", "level": 42}, {"Region": "eu", "Level": "43"}, False),
    ({"region": None}, {}, True), ({}, {"Region": "eu"}, False), ({"region": "eu"}, {"Region": "eu", "Zzz": "1"}, True)])
def test_hdr_params(fx, args, params, ok):
    answer = fx.call("test_x_mcp_header", args, headers={f"Mcp-Param-{k}": v for k, v in params.items()})
    assert answer.status == (200 if ok else 400)


@pytest.mark.parametrize("origin,status", [("null", 403), ("http://evil.example", 403), ("http://localhost:5173", 200),
                                           ("https://127.0.0.1", 200), ("http://[::1]:1", 200), ("file://x", 403),
                                           ("http://localhost.evil.example", 403), ("http://localhost@evil.example", 403)])
def test_origin(fx, origin, status):
    """mcp 6.2 origin-null, origin-evil, origin-localhost-port."""
    answer = fx.modern("tools/list", extra=[("Origin", origin)])
    assert answer.status == status
    assert ("access-control-allow-origin" in answer.lower) == (status == 200)
    if status == 403:
        assert "id" not in answer.json()


@pytest.mark.parametrize("host,status", [("evil.example", 403), ("localhost.", 200), ("LOCALHOST.:99", 200), ("localhost..", 403),
                                         ("[::1]:5", 200), ("[0:0:0:0:0:0:0:1]", 403), ("127.0.0.1:1:2", 403), ("a@localhost", 403)])
def test_host(fx, host, status):
    assert fx.modern("tools/list", host=host).status == status


def test_preflight_noauth(fx):
    answer = fx.send("OPTIONS", headers=[
        ("Origin", "http://localhost:1"), ("Access-Control-Request-Method", "POST"), ("Authorization", "Bearer refused"),
        ("Access-Control-Request-Headers", "content-type, mcp-param-region, x-other")])
    assert answer.status == 204
    allowed = answer.lower["access-control-allow-headers"].lower()
    assert "mcp-param-region" in allowed and "x-other" not in allowed
    assert answer.lower["access-control-allow-methods"] == "GET, POST, DELETE, OPTIONS"
    assert fx.send("OPTIONS", headers=[("Origin", "http://evil.example"),
                                       ("Access-Control-Request-Method", "POST")]).status == 403


def test_cors_on_401(fx):
    answer = fx.modern("tools/list", extra=[("Origin", "http://localhost:1"), ("Authorization", "Bearer refused")])
    assert answer.status == 401 and answer.lower["access-control-allow-origin"] == "http://localhost:1"
    assert "resource_metadata" not in answer.lower["www-authenticate"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD"])
def test_method_not_allowed(fx, method):
    answer = fx.send(method)
    assert answer.status == 405 and answer.lower["allow"] == "POST, GET, DELETE, OPTIONS"


def test_trailing_slash_is_the_endpoint(fx):
    assert fx.modern("tools/list", path="/mcp/").status == 200


def test_sse_early_headers(fx):
    begun = time.monotonic()
    answer = fx.call("slow_compute", {"seconds": 0.6})
    assert answer.is_stream and time.monotonic() - begun < 0.2
    assert answer.result()["result"]["content"][0]["text"] == "Computed."


def test_sse_fields(fx):
    answer = fx.call("slow_compute", {"seconds": 0.01})
    assert answer.lower["cache-control"] == "no-cache, no-transform" and answer.lower["x-accel-buffering"] == "no"
    event = answer.event()
    assert event["event"] == "message" and "id" not in event and "retry" not in event
    assert "mcp-session-id" not in answer.lower


def test_sse_close_after_result(fx):
    sock = fx.connect()
    assert fx.call("slow_compute", {"seconds": 0.01}, sock=sock).result()["id"] == 1
    assert fx.call("test_simple_text", sock=sock).status == 200


def test_modern_disconnect_cancels(fx):
    waiting = fx.call("slow_compute", {"seconds": 30})
    assert int(fx.text("test_in_flight")) == 2
    waiting.close()
    eventually(lambda: int(fx.text("test_in_flight")) == 1, 1)


def test_legacy_disconnect_continues(fx):
    session = fx.session()
    answer = session.call("slow_compute", {"seconds": 0.4}, id=9)
    last = answer.event()["id"]
    answer.close()
    again = session.get(last)
    messages = again.messages()
    assert [m["id"] for m in messages] == [9]
    time.sleep(0.1)
    assert [m["id"] for m in session.get(last).messages()] == [9]  # what was resumed once can be again


def test_priming_only_for_the_newest_legacy(fx):
    prime = fx.session("2025-11-25").call("slow_compute", {"seconds": 0.01}).event()
    assert prime["retry"] == "1000" and prime["data"] == ""
    first = fx.session("2025-06-18").call("slow_compute", {"seconds": 0.01}).event()
    assert json.loads(first["data"])["result"] and first["id"]


def test_replay_isolated(fx):
    session = fx.session()
    one = session.call("slow_compute", {"seconds": 0.05}, id="one")
    two = session.call("slow_compute", {"seconds": 0.05}, id="two")
    first, second = one.event()["id"], two.event()["id"]
    one.messages(), two.messages()
    assert [m["id"] for m in session.get(first).messages()] == ["one"]
    assert [m["id"] for m in session.get(second).messages()] == ["two"]


def test_replay_unknown_id(fx):
    session = fx.session()
    for last in ("zz.9", "nonsense", "", "1.1.1", "." * 200):
        answer = session.get(last)
        assert answer.status == 200 and answer.is_stream
        answer.close()


def test_get_twice(fx):
    session = fx.session()
    session.request("resources/subscribe", {"uri": "test://watched-resource"}).json()
    old, new = session.get(), session.get()
    assert old.event()["retry"] and new.event()["retry"]
    fx.call("test_trigger_resource_change", {"uri": "test://watched-resource"}).json()
    assert new.message()["method"] == "notifications/resources/updated"
    old.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        old.event()


def test_get_no_session(fx):
    assert fx.send("GET", headers=[("Accept", "text/event-stream")]).status == 400


def test_get_modern(fx):
    assert fx.send("GET", headers=[("Accept", "text/event-stream"), ("MCP-Protocol-Version", MODERN)]).status == 405


def test_get_without_event_stream(fx):
    assert fx.send("GET", headers=[("Accept", "application/json")]).status == 406


def test_session_unknown(fx):
    answer = fx.post({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}, [("Mcp-Session-Id", "unknown")])
    assert answer.status == 404
    assert answer.json() == {"jsonrpc": "2.0", "id": 5, "error": {"code": -32001, "message": "Session not found"}}


def test_session_missing(fx):
    answer = fx.post({"jsonrpc": "2.0", "id": 5, "method": "tools/list"})
    assert (answer.status, code(answer)) == (400, -32600)


def test_session_foreign_principal(fx):
    session = fx.session(headers=[("Authorization", "Bearer ada")])
    assert session.request("ping").status == 200
    answer = fx.post({"jsonrpc": "2.0", "id": 5, "method": "ping"},
                     [("Mcp-Session-Id", session.id), ("Authorization", "Bearer bob")])
    assert answer.status == 404


def test_init_with_stale_id(fx):
    answer = fx.initialize(headers=[("Mcp-Session-Id", "stale")])
    assert answer.status == 200 and answer.lower["mcp-session-id"] != "stale"


def test_delete_then_use(fx):
    session = fx.session()
    assert session.delete().status == 200
    assert session.request("tools/list").status == 404
    assert session.delete().status == 404
    assert fx.send("DELETE").status == 400


def test_parallel_init(fx):
    one, two = fx.session(), fx.session()
    assert one.id != two.id
    assert one.request("ping").status == two.request("ping").status == 200


def test_version_header_of_a_session(fx):
    session = fx.session("2025-06-18")
    def ask(version):
        return fx.post({"jsonrpc": "2.0", "id": 1, "method": "ping"},
                       [("Mcp-Session-Id", session.id), ("MCP-Protocol-Version", version)])
    assert ask("2025-11-25").status == 200
    answer = ask("1900-01-01")
    assert (answer.status, code(answer)) == (400, -32022)


def batch(*elements):
    return [{"jsonrpc": "2.0", **e} for e in elements]


PING = {"id": 1, "method": "ping"}
NOTE = {"method": "notifications/initialized"}


def test_batch_table(fx):
    old, new = fx.session("2025-03-26"), fx.session("2025-11-25")
    assert code(old.post([])) == -32600
    assert code(new.post(batch(PING))) == -32600
    assert code(fx.post(batch(PING))) == -32600
    assert code(old.post([fx.envelope("tools/list")])) == -32600
    assert code(old.post(batch({"id": 1, "method": "initialize", "params": {}}))) == -32600
    assert old.post(batch(NOTE, NOTE)).status == 202
    assert code(old.post(batch(*[{"id": i, "method": "ping"} for i in range(51)]))) == -32600
    answers = old.post(batch(PING, NOTE, {"id": "b", "method": "tools/list"})).messages()
    assert sorted(str(a["id"]) for a in answers) == ["1", "b"]
    array = old.post(batch(PING, {"id": 2, "method": "ping"}), accept="application/json").json()
    assert sorted(a["id"] for a in array) == [1, 2]
    answers = old.post(batch(PING, PING)).messages()
    assert sorted("error" in a for a in answers) == [False, True]
    answers = old.post([{"jsonrpc": "2.0", **PING}, 7]).messages()
    assert sorted("error" in a for a in answers) == [False, True]


def test_notif_202(fx):
    for answer in (fx.session().post({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                   fx.post({"jsonrpc": "2.0", "method": "notifications/odd", "params": {"_meta": {VERSION: MODERN}}})):
        assert answer.status == 202 and "content-type" not in answer.lower and answer.body() == b""


def test_response_post(fx):
    """mcp 6.2 response-post-unknown."""
    answer = {"jsonrpc": "2.0", "id": "srv-999", "result": {}}
    assert fx.session().post(answer).status == 202
    assert fx.post(answer, [("MCP-Protocol-Version", MODERN)]).status == 400


@pytest.mark.parametrize("body,want", [
    (b"", -32700), (b"{", -32700), (b"\xff", -32700), (b'{"jsonrpc":"2.0","id":1,"method":"x\xed\xa0\x80"}', -32700),
    (b"7", -32600), (b"null", -32600), (b'{"id":1,"method":"x"}', -32600), (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"x"}', -32600), (b'{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', -32600), (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32600), (b"[" * 100000, -32600),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 257 + b'","method":"x"}', -32600)])
def test_not_json_rpc(fx, body, want):
    answer = fx.post(body)
    error = answer.json()
    assert (answer.status, error["error"]["code"]) == (400, want)
    assert error.get("id") in (None, 1) and ("id" not in error or error["id"] is not None)


@pytest.mark.parametrize("id", [0, -1, "", "0", "ä\u2028\"", 9007199254740991])
def test_ids_echo_exactly(fx, id):
    answer = fx.modern("tools/list", id=id).json()["id"]
    assert answer == id and type(answer) is type(id)


def test_same_id_in_one_session(fx):
    session = fx.session()
    first = session.call("slow_compute", {"seconds": 0.4}, id=5)
    answer = session.request("ping", id=5)
    assert (answer.status, code(answer)) == (400, -32600)
    assert first.result()["result"]
    one, two = fx.call("slow_compute", {"seconds": 0.2}, id=5), fx.call("slow_compute", {"seconds": 0.2}, id=5)
    assert one.result()["result"] and two.result()["result"]


def test_progress(fx):
    for token in (0, "tok"):
        messages = fx.call("test_tool_with_progress", meta={"progressToken": token}).messages()
        steps = [m["params"] for m in messages[:-1]]
        assert [s["progress"] for s in steps] == [0, 50, 100] and all(s["progressToken"] == token for s in steps)
        assert messages[-1]["result"]
    assert not fx.call("test_tool_with_progress").is_stream


def test_progress_flood(fx):
    begun = time.monotonic()
    messages = fx.call("test_progress_flood", meta={"progressToken": "t"}).messages()
    seconds = int(time.monotonic() - begun) + 1  # 10,000 calls take a while under a sanitizer
    assert 2 <= len(messages) <= 4 * seconds + 1 and "result" in messages[-1]


def test_log_only_when_asked(fx):
    level = "io.modelcontextprotocol/logLevel"
    assert len(fx.call("test_tool_with_logging", meta={level: "info"}).messages()) == 4
    assert not fx.call("test_tool_with_logging", meta={level: "error"}).is_stream
    assert not fx.call("test_tool_with_logging").is_stream


def test_set_level(fx):
    session = fx.session()
    assert session.request("logging/setLevel", {"level": "loud"}).json()["error"]["code"] == -32602
    assert session.request("logging/setLevel", {"level": "error"}).json()["result"] == {}
    assert not session.call("test_tool_with_logging").is_stream


def test_legacy_cancel(fx):
    session = fx.session()
    answer = session.call("slow_compute", {"seconds": 30}, id="c")
    assert session.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}).status == 202
    assert answer.messages() == []
    for id in ("c", 12345):
        assert session.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": {"requestId": id, "_meta": {}}}).status == 202


def test_legacy_elicitation(fx):
    session = fx.session(caps={"elicitation": {}})
    answer = session.call("test_elicitation", {"message": "who?"})
    question = answer.message()
    assert question["method"] == "elicitation/create" and question["id"].startswith("srv-")
    assert session.post({"jsonrpc": "2.0", "id": question["id"],
                         "result": {"action": "accept", "content": {"username": "ada"}}}).status == 202
    text = answer.message()["result"]["content"][0]["text"]
    assert "accept" in text and "ada" in text
    assert fx.session().call("test_elicitation", {"message": "x"}).json()["result"]["isError"] is True


def test_unknown_tool(fx):
    error = fx.call("nope").json()["error"]
    assert error["code"] == -32602 and error["data"]["name"] == "nope" and error["data"]["near"]


def test_bad_params(fx):
    bad = [("tools/call", {"name": "greet", "arguments": []}), ("prompts/get", {"name": "nope"}),
           ("prompts/get", {"name": "test_prompt_with_arguments"}), ("completion/complete", {"ref": {"type": "x"}}),
           ("tools/list", {"cursor": ""}), ("tools/list", {"cursor": "AAAA"}), ("resources/list", {"cursor": 7})]
    for method, params in bad:
        answer = fx.modern(method, params)
        assert (answer.status, code(answer)) == (200, -32602), (method, params)


def test_arguments_missing(fx):
    answer = fx.modern("tools/call", {"name": "test_echo"})
    result = answer.json()["result"]
    assert result["structuredContent"] == {} and json.loads(result["content"][0]["text"]) == {}


def test_text_equals_structured(fx):
    given = {"a": "ä\u2028\"\\\n😀", "n": [1, 2.5, None, True], "o": {"x": ""}}
    result = fx.call("test_echo", given).json()["result"]
    assert result["structuredContent"] == given == json.loads(result["content"][0]["text"])


def test_resource_missing(fx):
    uri = "test://nonexistent-resource-for-conformance-testing"
    error = fx.modern("resources/read", {"uri": uri}).json()["error"]
    assert error["code"] == -32602 and error["data"] == {"uri": uri}
    error = fx.session().request("resources/read", {"uri": uri}).json()["error"]
    assert error["code"] == -32002 and error["data"] == {"uri": uri}
    assert fx.session().request("resources/subscribe", {"uri": uri}).json()["error"]["code"] == -32002


def test_template_encoded_slash(fx):
    body = fx.modern("resources/read", {"uri": "test://template/a%2Fb/data"}).json()["result"]["contents"][0]
    assert json.loads(body["text"])["id"] == "a/b"
    assert fx.modern("resources/read", {"uri": "test://static%2Dtext"}).status == 200
    assert "result" in fx.modern("resources/read", {"uri": "test://static%2Dtext"}).json()


def test_template_1mb_uri(fx):
    begun = time.monotonic()
    answer = fx.modern("resources/read", {"uri": "test://template/" + "a" * 1000000 + "/data"}, drop=["Mcp-Name"])
    assert code(answer) == -32602 and time.monotonic() - begun < 1


def test_result_too_large(fx):
    result = fx.call("test_big", {"bytes": 2000000}).json()["result"]
    assert result["isError"] is True and result["structuredContent"]["code"] == "payload_too_large"


# ---- subscriptions ----

def listen(fx, id="listen:0", caps=None, headers=None, **filters):
    return fx.modern("subscriptions/listen", {"notifications": filters}, id=id, caps=caps, headers=headers)


@pytest.mark.parametrize("id", [0, "", "listen:0", -3])
def test_listen_ack_first(fx, id):
    """mcp 6.2 listen-ack-first, listen-id-zero, listen-id-string: 0 and "" are ids."""
    answer = listen(fx, id, toolsListChanged=True)
    ack = answer.message()
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    tag = ack["params"]["_meta"][TAG]
    assert tag == id and type(tag) is type(id)
    assert ack["params"]["notifications"] == {"toolsListChanged": True}
    fx.call("test_trigger_tool_change").json()
    note = answer.message()
    assert note["method"] == "notifications/tools/list_changed" and note["params"]["_meta"][TAG] == id
    answer.close()


def test_listen_filter(fx):
    answer = listen(fx, promptsListChanged=True)
    answer.message()
    fx.call("test_trigger_tool_change").json()
    fx.call("test_trigger_prompt_change").json()
    assert answer.message()["method"] == "notifications/prompts/list_changed"
    answer.close()


def test_listen_foreign_uri_omitted(fx):
    answer = listen(fx, resourceSubscriptions=["test://watched-resource", "test://forbidden"])
    assert answer.message()["params"]["notifications"] == {"resourceSubscriptions": ["test://watched-resource"]}
    answer.close()


def test_subscribe_update_coalesced(fx):
    answer = listen(fx, resourceSubscriptions=["test://watched-resource"])
    answer.message()
    for _ in range(20):
        fx.call("test_trigger_resource_change", {"uri": "test://watched-resource"}).json()
    time.sleep(0.6)
    answer.sock.settimeout(0.2)
    seen = 0
    with pytest.raises(TimeoutError):
        while answer.message()["method"] == "notifications/resources/updated":
            seen += 1
    assert 1 <= seen <= 4
    answer.close()


def test_listen_tasks_need_the_extension(fx):
    answer = listen(fx, taskIds=["x"])
    assert answer.status in (200, 400) and code(answer) == -32021


def test_listen_over_limit():
    fixture = Fixture()
    streams = []
    for i in range(64):
        streams.append(listen(fixture, i, toolsListChanged=True))
        assert streams[-1].message()
    error = listen(fixture, 65, toolsListChanged=True).json()["error"]
    assert error["code"] == -32603 and error["data"]["retryAfterMs"] > 0
    streams[0].close()
    eventually(lambda: listen(fixture, 66, toolsListChanged=True).is_stream, 2)
    fixture.stop()


def test_listen_shutdown_result():
    fixture = Fixture()
    answer = listen(fixture, "bye", toolsListChanged=True)
    answer.message()
    fixture.process.terminate()
    last = answer.message()
    assert last["id"] == "bye" and last["result"]["resultType"] == "complete" and last["result"]["_meta"][TAG] == "bye"
    assert answer.message() is None
    fixture.stop()


def test_token_expires_midstream(fx):
    soon = {"Authorization": "Bearer soon"}
    answer = listen(fx, 1, headers=soon, toolsListChanged=True)
    running = fx.call("slow_compute", {"seconds": 1.2}, headers=soon)
    assert answer.message()["method"].endswith("acknowledged")
    assert answer.message()["result"]["resultType"] == "complete"
    assert running.result()["result"]


def test_token_expires_on_a_get_stream(fx):
    headers = [("Authorization", "Bearer soon")]
    stream = fx.session(headers=headers).get()
    begun = time.monotonic()
    assert stream.messages() == [] and time.monotonic() - begun < 3


# ---- input required ----

def test_state_is_bound(fx):
    name = "test_input_required_result_request_state"
    caps = {"elicitation": {}}
    answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
    asked = fx.call(name, {"a": 1}, caps=caps).json()["result"]
    state = asked["requestState"]
    assert asked["resultType"] == "input_required" and "ttlMs" not in asked

    def retry(state, tool=name, args=None, who=None, given=answers):
        return fx.modern("tools/call", {"name": tool, "arguments": args or {"a": 1}, "requestState": state,
                                        "inputResponses": given}, id=99, caps=caps,
                         headers={"Authorization": f"Bearer {who}"} if who else None).json()

    assert retry(state)["result"]["content"][0]["text"] == "state-ok"
    assert retry(state, given={**answers, "extra": 1})["result"]["resultType"] == "complete"
    assert retry(state, given={})["result"]["resultType"] == "input_required"
    assert retry(state, given={"confirm": 7})["result"]["resultType"] == "input_required"
    for wrong in (retry(state[:-2] + "AA"), retry("x"), retry(7), retry(state, args={"a": 2}), retry(state, who="bob"),
                  retry(state, tool="test_input_required_result_tampered_state"), retry("A" * 5000)):
        assert wrong["error"]["code"] == -32602


# ---- tasks ----

def test_tasks(fx):
    made = fx.call("slow_compute", {"seconds": 0.3}, caps=TASKS).result()["result"]
    assert made["resultType"] == "task" and made["status"] == "working"
    task = made["taskId"]

    def get(who=None, caps=TASKS):
        return fx.modern("tasks/get", {"taskId": task}, caps=caps, headers={"Authorization": f"Bearer {who}"} if who else None)

    assert get().json()["result"]["status"] == "working"
    assert code(get(who="bob")) == -32602
    assert code(get(caps={})) == -32021
    stream = fx.modern("subscriptions/listen", {"notifications": {"taskIds": [task, "foreign"]}}, caps=TASKS)
    assert stream.message()["params"]["notifications"] == {"taskIds": [task]}
    note = stream.message()
    assert note["method"] == "notifications/tasks" and note["params"]["status"] == "completed"
    stream.close()
    done = get().json()["result"]
    assert done["status"] == "completed" and done["result"]["content"][0]["text"] == "Computed."
    assert fx.modern("tasks/cancel", {"taskId": task}, caps=TASKS).json()["result"]["resultType"] == "complete"
    assert get().json()["result"]["status"] == "completed"


def test_task_undeclared(fx):
    assert fx.call("slow_compute", {"seconds": 0.05}).result()["result"]["resultType"] == "complete"
    answer = fx.call("failing_job")
    assert answer.status == 400
    assert answer.json()["error"]["data"]["requiredCapabilities"] == TASKS


def test_task_update_partial(fx):
    task = fx.call("multi_input", caps=TASKS).json()["result"]["taskId"]

    def get():
        return fx.modern("tasks/get", {"taskId": task}, caps=TASKS).json()["result"]

    def update(**answers):
        return fx.modern("tasks/update", {"taskId": task, "inputResponses": answers}, caps=TASKS).json()["result"]

    assert set(get()["inputRequests"]) == {"first", "second"}
    update(first={"action": "accept", "content": {"confirm": True}}, other={})
    assert get()["status"] == "input_required" and set(get()["inputRequests"]) == {"second"}
    update(first={"action": "accept"}, second={"action": "accept", "content": {"confirm": True}})
    assert get()["status"] == "completed"


# ---- many ----

def test_id_collision(fx):
    import threading
    one, two = fx.session(), fx.session()
    wrong = []

    def work(session, name):
        sock = fx.connect()
        for i in range(200):
            result = session.call("test_echo", {"who": name, "i": i}, id=i, sock=sock).json()
            if result["id"] != i or result["result"]["structuredContent"] != {"who": name, "i": i}:
                wrong.append(result)

    threads = [threading.Thread(target=work, args=(s, n)) for s, n in ((one, "one"), (two, "two"))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == []


def test_many_sessions(fx):
    headers = [("Authorization", "Bearer many")]
    first = fx.session(headers=headers)
    ids = [fx.session(headers=headers) for _ in range(64)]
    assert first.request("ping").status == 404  # the least recently used one went
    assert ids[0].request("ping").status == ids[-1].request("ping").status == 200


def test_session_request_limit():
    fixture = Fixture()
    session = fixture.session()
    waiting = [session.call("slow_compute", {"seconds": 20}) for _ in range(64)]
    error = session.request("ping").json()["error"]
    assert error["code"] == -32603 and error["data"]["retryAfterMs"] > 0
    assert fixture.call("test_simple_text").status == 200
    assert session.delete().status == 200
    assert all(w.messages() == [] for w in waiting)
    eventually(lambda: int(fixture.text("test_in_flight")) == 1)
    fixture.stop()
