"""Event streams: prompt, bounded, and noticed when they end."""
import os
import socket
import time

import pytest

from http_room import GET, SLACK, server, start  # noqa: F401


def test_the_head_of_a_stream_leaves_at_once(server):
    with server.connect() as client:
        client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        begin = time.monotonic()
        answer = client.head()
        assert time.monotonic() - begin < 0.2 * (1 + SLACK)
        assert answer.headers["content-type"].startswith("text/event-stream")


def test_events_arrive_one_by_one_and_the_connection_goes_on(server):
    with server.connect() as client:
        client.send("GET /stream?n=5&every=30 HTTP/1.1\r\nHost: a\r\n\r\n")
        client.head()
        events = list(client.chunks())
        assert len(events) == 5
        client.send(GET)
        assert client.answer().status == 200
    assert server.counts()["streams"] == 0


def test_an_event_is_delivered_promptly(server):
    with server.connect() as client:
        client.send("GET /stream?n=50&every=20 HTTP/1.1\r\nHost: a\r\n\r\n")
        client.head()
        client.chunk()
        begin = time.monotonic()
        list(client.chunks())
        assert time.monotonic() - begin < 2.0 * (1 + SLACK)  # with Nagle or a cork: 50 × 40 ms more


def test_a_silent_stream_gets_heartbeats_and_costs_no_cpu(start):
    server = start("heartbeat_ms=200")
    with server.connect() as client:
        client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        client.head()
        begin = time.monotonic()
        for _ in range(4):
            assert client.chunk() == b": hb\n\n"
        assert 0.7 < time.monotonic() - begin < 1.2 + SLACK


def test_a_waiting_request_gets_no_heartbeat(start):
    server = start("heartbeat_ms=100")
    with server.connect() as client:
        client.send("GET /later?ms=600 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.answer().body == b"later"


def test_a_subscriber_that_leaves_is_noticed(server):
    client = server.connect()
    client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    client.head()
    assert server.counts()["streams"] == 1
    client.sock.close()
    server.until(lambda counts: counts["streams"] == 0 and counts["hangups"] == 1)


def test_subscribers_that_never_read_are_cut_and_memory_is_bounded(start):
    server = start("stall_ms=1000")
    before = server.rss_kib()
    clients = []
    for _ in range(30):
        client = server.connect()
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send("GET /stream?flood=1&size=8000&every=0 HTTP/1.1\r\nHost: a\r\n\r\n")
        clients.append(client)
    server.until(lambda counts: counts["hangups"] >= 30 and counts["streams"] == 0, 15 + SLACK)
    assert server.rss_kib() - before < 60_000 or "SLACK" in os.environ
    for client in clients:
        client.sock.close()


def test_a_queue_over_its_limit_cuts_the_stream(start):
    server = start("stall_ms=60000")
    with server.connect() as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send("GET /stream?n=1000000&size=60000&every=0 HTTP/1.1\r\nHost: a\r\n\r\n")
        server.until(lambda counts: counts["hangups"] == 1, 10 + SLACK)


@pytest.mark.benchmark
def test_a_thousand_idle_streams_fit_in_32_mb(start):
    server = start()
    clients = [server.connect() for _ in range(1000)]
    for client in clients:
        client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    for client in clients:
        client.head()
    assert server.counts()["streams"] == 1000
    rss = server.rss_kib()
    print("rss with 1,000 streams:", rss, "KiB")

    assert rss < 32 * 1024
    for client in clients:
        client.sock.close()
    server.until(lambda counts: counts["streams"] == 0)
