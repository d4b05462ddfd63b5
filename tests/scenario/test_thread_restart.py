"""The server dies, and its agents too: what was delegated goes on, ends once, and is told once. (cases A03, A04, A05)"""
import base64
import os
import pathlib
import random
import re
import signal
import threading
import time
import urllib.parse

import pytest

from harness import until
from rehearsal import Refusal
from test_thread_faults import AGAIN, rehearse, takes_the_next_message, turn  # noqa: F401 (a fixture)

SETTINGS = "agents: {idle_ms: 500, interrupt_ms: 2000}\n"

# Counts how often its own turn was played: the file is in the folder of the project.
COUNTED = "run: [sh, -c, \"echo '{{prompt}}' >> heard\"]"

FAMILY = (turn(COUNTED, 'text: "one "', "sleep_ms: 400", 'text: "two"', when="^child")
          + turn(COUNTED, "mcp: {tool: delegate_task, arguments: {task: \"child of {{prompt}}\", mode: wait, timeoutMs: 60000,"
                 " clientRequestId: \"{{session}}-{{turn}}\"}, retry: true, save: r}",
                 'text: "told {{r.status}} {{r.summary}}"', when="^parent"))


def heard(rehearsal):
    path = rehearsal.project / "heard"
    return sorted(path.read_text().splitlines()) if path.exists() else []


def tasks(rehearsal):
    return rehearsal.rows("SELECT id, status, delivery, result FROM subagent ORDER BY n")


def assert_all_told_once(rehearsal):
    """Every task has one result, and none waits to be told."""
    assert not rehearsal.rows("SELECT id FROM subagent WHERE status < 3")
    doubles = rehearsal.rows("SELECT source_n, count(*) FROM context_transfer WHERE type ="
                             " (SELECT type FROM context_transfer t JOIN subagent s ON s.result_transfer_n = t.n LIMIT 1)"
                             " GROUP BY source_n HAVING count(*) > 1")
    assert not doubles
    assert not rehearsal.rows("SELECT r.n FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE r.status < 5 AND t.kind = 0")


# ---- kill -9 of the server ----

def test_the_agents_never_notice_and_the_result_arrives_once(rehearse):
    rehearsal = rehearse(FAMILY.replace("sleep_ms: 400", "sleep_ms: 2500"), settings=SETTINGS)
    task = rehearsal.delegate("parent 1")
    until(lambda: len(heard(rehearsal)) == 2)
    agents = set(rehearsal.agents())
    rehearsal.kill()
    assert set(rehearsal.agents()) == agents
    rehearsal.start()
    assert set(rehearsal.agents()) == agents
    ended = rehearsal.ended(task["taskId"])
    assert (ended["status"], ended["summary"]) == ("completed", "told completed two")
    assert heard(rehearsal) == ["child of parent 1", "parent 1"]
    assert_all_told_once(rehearsal)


def test_twice_in_a_row_is_no_worse(rehearse):
    rehearsal = rehearse(FAMILY.replace("sleep_ms: 400", "sleep_ms: 2500"), settings=SETTINGS)
    task = rehearsal.delegate("parent 1")
    until(lambda: len(rehearsal.agents()) == 2)
    for _ in range(3):
        rehearsal.kill().start()
    assert rehearsal.ended(task["taskId"])["summary"] == "told completed two"
    assert heard(rehearsal) == ["child of parent 1", "parent 1"]


def test_what_ended_while_no_server_lived_is_found(rehearse):
    rehearsal = rehearse(turn('text: "one"', "sleep_ms: 300", 'result_text: "end"'), settings=SETTINGS)
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.runs(task) == [rehearsal.RUNNING])
    rehearsal.kill()
    time.sleep(1.5)
    rehearsal.start()
    ended = rehearsal.ended(task["taskId"])
    assert (ended["status"], ended["summary"]) == ("completed", "end")


def test_both_killed_is_cancelled_and_told(rehearse):
    rehearsal = rehearse(AGAIN + turn('text: "one"', "sleep_ms: 60000"), settings=SETTINGS)
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.runs(task) == [rehearsal.RUNNING])
    rehearsal.kill()
    for pid in rehearsal.processes():
        os.kill(pid, signal.SIGKILL)
    rehearsal.start()
    assert rehearsal.ended(task["taskId"])["status"] == "cancelled"
    takes_the_next_message(rehearsal, task)


def test_the_host_alone_killed_leaves_no_agent(rehearse):
    rehearsal = rehearse(AGAIN + turn('text: "one"', "sleep_ms: 60000"), settings=SETTINGS)
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.runs(task) == [rehearsal.RUNNING])
    for pid in rehearsal.hosts():
        os.kill(pid, signal.SIGKILL)
    assert rehearsal.ended(task["taskId"])["status"] in ("cancelled", "failed")
    until(lambda: not rehearsal.processes())
    takes_the_next_message(rehearsal, task)


def test_a_cancel_is_not_forgotten(rehearse):
    rehearsal = rehearse(AGAIN + turn("ignore_cancel: true", 'text: "one"', "sleep_ms: 60000"), settings=SETTINGS)
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.runs(task) == [rehearsal.RUNNING])
    rehearsal.tool("task_cancel", taskId=task["taskId"])
    rehearsal.kill().start()
    assert rehearsal.ended(task["taskId"], 15)["status"] in ("interrupted", "cancelled")
    takes_the_next_message(rehearsal, task)


def test_the_queue_keeps_its_order(rehearse):
    rehearsal = rehearse(turn(COUNTED, "sleep_ms: 300", 'text: "{{prompt}}"'), settings=SETTINGS)
    task = rehearsal.delegate("first")
    for word in ("second", "third"):
        rehearsal.send(task["childThreadId"], word)
    rehearsal.kill().start()
    until(lambda: rehearsal.runs(task) == [rehearsal.COMPLETED] * 3)
    assert (rehearsal.project / "heard").read_text().split() == ["first", "second", "third"]


# ---- at any moment ----

def storm(rehearse, rounds, seed, most_ms):
    """Delegate, kill at a random moment, start, and let it end: each prompt is played once, each result told once."""
    moments = random.Random(seed)
    rehearsal = rehearse(FAMILY.replace("sleep_ms: 400", "sleep_ms: 60"), settings=SETTINGS)
    made = []
    for i in range(rounds):
        key = f"round {i}"
        answer = []

        def ask():
            try:
                answer.append(rehearsal.delegate(f"parent {i}", clientRequestId=key))
            except (OSError, AssertionError, ValueError):
                pass  # the server died before it answered

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(moments.uniform(0, most_ms) / 1000)
        rehearsal.kill()
        asking.join()
        rehearsal.start()
        again = rehearsal.delegate(f"parent {i}", clientRequestId=key)  # the same, or made now
        if answer:
            assert again["taskId"] == answer[0]["taskId"]
        made.append(again["taskId"])
    for i, task in enumerate(made):
        ended = rehearsal.ended(task, 60)
        assert (ended["status"], ended["summary"]) == ("completed", "told completed two"), (seed, i, ended)
    expected = sorted([f"parent {i}" for i in range(rounds)] + [f"child of parent {i}" for i in range(rounds)])
    assert heard(rehearsal) == expected, seed
    assert_all_told_once(rehearsal)


def test_killed_at_any_moment_nothing_is_lost_or_doubled(rehearse):
    storm(rehearse, 8, seed=1, most_ms=400)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_killed_at_many_moments(rehearse, seed):
    storm(rehearse, 20, seed, most_ms=400)


# ---- A03: the same delegation again ----

def test_a_repeated_delegation_is_one(rehearse):
    rehearsal = rehearse(turn(COUNTED, "sleep_ms: 1500", 'text: "done-42"'), settings=SETTINGS)
    answers = []

    def again(**more):
        answers.append(rehearsal.wait("slow", clientRequestId="r1", **more))

    asking = [threading.Thread(target=again) for _ in range(12)]
    asking += [threading.Thread(target=again, kwargs={"title": None})]
    for thread in asking:
        thread.start()
    until(lambda: heard(rehearsal))
    with pytest.raises(Refusal):
        rehearsal.wait("another", clientRequestId="r1")
    for thread in asking:
        thread.join()
    assert len(answers) == len(asking)
    assert len({answer["taskId"] for answer in answers}) == 1
    assert {answer["summary"] for answer in answers} == {"done-42"}
    rehearsal.kill().start()
    assert rehearsal.wait("slow", clientRequestId="r1")["taskId"] == answers[0]["taskId"]
    assert heard(rehearsal) == ["slow"]


# ---- A05: whose secret it is ----

def spellings(secret):
    raw = secret.encode()
    return {raw, base64.b64encode(raw).rstrip(b"="), urllib.parse.quote(secret, safe="").encode()}


@pytest.mark.preload  # a sanitizer makes the memory of a process terabytes, and it is read here
def test_the_credential_of_an_agent_is_nowhere_else(rehearse):
    rehearsal = rehearse(turn("run: [sh, -c, \"tr '\\\\0' '\\\\n' < /proc/self/environ | cut -d= -f1\"]",
                              "mcp: {tool: orchestrator_capabilities, arguments: {}, save: r}",
                              "sleep_ms: 2500", "signal: 11"), settings=SETTINGS)
    task = rehearsal.delegate("work")
    agent = rehearsal.one_agent()
    until(lambda: rehearsal.rows("SELECT n FROM turn_item WHERE type = 1 OR status = 3"))
    secret = until(lambda: secret_in_memory(agent))
    tokens = [secret, rehearsal.dais.admin_token]
    seen = []

    def look(where, content):
        for token in tokens:
            if any(spelling in content for spelling in spellings(token)):
                seen.append((where, token[:4]))

    for process in pathlib.Path("/proc").iterdir():
        for name in ("cmdline", "environ"):
            try:
                content = (process / name).read_bytes() if process.name.isdigit() else b""
            except OSError:
                continue
            look(process / name, content)
    rehearsal.ended(task["taskId"])
    for path in rehearsal.dais.home.rglob("*"):
        if path.is_file() and path.name != "admin.token":
            look(path, path.read_bytes())
    assert not seen


def secret_in_memory(pid):
    """The bearer that the agent was given, out of its memory: it is nowhere else to be had."""
    found = set()
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                if " rw-p " not in line or "[v" in line:
                    continue
                low, high = (int(n, 16) for n in line.split()[0].split("-"))
                memory.seek(low)
                try:
                    found |= set(re.findall(rb"Bearer ([A-Za-z0-9_-]{20,})", memory.read(high - low)))
                except OSError:
                    continue
    except OSError:
        return None
    return found.pop().decode() if found else None


# ---- many at once ----

def test_parents_that_wait_lend_their_places(rehearse):
    rehearsal = rehearse(FAMILY.replace("sleep_ms: 400", "sleep_ms: 30"), settings=SETTINGS + "limits: {runs: 4}\n")
    made = [rehearsal.delegate(f"parent {i}") for i in range(15)]
    for task in made:
        assert rehearsal.ended(task["taskId"], 40)["summary"] == "told completed two"
    assert len(heard(rehearsal)) == 30
    assert_all_told_once(rehearsal)
