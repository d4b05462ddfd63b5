"""Requests and bodies: what is sent is what arrives, and nothing else."""
import contextlib
import json
import select
import signal
import socket

import pytest

from harness import SLACK
from http_room import GET, post, server, start  # noqa: F401


# ---- requests ----


def test_the_path_is_shown_as_it_was_sent(server):
    seen = json.loads(server.get("/a%2Fb/%zz//../x+y?q=a%20b+c&q=2&r").body)
    assert seen["path"] == "/a%2Fb/%zz//../x+y"
    assert seen["query"] == "q=a%20b+c&q=2&r"
    assert seen["q"] == "a b c"
    assert seen["peer"] == "127.0.0.1"


def test_header_values_are_trimmed_and_first_wins_a_lookup(server):
    seen = json.loads(server.ask("GET / HTTP/1.1\r\nHost: a\r\nX-A: \t one \t\r\n\r\n").body)
    assert seen["headers"]["X-A"] == "one"


def test_a_connection_serves_many_requests(server):
    with server.connect() as client:
        for n in range(50):
            client.send(post("/echo", "x" * n))
            assert client.answer().body == b"x" * n


def test_an_early_answer_without_body_keeps_the_connection(server):
    with server.connect() as client:
        for _ in range(3):
            client.send("GET /denied HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = client.answer()
            assert answer.status == 403 and "connection" not in answer.headers


def test_an_early_answer_leaves_the_body_unread_and_closes(server):
    with server.connect() as client:
        client.send("POST /denied HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        assert client.answer().status == 403
        assert client.is_closed()


def test_pipelined_requests_are_answered_in_order(server):
    with server.connect() as client:
        client.send("".join(post("/echo", f"n{n}") if n % 2 else f"GET /later?ms={n} HTTP/1.1\r\nHost: a\r\n\r\n"
                            for n in range(20)))
        for n in range(20):
            assert client.answer().body == (f"n{n}".encode() if n % 2 else b"later")


def test_http_1_0_gets_an_answer_and_an_end(server):
    with server.connect() as client:
        client.send("GET /later?ms=20 HTTP/1.0\r\n\r\n")
        assert client.answer().body == b"later"
        assert client.is_closed()


def test_http_1_0_streams_end_with_the_connection(server):
    with server.connect() as client:
        client.send("GET /stream?n=3 HTTP/1.0\r\n\r\n")
        answer = client.answer()
        assert "transfer-encoding" not in answer.headers
        assert answer.body.count(b"data:") == 3


def test_expect_100_continue_is_answered_before_the_body(server):
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert client.head().status == 100
        client.send("body")
        assert client.answer().body == b"body"


def test_expect_100_continue_of_a_refused_body_gets_only_the_refusal(server):
    for path, length, status in (("/denied", 4, 403), ("/small", 17, 413)):
        answer = server.ask(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n"
                            "Expect: 100-continue\r\n\r\n")
        assert answer.status == status and answer.headers["connection"] == "close"


def test_chunked_bodies_and_their_trailers_are_read(server):
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\nX-B: 2\r\n\r\n")
        assert client.answer().body == b"abc0123456789"
        client.send(GET)
        assert client.answer().status == 200


def test_a_large_body_arrives_whole(server):
    body = "0123456789abcdef" * 200_000
    assert server.ask(post("/echo", body)).body == body.encode()


def test_head_gets_the_length_and_no_body(server):
    with server.connect() as client:
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + GET)
        assert int(client.answer(body=False).headers["content-length"]) > 0
        assert client.answer().status == 200


def test_a_request_nobody_answers_is_500(server):
    answer = server.get("/lost")
    assert answer.status == 500 and answer.error() == "internal"


# ---- bodies ----


def test_a_declared_body_over_the_limit_is_refused_unread(server):
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5242880\r\n\r\n")
        answer = client.answer()
        assert answer.status == 413 and answer.headers["connection"] == "close"


def test_a_client_that_sends_it_all_first_still_reads_the_413(server):
    for _ in range(5):
        with server.connect() as client:
            client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5242880\r\n\r\n" + "x" * 5242880)
            assert client.answer().status == 413
            assert client.is_closed()


def test_an_endless_chunked_body_is_cut_at_the_limit(server):
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent = 0
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while sent < 64 << 20 and not select.select([client.sock], [], [], 0)[0]:
                client.send("10000\r\n" + "x" * 65536 + "\r\n")
                sent += 65536
        assert sent < 16 << 20
        answer = client.answer()
        assert answer.status == 413 and answer.error() == "payload_too_large"


def test_a_chunked_body_at_the_limit_passes(server):
    chunks = lambda n: "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + "1\r\nx\r\n" * n + "0\r\n\r\n"
    assert server.ask(chunks(16)).body == b"x" * 16
    assert server.ask(chunks(17)).status == 413


@pytest.mark.parametrize("count", [128, 256])
def test_many_requests_that_are_ready_at_once_are_all_answered(dais, count):
    """libmicrohttpd asks the system for 128 events at a time; after exactly that many its own thread slept for ever."""
    host, port = dais.url.removeprefix("http://").split(":")
    clients = [socket.create_connection((host, int(port)), timeout=20 * SLACK) for _ in range(count)]
    try:
        for client in clients:  # each is known to the server, and idle
            client.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        dais.process.send_signal(signal.SIGSTOP)
        for client in clients:
            client.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        dais.process.send_signal(signal.SIGCONT)
        for client in clients:
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
    finally:
        dais.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.close()
