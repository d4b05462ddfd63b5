"""The line transport: stdio, as clients and accidents use it."""
import json
import time

import pytest
from mcp_fixture import FixtureLines
from wire import CAPS, MODERN, VERSION

META = {VERSION: MODERN, CAPS: {}}


def modern(method, id, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}


def call(id, name, **arguments):
    return modern("tools/call", id, name=name, arguments=arguments)


def test_discover_then_init(line):
    line.send(modern("server/discover", "server-discover-probe-1"))
    assert line.read()["result"]["supportedVersions"] == [MODERN]
    assert line.initialize()["result"]["protocolVersion"] == "2025-11-25"
    line.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert "resultType" not in line.read()["result"]


def test_init_after_modern(line):
    line.send(modern("tools/list", 1))
    assert line.read()["result"]["resultType"] == "complete"
    error = line.initialize()["error"]
    assert error["code"] == -32022 and error["data"] == {"supported": [MODERN], "requested": "2025-11-25"}
    error = line.initialize("x" * 100000)["error"]
    assert error["code"] == -32022 and len(error["data"]["requested"]) == 64, "a refusal is no echo"


def test_modern_after_init(line):
    line.initialize()
    line.send(modern("tools/list", 1))
    assert line.read()["result"]["resultType"] == "complete"


def test_not_initialized(line):
    line.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert line.read()["error"]["code"] == -32600
    line.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert line.read()["result"] == {}


def test_second_initialize_is_answered(line):
    line.initialize("2025-06-18")
    assert line.initialize("2025-03-26", id=9)["result"]["protocolVersion"] == "2025-03-26"


def test_split_bytes(line):
    for byte in json.dumps(modern("tools/list", 1)).encode() + b"\n":
        line.write(bytes([byte]))
    assert line.read()["id"] == 1


def test_glued(line):
    line.send(*[modern("tools/list", i) for i in range(50)])
    assert [line.read()["id"] for _ in range(50)] == list(range(50))


def test_crlf_bom_and_blank_lines(line):
    text = json.dumps(modern("tools/list", 1)).encode()
    line.write(b"\xef\xbb\xbf" + text + b"\r\n\r\n\n  \n" + text + b"\n")
    assert line.read()["id"] == line.read()["id"] == 1


@pytest.mark.parametrize("bad,code", [(b"{", -32700), (b"\xff", -32700), (b"[]", -32600), (b"7", -32600),
                                      (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600)])
def test_bad_line_then_good(line, bad, code):
    line.write(bad + b"\n")
    error = line.read()
    assert error["error"]["code"] == code and "id" not in error
    line.send(modern("tools/list", 1))
    assert line.read()["id"] == 1


def test_oversize_line(line):
    line.write(b"x" * (5 * 1024 * 1024) + b"\n")
    error = line.read()
    assert error["error"]["code"] == -32600 and "id" not in error
    line.send(modern("tools/list", 1))
    assert line.read()["id"] == 1


def test_message_of_some_megabytes(line):
    line.send(call(1, "test_echo", text="x" * 300000))
    assert len(line.read()["result"]["structuredContent"]["text"]) == 300000


def test_requests_run_concurrently(line):
    line.send(call("slow", "slow_compute", seconds=0.3), call("fast", "test_simple_text"))
    assert [line.read()["id"] for _ in range(2)] == ["fast", "slow"]


def test_duplicate_inflight_id(line):
    line.send(call(5, "slow_compute", seconds=0.3), modern("tools/list", 5))
    error = line.read()
    assert error["id"] == 5 and error["error"]["code"] == -32600
    assert line.read()["result"]["content"]


def test_cancel(line):
    line.send(call("long", "slow_compute", seconds=30),
              {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long", "_meta": {"x": 1}}})
    line.send(call("n", "test_in_flight"))
    assert line.read()["result"]["content"][0]["text"] == "1"


def test_cancel_done_request(line):
    line.send(modern("tools/list", 1))
    line.read()
    line.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    rest, _ = line.end()
    assert rest == []


def test_response_to_nothing_is_ignored(line):
    line.send({"jsonrpc": "2.0", "id": 1, "result": {}}, modern("tools/list", 2))
    assert line.read()["id"] == 2


def test_listen(line):
    line.send(modern("subscriptions/listen", 0, notifications={"toolsListChanged": True}))
    assert line.read()["method"] == "notifications/subscriptions/acknowledged"
    line.send(call(1, "test_trigger_tool_change"))
    assert {line.read().get("method"), line.read().get("method")} == {"notifications/tools/list_changed", None}
    line.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}})
    line.send(call(2, "test_trigger_tool_change"))
    assert line.read()["id"] == 2


def test_legacy_notices(line):
    line.initialize()
    line.send({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "test://watched-resource"}})
    assert line.read()["result"] == {}
    line.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "test_trigger_resource_change", "arguments": {"uri": "test://watched-resource"}}})
    assert {line.read().get("method"), line.read().get("method")} == {"notifications/resources/updated", None}


def test_batch(line):
    line.initialize("2025-03-26")
    line.write(json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, 7,
                           {"jsonrpc": "2.0", "method": "notifications/initialized"}]).encode() + b"\n")
    answers = line.read()
    assert len(answers) == 2 and sum("error" in a for a in answers) == 1
    line.initialize("2025-11-25")
    line.write(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n')
    assert line.read()["error"]["code"] == -32600


def test_eof_exit():
    line = FixtureLines()
    line.send(modern("tools/list", 1))
    rest, took = line.end()
    assert [m["id"] for m in rest] == [1] and took < 1


def test_eof_during_wait():
    line = FixtureLines()
    line.send(call(1, "slow_compute", seconds=30), call(2, "slow_compute", seconds=0.2))
    time.sleep(0.1)
    rest, took = line.end()
    assert [m["id"] for m in rest] == [2] and took < 2
