"""Heads that could be read in two ways are refused, and nothing after them is read."""
import contextlib
import json

import pytest

from http_room import GET, post, server, start  # noqa: F401

BAD_FRAMING = {
    "two lengths": (400, "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
    "two equal lengths": (400, "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    "length and encoding": (400, "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "encoding and length": (400, "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
    "unknown encoding": (400, "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
    "encoding with a blank": (400, "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n"),
    "two encodings": (400, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "encoding list": (400, "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "signed length": (400, "Content-Length: +3\r\n\r\nabc"),
    "negative length": (400, "Content-Length: -3\r\n\r\nabc"),
    "empty length": (400, "Content-Length: \r\n\r\n"),
    "length past 64 bits": (413, "Content-Length: 99999999999999999999999999\r\n\r\nabc"),
    "length of 18 digits": (413, "Content-Length: 999999999999999999\r\n\r\nabc"),
    "blank before the colon": (400, "Content-Length : 3\r\n\r\nabc"),
    "name that is no token": (400, "Con(tent: 3\r\n\r\n"),
    "control byte in a value": (400, "X-A: a\x01b\r\n\r\n"),
    "bare CR in a value": (400, "X-A: a\rb\r\n\r\n"),
    "second host": (400, "Host: b\r\n\r\n"),
    "header line without a colon": (400, "nonsense\r\n\r\n"),
    "chunk size past 64 bits": (413, "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
    "chunk size that is no number": (400, "Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n"),
    "chunk longer than its size": (400, "Transfer-Encoding: chunked\r\n\r\n2\r\nabcdef\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize("name", BAD_FRAMING)
def test_doubtful_framing_is_refused_and_closed(server, name):
    status, rest = BAD_FRAMING[name]
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\n" + rest)
        answer = client.answer()
        assert answer.status == status
        assert answer.headers["connection"] == "close"
        assert client.is_closed()


@pytest.mark.parametrize("line", [
    "GET / HTTP/1.1\r\n\r\n",  # no Host
    "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT b:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
])
def test_a_bad_request_line_or_host_is_400(server, line):
    with server.connect() as client:
        client.send(line)
        with contextlib.suppress(EOFError):  # the parser below closes on some of them
            assert client.answer().status == 400
        assert client.is_closed()


@pytest.mark.parametrize("version", ["HTTP/2.0", "HTTP/9.9", "HTTP/0.9", "FTP/1.1", ""])
def test_other_versions_are_refused(server, version):
    with server.connect() as client:
        client.send(f"GET / {version}\r\nHost: a\r\n\r\n")
        with contextlib.suppress(EOFError):
            assert client.answer().status in (400, 505)
        assert client.is_closed()


def test_what_follows_a_refused_request_is_not_read_as_a_request(server):
    before = server.counts()["requests"]
    with server.connect() as client:
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 30\r\n\r\nabc" + GET)
        assert client.answer().status == 400
        assert b"HTTP/1.1" not in client.all()
    assert server.counts()["requests"] == before + 2  # the refused one and the last count


def test_errors_of_the_room_are_json(server):
    answer = server.ask("POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    assert answer.error() == "invalid_request"
    assert server.ask(post("/small", "x" * 17)).error() == "payload_too_large"


def test_head_limits(server):
    long = "/" + "a" * 8191
    assert server.get(long).status == 200
    assert server.get(long + "a").status == 414
    assert server.get("/" + "a" * 100_000).status == 414
    one = "GET / HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n"
    assert server.ask(one.format("v" * 8185)).status == 200
    assert server.ask(one.format("v" * 8186)).status == 431
    assert server.ask(one.format("v" * 65536)).status == 431
    many = "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n"
    assert server.ask(many.format("".join(f"X-{n}: v\r\n" for n in range(99)))).status == 200
    assert server.ask(many.format("".join(f"X-{n}: v\r\n" for n in range(100)))).status == 431
    assert server.ask(many.format("".join(f"X-{n}: v\r\n" for n in range(10_000)))).status == 431


def test_a_head_of_32_kib_in_100_headers_fits(server):
    lines = "".join(f"X-{n:02}: {'v' * 318}\r\n" for n in range(99))
    answer = server.ask("GET /" + "p" * 100 + " HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n")
    assert answer.status == 200 and len(json.loads(answer.body)["headers"]) == 100
    cookies = "".join(f"c{n}=v; " for n in range(200))
    assert server.ask(f"GET /?{'a=b&' * 200} HTTP/1.1\r\nHost: a\r\nCookie: {cookies}\r\n\r\n").status == 200
