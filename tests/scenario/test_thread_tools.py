"""The tools for tasks and threads over the real server, with scripted agents: what callers see of them, whichever way
they call."""
import json
import threading

import jsonschema
import pytest

from harness import until
from thread_desk import TOOLS, Caller, Desk, refused


@pytest.fixture(scope="module")
def opened():
    desk = Desk()
    yield desk
    desk.close()


@pytest.fixture
def desk(opened):
    return opened.dais


@pytest.fixture
def caller(opened):
    return opened.caller()


# ---- what is offered ----

def listed(wire, path="/mcp"):
    return {tool["name"]: tool for tool in wire.modern("tools/list", path=path).json()["result"]["tools"]}


def test_capabilities_list_every_instance_and_why_one_cannot_run(caller):
    said = caller.orchestrator_capabilities()
    by_id = {one["providerInstanceId"]: one for one in said["providers"]}
    assert set(by_id) == {"rehearse", "second", "missing"}
    assert by_id["rehearse"]["canRunChildTask"] and by_id["rehearse"]["constraints"] == []
    assert not by_id["missing"]["canRunChildTask"] and not by_id["missing"]["canRunCrossProviderChildTask"]
    assert "not installed" in by_id["missing"]["constraints"][0]
    assert by_id["second"]["models"] == [{"id": "large", "label": None}]
    assert said["features"]["maxBatchThreads"] == 20
    assert (said["runtimeMode"], said["interactionMode"]) == ("full-access", "default")


def test_an_agent_of_ours_hands_on_its_own_instance(caller):
    assert caller.ended(caller.delegate("read myself"))["summary"] == "invalid_request rehearse"


def test_the_tools_have_flat_schemas_and_tell_what_they_do(caller):
    tools = listed(caller.wire, "/mcp/threads")
    assert [name for name in tools if name != "t3_thread_launch"] == TOOLS
    hints = {name: tuple(tool["annotations"][hint] for hint in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"))
             for name, tool in tools.items()}
    for name in ("orchestrator_capabilities", "t3_thread_list", "t3_thread_wait"):
        assert hints[name] == (True, False, False, False)
    for name in ("task_status", "t3_thread_read"):
        assert hints[name] == (False, False, True, False)
    for name in ("task_cancel", "t3_thread_interrupt"):
        assert hints[name] == (False, True, False, False)
    for name in ("delegate_task", "create_threads", "t3_thread_send"):
        assert hints[name] == (False, False, False, True)
    assert hints["t3_thread_update"] == (False, False, False, False)
    for tool in tools.values():
        assert not any(f'"{word}"' in json.dumps(tool["inputSchema"]) for word in ("anyOf", "oneOf", "allOf"))
        assert not {"anyOf", "oneOf", "allOf"} & set(tool["outputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])


def test_each_endpoint_offers_its_own_half(desk, caller):
    admin = desk.wire()
    work, threads, full = (set(listed(admin, path)) for path in ("/mcp/work", "/mcp/threads", "/mcp"))
    assert len(work) == 11 and set(TOOLS) <= threads and not work & threads and full == work | threads
    assert not set(listed(admin, "/mcp/knowledge")) & threads and not set(listed(admin, "/mcp/director")) & threads
    for path, words in (("/mcp/threads", True), ("/mcp", True), ("/mcp/work", False)):
        text = admin.modern("server/discover", path=path).json()["result"]["instructions"]
        assert ("delegate_task" in text) == words


def test_who_may_not_delegate_neither_sees_nor_reaches_the_tools(desk):
    reader = desk.new_token(None, "read")
    wire = desk.wire(reader)
    assert not set(listed(wire)) & set(TOOLS)
    assert wire.call("delegate_task", {"task": "x"}).json()["error"]["code"] == -32602
    answer = desk.http(reader).envelope("delegate_task", {"task": "x"})
    assert (answer["_tag"], answer["code"]) == ("OrchestratorMcpFailure", "capability_denied")


def test_answers_fit_their_schemas(caller):
    task = caller.delegate("busy", mode="wait", timeoutMs=30000)
    thread = caller.create(title="fits")
    answers = {
        "orchestrator_capabilities": {}, "task_status": {"taskId": task["taskId"]}, "t3_thread_list": {},
        "t3_thread_read": {"threadId": task["childThreadId"], "view": "activity"},
        "t3_thread_update": {"threadId": thread["threadId"], "action": "rename", "title": "still fits"},
        "t3_thread_send": {"threadId": thread["threadId"], "message": "hello"},
        "t3_thread_wait": {"threadId": thread["threadId"]}, "t3_thread_interrupt": {"threadId": thread["threadId"]},
        "task_cancel": {"taskId": task["taskId"]}, "create_threads": {"threads": [{"title": "one more"}]},
        "delegate_task": {"task": "hello", "mode": "wait", "timeoutMs": 30000},
    }
    tools = listed(caller.wire)
    assert set(answers) == set(TOOLS)
    for name, arguments in answers.items():
        answer = getattr(caller, name)(**arguments)
        assert set(answer) == set(tools[name]["outputSchema"]["properties"])
        jsonschema.validate(answer, tools[name]["outputSchema"])


@pytest.mark.parametrize("way", ["http", "stdio", "ops", "call"])
def test_every_way_of_calling_gives_the_same(desk, way):
    token = desk.admin_token
    if way == "http":
        result = desk.wire(token).call("t3_thread_list", {"limit": 1}).result()["result"]["structuredContent"]
    elif way == "stdio":
        result = desk.lines().call("t3_thread_list", {"limit": 1})["result"]["structuredContent"]
    elif way == "ops":
        result = desk.http(token).envelope("t3_thread_list", {"limit": 1})
    else:
        result = json.loads(desk.run("call", "t3_thread_list", '{"limit":1}').stdout)
    assert set(result) == {"projectId", "currentThreadId", "threads", "nextCursor", "total"}


@pytest.mark.parametrize("tool, arguments, says", [
    ("delegate_task", {"prompt": "x"}, "prompt: no such parameter (it takes task, "),
    ("delegate_task", {"task": "  "}, "task"),
    ("delegate_task", {"task": "x" * 120001}, "task"), ("create_threads", {"threads": [{"promt": "x"}]}, "promt"),
    ("create_threads", {"threads": []}, "threads"), ("create_threads", {"threads": [{}] * 21}, "threads"),
    ("t3_thread_list", {"limit": 0}, "limit"), ("t3_thread_list", {"limit": 101}, "limit"),
    ("t3_thread_list", {"statuses": ["dead"]}, "statuses"), ("t3_thread_read", {}, "threadId"),
    ("t3_thread_read", {"threadId": "x", "maxCharsPerItem": 50001}, "maxCharsPerItem"),
    ("t3_thread_update", {"action": "rename"}, "title"), ("t3_thread_update", {"action": "rename", "title": ""}, "title"),
    ("t3_thread_update", {"action": "unlink_pull_request", "title": "x"}, "title"),
    ("t3_thread_update", {"action": "link_pull_request"}, "pullRequest"),
    ("t3_thread_update", {"action": "regenerate_title"}, "title generator"),
    ("t3_thread_update", {"action": "link_pull_request", "pullRequest": {"repository": "x", "number": 1, "url": "https://a.example"}},
     "repository"),
    ("t3_thread_update", {"action": "link_pull_request", "pullRequest": {"repository": "a/b", "number": 0, "url": "https://a.example"}},
     "number"),
    ("t3_thread_update", {"action": "link_pull_request", "pullRequest": {"repository": "a/b", "number": 1, "url": "file:///x"}},
     "url"),
])
def test_what_is_wrong_with_the_arguments_is_named(caller, tool, arguments, says):
    with refused("invalid_request", says=says):
        getattr(caller, tool)(**arguments)


# ---- tasks ----

def test_a_task_that_is_not_waited_for_is_polled(caller):
    task = caller.delegate("slow one")
    assert task["status"] in ("queued", "running") and not task["waitTimedOut"]
    assert caller.task_cancel(taskId=task["taskId"]) == {"taskId": task["taskId"], "status": "cancel_requested"}
    assert caller.ended(task)["status"] == "interrupted"


def test_a_wait_gives_the_result_in_one_call(caller):
    task = caller.delegate("hello", mode="wait", timeoutMs=30000)
    assert (task["status"], task["summary"], task["workState"]) == ("completed", "echo: hello", "result_available")
    assert caller.wakes() == []


def test_a_wait_that_is_over_leaves_the_child_at_work(caller):
    task = caller.delegate("slow", mode="wait", timeoutMs=50)
    assert task["waitTimedOut"] and task["status"] in ("queued", "running")
    caller.running(task["childThreadId"])
    caller.task_cancel(taskId=task["taskId"])
    assert caller.ended(task)["status"] == "interrupted"


def test_a_wait_that_is_too_long_is_cut_not_refused(caller):
    assert caller.delegate("hello", mode="wait", timeoutMs=999999999)["status"] == "completed"
    assert caller.t3_thread_wait(threadId=caller.create(title="idle")["threadId"], timeoutMs=0)["status"] == "idle"


def test_a_caller_that_hangs_up_ends_the_wait_alone(desk, caller):
    other = desk.wire(caller.token)
    sock = other.connect()
    body = other.envelope("tools/call", {"name": "delegate_task", "arguments": {
        "task": "steer me", "mode": "wait", "timeoutMs": 60000, "clientRequestId": "hung"}})
    body = json.dumps(body[0] if isinstance(body, tuple) else body).encode()
    port = other.port
    head = (f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {caller.token}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
            f"Mcp-Name: delegate_task\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    sock.sendall(head + body)
    until(lambda: [t for t in caller.t3_thread_list(titleContains="steer me")["threads"] if t["status"] == "running"], 20)
    sock.close()
    again = caller.delegate("steer me", mode="wait", timeoutMs=1, clientRequestId="hung")
    caller.running(again["childThreadId"])
    caller.t3_thread_send(threadId=again["childThreadId"], message="go on", mode="steer")
    assert caller.ended(again)["summary"].endswith("told go on")


def test_a_task_is_known_to_its_own_parent_only(desk, caller):
    task = caller.delegate("hello")
    other = Caller(desk, desk.new_token(None, "read orchestration"))
    for tool in (other.task_status, other.task_cancel):
        with refused("task_not_found"):
            tool(taskId=task["taskId"])


def test_cancelling_what_has_ended_changes_nothing(caller):
    task = caller.delegate("hello", mode="wait", timeoutMs=30000)
    later = caller.t3_thread_send(threadId=task["childThreadId"], message="slow follow-up")
    caller.running(task["childThreadId"])
    assert caller.task_cancel(taskId=task["taskId"])["status"] == "completed"
    assert caller.task_status(taskId=task["taskId"])["summary"] == "echo: hello"
    assert caller.t3_thread_wait(threadId=task["childThreadId"], runId=later["runId"], timeoutMs=1)["timedOut"]
    caller.t3_thread_interrupt(threadId=task["childThreadId"])


def test_cancelling_stops_what_the_child_has_delegated(caller):
    task = caller.delegate("family")
    child = until(lambda: [t for t in caller.t3_thread_list(titleContains="slow child")["threads"]
                           if t["parentThreadId"] == task["childThreadId"] and t["status"] == "running"], 20)[0]
    caller.running(child["threadId"])
    caller.task_cancel(taskId=task["taskId"])
    assert caller.settled(child)["status"] in ("interrupted", "cancelled")
    assert caller.ended(task)["status"] == "interrupted"


# ---- creating ----

def test_threads_are_made_in_order_and_recorded_with_the_caller(caller):
    made = caller.create_threads(threads=[{"prompt": "hello one"}, {}, {"prompt": "x" * 90, "target": {"providerInstanceId": "second"}}])
    first, idle, third = made["threads"]
    assert (idle["runId"], idle["status"]) == (None, "idle") and idle["title"].endswith("thread 2")
    assert third["title"] == "x" * 77 + "..." and len(third["title"]) == 80
    assert (first["providerInstanceId"], third["providerInstanceId"], third["model"]) == ("rehearse", "second", "large")
    assert caller.settled(first)["status"] == "completed"
    for thread in made["threads"]:
        shown = caller.t3_thread_read(threadId=thread["threadId"])["thread"]
        assert (shown["parentThreadId"], shown["relationshipToParent"]) == (None, None)
        assert (shown["createdBy"], shown["creationSource"]) == ("agent", "mcp")
    recorded = [item for item in caller.items(caller.own()) if item["type"] == "thread_created"]
    assert [item["text"] for item in recorded] == [f"Created the thread {thread['threadId']}." for thread in made["threads"]]


def test_one_bad_entry_makes_none(caller):
    before = caller.t3_thread_list()["total"]
    with refused("model_unavailable"):
        caller.create_threads(threads=[{"title": "good"}, {"target": {"providerInstanceId": "second", "model": "none"}}],
                              clientRequestId="batch")
    with refused("provider_unavailable"):
        caller.create_threads(threads=[{"title": "good"}, {"target": {"providerInstanceId": "missing"}}])
    assert caller.t3_thread_list()["total"] in (before, before + 1)  # the caller's own thread may be new
    made = caller.create_threads(threads=[{"title": "good"}, {"target": {"providerInstanceId": "second"}}], clientRequestId="batch")
    assert len(made["threads"]) == 2


# ---- keys ----

def test_a_repeated_key_does_the_work_once(desk, caller):
    first = caller.delegate("hello", clientRequestId="a")
    answers = []
    calls = [threading.Thread(target=lambda: answers.append(
        Caller(desk, caller.token).delegate("hello", clientRequestId="a"))) for _ in range(4)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert {answer["taskId"] for answer in answers} == {first["taskId"]}
    made = caller.create_threads(threads=[{"prompt": "hello"}], clientRequestId="a")["threads"][0]
    caller.settled(made)
    again = caller.create_threads(threads=[{"prompt": "hello"}], clientRequestId="a")["threads"][0]
    assert (again["threadId"], again["runId"], again["status"]) == (made["threadId"], made["runId"], "completed")
    sent = caller.t3_thread_send(threadId=made["threadId"], message="more", clientRequestId="a")
    caller.settled(made)
    replay = caller.t3_thread_send(threadId=made["threadId"], message="more", clientRequestId="a")
    assert (replay["messageId"], replay["runId"]) == (sent["messageId"], sent["runId"])
    assert caller.t3_thread_read(threadId=made["threadId"])["thread"]["runCount"] == 2


def test_without_a_key_each_call_is_new_work(desk, caller):
    assert caller.delegate("hello")["taskId"] != caller.delegate("hello")["taskId"]
    other = Caller(desk, desk.new_token(None, "read orchestration"))
    mine, theirs = (who.delegate("hello", clientRequestId="same") for who in (caller, other))
    assert mine["taskId"] != theirs["taskId"]


def test_a_key_is_for_one_piece_of_work(caller):
    caller.delegate("hello", clientRequestId="k")
    with refused("invalid_request", says="clientRequestId"):
        caller.delegate("something else", clientRequestId="k")


@pytest.mark.parametrize("one, other", [("a:b", "a%3Ab"), ("a b", "a%20b"), ("😀", "%F0%9F%98%80"), ("~x", "%7Ex")])
def test_keys_that_look_alike_are_not_the_same(caller, one, other):
    assert caller.delegate("hello", clientRequestId=one)["taskId"] != caller.delegate("hello", clientRequestId=other)["taskId"]
