"""One request over HTTP: media types, headers, origins, methods, and the stream that answers (mcp 6.2)."""
import base64
import time

import pytest
from wire import BOTH, MODERN, VERSION, code


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
    answer = fx.call("slow_compute", {"seconds": 2})
    head = time.monotonic() - begun
    assert answer.is_stream and answer.result()["result"]["content"][0]["text"] == "Computed."
    assert head < (time.monotonic() - begun) / 2


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


def test_get_no_session(fx):
    assert fx.send("GET", headers=[("Accept", "text/event-stream")]).status == 400


def test_get_modern(fx):
    assert fx.send("GET", headers=[("Accept", "text/event-stream"), ("MCP-Protocol-Version", MODERN)]).status == 405


def test_get_without_event_stream(fx):
    assert fx.send("GET", headers=[("Accept", "application/json")]).status == 406


def test_notif_202(fx):
    for answer in (fx.session().post({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                   fx.post({"jsonrpc": "2.0", "method": "notifications/odd", "params": {"_meta": {VERSION: MODERN}}})):
        assert answer.status == 202 and "content-type" not in answer.lower and answer.body() == b""


def test_response_post(fx):
    """mcp 6.2 response-post-unknown."""
    answer = {"jsonrpc": "2.0", "id": "srv-999", "result": {}}
    assert fx.session().post(answer).status == 202
    assert fx.post(answer, [("MCP-Protocol-Version", MODERN)]).status == 400
