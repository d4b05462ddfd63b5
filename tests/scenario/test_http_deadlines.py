"""Who is slow, silent or gone: deadlines and hang-ups."""
import contextlib
import os
import pathlib
import select
import socket
import time

import pytest

from http_room import GET, SLACK, seconds_until_closed, server, start  # noqa: F401


# ---- deadlines ----


def test_a_silent_connection_is_closed(start):
    server = start("head_ms=600")
    with server.connect() as client:
        assert 0.5 < seconds_until_closed(client) < 0.9 + SLACK


def test_a_dripped_head_is_closed_at_the_deadline(start):
    server = start("head_ms=600")
    with server.connect() as client:
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-A: ")
        assert 0.5 < seconds_until_closed(client, "x") < 0.9 + SLACK
    assert server.counts()["timedOut"] >= 1


def test_a_slow_head_on_a_used_connection_is_closed_too(start):
    server = start("head_ms=600", "idle_ms=60000")
    with server.connect() as client:
        client.send(GET)
        client.answer()
        client.send("GET / HTTP/1.1\r\nHost: a\r\n")
        assert 0.5 < seconds_until_closed(client, "X: y\r\n") < 0.9 + SLACK


def test_a_dripped_body_gets_408(start):
    server = start("body_ms=700")
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        begin = time.monotonic()
        while not select.select([client.sock], [], [], 0.1)[0]:
            client.send("x")
        assert 0.6 < time.monotonic() - begin < 1.0 + SLACK
        assert client.answer().status == 408
        assert client.is_closed()


def test_a_body_below_the_rate_gets_408_before_its_deadline(server):
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        begin = time.monotonic()
        while not select.select([client.sock], [], [], 0.5)[0]:
            client.send("x")
        assert 4.9 < time.monotonic() - begin < 7 + SLACK
        assert client.answer().status == 408


def test_an_idle_connection_is_closed(start):
    server = start("idle_ms=600")
    with server.connect() as client:
        client.send(GET)
        client.answer()
        assert 0.5 < seconds_until_closed(client) < 0.9 + SLACK


def test_waiting_for_the_application_has_no_deadline(start):
    server = start("head_ms=200", "body_ms=200", "idle_ms=200", "stall_ms=200")
    assert server.get("/later?ms=1500").body == b"later"


def seconds_of(ask):
    asked = time.monotonic()
    assert ask().status == 200
    return time.monotonic() - asked


def test_200_dripping_connections_do_not_delay_others(start):
    """Compared with the same server a moment earlier: what else runs on the machine slows both."""
    server = start("head_ms=1500")
    alone = sorted(seconds_of(lambda: server.get("/")) for _ in range(50))
    clients = [server.connect() for _ in range(200)]
    begin, beside = time.monotonic(), []
    while time.monotonic() - begin < 1.0:
        for client in clients:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.send("G")
        beside.append(seconds_of(lambda: server.get("/")))
    assert sorted(beside)[len(beside) // 2] < alone[25] * 10 + 0.02
    for client in clients:
        seconds_until_closed(client, at_most=3 + SLACK)
        client.sock.close()


@pytest.mark.benchmark
def test_a_flood_of_half_heads_is_thinned_out_in_one_look(start):
    """Each look at them holds the lock that every answer needs; once it looked for the oldest anew for each one that went."""
    server = start()
    cut = server.counts()["timedOut"]
    flood = [server.connect() for _ in range(1900)]
    for client in flood:
        client.send("GET / HT")
    before = server.cpu_ticks()
    server.until(lambda counts: counts["timedOut"] - cut >= 1900 - 128, 30)
    assert server.cpu_ticks() - before < os.sysconf("SC_CLK_TCK") * 0.5
    for client in flood:
        client.sock.close()


def test_a_reader_that_stalls_loses_its_answer(start):
    server = start("stall_ms=600")
    with server.connect() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send("GET /big?n=50000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        server.until(lambda counts: counts["timedOut"] == 1, 5 + SLACK)
    server.until(lambda counts: counts["connections"] == 1)


def test_a_slow_reader_that_drains_keeps_its_answer(start):
    server = start("stall_ms=600")
    with server.connect() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send("GET /big?n=8000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        got = 0
        while got < 8_000_000:
            data = client.sock.recv(400_000)
            assert data
            got += len(data)
            time.sleep(0.02)


# ---- hanging up ----


def test_a_hang_up_frees_a_waiting_request_at_once(server):
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
    server.until(lambda counts: counts["kept"] == 20)
    begin = time.monotonic()
    for client in clients:
        client.sock.close()
    server.until(lambda counts: counts["kept"] == 0 and counts["connections"] == 1)
    assert time.monotonic() - begin < 0.5 + SLACK
    assert server.counts()["hangups"] == 20


def test_a_half_close_counts_as_a_hang_up(server):
    with server.connect() as client:
        client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
        server.until(lambda counts: counts["kept"] == 1)
        client.sock.shutdown(socket.SHUT_WR)
        server.until(lambda counts: counts["kept"] == 0 and counts["hangups"] == 1)


def test_a_reset_counts_as_a_hang_up(server):
    client = server.connect()
    client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
    server.until(lambda counts: counts["kept"] == 1)
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    client.sock.close()
    server.until(lambda counts: counts["kept"] == 0 and counts["hangups"] == 1)


def test_an_answered_request_has_no_hang_up(server):
    for _ in range(10):
        assert server.get("/later?ms=5").status == 200
    assert server.counts()["hangups"] == 0


def test_hang_ups_that_race_with_answers_are_harmless(server):
    for n in range(300):
        client = server.connect()
        client.send(f"GET /later?ms={n % 4} HTTP/1.1\r\nHost: a\r\n\r\n")
        if n % 3:
            time.sleep(0.002)
        client.sock.close()
    server.until(lambda counts: counts["kept"] == 0 and counts["connections"] == 1)


LEAVES = {
    "an idle connection": ("", 0),
    "half a head": ("GET / HTTP/1.1\r\nHost: a\r\n", 0),
    "half a body": ("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", 0),
    "half a chunked body": ("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 0),
    "a waiting request": ("GET /never HTTP/1.1\r\nHost: a\r\n\r\n", 0),
    "an answer": ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    "a part of a large answer": ("GET /big?n=50000000 HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    "a refused body": ("POST /denied HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", 1),
    "a silent stream": ("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    "a busy stream": ("GET /stream?n=1000000&every=1 HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    "a flood": ("GET /stream?flood=1&size=8000&every=0 HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    "a stream of HTTP/1.0": ("GET /stream HTTP/1.0\r\n\r\n", 1),
}


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("what", LEAVES)
def test_whoever_leaves_leaves_nothing_behind_a_client_that_stays(start, what, reset):
    """A client that keeps its connection and is quiet must not keep those of others, who came later, from closing."""
    server = start("head_ms=1500")  # half a head may stay as long as that
    text, reads = LEAVES[what]
    files = len(list(pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()))
    with server.connect() as quiet:
        quiet.send(GET)
        quiet.answer()
        for n in range(20):
            client = server.connect()
            client.send(text)
            if reads:
                client.sock.recv(100)
            if n % 2:
                time.sleep(0.01)
            if reset:
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            client.sock.close()
        server.until(lambda counts: counts["connections"] == 2 and counts["kept"] == 0 and counts["streams"] == 0, 5 + SLACK)
        # What was refused with its body unread is drained for a while.
        end = time.monotonic() + 5 + SLACK
        while len(list(pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir())) > files + 2:
            assert time.monotonic() < end
            time.sleep(0.05)
