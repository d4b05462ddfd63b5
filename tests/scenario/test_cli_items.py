"""dais items and dais events: what a person sees in a terminal, and what never gets there."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import unicodedata

import pytest

import harness
from harness import until

RULES = """
work_item_schemas:
  task:
    notes:
      - { key: plan, role: queue, required: true, description: What will be done }
"""

# Case A15: titles that make terminals and byte-wise cuts misbehave.
TITLES = ["数据库升级", "数据库升级", "٣ مهام", "012345678901234567890123456789012345678💦💦", "💦" * 500, "e\u0301", "\u00e9",
          "evil \u202e txt.exe", "line\u2028two", "tab\tand\nnewline", "esc \x1b]0;owned\x07 \x9b31m", "zero\u200bwidth", "\u2066iso\u2069"]
STEERING = re.compile("[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class Terminal:
    """A subcommand on a terminal of 80 columns; what it wrote."""

    def __init__(self, dais, *arguments, **environment):
        self.parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {**dais.env(), **environment}
        env.pop("NO_COLOR", None)
        env.pop("COLUMNS", None)
        self.process = subprocess.Popen([harness.PROGRAM, arguments[0], "--state", str(dais.state), *arguments[1:]], stdin=child,
                                        stdout=child, stderr=child, env=env, cwd=dais.work)
        os.close(child)
        self.bytes = b""
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while True:
            try:
                more = os.read(self.parent, 65536)
            except OSError:
                return
            if not more:
                return
            self.bytes += more

    def end(self):
        code = self.process.wait(timeout=30 * harness.SLACK)
        self.thread.join(10)
        os.close(self.parent)
        return code, self.bytes.decode()

    def stop(self):
        self.process.terminate()
        return self.end()[1]


def columns(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def without_colour(text):
    return re.sub("\x1b\\[[0-9;]*[mHJ]", "", text)


@pytest.fixture
def harbour(dais):
    root = dais.item("Harbour", type="project")
    dais.rules(root, RULES)
    tree = dais.op("items_write", "create_tree", root={"title": "Berth booking", "parentId": root}, children=[
        {"ref": "first", "title": "Tide table import", "type": "task"},
        {"ref": "second", "title": "Booking API", "type": "task", "priority": "high"},
    ], deps=[{"from": "first", "to": "second"}])
    dais.root = root
    dais.first, dais.second = (child["id"] for child in tree["children"])
    return dais


def test_the_tree_shows_who_stands_under_whom(harbour):
    # LC_CTYPE, too: where no locale is set, Python sets it for its children.
    harbour.environment = {"LANG": "C", "LC_CTYPE": "", "LC_ALL": ""}
    lines = harbour.run("items", check=0).stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(harbour.root[:8] + " queue") and "Harbour" in lines[0]
    assert "`- Berth booking" in lines[1]
    assert {lines[2][21:24], lines[3][21:24]} == {"|- ", "`- "}
    harbour.environment = {"LANG": "C.UTF-8", "LC_CTYPE": "", "LC_ALL": ""}
    assert "└─ Berth booking" in harbour.run("items", check=0).stdout


def test_the_listing_can_be_narrowed(harbour):
    harbour.note(harbour.first, "plan", "x")
    harbour.advance(harbour.first, "start")
    other = harbour.item("Other", type="project")
    assert other[:8] not in harbour.run("items", "--root", harbour.root[:8], check=0).stdout
    working = harbour.run("items", "--role", "work", check=0).stdout
    assert "Tide table import" in working and "Booking API" not in working
    harbour.advance(harbour.first, "complete")
    assert "Tide table import" not in harbour.run("items", "--open", check=0).stdout
    assert len(harbour.run("items", "--table", "--limit", "2", check=0).stdout.splitlines()) == 4  # heading, two rows, what is left
    rows = json.loads(harbour.run("items", "--json", check=0).stdout)["items"]
    assert len(rows) == 5
    assert harbour.run("items", "--role", "asleep").returncode == 1


def test_more_than_a_page_is_shown_whole(dais):
    root = dais.item("root")
    dais.op("items_write", "create_tree", root={"id": root},
            children=[{"ref": f"r{i}", "title": f"child {i}"} for i in range(150)])
    lines = dais.run("items", check=0).stdout.splitlines()
    assert len(lines) == 151 and lines[0].endswith("root")


def test_one_item_shows_what_holds_it_back(harbour):
    text = harbour.run("items", harbour.second[:8], check=0).stdout
    assert harbour.second in text
    assert "Harbour › Berth booking" in text
    assert re.search(r"missing +note plan", text)
    assert re.search(r"waits for +" + harbour.first[:8], text)
    everything = json.loads(harbour.run("items", harbour.second, "--json", check=0).stdout)
    assert everything["gate"]["canAdvance"] is False and everything["item"]["title"] == "Booking API"
    harbour.note(harbour.second, "plan", "Serve the berths.")
    assert re.search(r"plan +queue +v1 +17 characters", harbour.run("items", harbour.second, check=0).stdout)


def test_an_item_that_is_not_there_is_an_error(dais):
    assert "not" in dais.run("items", "00000000-0000-4000-8000-000000000000", check=1).stderr


def test_nothing_of_the_data_steers_a_terminal_and_no_line_is_too_wide(dais):
    root = dais.item("root", type="project")
    for title in TITLES:
        if "\x00" not in title:
            dais.item(title, parentId=root, summary=title, description=title)
    ids = [row["id"] for row in json.loads(dais.run("items", "--json", check=0).stdout)["items"]]
    for arguments in [["items"], ["items", "--table"], ["status"], *[["items", item] for item in ids]]:
        for language in ["C.UTF-8", "C"]:
            code, text = Terminal(dais, *arguments, LANG=language, LC_ALL="").end()
            assert code == 0, text
            plain = without_colour(text.replace("\r\n", "\n"))
            assert "\x1b" not in plain and not STEERING.search(plain), repr(plain)
            assert "\ufffd\ufffd\ufffd" not in plain  # a cut inside a character would leave pieces
            assert all(columns(line) <= 80 for line in plain.splitlines()), plain
    raw = dais.run("items", "--json", check=0).stdout
    assert not STEERING.search(raw)
    assert {row["title"] for row in json.loads(raw)["items"]} >= {"数据库升级", "evil \u202e txt.exe"}


def test_colour_is_for_terminals_only(harbour):
    assert "\x1b" not in harbour.run("items", check=0).stdout
    assert "\x1b[" in Terminal(harbour, "items").end()[1]


# ---- watching ----

def test_watch_draws_again_when_something_happens_across_a_restart(dais):
    dais.item("first thing")
    terminal = Terminal(dais, "items", "--watch")
    until(lambda: b"first thing" in terminal.bytes)
    dais.item("second thing")
    until(lambda: b"second thing" in terminal.bytes)
    dais.restart()
    dais.item("third thing")
    until(lambda: b"third thing" in terminal.bytes)
    terminal.stop()


class Follower:
    """dais events --json with its lines read as they come."""

    def __init__(self, dais, *arguments):
        self.process = subprocess.Popen([harness.PROGRAM, "events", "--state", str(dais.state), "--json", *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dais.env(), text=True)
        self.events = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def wait_for(self, n):
        until(lambda: len(self.events) >= n)
        return self.events

    def stop(self):
        self.process.terminate()
        self.process.communicate()


def test_events_arrive_as_they_happen_and_none_is_lost_over_a_crash(dais):
    dais.item("before")
    follower = Follower(dais, "--since", "0")
    first = follower.wait_for(1)[0]
    assert (first["type"], first["actor"]["id"]) == ("item.created", "local")
    for i in range(5):
        dais.item(f"item {i}")
        if i == 2:
            dais.kill().start()
    events = [event for event in follower.wait_for(6)]
    assert [event["seq"] for event in events] == list(range(first["seq"], first["seq"] + 6))
    follower.stop()


def test_events_that_were_not_asked_for_stay_out(dais):
    item = dais.item("one")
    dais.note(item, "n", "x", role="queue")
    dais.advance(item, "start")
    done = dais.run("events", "--since", "0", "--type", "item", "--count", "2", "--json", check=0)
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["item.created", "item.transitioned"]
    text = dais.run("events", "--since", "0", "--type", "item.transitioned", "--count", "1", check=0).stdout
    assert "queue → work" in text and item[:8] in text


def test_events_begin_with_now(dais):
    dais.item("old")
    follower = Follower(dais)
    until(lambda: len(dais.item("new")) and follower.events)
    assert all(event["seq"] > 1000000000001 for event in follower.events)
    follower.stop()


def test_a_new_item_does_not_inherit_the_events_of_one_that_is_gone(dais):
    root = dais.item("root")
    gone = dais.item("gone", parentId=root)
    dais.op("items_write", "delete", itemId=gone)
    dais.restart()
    item = dais.item("new", parentId=root)
    done = dais.run("events", "--since", "0", "--count", "4", "--json", check=0)
    assert [json.loads(line).get("itemId") for line in done.stdout.splitlines()] == [root, None, None, item]
