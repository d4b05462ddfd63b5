"""A12: the stream of events, cut and resumed: each event once, in order, and nobody else's."""
import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time
import urllib.parse

import pytest

from harness import until


class Stream:
    """GET /api/v1/events, read by hand."""

    def __init__(self, dais, token, last=None, query="", timeout=30, small=False):
        caller = dais.http()
        self.socket = socket.socket()
        self.socket.settimeout(timeout)
        if small:  # the kernel takes hardly anything on behalf of who does not read
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect((caller.host, caller.port))
        lines = [f"GET /api/v1/events{query} HTTP/1.1", f"Host: {caller.host}:{caller.port}",
                 f"Authorization: Bearer {token}", "Accept: text/event-stream"]
        if last is not None:
            lines.append(f"Last-Event-ID: {last}")
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.answer = http.client.HTTPResponse(self.socket)
        self.answer.begin()
        self.status = self.answer.status

    def event(self):
        """The next event: {id, event, data}, or {comment}."""
        found = {}
        while True:
            line = self.answer.readline()
            assert line, "the stream ended"
            line = line.decode().rstrip("\n").rstrip("\r")
            if line == "":
                if "data" in found:
                    return found
                found = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(":")
                found[name] = value.removeprefix(" ")

    def events(self, count):
        return [self.event() for _ in range(count)]

    def close(self):
        self.answer.close()
        self.socket.close()


def numbers(events):
    return [int(event["id"]) for event in events]


def make(local, count):
    for at in range(0, count, 100):
        local.ops("items_write", *({"op": "create", "title": f"item {i}"} for i in range(at, min(count, at + 100))))


def settle(stream, local, title="marker"):
    """Skip what the stream says at its start; the event of a fresh item is the last one skipped."""
    item = local.item(title)
    while True:
        event = stream.event()
        if event.get("event") == "item.created" and item in event["data"]:
            return event


@pytest.fixture
def token(dais):
    return dais.admin_token


def test_a12a_a_cut_stream_goes_on_where_it_was(dais, token):
    local = dais.local()
    first = Stream(dais, token)
    settle(first, local)
    make(local, 100)
    seen = first.events(37)
    first.close()
    make(local, 50)
    second = Stream(dais, token, last=seen[-1]["id"])
    rest = [event for event in (second.event() for _ in range(113)) if event.get("event") == "item.created"]
    assert len(rest) == 113
    together = numbers(seen) + numbers(rest)
    assert together == sorted(set(together)) and len(together) == 150


def test_a12b_the_store_replays_thousands_from_the_first_event_on(dais, token):
    local = dais.local()
    stream = Stream(dais, token)
    first = settle(stream, local)
    stream.close()
    make(local, 5000)
    again = Stream(dais, token, last=first["id"])
    assert numbers(again.events(5000)) == list(range(int(first["id"]) + 1, int(first["id"]) + 5001))
    again.close()


def test_a12b_what_is_too_old_to_replay_is_said(stopped):
    stopped.environment["DAIS_EVENTS_WINDOW"] = "100"
    stopped.start()
    local, token = stopped.local(), stopped.admin_token
    stream = Stream(stopped, token)
    first = settle(stream, local)
    stream.close()
    make(local, 500)
    newest = int(first["id"]) + 500
    again = Stream(stopped, token, last=first["id"])
    said = again.event()
    assert (said["event"], json.loads(said["data"])["reason"], said["id"]) == ("sync.lost", "buffer_evicted", str(newest - 100))
    assert numbers(again.events(100)) == list(range(newest - 99, newest + 1)), "from the marker on there is no gap"
    again.close()


@pytest.mark.parametrize("last", ["abc", "-1", "99999999999999999", "1", "1e3", "9" * 40, "1000000005000"])
def test_a12c_a_senseless_id_restarts_and_says_so(dais, token, last):
    local = dais.local()
    made = [local.item("before")]
    stream = Stream(dais, token, last=last)
    said = stream.event()
    assert (said["event"], json.loads(said["data"])["reason"]) == ("sync.lost", "unknown_event_id")
    made.append(local.item("after"))
    assert [json.loads(event["data"])["itemId"] for event in stream.events(2)] == made, "all there is, from the oldest on"
    stream.close()


def test_a12c_an_empty_id_is_none(dais, token):
    local = dais.local()
    local.item("before")
    stream = Stream(dais, token, last="")
    after = local.item("after")
    assert json.loads(stream.event()["data"])["itemId"] == after
    stream.close()


def test_a12d_without_an_id_it_starts_now(dais, token):
    local = dais.local()
    make(local, 20)
    stream = Stream(dais, token)
    item = local.item("now")
    created = []
    while not created or item not in created[-1]["data"]:
        event = stream.event()
        if event.get("event") == "item.created":
            created.append(event)
    assert len(created) == 1, "nothing of what was before"


def test_a12e_after_a_crash_of_the_server_nothing_is_missing(dais, token):
    local = dais.local()
    stream = Stream(dais, token)
    marker = settle(stream, local)
    make(local, 30)
    seen = stream.events(10)
    stream.close()
    dais.kill().start()
    again = Stream(dais, token, last=seen[-1]["id"])
    rest = again.events(20)
    assert numbers(seen) + numbers(rest) == list(range(int(marker["id"]) + 1, int(marker["id"]) + 31))


def test_a12f_another_project_is_not_seen_whatever_the_id(dais, token):
    local = dais.local()
    mine, theirs = local.item("mine"), local.item("theirs")
    limited = json.loads(dais.run("token", "create", "limited", "--capabilities", "read", "--root", mine, "--json",
                                  check=0).stdout)["token"]
    stream = Stream(dais, token)
    marker = settle(stream, local)
    secret = local.item("secret", parentId=theirs)
    open_ = local.item("open", parentId=mine)
    for last in (None, marker["id"], str(int(marker["id"]) - 1)):
        narrow = Stream(dais, limited, last=last)
        if last is None:
            open_ = local.item("open again", parentId=mine)
        while True:
            event = narrow.event()
            assert secret not in event["data"] and theirs not in event["data"]
            if open_ in event["data"]:
                break
        narrow.close()


def test_a12g_two_readers_with_one_id_each_get_everything(dais, token):
    local = dais.local()
    stream = Stream(dais, token)
    marker = settle(stream, local)
    make(local, 20)
    for reader in (Stream(dais, token, last=marker["id"]), Stream(dais, token, last=marker["id"])):
        assert numbers(reader.events(20)) == list(range(int(marker["id"]) + 1, int(marker["id"]) + 21))
        reader.close()


# One client that opens and drops connections, 200 a second, until its stdin ends. In a process of its own: it must not
# take time from who measures.
STORM = r"""
import select, socket, sys, time
port, head = int(sys.argv[1]), sys.stdin.buffer.readline().decode().replace("|", "\r\n").strip() + "\r\n\r\n"
count, due = 0, time.monotonic()
while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
    due = max(due + 1 / 200, time.monotonic() - 0.1)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(head.encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 "), head
    count += 1
print(count)
"""


@contextlib.contextmanager
def storm(dais, path, *headers):
    """Reconnects to `path` meanwhile."""
    port = urllib.parse.urlsplit(dais.url).port
    head = "|".join([f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers])
    with subprocess.Popen([sys.executable, "-c", STORM, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(head.encode() + b"\n")
        process.stdin.flush()
        yield
        out, _ = process.communicate()
        assert process.returncode == 0 and int(out) > 50


def p99(caller):
    """Of 400 calls, in seconds."""
    took = []
    for _ in range(400):
        began = time.monotonic()
        caller.read("items_read", "overview")
        took.append(time.monotonic() - began)
        time.sleep(0.002)
    return sorted(took)[int(len(took) * 0.99)]


@pytest.mark.benchmark
def test_a12h_a_client_that_reconnects_all_the_time_harms_nobody(dais, token):
    """Two hundred event streams a second, each with its replay, cost the others hardly more than as many plain requests."""
    local = dais.local()
    stream = Stream(dais, token)
    first = settle(stream, local)
    stream.close()
    make(local, 50)
    before = dais.connections()
    ratios = []
    while len(ratios) < 4 and min(ratios, default=9) > 3:
        with storm(dais, "/api/v1/health"):
            plain = p99(local)
        with storm(dais, "/api/v1/events", f"Authorization: Bearer {token}", f"Last-Event-ID: {first['id']}"):
            ratios.append(p99(local) / plain)
    assert min(ratios) <= 3, ratios
    until(lambda: dais.connections() <= before)
    make(local, 1)
    again = Stream(dais, token, last=first["id"])
    assert numbers(again.events(51)) == list(range(int(first["id"]) + 1, int(first["id"]) + 52))
    again.close()


@pytest.mark.slow
def test_a12_a_silent_stream_gets_comments(dais, token):
    """What is on the way, and the reader, see that it lives."""
    stream = Stream(dais, token, timeout=120)
    comments = []
    while len(comments) < 2:  # the first greets
        line = stream.answer.readline()
        assert line and not line.startswith(b"data"), line
        comments += [line] if line.startswith(b":") else []
    stream.close()


@pytest.mark.slow
@pytest.mark.benchmark
def test_a12i_a_reader_that_never_reads_is_cut_off_and_costs_little(dais, token):
    local = dais.local()
    first = Stream(dais, token)
    marker = settle(first, local)
    first.close()
    until(lambda: dais.connections() == 0)
    stream = Stream(dais, token, last=marker["id"], small=True)

    def resident():
        return int(next(line for line in open(f"/proc/{dais.process.pid}/status") if line.startswith("VmRSS")).split()[1])

    before = resident()
    make(local, 6000)
    assert resident() - before < 64 * 1024, "KiB"
    until(lambda: dais.connections() == 0, seconds=60)
    # What had left the server is still read, whole events up to the cut; the rest is there for the next connection.
    seen = []
    with contextlib.suppress(http.client.IncompleteRead, ConnectionResetError, AssertionError):
        while True:
            seen.append(stream.event())
    stream.close()
    last = int(marker["id"])
    assert numbers(seen) == list(range(last + 1, last + 1 + len(seen))) and len(seen) < 6000
    again = Stream(dais, token, last=seen[-1]["id"] if seen else marker["id"])
    assert numbers(seen) + numbers(again.events(6000 - len(seen))) == list(range(last + 1, last + 6001))
    again.close()


def test_events_need_a_credential(dais):
    assert Stream(dais, "dais_wrong").status == 401
