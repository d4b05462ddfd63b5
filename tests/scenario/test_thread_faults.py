"""Agents that die, hang, babble or never start: each ends in its own named class, leaves no process behind, and its thread
takes the next message. (cases A09, A10)"""
import json
import os
import signal
import time

import pytest

from harness import SLACK, until
from rehearsal import Rehearsal

SHORT = """agents:
  start_ms: 3000
  stall_ms: 3000
  turn_ms: 20000
  interrupt_ms: 2000
  idle_ms: 300
"""


@pytest.fixture
def rehearse(new_dais):
    """rehearse(turns, …): the server on its scenario; at the end nothing of it may be left."""
    made = []

    def make(turns, head="", settings=SHORT, providers=""):
        made.append(Rehearsal(new_dais(), turns, head, settings, providers).start())
        return made[-1]

    yield make
    for rehearsal in made:
        rehearsal.clear()


def turn(*steps, when=".", times=None):
    more = f"    times: {times}\n" if times else ""
    return f"  - when: \"{when}\"\n{more}    steps:\n" + "".join(f"      - {step}\n" for step in steps)


AGAIN = turn('text: "well again"', when="again")


def failure_of(rehearsal, task):
    """What is on record of how the task's run ended."""
    rows = rehearsal.rows("SELECT r.failure FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE t.id = ?"
                          " ORDER BY r.ordinal", task["childThreadId"])
    return json.loads(rows[0][0])


def takes_the_next_message(rehearsal, task):
    rehearsal.send(task["childThreadId"], "again")
    answered = until(lambda: rehearsal.rows(
        "SELECT r.status FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE t.id = ? AND r.ordinal = 2"
        " AND r.status > 4", task["childThreadId"]), 20)
    assert answered == [(rehearsal.COMPLETED,)], failure_of(rehearsal, task)


# ---- ends of the process ----

@pytest.mark.parametrize("step, words", [
    ("exit: 0", "exit code 0"), ("exit: 3", "exit code 3"), ("signal: 11", "signal 11"), ("signal: 9", "signal 9")])
def test_a_process_that_ends_in_its_turn_is_named_with_its_last_words(rehearse, step, words):
    rehearsal = rehearse(AGAIN + turn('text: "half"', 'flood: {lines: 1, bytes: 40, to: stderr}', step))
    task = rehearsal.delegate("work")
    ended = rehearsal.ended(task["taskId"])
    assert ended["status"] == "failed"
    failure = failure_of(rehearsal, task)
    assert failure["class"] == "transport_error" and failure["code"] == "process_exit"
    assert words in failure["message"] and "Its last words" in failure["message"]
    takes_the_next_message(rehearsal, task)


def test_an_agent_that_dies_between_two_turns_is_started_again(rehearse):
    rehearsal = rehearse(turn('text: "one"', when="first") + turn('text: "two"', when="second"),
                         settings=SHORT.replace("idle_ms: 300", "idle_ms: 4000"))
    task = rehearsal.delegate("first")
    assert rehearsal.ended(task["taskId"])["summary"] == "one"
    os.kill(rehearsal.one_agent(), signal.SIGKILL)
    until(lambda: not rehearsal.directories())
    rehearsal.send(task["childThreadId"], "second")
    until(lambda: rehearsal.runs(task) == [rehearsal.COMPLETED] * 2)


def test_a_message_at_the_very_moment_of_death_is_not_lost(rehearse):
    rehearsal = rehearse(turn('text: "ok"'), settings=SHORT.replace("idle_ms: 300", "idle_ms: 4000"))
    task = rehearsal.delegate("first")
    rehearsal.ended(task["taskId"])
    for i in range(6):
        for agent in rehearsal.agents():
            os.kill(agent, signal.SIGKILL)
        time.sleep(i * 0.003)
        rehearsal.send(task["childThreadId"], f"more {i}")
        until(lambda: all(status > 4 for status in rehearsal.runs(task)))
    # A message that had gone to the dying process fails by name; one that had not is given to the next.
    for status in rehearsal.runs(task):
        assert status in (rehearsal.COMPLETED, rehearsal.FAILED)


# ---- silence ----

def test_hanging_is_named_and_nothing_stays(rehearse):
    rehearsal = rehearse(AGAIN + turn('text: "half"', "hang: true"))
    task = rehearsal.delegate("work")
    assert rehearsal.ended(task["taskId"], 12)["status"] == "failed"
    assert failure_of(rehearsal, task)["code"] == "stalled"
    takes_the_next_message(rehearsal, task)


def test_a_stopped_process_is_as_good_as_hanging(rehearse):
    rehearsal = rehearse(AGAIN + turn('text: "half"', "sleep_ms: 600000"))
    task = rehearsal.delegate("work")
    os.kill(rehearsal.one_agent(), signal.SIGSTOP)
    assert rehearsal.ended(task["taskId"], 12)["status"] == "failed"
    assert failure_of(rehearsal, task)["code"] in ("stalled", "start_timeout")
    takes_the_next_message(rehearsal, task)


def test_silence_below_the_limit_is_no_death(rehearse):
    rehearsal = rehearse(turn('text: "one"', "sleep_ms: 2000", 'result_text: "two"'))
    ended = rehearsal.ended(rehearsal.delegate("work")["taskId"])
    assert (ended["status"], ended["summary"]) == ("completed", "two")


def test_one_that_never_answers_initialize_is_ended(rehearse):
    rehearsal = rehearse(AGAIN, head="init_delay_ms: 600000\n")
    task = rehearsal.delegate("work")
    assert rehearsal.ended(task["taskId"], 12)["status"] == "failed"
    assert failure_of(rehearsal, task)["code"] == "start_timeout"


def test_a_turn_without_end_is_ended(rehearse):
    rehearsal = rehearse(AGAIN + turn('text: "' + "x" * 4000 + '"\n        chunk: 1\n        delay_ms: 50'),
                         settings=SHORT.replace("turn_ms: 20000", "turn_ms: 2000"))
    task = rehearsal.delegate("work")
    assert rehearsal.ended(task["taskId"], 12)["status"] == "failed"
    assert failure_of(rehearsal, task)["code"] == "timeout"
    takes_the_next_message(rehearsal, task)


# ---- what it writes ----

@pytest.mark.parametrize("step, codes", [
    ("raw_flood: {lines: 100, bytes: 50, to: stdout}", ("protocol_violation",)),
    ('raw: "\\xff\\xfe\\xfd\\n"', None),
    ("flood: {lines: 1, bytes: 35000000, to: stdout}", ("protocol_violation",)),
])
def test_what_cannot_be_read_ends_this_run_at_most(rehearse, step, codes):
    rehearsal = rehearse(AGAIN + turn('text: "half"', step, 'text: "whole"'))
    task = rehearsal.delegate("work")
    ended = rehearsal.ended(task["taskId"])
    if codes is None:
        assert ended["status"] == "completed" and "whole" in ended["summary"]
    else:
        assert ended["status"] == "failed" and failure_of(rehearsal, task)["code"] in codes
    takes_the_next_message(rehearsal, task)


@pytest.mark.parametrize("chunk", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_text_is_neither_lost_nor_doubled(rehearse, chunk):
    text = "".join(chr(ord("a") + i % 26) for i in range(50000))
    rehearsal = rehearse(turn(f'text: "{text}"\n        chunk: {chunk}'), settings=SHORT.replace("turn_ms: 20000", "turn_ms: 0"))
    assert rehearsal.ended(rehearsal.delegate("work")["taskId"], 60)["summary"] == text


def test_a_long_output_keeps_head_and_tail(rehearse):
    rehearsal = rehearse(turn('tool: {kind: execute, title: long, output: "HEAD-1 and so on ", output_bytes: 8388608}',
                              'text: "verdict ok"') + AGAIN)
    task = rehearsal.delegate("work")
    assert rehearsal.ended(task["taskId"], 60)["summary"].endswith("verdict ok")
    takes_the_next_message(rehearsal, task)


@pytest.mark.slow
def test_floods_do_not_grow_the_server(rehearse):
    rehearsal = rehearse(turn("flood: {lines: 1000000, bytes: 1000, to: stderr}",
                              "flood: {lines: 150000, bytes: 1000, to: stdout}", 'text: "dry again"'),
                         settings=SHORT.replace("turn_ms: 20000", "turn_ms: 280000").replace("stall_ms: 3000", "stall_ms: 200000"))
    before = rehearsal.memory()
    assert rehearsal.ended(rehearsal.delegate("work")["taskId"], 250)["summary"].endswith("dry again")
    assert rehearsal.memory() - before < 64 * 2**20


# ---- interrupting ----

def test_one_that_never_ends_after_cancel_is_forced(rehearse):
    rehearsal = rehearse(AGAIN + turn("ignore_cancel: true", 'text: "half"', "sleep_ms: 600000"))
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.runs(task) == [rehearsal.RUNNING])
    begun = time.monotonic()
    rehearsal.tool("task_cancel", taskId=task["taskId"])
    assert rehearsal.ended(task["taskId"], 12)["status"] == "interrupted"
    assert time.monotonic() - begun < 12 * SLACK
    takes_the_next_message(rehearsal, task)


def test_a_question_that_nobody_answers_ends_with_its_run(rehearse):
    rehearsal = rehearse(AGAIN + turn("ask: {title: may I, kind: execute}", 'text: "I may"'))
    task = rehearsal.delegate("work", runtimeMode="approval-required")
    until(lambda: rehearsal.rows("SELECT n FROM runtime_request WHERE status = 0"))
    time.sleep(4)  # longer than the stall limit: it waits for a person
    assert rehearsal.status(task["taskId"])["status"] not in ("failed", "completed")
    rehearsal.tool("task_cancel", taskId=task["taskId"])
    assert rehearsal.ended(task["taskId"])["status"] == "interrupted"
    assert not rehearsal.rows("SELECT n FROM runtime_request WHERE status = 0")
    takes_the_next_message(rehearsal, task)


# ---- what is left ----

def test_orphans_in_sessions_of_their_own_are_found(rehearse):
    rehearsal = rehearse(turn("spawn: [sleep, '1000']", "spawn: [sh, -c, 'sleep 1001 & sleep 1002']", 'text: "left"'))
    rehearsal.ended(rehearsal.delegate("work")["taskId"])
    until(lambda: not rehearsal.processes(), 20)


def test_a_drained_server_leaves_nothing(rehearse):
    rehearsal = rehearse(turn("spawn: [sleep, '1000']", "sleep_ms: 600000"), settings=SHORT + "  drain_ms: 10000\n")
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.runs(task) == [rehearsal.RUNNING] and len(rehearsal.processes()) > 2)
    rehearsal.dais.stop(30)
    until(lambda: not rehearsal.processes() and not rehearsal.directories())
    rehearsal.start()
    assert rehearsal.status(task["taskId"])["status"] in ("failed", "cancelled", "interrupted")


# ---- programs that are none ----

@pytest.mark.parametrize("program", ["absent", "not executable", "usage"])
def test_a_program_that_cannot_be_an_agent_is_named(rehearse, tmp_path, program):
    path = tmp_path / "agent"
    if program != "absent":
        path.write_text("#!/bin/sh\necho 'usage: agent [--acp]' >&2\nexit 64\n")
        path.chmod(0o755 if program == "usage" else 0o644)
    rehearsal = rehearse(AGAIN, providers=f"  other: {{driver: acp, command: [{path}]}}\n")
    try:
        task = rehearsal.delegate("work", target={"providerInstanceId": "other"})
    except Exception as error:  # what is known before is said at once
        assert program != "usage" and "other" in str(error)
        return
    assert rehearsal.ended(task["taskId"])["status"] == "failed"
    failure = failure_of(rehearsal, task)
    if program == "usage":
        assert failure["code"] == "process_exit" and "usage: agent" in failure["message"]
    else:
        assert failure["code"] == "spawn_failed"
