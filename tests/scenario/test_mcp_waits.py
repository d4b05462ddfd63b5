"""Calls that wait, at the level of the protocol library: progress, cancelling, and what never follows (mcp 6.4, 3.4)."""
import time

import pytest
from wire import CAPS, MODERN, VERSION, Session, eventually


def rising(messages, token):
    """The progress of one call: its token with its type, strictly rising, the first at once; then the result alone."""
    *steps, last = messages
    assert "result" in last and len(steps) >= 2
    assert all(step["method"] == "notifications/progress" for step in steps)
    values = [step["params"]["progress"] for step in steps]
    assert values == sorted(set(values)), values
    for step in steps:
        given = step["params"]["progressToken"]
        assert given == token and type(given) is type(token)
        assert "total" not in step["params"] and len(step["params"]["message"]) <= 200


@pytest.mark.parametrize("token", [0, 7, "", "tok"])
def test_progress_in_the_modern_era(fx, token):
    """mcp 6.4 progress: token 0, a number, a string."""
    rising(fx.call("slow_compute", {"seconds": 0.8}, meta={"progressToken": token}).messages(), token)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("token", [0, "tok"])
def test_progress_in_a_session(fx, version, token):
    session = fx.session(version)
    answer = session.request("tools/call", {"name": "slow_compute", "arguments": {"seconds": 0.8}, "_meta": {"progressToken": token}})
    rising(answer.messages(), token)


def test_progress_on_a_line(line):
    line.send({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {
        "name": "slow_compute", "arguments": {"seconds": 0.8}, "_meta": {VERSION: MODERN, CAPS: {}, "progressToken": 0}}})
    answer = line.answer(0)
    rising([*line.passed, answer], 0)
    rest, _ = line.end()
    assert rest == []  # none after the result


def test_no_progress_without_a_token_or_for_who_takes_json_alone(fx):
    """mcp 3.4: nobody gets what was not asked for; one JSON object has no place for it."""
    assert len(fx.call("slow_compute", {"seconds": 0.4}).messages()) == 1
    answer = fx.call("slow_compute", {"seconds": 0.4}, meta={"progressToken": 1}, accept="application/json")
    assert not answer.is_stream and answer.json()["result"]


def test_progress_at_most_four_times_a_second(fx):
    """mcp 6.5 progress-flood: the handler reports every 50 ms, a client is told at most every 250."""
    begun = time.monotonic()
    messages = fx.call("slow_compute", {"seconds": 1.5}, meta={"progressToken": 1}).messages()
    assert 4 <= len(messages) - 1 <= 4 * (time.monotonic() - begun) + 2


@pytest.mark.parametrize("wants", [{}, {"progressToken": 1}])
def test_cancelling_a_wait_in_each_era(fx, line, wants):
    """mcp 3.4, 6.2: by leaving (modern), by a notice (legacy, line); the wait is freed at once and nothing more is said."""
    def waiting():
        return int(fx.text("test_in_flight")) - 1

    modern = fx.call("slow_compute", {"seconds": 60}, meta=wants)
    session = fx.session()
    legacy = session.request("tools/call", {"name": "slow_compute", "arguments": {"seconds": 60}, "_meta": wants}, id="w")
    assert waiting() == 2
    modern.close()
    eventually(lambda: waiting() == 1, 1)
    assert session.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}}).status == 202
    assert all("result" not in message for message in legacy.messages())  # it ends without an answer
    eventually(lambda: waiting() == 0, 1)
    line.send({"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": {
        "name": "slow_compute", "arguments": {"seconds": 60}, "_meta": {VERSION: MODERN, CAPS: {}, **wants}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}})
    assert line.call("test_in_flight")["result"]["content"][0]["text"] == "1"
    rest, took = line.end()
    assert rest == [] and took < 1


def test_a_cancel_of_another_session_reaches_nothing(fx):
    """mcp 2.7: matched inside the session alone, whatever the id."""
    one, two = fx.session(), fx.session()
    answer = one.call("slow_compute", {"seconds": 0.5}, id="same")
    assert two.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "same"}}).status == 202
    assert answer.result()["result"]["content"][0]["text"] == "Computed."


def test_a_legacy_client_that_leaves_finds_progress_and_result_when_it_comes_back(fx):
    """mcp 6.2 legacy-disconnect-continues: leaving is no cancelling; each event is given again, once, in order."""
    session = fx.session()
    answer = session.request("tools/call", {"name": "slow_compute", "arguments": {"seconds": 1.0}, "_meta": {"progressToken": 5}}, id=9)
    last = answer.event()["id"]
    answer.close()
    time.sleep(1.1)
    messages = session.get(last).messages()
    rising(messages, 5)
    assert messages[-1]["id"] == 9


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


def test_legacy_cancel(fx):
    session = fx.session()
    answer = session.call("slow_compute", {"seconds": 30}, id="c")
    assert session.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}).status == 202
    assert answer.messages() == []
    for id in ("c", 12345):
        assert session.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": {"requestId": id, "_meta": {}}}).status == 202


def test_modern_disconnect_cancels(fx):
    waiting = fx.call("slow_compute", {"seconds": 30})
    assert int(fx.text("test_in_flight")) == 2
    waiting.close()
    eventually(lambda: int(fx.text("test_in_flight")) == 1, 1)


@pytest.mark.parametrize("client,seconds", [(None, 50), ("somebody", 50), ("codex-mcp-client", 240), ("claude-code", 240)])
def test_wait_slice(fx, line, client, seconds):
    """mcp 6.4 wait-slice, 3.4: who is known to hold five minutes is let wait four; everybody else gets an answer before a minute."""
    meta = {"io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}} if client else {}
    assert fx.text("test_wait_slice", meta=meta) == line.call("test_wait_slice", meta=meta)["result"]["content"][0]["text"] == str(seconds * 1000)
    if client:
        hello = fx.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}})
        session = Session(fx, hello.lower["mcp-session-id"], "2025-06-18")
        assert session.call("test_wait_slice").result()["result"]["content"][0]["text"] == str(seconds * 1000)
