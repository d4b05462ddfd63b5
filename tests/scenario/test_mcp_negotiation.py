"""Which era and version a message has, at the level of the protocol library (mcp 6.1)."""
import pytest
from mcp_fixture import Fixture
from wire import CAPS, MODERN, SERVER, VERSION, code


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
