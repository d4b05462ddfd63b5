"""Many threads, few places; messages and interruptions that cross; a disk that fills while agents talk."""
import random
import time

import pytest

from harness import until
from rehearsal import Refusal, Rehearsal
from test_disk_full import fill, small_disk  # noqa: F401 (a fixture)
from test_thread_faults import rehearse, turn  # noqa: F401 (a fixture)
from test_thread_restart import COUNTED, FAMILY, assert_all_told_once, heard

SETTINGS = "agents: {idle_ms: 500, interrupt_ms: 2000}\n"


def test_thirty_threads_share_four_places(rehearse):
    rehearsal = rehearse(turn(COUNTED, "sleep_ms: 60", 'text: "{{prompt}}"'), settings=SETTINGS)
    made = [rehearsal.delegate(f"work {i:02}") for i in range(30)]
    most = 0
    while any(status < 5 for task in made for status in rehearsal.runs(task)):
        working = rehearsal.rows("SELECT count(*) FROM thread_run r JOIN thread t ON t.n = r.thread_n"
                                 " WHERE r.status IN (2, 3) AND t.kind = 0")[0][0]
        most = max(most, working)
    assert 1 < most <= 4
    assert [rehearsal.ended(task["taskId"])["summary"] for task in made] == [f"work {i:02}" for i in range(30)]
    # Who asked first is served first, but for those that work side by side.
    order = [int(line.split()[1]) for line in (rehearsal.project / "heard").read_text().splitlines()]
    assert all(abs(place - i) <= 4 for place, i in enumerate(order)), order


def test_a_chain_of_waiting_parents_needs_one_place(rehearse):
    def link(depth):
        return turn("mcp: {tool: delegate_task, arguments: {task: \"depth " + str(depth + 1) + " of {{prompt}}\", mode: wait,"
                    " timeoutMs: 60000, clientRequestId: \"{{session}}\"}, retry: true, save: r}",
                    'text: "{{r.summary}}{{r.code}}"', when=f"^depth {depth}")

    rehearsal = rehearse(link(1) + link(2) + turn('text: "bottom"', when="^depth 3"), settings=SETTINGS + "limits: {runs: 1}\n")
    made = [rehearsal.delegate(f"depth 1 number {i}") for i in range(3)]
    for task in made:
        assert rehearsal.ended(task["taskId"])["summary"] == "bottom"
    assert_all_told_once(rehearsal)


def test_the_same_chain_when_the_server_dies_in_its_middle(rehearse):
    rehearsal = rehearse(FAMILY.replace("sleep_ms: 400", "sleep_ms: 900"), settings=SETTINGS + "limits: {runs: 1}\n")
    made = [rehearsal.delegate(f"parent {i}") for i in range(3)]
    for _ in range(3):
        time.sleep(0.5)
        rehearsal.kill().start()
    for task in made:
        assert rehearsal.ended(task["taskId"], 40)["summary"] == "told completed two"
    assert len(heard(rehearsal)) == 6


def test_a_steering_message_goes_into_the_turn_or_is_the_next_one(rehearse):
    """However it falls: it is heard once."""
    rehearsal = rehearse(turn("sleep_ms: 50", 'text: "one"', "sleep_ms: 50", when="^first")
                         + turn(COUNTED, 'text: "{{prompt}}"', when="^steer"), settings=SETTINGS)
    moments = random.Random(5)
    for i in range(10):
        task = rehearsal.delegate(f"first {i}")
        time.sleep(moments.uniform(0, 0.4))
        try:
            rehearsal.send(task["childThreadId"], f"steer {i}", mode="steer")
        except Refusal as refusal:
            assert refusal.code == "thread_not_sendable"
        until(lambda: all(status > 4 for status in rehearsal.runs(task)))
        assert set(rehearsal.runs(task)) == {rehearsal.COMPLETED}
    lines = heard(rehearsal)
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_run_begins_again_with_what_it_is_told(rehearse, is_killed):
    rehearsal = rehearse(turn(COUNTED, 'text: "one"', "sleep_ms: 60000", when="^first")
                         + turn(COUNTED, 'text: "{{prompt}}"', when="^better"), settings=SETTINGS)
    task = rehearsal.delegate("first")
    until(lambda: heard(rehearsal) and rehearsal.runs(task) == [rehearsal.RUNNING])
    rehearsal.send(task["childThreadId"], "better", mode="restart")
    if is_killed:
        rehearsal.kill().start()
    ended = rehearsal.ended(task["taskId"])
    assert (ended["status"], ended["summary"]) == ("completed", "better")
    assert heard(rehearsal) == ["better", "first"] and rehearsal.runs(task) == [rehearsal.COMPLETED]


def test_an_interruption_at_any_moment_ends_the_run_once(rehearse):
    rehearsal = rehearse(turn('text: "one"', "sleep_ms: 200", 'text: "two"', when="^work") + turn('text: "ok"', when="^again"),
                         settings=SETTINGS)
    moments = random.Random(6)
    for i in range(10):
        task = rehearsal.delegate(f"work {i}")
        time.sleep(moments.uniform(0, 0.5))
        try:
            rehearsal.tool("task_cancel", taskId=task["taskId"])
        except Refusal as refusal:  # its agent is done, and what it left is being captured
            assert refusal.code == "task_not_cancellable"
        assert rehearsal.ended(task["taskId"])["status"] in ("interrupted", "cancelled", "completed")
        rehearsal.send(task["childThreadId"], "again")
        until(lambda: rehearsal.runs(task)[-1] == rehearsal.COMPLETED and len(rehearsal.runs(task)) == 2)


def test_a_provider_that_is_taken_away_ends_its_agents(rehearse):
    rehearsal = rehearse(turn('text: "one"', "sleep_ms: 600000"), settings=SETTINGS)
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.runs(task) == [rehearsal.RUNNING])
    rehearsal.kill()
    rehearsal.config.write_text(rehearsal.config.read_text().replace("rehearse:", "other:"))
    rehearsal.start()
    assert rehearsal.ended(task["taskId"])["status"] in ("failed", "cancelled")
    until(lambda: not rehearsal.processes())


def test_a_full_disk_stops_nothing_for_good(small_disk):
    rehearsal = Rehearsal(small_disk, turn('text: "' + "abcdefghij" * 2000 + '"\n        chunk: 10\n        delay_ms: 1', 'result_text: "end"'),
                          settings=SETTINGS).start()
    try:
        fill_and_go_on(rehearsal, small_disk)
    finally:
        rehearsal.clear()


def fill_and_go_on(rehearsal, small_disk):  # noqa: F811
    task = rehearsal.delegate("work")
    until(lambda: rehearsal.rows("SELECT item_n FROM item_chunk"))
    filler = fill(small_disk.state)
    time.sleep(1.5)
    filler.unlink()
    ended = rehearsal.ended(task["taskId"], 60)
    assert (ended["status"], ended["summary"]) == ("completed", "end")
    text = rehearsal.rows("SELECT text FROM turn_item WHERE type = 1 ORDER BY ordinal")
    assert text[0][0] == "abcdefghij" * 2000
