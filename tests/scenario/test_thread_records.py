"""Records of threads: what leaves the server as events, notices, resources and figures, and what comes back from an export or
a backup."""
import json
import os
import re
import shutil
import signal
import sqlite3
import urllib.parse

import pytest

from harness import ROOT, until
from rehearsal import Rehearsal
from test_sse import Stream

TURNS = """
  - when: "quick"
    steps:
      - text: "done-42"
  - when: "slow"
    steps:
      - text: "half a sentence "
      - sleep_ms: 120000
      - text: "never said"
"""


@pytest.fixture
def rehearse(new_dais):
    """rehearse(): a server whose agents play TURNS; whatever outlives the test is killed, by its pid."""
    made = []

    def make(dais=None):
        made.append(Rehearsal(dais or new_dais(), TURNS))
        return made[-1]

    yield make
    for rehearsal in made:
        for pid in rehearsal.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


@pytest.fixture
def busy(rehearse):
    """One task that is done, and one whose agent stopped in the middle of a sentence."""
    rehearsal = rehearse().start()
    rehearsal.quick = rehearsal.wait("quick one")
    rehearsal.slow = rehearsal.delegate("slow one")
    until(lambda: rehearsal.rows("SELECT text FROM item_chunk WHERE text = 'half a sentence '"))
    return rehearsal


def doctor(dais, *flags):
    done = dais.run("doctor", "--json", *flags)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1)
    return report


# ---- export, import, backup ----

def test_threads_go_there_and_back_and_what_was_alive_ends_there(busy, rehearse, new_dais):
    dais = busy.dais
    dais.stop()  # the agents go on
    file = dais.home / "all.jsonl"
    dais.run("export", file, check=0)
    assert '"in":"item_chunk"' in file.read_text() and '"in":"session_state"' in file.read_text()
    assert len(busy.agents()) == 2
    other = rehearse(new_dais())
    other.dais.run("import", file, check=0)
    assert other.dais.run("export", check=0).stdout == file.read_text()
    other.dais.work = dais.work  # whose caller it was
    other.is_known = True
    other.start()
    assert other.status(busy.quick["taskId"])["summary"] == "done-42"
    ended = other.ended(busy.slow["taskId"])
    assert ended["status"] == "cancelled"
    assert not other.rows("SELECT n FROM provider_session WHERE status < 4")
    until(lambda: not other.processes())
    assert doctor(other.dais, "--rebuild")["ok"]
    assert other.wait("quick again")["summary"] == "done-42"
    # the original noticed nothing
    busy.start()
    assert busy.status(busy.slow["taskId"])["status"] == "running" and busy.agents()


def test_a_backup_of_working_agents_comes_back_without_them(busy, rehearse, new_dais):
    file = busy.dais.home / "copy.db"
    busy.dais.run("backup", file, check=0)
    other = rehearse(new_dais())
    other.dais.state.mkdir(mode=0o700)
    shutil.copy(file, other.dais.state / "dais.db")
    other.dais.work = busy.dais.work
    other.is_known = True
    other.start()
    assert other.ended(busy.slow["taskId"])["status"] == "cancelled"
    assert other.status(busy.quick["taskId"])["summary"] == "done-42"
    assert busy.status(busy.slow["taskId"])["status"] == "running"
    assert doctor(other.dais, "--rebuild")["ok"]


def test_a_provider_that_is_gone_leaves_no_run_at_work(busy):
    busy.dais.stop()
    busy.config.write_text(busy.config.read_text().replace("rehearse:", "other:"))
    busy.start()
    assert busy.ended(busy.slow["taskId"])["status"] == "cancelled"
    until(lambda: not busy.processes() and not busy.directories())


def test_agents_that_the_database_does_not_know_are_ended(busy):
    """As after a way back to a backup from before they began."""
    assert len(busy.agents()) == 2
    busy.dais.stop()
    for file in busy.dais.state.glob("dais.db*"):
        file.unlink()
    busy.is_known = False
    busy.start()
    until(lambda: not busy.processes() and not busy.directories())
    assert busy.wait("quick again")["summary"] == "done-42"


# ---- events ----

def documented():
    """Type and stream name of each event of threads, and the names of its data, from the page that readers have."""
    page = (ROOT / "docs" / "events.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| `?([^`|]+?)`? \| (.*) \|$", page, re.M)
    return {wire: (stream, {name.strip(" ?") for name in data.split(",")}) for wire, stream, data in rows}


def numbers_of_rows(value):
    """Names like runN or parent_n: nobody outside can do anything with them."""
    if isinstance(value, dict):
        return [key for key in value if re.search(r"([a-z]N|_n)$", key) or key == "n"] + [
            name for member in value.values() for name in numbers_of_rows(member)]
    return []


def test_the_log_tells_readers_ids_and_words(busy):
    known = documented()
    newest = json.loads(busy.dais.run("status", "--json").stdout)["newestEvent"]
    with busy.dais.follow("events", "--since", "0", "--json") as out:
        events = []
        while not events or events[-1]["seq"] < newest:
            events.append(json.loads(out.readline()))
    events = [event for event in events if "projectId" in event]
    seen = {event["type"] for event in events}
    assert {"thread.updated", "thread-run.updated", "subagent.updated", "turn-item.updated", "turn-item.text-appended",
            "provider-session.updated", "message.updated", "node.updated"} <= seen
    for event in events:
        assert not numbers_of_rows(event), event
        assert set(event["data"]) <= known[event["type"]][1], event
    of_slow = [event for event in events if event.get("threadId") == busy.slow["childThreadId"]]
    statuses = [event["data"]["status"] for event in of_slow if event["type"] == "thread-run.updated"]
    assert statuses[0] in ("queued", "starting") and statuses[-1] == "running"
    assert {event["data"]["runId"] for event in of_slow if event["type"] == "thread-run.updated"} == {busy.slow["childRunId"]}
    said = [event["data"] for event in of_slow if event["type"] == "turn-item.text-appended"]
    assert [(part["at"], part["text"]) for part in said] == [(0, "half a sentence ")]
    assert busy.slow["taskId"] in {event["data"].get("taskId") for event in events}


def test_the_stream_shows_a_task_from_its_start_to_its_result(busy):
    stream = Stream(busy.dais, busy.dais.admin_token, query="?types=run.updated,turn-item.text-appended,subagent.updated")
    task = busy.wait("quick two")
    seen = []
    while not seen or seen[-1].get("status") != "completed" or "taskId" not in seen[-1]:
        event = stream.event()
        if event.get("event") in ("run.updated", "turn-item.text-appended", "subagent.updated"):
            seen.append(json.loads(event["data"]))
    stream.close()
    assert seen[-1]["taskId"] == task["taskId"] and not any(numbers_of_rows(event) for event in seen)
    runs = [event for event in seen if event["event"] == "run.updated" and event["runId"] == task["childRunId"]]
    assert runs[-1]["status"] == "completed" and runs[-1]["threadId"] == task["childThreadId"] and "completedAt" in runs[-1]
    assert "done-42" in "".join(event["text"] for event in seen if event["event"] == "turn-item.text-appended")


def test_readers_of_another_project_see_nothing_of_it(busy):
    local = busy.dais.local()
    elsewhere = local.item("Elsewhere", type="project")
    made = busy.dais.run("token", "create", "--id", "scoped", "--capabilities", "read", "--root", elsewhere, "--json", check=0)
    token = json.loads(made.stdout)["token"]
    stream = Stream(busy.dais, token)
    busy.wait("quick three")
    local.item("marker", parentId=elsewhere)
    seen = [stream.event()]
    while seen[-1].get("event") != "item.created":
        seen.append(stream.event())
    stream.close()
    assert not [event for event in seen if "projectId" in event["data"] or "threadId" in event["data"]]
    wire = busy.dais.wire(token)
    hidden = wire.modern("resources/read", {"uri": uri("thread", busy.slow["childThreadId"])}).json()
    assert hidden["error"]["code"] == -32602


# ---- resources ----

def uri(kind, name):
    return f"dais://{kind}/{urllib.parse.quote(name, safe='')}"


def show(wire, kind, name):
    answer = wire.modern("resources/read", {"uri": uri(kind, name)}).json()
    assert "result" in answer, answer
    return json.loads(answer["result"]["contents"][0]["text"])


def test_threads_runs_and_tasks_can_be_read(busy):
    wire = busy.dais.wire()
    thread = show(wire, "thread", busy.slow["childThreadId"])
    assert (thread["status"], thread["activeRunId"]) == ("running", busy.slow["childRunId"])
    assert thread["relationshipToParent"] == "subagent" and thread["itemCount"] == 2
    run = show(wire, "run", busy.quick["childRunId"])
    assert (run["status"], run["threadId"]) == ("completed", busy.quick["childThreadId"])
    task = show(wire, "task", busy.quick["taskId"])
    assert (task["status"], task["summary"]) == ("completed", "done-42")
    for kind in ("thread", "run", "task"):
        for name in ("nothing", "run:thread:~0123:ordinal:1", "run:thread:x:ordinal:1"):
            assert wire.modern("resources/read", {"uri": uri(kind, name)}).json()["error"]["code"] == -32602


def test_looking_at_a_task_is_not_reading_its_result(busy):
    task = busy.delegate("quick four")
    wire = busy.dais.wire()
    until(lambda: show(wire, "task", task["taskId"])["status"] == "completed")
    assert busy.rows("SELECT delivery FROM subagent WHERE id = ?", task["taskId"]) == [(1,)]  # still to be told


def test_who_subscribes_is_told_when_a_task_ends(busy):
    wire = busy.dais.wire()
    wanted = [uri("thread", busy.slow["childThreadId"]), uri("run", busy.slow["childRunId"]), uri("task", busy.slow["taskId"])]
    stream = wire.modern("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}}, id="told")
    assert stream.message()["params"]["notifications"]["resourceSubscriptions"] == wanted
    busy.tool("task_cancel", taskId=busy.slow["taskId"])
    told = set()
    while told != set(wanted):
        told.add(stream.message()["params"]["uri"])
    until(lambda: show(wire, "task", busy.slow["taskId"])["status"] == "interrupted")


# ---- care ----

def test_the_doctor_finds_what_contradicts_itself(busy):
    dais = busy.dais
    assert doctor(dais, "--rebuild")["ok"]  # beside the server, in the middle of a run
    busy.tool("task_cancel", taskId=busy.slow["taskId"])
    busy.ended(busy.slow["taskId"])
    dais.stop()
    (dais.state / "agents" / "777").mkdir()
    with sqlite3.connect(dais.state / "dais.db") as store:
        store.execute("UPDATE thread SET title = 'other' WHERE id = ?", (busy.quick["childThreadId"],))
        store.execute("UPDATE thread_run SET status = 3 WHERE completed_at IS NOT NULL AND ordinal = 1")
    dais.checks_doctor = False
    plain = [check for check in doctor(dais)["checks"] if check["finding"] != "ok"]
    assert any("status and time of end" in check["text"] for check in plain)
    assert any("agents/777" in check["text"] and check["finding"] == "note" for check in plain)
    rebuilt = [check["text"] for check in doctor(dais, "--rebuild")["checks"] if check["check"] == "log"]
    assert any("title is not what event" in text for text in rebuilt) and any("status is not what" in text for text in rebuilt)


def test_the_figures_count_what_is_going_on(busy):
    def figures():
        _, _, page = busy.dais.admin().ask("GET", "/metrics")
        return dict(re.findall(r"^(dais_\S+) (\d+)$", page.decode(), re.M))

    now = figures()
    assert (now['dais_runs{status="running"}'], now["dais_tasks_open"]) == ("1", "1")
    assert int(now["dais_agent_sessions"]) == len(busy.agents())
    busy.tool("task_cancel", taskId=busy.slow["taskId"])
    busy.ended(busy.slow["taskId"])
    now = figures()
    assert (now['dais_runs{status="running"}'], now["dais_tasks_open"]) == ("0", "0")
