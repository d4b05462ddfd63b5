"""What a message may be and what answers it (mcp 4, 6.4)."""
import json
import time

import pytest
from wire import code


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
    def took(work):
        begun = time.monotonic()
        work()
        return time.monotonic() - begun

    def read():
        answer = fx.modern("resources/read", {"uri": "test://template/" + "a" * 1000000 + "/data"}, drop=["Mcp-Name"])
        assert code(answer) == -32602

    # No slower than as much text that is read and given back.
    assert min(took(read) for _ in range(3)) < 2 * min(took(lambda: fx.call("test_echo", {"t": "a" * 1000000}).json()) for _ in range(3))


def test_result_too_large(fx):
    result = fx.call("test_big", {"bytes": 2000000}).json()["result"]
    assert result["isError"] is True and result["structuredContent"]["code"] == "payload_too_large"
