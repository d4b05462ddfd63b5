"""Threads as their tools show and change them: lists, timelines, messages, waits, interruptions, titles; and how far a
caller may go."""
import sqlite3

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from harness import until
from thread_desk import LONG, Desk, refused


@pytest.fixture(scope="module")
def desk():
    desk = Desk()
    yield desk
    desk.close()


@pytest.fixture
def caller(desk):
    return desk.caller()


@pytest.fixture
def alone():
    """A server of its own, for stories that look at all that there is."""
    desk = Desk()
    yield desk
    desk.close()


# ---- lists ----

def test_a_list_goes_page_by_page(alone):
    for wave in range(6):
        alone.local("create_threads", threads=[{"title": f"thread {wave * 20 + i}"} for i in range(20)])
    first = alone.local("t3_thread_list", titleContains="THREAD ", limit=100)
    second = alone.local("t3_thread_list", titleContains="THREAD ", limit=100, cursor=first["nextCursor"])
    assert (first["total"], first["nextCursor"], second["nextCursor"]) == (120, 100, None)
    both = first["threads"] + second["threads"]
    assert len({thread["threadId"] for thread in both}) == 120
    order = [(thread["updatedAt"], thread["threadId"].encode()) for thread in both]
    assert order == sorted(order, reverse=True)
    assert alone.local("t3_thread_list", cursor=500)["threads"] == []


def test_looking_makes_no_thread(alone):
    assert alone.local("t3_thread_list") == {"projectId": None, "currentThreadId": None, "threads": [], "nextCursor": None, "total": 0}
    with refused("thread_not_found"):
        alone.local("t3_thread_read", threadId="thread:none")
    alone.local("create_threads", threads=[{"title": "one"}])
    assert alone.local("t3_thread_list")["total"] == 2  # the caller's own stands for it


def test_a_list_is_narrowed_by_status_title_and_kind(caller):
    task = caller.delegate("narrow task", mode="wait", timeoutMs=30000)
    idle = caller.create(title="Été NARROW idle")
    ids = lambda **more: [thread["threadId"] for thread in caller.t3_thread_list(**more)["threads"]]  # noqa: E731
    assert set(ids(titleContains="narrow")) >= {task["childThreadId"], idle["threadId"]}
    assert ids(titleContains="éTÉ narrow") == [idle["threadId"]]
    assert task["childThreadId"] not in ids(titleContains="narrow", includeSubagents=False)
    assert task["childThreadId"] in ids(statuses=["completed"], limit=100) and idle["threadId"] not in ids(statuses=["completed"], limit=100)
    assert idle["threadId"] in ids(statuses=["idle", "failed"], limit=100)
    assert ids(titleContains="%") == []


# ---- timelines ----

def test_messages_are_three_types_and_activity_is_all(caller):
    task = caller.delegate("busy", mode="wait", timeoutMs=30000)
    said = caller.t3_thread_read(threadId=task["childThreadId"])
    assert [item["type"] for item in said["items"]] == ["user_message", "assistant_message"]
    items = caller.items(task["childThreadId"])
    kinds = {item["type"]: item for item in items}
    assert {"user_message", "todo_list", "reasoning", "file_search", "command_execution", "file_change", "assistant_message"} <= set(kinds)
    assert [item["position"] for item in items] == list(range(len(items)))
    assert kinds["todo_list"]["text"].splitlines() == ["[completed] think", "[pending] write"]
    assert kinds["command_execution"]["text"].startswith("$ ") and "out" in kinds["command_execution"]["text"]
    assert "made.txt" in kinds["file_change"]["text"] and kinds["reasoning"]["text"] == "hm"
    shown = said["thread"]
    assert (shown["relationshipToParent"], shown["parentThreadId"]) == ("subagent", caller.own())
    assert (shown["itemCount"], shown["runCount"], shown["pendingRequestCount"], shown["archived"]) == (len(items), 1, 0, False)
    assert said["recentRuns"][0]["runId"] == shown["latestRunId"] and said["recentRuns"][0]["completedAt"]


def test_a_timeline_is_read_on_from_where_it_was(caller):
    thread = caller.create(prompt="hello")
    caller.settled(thread)
    first = caller.t3_thread_read(threadId=thread["threadId"], limit=1)
    assert (first["nextPosition"], first["hasMore"]) == (0, True)
    second = caller.t3_thread_read(threadId=thread["threadId"], afterPosition=0)
    assert [item["text"] for item in second["items"]] == ["echo: hello"] and not second["hasMore"]
    after = second["nextPosition"]
    empty = caller.t3_thread_read(threadId=thread["threadId"], afterPosition=after)
    assert (empty["items"], empty["nextPosition"], empty["hasMore"]) == ([], None, False)
    caller.t3_thread_send(threadId=thread["threadId"], message="more")
    caller.settled(thread)
    third = caller.t3_thread_read(threadId=thread["threadId"], afterPosition=after, runLimit=1)
    assert [item["text"] for item in third["items"]] == ["more", "echo: more"]
    assert [run["ordinal"] for run in third["recentRuns"]] == [2] and third["thread"]["runCount"] == 2


def test_a_long_text_is_cut_between_characters(caller):
    task = caller.delegate("long", mode="wait", timeoutMs=30000)
    for chars in (20000, 7, 50000):
        item = caller.t3_thread_read(threadId=task["childThreadId"], maxCharsPerItem=chars)["items"][-1]
        assert (item["text"], item["textTruncated"]) == (LONG[:chars], chars < len(LONG))
    assert len(caller.t3_thread_read(threadId=task["childThreadId"])["items"][-1]["text"]) == 20000


def test_an_answer_stays_small_enough_to_be_sent(caller):
    thread = caller.create(title="big")
    for _ in range(8):
        caller.t3_thread_send(threadId=thread["threadId"], message="long")
        caller.settled(thread)
    seen, after = [], -1
    while True:
        page = caller.t3_thread_read(threadId=thread["threadId"], limit=100, maxCharsPerItem=50000, **({} if after < 0 else {"afterPosition": after}))
        seen += [item["position"] for item in page["items"]]
        if not page["hasMore"]:
            break
        after = page["nextPosition"]
    assert len(seen) == len(set(seen)) == 16


def deliveries(desk, task):
    with sqlite3.connect(f"file:{desk.dais.state}/dais.db?mode=ro", uri=True, timeout=30) as store:
        return store.execute("SELECT delivery FROM subagent WHERE id = ?", [task["taskId"]]).fetchone()[0]


ACKNOWLEDGED = 3


def test_reading_the_whole_result_of_ones_own_task_counts_as_told(desk, caller):
    task = caller.delegate("hello")
    thread = {"threadId": task["childThreadId"]}
    assert caller.settled(thread)["status"] == "completed"
    until(lambda: caller.t3_thread_read(**thread, maxCharsPerItem=3)["items"][-1]["textTruncated"])
    assert deliveries(desk, task) != ACKNOWLEDGED, "a wait and a cut text do not count"
    desk.caller().create(title="stranger")
    desk.caller().t3_thread_read(**thread)
    assert deliveries(desk, task) != ACKNOWLEDGED, "another thread's reading does not count"
    caller.t3_thread_read(**thread)
    assert deliveries(desk, task) == ACKNOWLEDGED


def test_every_message_tells_who_wrote_it(caller):
    task = caller.delegate("hello", mode="wait", timeoutMs=30000)
    said = caller.t3_thread_read(threadId=task["childThreadId"])["items"]
    assert [(item["createdBy"], item["creationSource"]) for item in said] == [("agent", "mcp"), ("agent", "provider")]
    assert said[0]["messageId"] and said[0]["visibility"] == "local" and said[0]["sourceThreadId"] == task["childThreadId"]


# ---- messages ----

def test_a_message_starts_waits_or_goes_into_the_turn(caller):
    thread = caller.create(title="sent to")["threadId"]
    first = caller.t3_thread_send(threadId=thread, message="steer me")
    assert first["delivery"] == "started" and first["status"] == "starting"
    caller.running(thread)
    queued = caller.t3_thread_send(threadId=thread, message="later", mode="queue")
    assert (queued["delivery"], queued["status"]) == ("queued", "queued") and queued["runId"] != first["runId"]
    assert "later" not in [item["text"] for item in caller.items(thread)]
    steered = caller.t3_thread_send(threadId=thread, message="this way")
    assert (steered["delivery"], steered["runId"]) == ("steered", first["runId"])
    assert caller.t3_thread_wait(threadId=thread, runId=queued["runId"])["status"] == "completed"
    texts = [item["text"] for item in caller.t3_thread_read(threadId=thread)["items"]]
    assert texts.index("this way") < texts.index("later") and texts[-1] == "echo: later"


def test_there_must_be_a_turn_to_steer_or_begin_again(caller):
    thread = caller.create(title="nothing runs")["threadId"]
    for mode in ("steer", "restart"):
        with refused("thread_not_sendable"):
            caller.t3_thread_send(threadId=thread, message="x", mode=mode)


def test_a_restart_is_the_same_run_again(caller):
    thread = caller.create(prompt="slow")
    caller.running(thread["threadId"])
    again = caller.t3_thread_send(threadId=thread["threadId"], message="hello instead", mode="restart")
    assert (again["runId"], again["delivery"]) == (thread["runId"], "restarted")
    assert caller.settled(thread)["status"] == "completed"
    shown = caller.t3_thread_read(threadId=thread["threadId"])
    assert shown["thread"]["runCount"] == 1 and shown["items"][-1]["text"] == "echo: hello instead"


def test_messages_that_wait_go_in_their_order(caller):
    thread = caller.create(prompt="slow")["threadId"]
    caller.running(thread)
    sent = [caller.t3_thread_send(threadId=thread, message=f"number {i}", mode="queue") for i in range(3)]
    caller.t3_thread_interrupt(threadId=thread)
    assert caller.t3_thread_wait(threadId=thread, runId=sent[-1]["runId"])["status"] == "completed"
    texts = [item["text"] for item in caller.t3_thread_read(threadId=thread)["items"] if item["type"] == "user_message"]
    assert texts == ["slow", "number 0", "number 1", "number 2"]


# ---- waiting and interrupting ----

def test_a_wait_is_for_one_run(caller):
    idle = caller.create(title="idle")
    assert caller.settled(idle) == {"threadId": idle["threadId"], "runId": None, "status": "idle", "timedOut": False}
    thread = caller.create(prompt="hello")
    assert caller.settled(thread)["status"] == "completed"
    later = caller.t3_thread_send(threadId=thread["threadId"], message="slow")
    old = caller.t3_thread_wait(threadId=thread["threadId"], runId=thread["runId"])
    assert (old["runId"], old["status"], old["timedOut"]) == (thread["runId"], "completed", False)
    timed = caller.settled(thread, timeout=20)
    assert (timed["runId"], timed["timedOut"]) == (later["runId"], True)
    with refused("run_not_found"):
        caller.t3_thread_wait(threadId=thread["threadId"], runId=thread["runId"] + "0")
    with refused("invalid_request"):
        caller.t3_thread_wait(threadId=caller.own())
    caller.t3_thread_interrupt(threadId=thread["threadId"])


def test_an_interruption_is_of_the_active_run(caller):
    thread = caller.create(prompt="hello")
    caller.settled(thread)
    none = caller.t3_thread_interrupt(threadId=thread["threadId"])
    assert (none["runId"], none["status"]) == (None, "no_active_run")
    active = caller.t3_thread_send(threadId=thread["threadId"], message="slow")
    caller.running(thread["threadId"])
    queued = caller.t3_thread_send(threadId=thread["threadId"], message="later", mode="queue")
    assert caller.t3_thread_interrupt(threadId=thread["threadId"], runId=thread["runId"])["status"] == "completed"
    with refused("thread_not_interruptible"):
        caller.t3_thread_interrupt(threadId=thread["threadId"], runId=queued["runId"])
    with refused("run_not_found"):
        caller.t3_thread_interrupt(threadId=thread["threadId"], runId="run:none")
    asked = caller.t3_thread_interrupt(threadId=thread["threadId"], reason="Wrong branch")
    assert asked == {"threadId": thread["threadId"], "runId": active["runId"], "status": "interrupt_requested"}
    assert caller.t3_thread_wait(threadId=thread["threadId"], runId=active["runId"])["status"] == "interrupted"
    assert "Wrong branch" in [item["text"] for item in caller.items(thread["threadId"])]


# ---- updates ----

LINK = {"repository": "acme/ring", "number": 41, "url": "https://git.example/acme/ring/pull/41"}


def test_a_thread_is_renamed_linked_and_unlinked(caller):
    thread = caller.create(title="first")["threadId"]
    renamed = caller.t3_thread_update(threadId=thread, action="rename", title="  second ")
    assert (renamed["title"], renamed["titleRegeneration"], renamed["linkedPullRequest"]) == ("second", None, None)
    linked = caller.t3_thread_update(threadId=thread, action="link_pull_request", pullRequest=LINK)
    shown = caller.t3_thread_read(threadId=thread)["thread"]
    assert shown["title"] == "second" and shown["linkedPullRequest"] == linked["linkedPullRequest"]
    assert shown["linkedPullRequest"] == {"projectId": shown["projectId"], **LINK}
    assert caller.t3_thread_update(threadId=thread, action="unlink_pull_request")["linkedPullRequest"] is None
    assert caller.t3_thread_read(threadId=thread)["thread"]["linkedPullRequest"] is None
    own = caller.t3_thread_update(action="rename", title="myself")
    assert own["threadId"] == caller.own()


def test_a_repeated_update_is_told_what_the_first_was_told(caller):
    thread = caller.create(title="zero")["threadId"]
    first = caller.t3_thread_update(threadId=thread, action="rename", title="one", clientRequestId="t")
    between = caller.t3_thread_update(threadId=thread, action="rename", title="two")
    assert between["sequence"] > first["sequence"]
    assert caller.t3_thread_update(threadId=thread, action="rename", title="one", clientRequestId="t") == first
    assert caller.t3_thread_read(threadId=thread)["thread"]["title"] == "two"
    linked = caller.t3_thread_update(threadId=thread, action="link_pull_request", pullRequest=LINK, clientRequestId="t")
    assert linked["commandId"] != first["commandId"], "the action is part of what is repeated"


# ---- how far a caller may go ----

RUNTIME = ["approval-required", "auto-accept-edits", "full-access"]


@pytest.mark.parametrize("own", RUNTIME)
@pytest.mark.parametrize("asked", [*RUNTIME, "inherit"])
def test_a_child_may_not_do_more_than_its_parent(caller, own, asked):
    denied = asked in RUNTIME and RUNTIME.index(asked) > RUNTIME.index(own)
    said = caller.delegate(asked, runtimeMode=own, mode="wait", timeoutMs=30000)["summary"]
    assert said == ("/".join(["runtime_mode_escalation_denied"] * 2) if denied else "/")


@pytest.mark.parametrize("own", ["plan", "default"])
@pytest.mark.parametrize("asked", ["plan", "default"])
def test_who_may_only_plan_lets_others_only_plan(caller, own, asked):
    said = caller.delegate(asked, interactionMode=own, mode="wait", timeoutMs=30000)["summary"]
    assert said == ("/".join(["interaction_mode_escalation_denied"] * 2) if (own, asked) == ("plan", "default") else "/")


@pytest.mark.parametrize("own, code", [({"runtimeMode": "auto-accept-edits"}, "runtime_mode_escalation_denied"),
                                       ({"interactionMode": "plan"}, "interaction_mode_escalation_denied"), ({}, "started")])
def test_nobody_sends_to_a_thread_that_may_do_more(caller, own, code):
    caller.create(title="wide open")
    assert caller.delegate("send to the wide one", **own, mode="wait", timeoutMs=30000)["summary"] == code


# ---- the official client ----

def test_the_official_client_delegates_and_reads(desk):
    token = desk.dais.new_token(None, "read orchestration")

    async def story():
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http, \
                streamable_http_client(f"{desk.dais.url}/mcp/threads", http_client=http) as streams, \
                ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            task = await session.call_tool("delegate_task", {"task": "hello", "mode": "wait", "timeoutMs": 30000})
            read = await session.call_tool("t3_thread_read", {"threadId": task.structured_content["childThreadId"]})
            wrong = await session.call_tool("t3_thread_read", {"threadId": "thread:none"})
            return names, task, read, wrong

    names, task, read, wrong = anyio.run(story)
    assert "delegate_task" in names and "items_read" not in names
    assert task.structured_content["summary"] == read.structured_content["items"][-1]["text"] == "echo: hello"
    assert wrong.is_error and wrong.structured_content["code"] == "thread_not_found"
