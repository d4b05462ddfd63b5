"""The scripted agent over its pipes: it behaves like a well-made agent of the Agent Client Protocol, and each step of a
scenario does what the manual says."""
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.parse

import pytest

from acp_client import Gone, Scripted
from harness import PROGRAM, ROOT, until
from mcp_loopback import McpServer

pytestmark = pytest.mark.concurrent  # each session is a thread

FORMS = {"elicitation": {"form": {}}}


@pytest.fixture
def home(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path


@pytest.fixture
def play(home):
    """play(scenario): the agent, greeted and with a session in `work`. More of them share the home."""
    agents = []

    def make(scenario, servers=(), begin=True, capabilities=FORMS, **variables):
        agents.append(Scripted(home, scenario, **variables))
        if begin:
            agents[-1].initialize(**capabilities)
            agents[-1].new(home / "work", servers)
        return agents[-1]

    yield make
    for agent in agents:
        agent.finish()


def steps(*lines):
    """A scenario whose only turn has these steps, each a line of YAML."""
    return "turns:\n  - steps:\n" + "".join(f"      - {line}\n" for line in lines)


# ---- the protocol ----

def test_it_tells_what_it_can_do(play):
    agent = play("models: [small, large]\n", begin=False)
    hello = agent.initialize()
    assert hello["protocolVersion"] == 1 and hello["authMethods"] == []
    can = hello["agentCapabilities"]
    assert can["loadSession"] and can["mcpCapabilities"]["http"]
    assert can["sessionCapabilities"] == {"resume": {}, "close": {}}
    assert hello["_meta"]["steering"]["supported"]
    assert hello["agentInfo"]["name"] == "dais-script"


def test_what_is_hidden_is_neither_told_nor_done(play, home):
    agent = play("without: [mcp, loadSession, resume, close, steering, models, modes]\n", begin=False)
    hello = agent.initialize()
    assert not hello["agentCapabilities"]["loadSession"] and not hello["agentCapabilities"]["mcpCapabilities"]["http"]
    assert hello["agentCapabilities"]["sessionCapabilities"] == {} and "_meta" not in hello
    session = agent.new(home / "work")
    assert "models" not in session and "modes" not in session and session["configOptions"] == []
    place = {"sessionId": agent.session, "cwd": str(home), "mcpServers": []}
    for method in ("session/load", "session/resume", "session/close", "session/set_mode", "session/set_model", "_session/steering"):
        assert agent.error(method, {**place, "prompt": []})["code"] == -32601


def test_a_prompt_that_matches_nothing_is_echoed(play):
    agent = play("turns: []\n")
    result = agent.prompt("good day")
    assert agent.text() == "echo: good day" and result["stopReason"] == "end_turn"
    assert result["usage"]["outputTokens"] > 0 and result["usage"]["totalTokens"] > 0


def test_no_usage_where_it_is_hidden(play):
    agent = play("without: [usage]\n" + steps("usage: {input: 1}"))
    assert agent.prompt("x") == {"stopReason": "end_turn"}
    assert agent.updates == []


def test_nothing_goes_before_initialize(play):
    agent = play("", begin=False)
    assert agent.error("session/new", {"cwd": "/", "mcpServers": []})["code"] == -32600
    agent.initialize()
    assert agent.error("session/nothing")["code"] == -32601
    assert agent.error("session/new", {"cwd": "relative", "mcpServers": []})["code"] == -32602
    assert agent.error("session/prompt", {"sessionId": "none", "prompt": []})["code"] == -32002


def test_ids_come_back_with_their_type(play):
    agent = play("", begin=False)
    agent.send({"id": "a-1", "method": "initialize", "params": {"protocolVersion": 1}})
    assert agent.answer("a-1")["result"]
    agent.write(b"this is no JSON\n")
    assert agent.answer(None)["error"]["code"] == -32700


def test_the_answer_to_initialize_can_be_late(play):
    agent = play("init_delay_ms: 300\n", begin=False)
    begun = time.monotonic()
    agent.initialize()
    assert time.monotonic() - begun >= 0.3


def test_a_session_needs_authentication(play, home):
    agent = play("auth: required\n", begin=False)
    method = agent.initialize()["authMethods"][0]["id"]
    place = {"cwd": str(home), "mcpServers": []}
    assert agent.error("session/new", place)["code"] == -32000
    assert agent.error("authenticate", {"methodId": "other"})["code"] == -32602
    agent.result("authenticate", {"methodId": method})
    agent.new(home)
    assert agent.prompt("x")["stopReason"] == "end_turn"


def test_models_and_modes_can_be_chosen_in_every_way(play):
    agent = play("models: [small, large]\n" + steps('text: "{{model}} {{mode}}"'))
    agent.prompt("x")
    assert agent.text() == "small default"
    assert agent.result("session/set_model", {"sessionId": agent.session, "modelId": "large"}) == {}
    assert agent.result("session/set_mode", {"sessionId": agent.session, "modeId": "plan"}) == {}
    agent.prompt("x")
    assert agent.text() == "large plan"
    options = agent.result("session/set_config_option", {"sessionId": agent.session, "configId": "model", "value": "small"})
    assert {option["id"]: option["currentValue"] for option in options["configOptions"]} == {"model": "small", "mode": "plan"}
    agent.prompt("x")
    assert agent.text() == "small plan"
    for method, params in (("session/set_model", {"modelId": "huge"}), ("session/set_mode", {"modeId": "x"}),
                           ("session/set_config_option", {"configId": "model", "value": "x"})):
        assert agent.error(method, {"sessionId": agent.session, **params})["code"] == -32602


def test_the_first_turn_that_matches_is_played_as_often_as_it_says(play):
    agent = play("""
turns:
  - {when: "add (a|the) parser", times: 1, steps: [{text: first}]}
  - {when: parser$, steps: [{text: second}]}
""")
    said = []
    for prompt in ("add a parser", "add a parser", "parser please", "the parser"):
        agent.prompt(prompt)
        said.append(agent.text())
    assert said == ["first", "second", "echo: parser please", "second"]


def test_a_second_prompt_waits_for_the_first(play):
    agent = play(steps("until_steered: true", 'text: "{{prompt}} {{steer}} {{turn}};"'))
    first, second = agent.begin("one"), agent.begin("two")
    assert agent.steer("a") == {"outcome": "injected"}
    agent.answer(first)
    assert second not in agent.answers and agent.text() == "one a 1;"
    agent.steer("b")
    agent.answer(second)
    assert agent.text() == "one a 1;two b 2;"


def test_two_sessions_of_one_process_do_not_wait_for_each_other(play, home):
    agent = play(steps("until_steered: true", "cwd: true"))
    waiting, first = agent.begin("x"), agent.session
    agent.new(home)
    other = agent.begin("y")
    agent.steer("go")
    assert agent.answer(other)["result"]["stopReason"] == "end_turn"
    assert waiting not in agent.answers and agent.text() == str(home)
    agent.session = first
    agent.steer("go")
    agent.answer(waiting)


def test_steering_without_a_turn_begins_one(play):
    agent = play(steps('text: "I: {{prompt}}"'))
    assert agent.steer("surprise") == {"outcome": "startedNewTurn"}
    agent.until(lambda: agent.text() == "I: surprise")


# ---- cancelling ----

def test_a_cancel_ends_the_turn_and_those_that_wait(play):
    agent = play(steps("text: before", "until_cancelled: true", "text: after"))
    first, second = agent.begin("x"), agent.begin("y")
    agent.until(lambda: agent.text() == "before")
    agent.cancel()
    assert agent.answer(first)["result"]["stopReason"] == "cancelled"
    assert agent.answer(second)["result"]["stopReason"] == "cancelled"
    assert agent.text() == "before"


@pytest.mark.parametrize("step", ["sleep_ms: 3600000", "run: [sleep, '3600']", "until_steered: true",
                                  "tool: {title: t, duration_ms: 3600000}", "{text: ab, chunk: 1, delay_ms: 3600000}",
                                  "ask: {title: t}", "question: {text: t}"])
def test_every_step_that_waits_can_be_cancelled(play, step):
    agent = play(steps("tool: {title: begun}", step, "text: after"))
    running = agent.begin("x")
    agent.until(lambda: len(agent.updates) > 1)
    agent.cancel()
    assert agent.answer(running)["result"]["stopReason"] == "cancelled"
    assert "after" not in agent.text()
    assert agent.tool()["status"] in ("completed", "failed")


def test_a_cancelled_program_is_ended(play, home):
    agent = play(steps("run: [sh, -c, 'echo $$ >pid; exec sleep 3600']"))
    running = agent.begin("x")
    pid = int(until(lambda: (home / "work/pid").exists() and (home / "work/pid").read_text()))
    agent.cancel()
    agent.answer(running)
    assert agent.tool()["rawOutput"] == {"signal": signal.SIGTERM}
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_request_can_be_withdrawn(play):
    agent = play(steps("until_cancelled: true"))
    running = agent.begin("x")
    agent.notify("$/cancel_request", {"requestId": running})
    assert agent.answer(running)["error"]["code"] == -32800


def test_a_turn_may_ignore_cancelling(play):
    agent = play(steps("ignore_cancel: true", "text: now", "until_steered: true", "text: ' still here'"))
    running = agent.begin("x")
    agent.until(lambda: agent.text() == "now")
    agent.cancel()
    agent.steer("go on")
    assert agent.answer(running)["result"]["stopReason"] == "end_turn" and agent.text() == "now still here"


def test_cancelling_can_be_hidden(play):
    agent = play("without: [cancel]\n" + steps("until_steered: true"))
    running = agent.begin("x")
    agent.cancel()
    agent.steer("go on")
    assert agent.answer(running)["result"]["stopReason"] == "end_turn"


def test_a_closed_session_is_gone(play):
    agent = play(steps("until_cancelled: true"))
    running = agent.begin("x")
    agent.result("session/close", {"sessionId": agent.session})
    assert agent.answer(running)["result"]["stopReason"] == "cancelled"
    assert agent.error("session/prompt", {"sessionId": agent.session, "prompt": []})["code"] == -32002


def test_the_end_of_stdin_is_the_end(play):
    agent = play(steps("until_cancelled: true"))
    agent.begin("x")
    assert agent.end() == 0


# ---- what it says ----

def test_text_and_thoughts_are_streamed_in_chunks(play):
    agent = play(steps("{text: 'grün und blau', chunk: 4}", "{reasoning: hmm, chunk: 1, delay_ms: 1}"))
    agent.prompt("x")
    assert [u["content"]["text"] for u in agent.updates if u["sessionUpdate"] == "agent_message_chunk"] == ["grün", " und", " bla", "u"]
    assert agent.text("agent_thought_chunk") == "hmm"
    assert len({u["messageId"] for u in agent.updates}) == 2


def test_a_plan_a_tool_and_usage(play):
    agent = play(steps("plan: [{content: dig, status: completed}, {content: fill, status: pending}]",
                       "tool: {kind: read, title: 'read {{prompt}}', output: lines, status: failed, duration_ms: 1}",
                       "usage: {input: 10, cached: 20, output: 3, reasoning: 2}", "usage: {input: 5}"))
    result = agent.prompt("x.c")
    assert [(e["content"], e["status"]) for e in agent.updates[0]["entries"]] == [("dig", "completed"), ("fill", "pending")]
    tool = agent.tool()
    assert (tool["kind"], tool["title"], tool["status"]) == ("read", "read x.c", "failed")
    assert tool["content"][0]["content"]["text"] == "lines"
    assert [u["used"] for u in agent.updates if u["sessionUpdate"] == "usage_update"] == [35, 40]
    assert result["usage"] == {"totalTokens": 40, "inputTokens": 15, "outputTokens": 3, "cachedReadTokens": 20, "thoughtTokens": 2}


def test_a_tool_may_say_eight_megabytes(play):
    agent = play(steps("tool: {title: big, output: 'zwölf ', output_bytes: 8388608}"))
    agent.prompt("x")
    text = agent.tool()["content"][0]["content"]["text"]
    assert 8388608 - 4 < len(text.encode()) <= 8388608 and text.startswith("zwölf zwölf")


def test_results_are_json_text(play):
    agent = play(steps("result: {verdict: pass, findings: [1, 2.5, true, null, '3', '{{prompt}}']}", 'result_text: "{open"'))
    agent.prompt("x")
    said = [u["content"]["text"] for u in agent.updates]
    assert json.loads(said[0]) == {"verdict": "pass", "findings": [1, 2.5, True, None, "3", "x"]}
    assert said[1] == "{open"


def test_env_never_tells_a_value(play):
    agent = play(steps("env: PROBE", "env: NO_PROBE"), PROBE="hidden-value")
    agent.prompt("x")
    assert agent.text() == "PROBE is setNO_PROBE is not set"
    assert b"hidden-value" not in b"".join(agent.lines)


def test_cwd_is_the_one_of_the_session(play, home):
    agent = play(steps("cwd: true", "run: [pwd]"))
    agent.prompt("x")
    assert agent.text() == str(home / "work")
    assert agent.tool()["content"][0]["content"]["text"] == f"{home}/work\n"


# ---- what it does ----

def test_run_tells_output_and_exit_code(play):
    agent = play(steps("run: [sh, -c, 'echo out; echo err >&2; printf \"\\377\"; exit 3']", "run: ['true']", "run: [/no/such]",
                       "run: [sh, -c, 'kill -9 $$']"))
    agent.prompt("x")
    first, fine, missing, killed = (agent.tool(i) for i in range(4))
    assert first["kind"] == "execute" and first["rawInput"]["argv"][0] == "sh" and first["status"] == "failed"
    assert first["content"][0]["content"]["text"] == "out\nerr\n\ufffd" and first["rawOutput"] == {"exit_code": 3}
    assert (fine["status"], fine["rawOutput"]) == ("completed", {"exit_code": 0})
    assert (missing["status"], missing["rawOutput"]) == ("failed", {"exit_code": 127})
    assert killed["rawOutput"] == {"signal": 9}


def test_a_grandchild_that_keeps_the_pipe_does_not_hold_the_turn(play, home):
    agent = play(steps("run: [sh, -c, 'sleep 3600 & echo $!']"))
    agent.prompt("x")
    os.kill(int(agent.tool()["content"][0]["content"]["text"]), signal.SIGKILL)
    assert agent.tool()["status"] == "completed"


def test_spawn_leaves_an_orphan(play):
    agent = play(steps("spawn: [sleep, '3600']"))
    agent.prompt("x")
    pid = agent.tool()["rawOutput"]["pid"]
    try:
        assert os.getsid(pid) == pid
        assert agent.end() == 0
        os.kill(pid, 0)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_files_are_written_and_deleted(play, home):
    agent = play(steps("write_file: {path: a/b.txt, text: \"one\\n\"}", "write_file: {path: a/b.txt, text: two}",
                       "delete_file: a/b.txt", "delete_file: a/b.txt", "write_file: {path: '{{prompt}}', text: x}"))
    agent.prompt(str(home / "elsewhere"))
    path = str(home / "work/a/b.txt")
    new, changed, deleted, again, other = (agent.tool(i) for i in range(5))
    assert new["kind"] == "edit" and new["content"] == [{"type": "diff", "path": path, "oldText": None, "newText": "one\n"}]
    assert changed["content"][0]["oldText"] == "one\n" and changed["locations"] == [{"path": path}]
    assert deleted["kind"] == "delete" and deleted["status"] == "completed" and not os.path.exists(path)
    assert again["status"] == "failed" and other["status"] == "completed"
    assert (home / "elsewhere").read_text() == "x"


# ---- asking ----

ASKING = steps("ask: {title: 'rm {{prompt}}', kind: delete, on_deny: ON}", "text: went on")


def choose(agent, kind):
    request = agent.wait_asked("session/request_permission")
    option = next(o for o in request["params"]["options"] if o["kind"] == kind)
    agent.reply(request, {"outcome": {"outcome": "selected", "optionId": option["optionId"]}})
    return request


def test_permission_once(play):
    agent = play(ASKING.replace("ON", "end"))
    running = agent.begin("x")
    request = choose(agent, "allow_once")
    assert request["id"] == 0  # agents count from 0
    assert {o["kind"] for o in request["params"]["options"]} == {"allow_once", "allow_always", "reject_once"}
    assert (request["params"]["toolCall"]["title"], request["params"]["toolCall"]["kind"]) == ("rm x", "delete")
    assert agent.answer(running)["result"]["stopReason"] == "end_turn" and agent.text() == "went on"
    second = agent.begin("x")
    choose(agent, "allow_once")
    agent.answer(second)


def test_permission_for_the_session_is_asked_once(play):
    agent = play(ASKING.replace("ON", "end"))
    running = agent.begin("x")
    choose(agent, "allow_always")
    agent.answer(running)
    agent.prompt("again")
    assert agent.text() == "went on" and agent.asked == []


@pytest.mark.parametrize("on_deny, said", [("end", ""), ("continue", "went on")])
def test_a_no_ends_the_turn_or_not(play, on_deny, said):
    agent = play(ASKING.replace("ON", on_deny))
    running = agent.begin("x")
    choose(agent, "reject_once")
    assert agent.answer(running)["result"]["stopReason"] == "end_turn"
    assert agent.text() == said and agent.tool()["status"] == "failed"


def test_the_cancelled_outcome_is_a_no(play):
    agent = play(ASKING.replace("ON", "continue"))
    running = agent.begin("x")
    agent.reply(agent.wait_asked("session/request_permission"), {"outcome": {"outcome": "cancelled"}})
    agent.answer(running)
    assert agent.tool()["status"] == "failed"


def test_without_permissions_nothing_is_asked(play):
    agent = play("without: [permissions]\n" + ASKING.replace("ON", "end"))
    agent.prompt("x")
    assert agent.text() == "went on" and agent.asked == []


QUESTION = steps("question: {text: Which database?, options: [SQLite, PostgreSQL]}", "text: 'you said {{answer}}'")


def test_a_question_is_a_form(play):
    agent = play(QUESTION)
    running = agent.begin("x")
    request = agent.wait_asked("elicitation/create")
    assert request["params"]["mode"] == "form" and request["params"]["message"] == "Which database?"
    field = request["params"]["requestedSchema"]["properties"]["answer"]
    assert [choice["const"] for choice in field["oneOf"]] == ["SQLite", "PostgreSQL"]
    agent.reply(request, {"action": "accept", "content": {"answer": "SQLite"}})
    agent.answer(running)
    assert agent.text() == "you said SQLite"
    running = agent.begin("x")
    agent.updates.clear()
    agent.reply(agent.wait_asked("elicitation/create"), {"action": "decline"})
    agent.answer(running)
    assert agent.text() == "you said "


@pytest.mark.parametrize("hide, capabilities", [("without: [questions]\n", FORMS), ("", {})])
def test_a_question_needs_a_client_that_shows_forms(play, hide, capabilities):
    agent = play(hide + QUESTION, capabilities=capabilities)
    agent.prompt("x")
    assert agent.text() == "you said " and agent.asked == []


# ---- ends ----

@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal"])
def test_stop_reasons(play, reason):
    agent = play(steps(f"stop: {reason}", "text: never"))
    assert agent.prompt("x")["stopReason"] == reason and agent.updates == []


@pytest.mark.parametrize("fail, error", [
    ("{code: rate_limited}", {"code": -32003, "message": "Rate limited", "data": {"errorKind": "rate_limited", "http_status": 429}}),
    ("{code: auth_required, message: 'log in, {{prompt}}'}",
     {"code": -32000, "message": "log in, x", "data": {"errorKind": "auth_required"}}),
    ("{code: model_error, http: 503}",
     {"code": -32603, "message": "The model server failed", "data": {"errorKind": "model_error", "http_status": 503}}),
    ("{code: -32099, message: odd}", {"code": -32099, "message": "odd"}),
])
def test_failures_are_json_rpc_errors(play, fail, error):
    agent = play(steps("text: before", f"fail: {fail}", "text: never"))
    assert agent.answer(agent.begin("x"))["error"] == error
    assert agent.text() == "before"


def test_exit_is_at_once(play):
    agent = play(steps("text: last words", "exit: 3"))
    agent.begin("x")
    assert agent.wait_end() == 3
    with pytest.raises(Gone):
        agent.until(lambda: False)
    assert agent.text() == "last words"


@pytest.mark.parametrize("number", [9, 11, 13, 15])
def test_death_by_a_signal(play, number):
    agent = play(steps(f"signal: {number}"))
    agent.begin("x")
    assert agent.wait_end() == -number


def test_a_hanging_agent_neither_reads_nor_writes(play):
    agent = play(steps("text: now", "hang: true"))
    agent.begin("x")
    agent.until(lambda: agent.text() == "now")
    filled = 0
    os.set_blocking(agent.process.stdin.fileno(), False)
    try:
        while filled < 10_000_000:
            filled += os.write(agent.process.stdin.fileno(), b'{"jsonrpc":"2.0","id":9,"method":"initialize"}\n' * 50)
    except BlockingIOError:
        pass
    assert filled < 1_000_000, "somebody reads"
    assert agent.process.poll() is None and len(agent.lines) == 3


# ---- what no agent should write ----

def test_raw_bytes_stay_as_they_are(play):
    agent = play(steps('raw: "garbage \\xff\\xfe{{turn}}\\n"', 'raw: "{{open}}\\u20ac\\r\\n"', 'raw: "no end"'))
    running = agent.begin("x")
    agent.until(lambda: len(agent.garbage) == 3)
    assert agent.garbage[:2] == [b"garbage \xff\xfe1\n", b"{{\xe2\x82\xac\r\n"]
    assert agent.garbage[2].startswith(b'no end{"jsonrpc"') and running not in agent.answers


def test_a_flood_of_updates_and_of_garbage(play):
    agent = play(steps("flood: {lines: 500, bytes: 300}", "raw_flood: {lines: 100, bytes: 50}",
                       "flood: {lines: 3, bytes: 1000, to: stderr}"))
    agent.prompt("x")
    floods = [line for line in agent.lines if b"agent_message_chunk" in line]
    assert len(floods) == 500 and {len(line) for line in floods} == {301}
    assert len(agent.garbage) == 100 and {len(line) for line in agent.garbage} == {51}
    until(lambda: len(agent.errors) == 3)
    assert {len(line) for line in agent.errors} == {1001}


def test_a_line_of_64_mebibytes(play):
    agent = play(steps("flood: {lines: 1, bytes: 67108864}"))
    agent.prompt("x")
    assert max(len(line) for line in agent.lines) == 67108865


def test_a_flood_can_be_cancelled(play):
    agent = play(steps("flood: {lines: 100000000, bytes: 400}"))
    running = agent.begin("x")
    agent.until(lambda: agent.updates)
    agent.cancel()
    assert agent.answer(running)["result"]["stopReason"] == "cancelled"


# ---- continuity ----

REMEMBERING = """
turns:
  - {when: keep, times: 1, steps: [{remember: {colour: "{{prompt}}", word: blue}}, {text: kept}, {tool: {title: t, output: o}}]}
  - {when: die, steps: [{remember: {word: red}}, {exit: 1}]}
  - {when: tell, steps: [{recall: colour}, {text: "/"}, {recall: word}, {text: "/{{turn}}/"}, {recall: none}]}
"""


def test_another_process_goes_on_where_the_first_one_stopped(play, home):
    first = play(REMEMBERING)
    first.prompt("keep it")
    first.prompt("keep it")
    assert first.text() == "echo: keep it"
    first.begin("die")
    assert first.wait_end() == 1

    second = play(REMEMBERING, begin=False)
    second.initialize()
    place = {"sessionId": first.session, "cwd": str(home), "mcpServers": []}
    answer = second.result("session/load", place)
    assert answer["models"]["currentModelId"] == "scripted"
    assert second.text("user_message_chunk") == "keep itkeep itdie" and second.text() == "keptecho: keep it"
    assert second.tool()["status"] == "completed"
    second.session = first.session
    second.prompt("tell")
    assert second.text() == "keep it/red/4/nothing is remembered as none"

    third = play(REMEMBERING, begin=False)
    third.initialize()
    third.result("session/resume", place)
    assert third.updates == []
    third.session = first.session
    third.prompt("keep it")
    assert third.text() == "echo: keep it"  # its one time is used up


@pytest.mark.parametrize("id", ["00000000-0000-4000-8000-000000000000", "../scenario", ""])
def test_an_unknown_session_cannot_be_loaded(play, home, id):
    agent = play("")
    assert agent.error("session/load", {"sessionId": id, "cwd": str(home), "mcpServers": []})["code"] == -32002


def test_a_damaged_session_file_is_told(play, home):
    agent = play("")
    (home / f".dais-script/{agent.session}.json").write_text("{\n")
    other = play("", begin=False)
    other.initialize()
    error = other.error("session/load", {"sessionId": agent.session, "cwd": str(home), "mcpServers": []})
    assert error["code"] == -32603 and "damaged" in error["message"]


def test_session_files_are_private_and_where_the_environment_says(play, home):
    agent = play("", XDG_STATE_HOME=str(home / "xdg"))
    agent.prompt("x")
    (file,) = (home / "xdg/dais-script").iterdir()
    assert file.name == f"{agent.session}.json" and file.stat().st_mode & 0o777 == 0o600


# ---- MCP ----

@pytest.fixture
def serve():
    servers = []

    def make(*args, **more):
        servers.append(McpServer(*args, **more))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.mark.parametrize("stream", [False, True])
def test_mcp_really_calls_the_injected_server(play, serve, stream):
    server = serve({"add": lambda a: {"sum": a["a"] + a["b"], "items": [{"id": "i-1"}], "flag": True}}, stream=stream)
    agent = play(steps("mcp: {tool: add, arguments: {a: 1, b: 2, note: 'for {{prompt}}', deep: {list: ['4', null]}}, save: made}",
                       "text: '{{made.sum}} {{made.items.0.id}} {{made.flag}} [{{made.none.x}}]'",
                       "mcp: {tool: add, arguments: {a: '{{made.sum}}', b: 10}, save: more}", "text: ' {{more.sum}}'"),
                 servers=[server.entry])
    agent.prompt("x")
    assert agent.text() == "3 i-1 true [] 13"
    assert server.calls[0]["arguments"] == {"a": 1, "b": 2, "note": "for x", "deep": {"list": ["4", None]}}
    tool = agent.tool(0)
    assert tool["status"] == "completed" and tool["rawInput"]["tool"] == "add" and tool["_meta"]["is_mcp_tool_call"]
    assert server.methods.count("initialize") == 1 and server.methods[:2] == ["initialize", "notifications/initialized"]
    assert all(seen["Mcp-Session-Id"] == "s-1" and seen["MCP-Protocol-Version"] == "2025-11-25" for seen in server.seen[1:])
    assert len(server.connections) == 1
    assert b"secret" not in b"".join(agent.lines)


def test_an_error_result_is_saved_too(play, serve):
    server = serve({"take": lambda a: ({"ok": False, "error": {"code": "claim_held", "message": "no"}}, True)})
    agent = play(steps("mcp: {tool: take, save: one}", "text: '{{one.code}} {{one.ok}}'", "mcp: {tool: nothing, save: two}",
                       "text: ' {{two.code}}'"), servers=[server.entry])
    agent.prompt("x")
    assert agent.text() == "claim_held false -32602" and agent.tool(0)["status"] == "failed"


def test_a_wrong_credential_and_no_server(play, serve):
    server = serve({})
    entry = {**server.entry, "headers": []}
    scenario = steps("mcp: {tool: t, save: r}", "text: '{{r.code}}'")
    agent = play(scenario, servers=[entry])
    agent.prompt("x")
    assert agent.text() == "http_401"
    agent = play(scenario)
    agent.prompt("x")
    assert agent.text() == "no_server"


@pytest.mark.parametrize("call, calls, said", [
    ("tool: write, arguments: {clientRequestId: r-1}", 3, "done"),
    ("tool: read", 3, "done"),
    ("tool: write", 1, "LOST"),
    ("tool: write, retry: true", 3, "done"),
    ("tool: read, retry: false", 1, "LOST"),
])
@pytest.mark.parametrize("trouble, lost", [("refuse_next", "http_503"), ("drop_next", "connection_lost")])
def test_what_may_be_repeated_is(play, serve, call, calls, said, trouble, lost):
    server = serve({"read": lambda a: {"code": "done"}, "write": lambda a: {"code": "done"}}, readers=["read"])
    agent = play(steps(f"mcp: {{{call}, save: r}}", "text: '{{r.code}}'"), servers=[server.entry])
    setattr(server, trouble, 2)
    agent.prompt("x")
    assert agent.text() == said.replace("LOST", lost) and len(server.calls) == calls


def test_a_call_survives_a_restart_of_the_server(play, serve):
    first = serve({"t": lambda a: {"n": 1}})
    agent = play(steps("mcp: {tool: t, save: a}", "until_steered: true",
                       "mcp: {tool: t, arguments: {clientRequestId: r-2}, save: b}", "text: '{{a.n}} {{b.n}}'"),
                 servers=[first.entry])
    running = agent.begin("x")
    agent.until(lambda: [u for u in agent.updates if u.get("status") == "completed"])
    first.close()
    agent.steer("go on")
    agent.until(lambda: len([u for u in agent.updates if u["sessionUpdate"] == "tool_call"]) == 2)
    second = serve({"t": lambda a: {"n": 2}}, port=first.port)
    second.sessions = set()  # it has forgotten the session: it must be greeted again
    agent.answer(running)
    assert agent.text() == "1 2" and "initialize" in second.methods


def test_a_call_that_waits_can_be_cancelled_and_the_server_hears_of_it(play, serve):
    held = threading.Event()
    server = serve({"wait": lambda a: held.wait(60) and {}})
    agent = play(steps("mcp: {tool: wait}"), servers=[server.entry])
    running = agent.begin("x")
    until(lambda: server.calls)
    agent.cancel()
    assert agent.answer(running)["result"]["stopReason"] == "cancelled"
    assert "notifications/cancelled" in server.methods
    held.set()


def test_it_calls_dais_itself_and_outlives_its_restart(dais, play):
    """The server is killed in between; its sessions survive, and the second call reads what the first one wrote."""
    address = urllib.parse.urlsplit(dais.url).netloc
    entry = {"type": "http", "name": "dais", "url": f"{dais.url}/mcp",
             "headers": [{"name": "Authorization", "value": f"Bearer {dais.admin_token}"}]}
    agent = play(steps("mcp: {tool: items_write, arguments: {ops: [{op: create, title: '{{prompt}}'}]}, save: made}",
                       "until_steered: true",
                       "mcp: {tool: items_read, arguments: {select: get, itemId: '{{made.results.0.id}}'}, save: got}",
                       "text: '{{got.data.item.title}}'",
                       "mcp: {tool: items_read, arguments: {select: get, itemId: nobody}, save: bad}", "text: ' {{bad.code}}'"),
                 servers=[entry])
    running = agent.begin("a parser")
    agent.until(lambda: [u for u in agent.updates if u.get("status") == "completed"])
    dais.kill()
    agent.steer("go on")
    agent.until(lambda: len([u for u in agent.updates if u["sessionUpdate"] == "tool_call"]) == 2)
    dais.start(listen=address)
    agent.answer(running)
    assert agent.text() == "a parser invalid_request"


# ---- the file ----

@pytest.mark.parametrize("scenario, place, says", [
    ("turns:\n  - steps:\n      - txet: hello\n", "3:9", "did you mean text?"),
    ("turns:\n  - steps:\n      - text: hello\n        chunk: 0\n", "4:16", "whole number from 1"),
    ("turns:\n  - steps:\n      - text: '{{prompt}} {{nobody}}'\n", "3:15", "nothing is called {{nobody}}"),
    ("turns:\n  - when: 'a(b'\n    steps: []\n", "2:11", "regular expression"),
    ("turns:\n  - steps:\n      - tool: {title: x, kind: dig}\n", "3:32", "read, edit"),
    ("modls: [a]\n", "1:1", "did you mean models?"),
    ("without: [wings]\n", "1:11", "mcp, loadSession"),
    ("turns: [\n", "2:1", ""),
])
def test_a_bad_scenario_ends_it_at_the_start(home, scenario, place, says):
    path = home / "bad.yaml"
    path.write_text(scenario)
    for more in ([], ["--check"]):
        done = subprocess.run([PROGRAM, "script-agent", *more, path], input="", capture_output=True, text=True, timeout=60)
        assert done.returncode == 78 and done.stdout == ""
        assert f"{path}:{place}: " in done.stderr and says in done.stderr


def test_no_scenario_no_agent(home):
    done = subprocess.run([PROGRAM, "script-agent", home / "none.yaml"], input="", capture_output=True, text=True, timeout=60)
    assert done.returncode == 78 and "none.yaml" in done.stderr


# ---- the manual ----

MANUAL = pathlib.Path(ROOT / "docs/scripted-agent.md")


def help_steps():
    text = subprocess.run([PROGRAM, "script-agent", "--help"], capture_output=True, text=True, timeout=60).stdout
    return re.findall(r"^  (\w+): ", text.split("Steps of a turn:")[1].split("Texts may hold")[0], re.MULTILINE)


def test_the_manual_has_every_step_and_no_other():
    documented = re.findall(r"^\| `(\w+)`", MANUAL.read_text().split("## Steps")[1].split("\n## ")[0], re.MULTILINE)
    assert len(help_steps()) > 25 and sorted(documented) == sorted(help_steps())


def test_the_failures_of_the_manual_are_those_of_the_program(play):
    table = MANUAL.read_text().split("## Failures")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (-\d+) \| (\d*) ?\|$", table, re.MULTILINE)
    agent = play("turns:\n" + "".join(f"  - {{when: ^{word}$, steps: [{{fail: {{code: {word}}}}}]}}\n" for word, _, _ in rows))
    told = []
    for word, _, _ in rows:
        error = agent.answer(agent.begin(word))["error"]
        assert error["data"]["errorKind"] == word and error["message"]
        told.append((word, str(error["code"]), str(error["data"].get("http_status", ""))))
    assert len(rows) > 10 and told == rows
    refused = subprocess.run([PROGRAM, "script-agent", "--check", "/dev/stdin"], text=True, capture_output=True, timeout=60,
                             input=steps("fail: {code: no_word}"))
    assert all(f" {word}" in refused.stderr for word, _, _ in rows)


def test_every_step_has_a_test():
    ours = pathlib.Path(__file__).read_text()
    assert [step for step in help_steps() if not re.search(rf"\b{step}: ", ours)] == []


def test_the_example_of_the_manual_works(play, home):
    example = re.search(r"```yaml\n(.*?)```", MANUAL.read_text(), re.DOTALL)[1]
    agent = play(example)
    running = agent.begin("please add a parser")
    choose(agent, "allow_once")
    assert agent.answer(running)["result"]["stopReason"] == "end_turn"
    assert (home / "work/parser.c").exists()
    agent.prompt("and now?")
    assert agent.text() == "echo: and now?"
