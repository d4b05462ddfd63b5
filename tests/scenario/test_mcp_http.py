"""The product's MCP endpoint as clients meet it over HTTP: who is let in, sessions, restarts, odd requests (mcp 6.2, 7)."""
import json
import threading
import time
import urllib.parse

import pytest

from harness import SLACK, together
from wire import BOTH, CAPS, MODERN, VERSION, Wire, eventually


@pytest.fixture(scope="module")
def dais(shared):
    return shared


@pytest.fixture
def wire(dais):
    return dais.wire()


@pytest.fixture
def stranger(dais):
    return Wire(urllib.parse.urlsplit(dais.url).port)


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


# ---- who is let in ----

@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer ", "Basic YTpi", "Bearer\twrong"])
def test_auth_401_static(dais, stranger, header):
    """mcp 6.2 auth-401-static: no metadata is advertised, which would send clients into a login that cannot end."""
    headers = [] if header is None else [("Authorization", header)]
    for answer in (stranger.modern("server/discover", extra=headers), stranger.post(PING, headers),
                   stranger.send("GET", headers=[("Accept", "text/event-stream"), *headers]),
                   stranger.send("DELETE", headers=[("Mcp-Session-Id", "x"), *headers])):
        assert answer.status == 401
        challenge = answer.lower["www-authenticate"]
        assert challenge.startswith("Bearer") and "resource_metadata" not in challenge
        assert ('error="invalid_token"' in challenge) == (header is not None)
        body = answer.json()
        assert body["error"]["code"] == -32600 and "id" not in body


def test_two_authorization_headers_are_none(dais, stranger):
    token = [("Authorization", f"Bearer {dais.admin_token}")]
    assert stranger.post(PING, token * 2).status in (400, 401)


@pytest.mark.parametrize("path", [f"/.well-known/{name}{suffix}" for name in (
    "oauth-protected-resource", "oauth-authorization-server", "openid-configuration") for suffix in ("", "/mcp", "/mcp/director")]
    + ["/register", "/authorize", "/token", "/sse"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_clients_probe_after_a_401_is_a_plain_404(wire, stranger, method, path):
    """mcp 6.2, 7: never 200 and never HTML, with or without a token."""
    for caller in (stranger, wire):
        answer = caller.send(method, path=path, body=b"{}" if method == "POST" else None)
        assert answer.status == 404
        assert answer.lower["content-type"].startswith("application/json") and isinstance(answer.json(), dict)


def test_token_in_query(dais, stranger):
    """mcp 6.2 token-in-query: addresses are logged by everything on the way."""
    for name in ("token", "access_token", "api_key"):
        assert stranger.post(PING, path=f"/mcp?{name}={dais.admin_token}").status == 401


def test_cors_on_401(stranger):
    """mcp 6.2 cors-on-401: without it a page in a browser cannot even read that it has to sign in."""
    answer = stranger.post(PING, [("Origin", "http://localhost:5173")])
    assert answer.status == 401 and answer.lower["access-control-allow-origin"] == "http://localhost:5173"
    assert "origin" in answer.lower["vary"].lower()
    assert "www-authenticate" in answer.lower["access-control-expose-headers"].lower()


def test_preflight_noauth(stranger):
    answer = stranger.send("OPTIONS", headers=[
        ("Origin", "http://127.0.0.1:5173"), ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, mcp-param-x")])
    assert answer.status == 204
    for name in ("authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-x"):
        assert name in answer.lower["access-control-allow-headers"].lower()


@pytest.mark.parametrize("origin", ["null", "http://evil.example", "https://localhost.evil.example"])
def test_foreign_pages_are_turned_away_everywhere(wire, origin):
    """mcp 6.2 origin-null, origin-evil; a page in the person's own browser knows no token, but may try."""
    for path in ("/mcp", "/mcp/director", "/api/v1/events", "/api/v1/ops/items_read"):
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            answer = wire.send(method, path=path, headers=[("Origin", origin), ("Accept", BOTH)])
            assert answer.status == 403 and "access-control-allow-origin" not in answer.lower, (method, path)


@pytest.mark.parametrize("host,status", [("evil.example", 403), ("localhost.", 200), ("localhost:99999", 200), ("localhost:8x", 403), ("127.0.0.1", 200),
                                         ("[::1]:1", 200), ("127.0.0.1.evil.example", 403), ("", 403)])
def test_host(wire, host, status):
    """mcp 6.2 host-evil, host-trailing-dot; rebound names reach nothing."""
    answer = wire.send("POST", body=json.dumps(wire.envelope("tools/list")).encode(), host=host or " ", headers=[
        ("Content-Type", "application/json"), ("Accept", BOTH), ("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")])
    assert answer.status in ((status, 400) if status == 403 else (status,))


def test_a_refused_origin_comes_before_authentication(stranger):
    assert stranger.post(PING, [("Origin", "http://evil.example"), ("Authorization", "Bearer wrong")]).status == 403


# ---- both eras at one port ----

def test_two_eras_one_port(wire):
    """mcp 6.1: an old session and self-describing requests beside it, each answered in its own words."""
    session = wire.session("2025-06-18")
    modern, legacy = [wire.modern("tools/list").json()["result"], session.request("tools/list").json()["result"]]
    assert modern["resultType"] == "complete" and "resultType" not in legacy
    assert [tool["name"] for tool in modern["tools"]] == [tool["name"] for tool in legacy["tools"]]
    stray = wire.modern("tools/list", extra=[("Mcp-Session-Id", session.id)])
    assert stray.status == 200 and "mcp-session-id" not in stray.lower


def test_a_client_that_probes_first_falls_back(wire):
    """mcp 7: era before session, so that the answer to a probe never is "session required"."""
    probe = wire.modern("server/discover", id="server-discover-probe-1")
    assert probe.status == 200 and probe.json()["id"] == "server-discover-probe-1"
    old = wire.post({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}})
    assert (old.status, old.json()["error"]["code"]) == (400, -32600)
    assert wire.session().request("tools/list").status == 200


def test_codex_and_gemini_and_opencode_are_served_as_they_are(wire):
    """mcp 3.9: accept in the other order and id 0; no version header later; cancelling what is done."""
    codex = wire.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {"form": {}, "url": {}}},
        "clientInfo": {"name": "codex-mcp-client", "title": "Codex", "version": "0.171.0"}}}, accept="text/event-stream, application/json")
    assert codex.status == 200 and codex.json()["id"] == 0
    session = [("Mcp-Session-Id", codex.lower["mcp-session-id"])]
    listed = wire.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": 0}}}, session,
                       accept="text/event-stream, application/json")
    assert listed.result()["result"]["tools"]
    assert wire.post(PING, session).json()["result"] == {}
    assert wire.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "done"}},
                     session).status == 202
    assert wire.send("DELETE", headers=session).status == 200


def test_trailing_slash_is_the_same_endpoint(wire):
    for path in ("/mcp/", "/mcp/director/", "/mcp/knowledge/"):
        assert wire.modern("tools/list", path=path).status == 200
    assert wire.modern("tools/list", path="/mcp/nonsense").status == 404


# ---- sessions ----

def test_session_restart(new_dais):
    """mcp 6.2 session-restart, 7: the most reported fault of all is a session lost with its server."""
    server = new_dais().start()
    listen = server.url.removeprefix("http://")
    session = server.wire().session("2025-11-25")
    assert session.request("logging/setLevel", {"level": "error"}).status == 200
    server.item("written later")  # acknowledged, so the session's row, which stands before it in the queue, is on disk
    id, version = session.id, session.version
    server.kill().start(listen=listen)
    wire = server.wire()
    answer = wire.post({"jsonrpc": "2.0", "id": 5, "method": "tools/list"},
                       [("Mcp-Session-Id", id), ("MCP-Protocol-Version", version)])
    assert answer.status == 200 and answer.json()["result"]["tools"]


def test_session_foreign_principal(dais, wire):
    """mcp 6.2: another caller's session is as unknown as one that never was."""
    session = wire.session()
    other = dais.wire(dais.new_token())
    for answer in (other.post(PING, [("Mcp-Session-Id", session.id)]),
                   other.send("GET", headers=[("Mcp-Session-Id", session.id), ("Accept", "text/event-stream")]),
                   other.send("DELETE", headers=[("Mcp-Session-Id", session.id)])):
        assert answer.status == 404
        assert answer.json()["error"] == {"code": -32001, "message": "Session not found"}
    assert session.request("ping").status == 200


@pytest.mark.parametrize("id", ["unknown", "x" * 43, "\u00e4", "a b", "x" * 4000])
def test_session_unknown_and_stale_initialize(wire, id):
    """mcp 6.2, 7: clients recover on 404 alone; a stale id on initialize is no reason to lock them out."""
    answer = wire.post({"jsonrpc": "2.0", "id": "q", "method": "tools/list"}, [("Mcp-Session-Id", id)])
    assert answer.status == 404
    assert answer.json() == {"jsonrpc": "2.0", "id": "q", "error": {"code": -32001, "message": "Session not found"}}
    fresh = wire.initialize(headers=[("Mcp-Session-Id", id)])
    assert fresh.status == 200 and fresh.lower["mcp-session-id"] != id


def test_delete_then_use(wire):
    """mcp 6.2 delete-then-use: gone at once, although its row is deleted a moment later; the streams end with it."""
    for _ in range(30):
        session = wire.session()
        stream = session.get()
        assert session.delete().status == 200
        for answer in (session.request("tools/list"), session.get(), session.delete()):
            assert answer.status == 404 and answer.json()["error"]["code"] == -32001
        stream.sock.settimeout(3 * SLACK)
        assert stream.messages() == []
    assert wire.send("DELETE").status == 400


def test_parallel_init(wire):
    """mcp 6.2 parallel-init: one client opens two sessions at once; both work."""
    sessions = together([wire] * 8, lambda wire: wire.session())
    assert len({session.id for session in sessions}) == 8
    assert all(session.request("ping").status == 200 for session in sessions)


def test_session_ids_are_not_stored(dais, wire):
    """mcp 2.7: whoever reads the database cannot take over a session."""
    session = wire.session()
    eventually(lambda: session.id.encode() not in b"".join(path.read_bytes() for path in dais.state.glob("dais.db*")))


def test_get_no_session_and_get_modern(wire):
    """mcp 6.2, 7: a GET is an event stream or a refusal, never anything that invites a client to come again at once."""
    stream = [("Accept", "text/event-stream")]
    assert wire.send("GET", headers=stream).status == 400
    assert wire.send("GET", headers=[*stream, ("MCP-Protocol-Version", MODERN)]).status == 405
    assert wire.send("GET", headers=[("Accept", "text/html")]).status == 406
    session = wire.session()
    first, second = session.get(), session.get()
    assert first.status == second.status == 200 and first.is_stream and second.is_stream


@pytest.mark.slow
def test_sse_keepalive(wire):
    """mcp 6.2 sse-keepalive: a silent stream gets a comment every 15 s, so that nothing on the way cuts it."""
    stream = wire.session("2025-06-18").get()
    listening = wire.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert listening.message()
    for answer in (stream, listening):
        answer.sock.settimeout(1)
    begun = time.monotonic()
    while time.monotonic() - begun < 33 * max(1, SLACK / 4) and (stream.comments < 2 or listening.comments < 2):
        for answer in (stream, listening):
            try:
                answer.event()
            except TimeoutError:
                pass
    assert stream.comments >= 2 and listening.comments >= 2
    assert time.monotonic() - begun > 25


# ---- odd but legal HTTP, and the rest ----

def text_of(body):
    return json.dumps(body).encode()


def head(wire, *fields, method="POST", version="1.1"):
    lines = [f"{method} /mcp HTTP/{version}", f"Host: localhost:{wire.port}", f"Authorization: {wire.standing[0][1]}",
             "Content-Type: application/json", f"Accept: {BOTH}", f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: tools/list", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def test_pipelined_requests(wire):
    """mcp 6.2 pipelined-requests: answered in order, each with its own id."""
    sock = wire.connect()
    bodies = [text_of(wire.envelope("tools/list", id=n)) for n in range(10)]
    answer = wire.raw(b"".join(head(wire, f"Content-Length: {len(body)}") + body for body in bodies), sock)
    assert answer.json()["id"] == 0
    for n in range(1, 10):
        following = _next(answer)
        assert following.status == 200 and following.json()["id"] == n
        answer = following


def _next(answer):
    following = object.__new__(type(answer))
    rest = answer.rest

    class Replayed:
        """The socket, with what was read too far in front of it."""
        def recv(self, n):
            nonlocal rest
            if rest:
                given, rest = rest[:n], rest[n:]
                return given
            return answer.sock.recv(n)

        def close(self):
            answer.sock.close()

    following.__init__(Replayed())
    following.sock = answer.sock if not isinstance(answer.sock, Replayed) else answer.sock
    following.rest += rest
    return following


def test_expect_100_continue(wire):
    """mcp 6.2 expect-100-continue."""
    body = text_of(wire.envelope("tools/list", id="e"))
    sock = wire.connect()
    sock.sendall(head(wire, f"Content-Length: {len(body)}", "Expect: 100-continue"))
    assert sock.recv(4096).startswith(b"HTTP/1.1 100")
    assert wire.raw(body, sock).json()["id"] == "e"


def test_chunked_body_with_trailers(wire):
    """mcp 6.2 chunked body with trailers."""
    body = text_of(wire.envelope("tools/list", id="c"))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:]))
    sock = wire.connect()
    assert wire.raw(head(wire, "Transfer-Encoding: chunked", "Trailer: X-Sum") + chunks + b"0\r\nX-Sum: 1\r\n\r\n", sock).json()["id"] == "c"
    assert wire.modern("tools/list", sock=sock).status == 200


def test_http_1_0_client(wire):
    """mcp 6.2 HTTP/1.0 client: an answer, and the end of the connection."""
    body = text_of(wire.envelope("tools/list", id="o"))
    answer = wire.raw(head(wire, f"Content-Length: {len(body)}", version="1.0") + body)
    assert answer.status == 200 and answer.json()["id"] == "o"
    assert answer.sock.recv(1) == b""


def test_a_message_of_the_largest_size_is_read(wire):
    """mcp 2.12: 4 MiB of message, and a byte more is refused before it is read."""
    def message(n):
        shell = text_of(wire.envelope("tools/call", {"name": "items_read", "arguments": {"select": "overview"}}))
        return shell + b" " * (n - len(shell))

    headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "items_read")]
    assert wire.post(message(4 * 1024 * 1024), headers).status == 200
    over = wire.post(message(4 * 1024 * 1024 + 1), headers)
    assert over.status == 413


def test_traces_and_unknown_meta_are_taken_along(wire):
    """mcp 1.4: traceparent and what nobody knows is no fault."""
    answer = wire.call("items_read", {"select": "overview"}, meta={
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": 7, "x.y/z": {"deep": [1]}})
    assert answer.status == 200 and answer.result()["result"]["structuredContent"]["ok"]


def test_arguments_named_meta_are_ignored(wire):
    given = wire.call("items_read", {"select": "overview", "_meta": {"progressToken": 1}}).result()["result"]
    assert given["structuredContent"]["ok"], given


def test_two_sessions_never_get_each_others_answers(dais):
    """mcp 6.5 id-collision, 7: the same ids in two sessions and without one, 1,000 calls, distinct payloads."""
    wire = dais.wire()
    local = dais.local()
    items = {name: local.item(name) for name in ("one", "two", "three", "four")}
    sessions = {"one": wire.session(), "two": wire.session("2025-06-18")}
    wrong = []

    def work(name):
        sock = wire.connect()
        for n in range(250):
            arguments = {"select": "get", "itemId": items[name]}
            answer = (sessions[name].call("items_read", arguments, id=n, sock=sock) if name in sessions
                      else wire.call("items_read", arguments, id=n, sock=sock)).json()
            if answer["id"] != n or answer["result"]["structuredContent"]["data"]["item"]["title"] != name:
                wrong.append((name, n, answer))

    threads = [threading.Thread(target=work, args=(name,)) for name in items]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


@pytest.mark.parametrize("body,status,code", [
    (b"\xff", 400, -32700), (b"", 400, -32700), (b"[", 400, -32700), (b"[]", 400, -32600), (b"7", 400, -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600)])
def test_errors_carry_no_null_id(wire, body, status, code):
    """mcp 4.1: a null id is a schema error to clients, an omitted one only a line in their log."""
    answer = wire.post(body)
    error = answer.json()
    assert (answer.status, error["error"]["code"]) == (status, code) and error.get("id", 0) is not None


def test_lone_surrogates_are_the_arguments_fault(wire):
    """mcp 4.3: in arguments the model can correct it, elsewhere its client has to."""
    envelope = json.dumps(wire.envelope("tools/call", {"name": "items_write", "arguments": {
        "ops": [{"op": "create", "title": "SUR"}]}})).replace("SUR", "\\ud800").encode()
    answer = wire.post(envelope, [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "items_write")])
    result = answer.result()["result"]
    assert result["isError"] and result["structuredContent"]["error"]["code"] == "invalid_request"
    bad = json.dumps(wire.envelope("tools/call", {"name": "SUR", "arguments": {}})).replace("SUR", "\\ud800").encode()
    refused = wire.post(bad, [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "x")])
    assert refused.json()["error"]["code"] in (-32600, -32602, -32020)


@pytest.mark.parametrize("twice", ['"name":"items_read","name":"items_write"', '"name":"items_read","_meta":{},"_meta":{}'])
def test_duplicate_keys_in_the_envelope_are_refused(wire, twice):
    """mcp 4.3: header and body would disagree about which one counts."""
    meta = json.dumps({VERSION: MODERN, CAPS: {}})
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"arguments":{},"_meta":%s}}' % (twice, meta)
    answer = wire.post(body.encode(), [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "items_read")])
    assert (answer.status, answer.json()["error"]["code"]) == (400, -32600)


def test_shutting_down_is_said(new_dais):
    """mcp 4.1: during an orderly stop a subscription ends with its result, and nothing new begins."""
    server = new_dais().start()
    wire = server.wire()
    stream = wire.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="bye")
    assert stream.message()
    server.process.terminate()
    assert stream.message()["result"]["resultType"] == "complete" and stream.message() is None
    assert server.process.wait(timeout=15 * SLACK) == 0
    server.process = None
