"""The HTTP room from outside: raw sockets against tests/support/http_server.c.

HTTP_SERVER names the program (default: build/tests/support/http-server).
"""
import contextlib
import json
import os
import pathlib
import re
import resource
import select
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("HTTP_SERVER", str(ROOT / "build/tests/support/http-server"))
# Sanitizers need some time; deadlines are still checked from below.
SLACK = float(os.environ.get("SLACK", "1.0"))


class Server:
    def __init__(self, *arguments, env=None, files=None, addresses=("127.0.0.1:0",)):
        limit = None
        if files is not None:
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.process = subprocess.Popen(
            [PROGRAM, *arguments, *addresses], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})}, preexec_fn=limit)
        self.urls = []
        for line in self.process.stdout:
            if line.startswith("url "):
                self.urls.append(line.split()[1])
            else:
                break
        self.status = None
        if self.urls:
            self.port = int(self.urls[0].rsplit(":", 1)[1])

    def connect(self, **options):
        return Client(socket.create_connection(("127.0.0.1", self.port), timeout=10), **options)

    def ask(self, text, **options):
        with self.connect(**options) as client:
            client.send(text)
            return client.answer()

    def get(self, path):
        return self.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")

    def counts(self):
        return json.loads(self.get("/counts").body)

    def until(self, condition, seconds=5.0):
        end = time.monotonic() + seconds
        while True:
            counts = self.counts()
            if condition(counts):
                return counts
            assert time.monotonic() < end, counts
            time.sleep(0.02)

    def rss_kib(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1])

    def cpu_ticks(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.out, self.err = self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.err = self.process.communicate()
        return self.process.returncode


class Answer:
    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            self.headers.setdefault(name.lower(), value.strip())
        self.body = body

    def error(self):
        document = json.loads(self.body)
        assert document["ok"] is False
        return document["error"]["code"]


class Client:
    def __init__(self, sock):
        self.sock, self.rest = sock, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, text):
        self.sock.sendall(text.encode("latin-1") if isinstance(text, str) else text)

    def more(self):
        data = self.sock.recv(65536)
        self.rest += data
        return data != b""

    def until(self, mark):
        while mark not in self.rest:
            if not self.more():
                raise EOFError(self.rest)
        text, self.rest = self.rest.split(mark, 1)
        return text

    def take(self, n):
        while len(self.rest) < n:
            if not self.more():
                raise EOFError(self.rest)
        text, self.rest = self.rest[:n], self.rest[n:]
        return text

    def head(self):
        return Answer(self.until(b"\r\n\r\n"), b"")

    def answer(self, body=True):
        answer = self.head()
        if not body or answer.status in (204, 304):
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            answer.body = b"".join(self.chunks())
        elif "content-length" in answer.headers:
            answer.body = self.take(int(answer.headers["content-length"]))
        else:
            answer.body = self.all()
        return answer

    def chunk(self):
        size = int(self.until(b"\r\n"), 16)
        data = self.take(size)
        assert self.take(2) == b"\r\n"
        return data

    def chunks(self):
        while data := self.chunk():
            yield data

    def all(self):
        with contextlib.suppress(ConnectionResetError):
            while self.more():
                pass
        text, self.rest = self.rest, b""
        return text

    def is_closed(self, seconds=3.0):
        """Whether the server ends the connection within the time."""
        self.sock.settimeout(seconds)
        try:
            return self.sock.recv(65536) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


@pytest.fixture
def start():
    servers = []

    def begin(*arguments, **options):
        servers.append(Server(*arguments, **options))
        assert servers[-1].urls, servers[-1].process.stderr.read()
        return servers[-1]

    yield begin
    for server in servers:
        status = server.stop()
        print(server.err)
        assert status == 0, server.err
        assert "Sanitizer" not in server.err and "runtime error" not in server.err, server.err


@pytest.fixture
def server(start):
    return start()


GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def post(path, body, *headers):
    lines = "".join(h + "\r\n" for h in headers)
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n{lines}\r\n{body}"


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


# ---- framing ----

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


# ---- deadlines ----


def seconds_until_closed(client, drip=None, at_most=10.0):
    begin = time.monotonic()
    while time.monotonic() - begin < at_most:
        readable, _, _ = select.select([client.sock], [], [], 0.1)
        if readable:
            try:
                if client.sock.recv(65536) == b"":
                    return time.monotonic() - begin
            except ConnectionResetError:
                return time.monotonic() - begin
        elif drip:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.send(drip)
    raise AssertionError("still open")


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


def test_200_dripping_connections_do_not_delay_others(start):
    server = start("head_ms=1500")
    clients = [server.connect() for _ in range(200)]
    begin, worst = time.monotonic(), 0.0
    while time.monotonic() - begin < 1.0:
        for client in clients:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.send("G")
        asked = time.monotonic()
        assert server.get("/").status == 200
        worst = max(worst, time.monotonic() - asked)
    assert worst < 0.2 * (1 + SLACK)
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


# ---- streams ----


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


# ---- limits ----


def test_connections_over_the_limit_get_503(start):
    server = start("connections=10")
    clients = [server.connect() for _ in range(10)]
    for client in clients:
        client.send(GET)
        assert client.answer().status == 200
    with server.connect() as extra:
        extra.send(GET)
        answer = extra.answer()
        assert answer.status == 503 and answer.headers["retry-after"] == "1" and answer.error() == "unavailable"
        assert extra.is_closed()
    clients.pop().sock.close()
    server_recovers(server)
    for client in clients:
        client.send(GET)
        assert client.answer().status == 200
        client.sock.close()


def server_recovers(server):
    end = time.monotonic() + 3 + SLACK
    while server.get("/").status != 200:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_loopback_is_exempt_from_the_limit_per_peer(start):
    server = start("per_peer=2")
    clients = [server.connect() for _ in range(5)]
    for client in clients:
        client.send(GET)
        assert client.answer().status == 200
        client.sock.close()


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_one_peer_cannot_take_all_connections(start):
    address = own_address()
    if address is None or address.startswith("127."):
        pytest.skip("this machine has loopback only")
    server = start("per_peer=3", addresses=(f"{address}:0",))
    connect = lambda: Client(socket.create_connection((address, server.port), timeout=10))
    clients = [connect() for _ in range(4)]
    for client in clients:
        client.send(GET)
    assert [client.answer().status for client in clients] == [200, 200, 200, 503]
    for client in clients:
        client.sock.close()


def test_running_out_of_descriptors_is_503_and_passes(start):
    server = start(files=64)
    clients = []
    for _ in range(100):
        clients.append(server.connect())
        clients[-1].send(GET)
    statuses = [client.answer().status for client in clients]
    assert set(statuses) == {200, 503} and statuses.count(200) >= 5
    for client in clients:
        client.sock.close()
    server_recovers(server)


# ---- addresses ----


def refused(*addresses, arguments=()):
    process = subprocess.run([PROGRAM, *arguments, *addresses], capture_output=True, text=True, timeout=5)
    return process.returncode, process.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:99999", ":3001", "127.0.0.1", "::1:80", "[::1]", "a b:1"])
def test_a_malformed_address_is_named(address):
    status, text = refused(address)
    assert status == 78 and address in text


def test_a_taken_port_is_named_with_its_holder_and_nothing_stays_bound(start):
    holder = start()
    taken = f"127.0.0.1:{holder.port}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    begin = time.monotonic()
    status, text = refused(f"127.0.0.1:{free}", taken)
    assert time.monotonic() - begin < 1.0 + SLACK
    assert status == 73 and taken in text and f"process {holder.process.pid}" in text
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free))


def test_one_server_listens_on_several_addresses_of_both_families(start):
    server = start(addresses=("127.0.0.1:0", "[::1]:0", "localhost:0"))
    for url in server.urls:
        host, port = re.fullmatch(r"http://(.*):(\d+)", url).groups()
        with Client(socket.create_connection((host.strip("[]"), int(port)), timeout=5)) as client:
            client.send(GET)
            assert client.answer().status == 200


def test_a_killed_server_starts_again_at_once_on_its_port(start):
    first = start()
    with first.connect() as client:
        client.send(GET)
        client.answer()
        first.process.kill()
        first.process.wait()
        second = start(addresses=(f"127.0.0.1:{first.port}",))
        assert second.get("/").status == 200
        second.stop()
    first.process.returncode = 0


# ---- TLS ----


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for name in ("a", "b"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)
    return folder


def over_tls(server, pem):
    context = ssl.create_default_context(cafile=f"{pem}/a.crt")
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    return Client(context.wrap_socket(sock, server_hostname="localhost"))


def test_tls_carries_requests_streams_and_hang_ups(start, pem):
    server = start(f"cert={pem}/a.crt", f"key={pem}/a.key")
    assert server.urls[0].startswith("https://")
    with over_tls(server, pem) as client:
        client.send(post("/echo", "x" * 100_000))
        assert client.answer().body == b"x" * 100_000
        client.send("GET /later?ms=20 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.answer().body == b"later"
        client.send("GET /stream?n=3 HTTP/1.1\r\nHost: a\r\n\r\n")
        client.head()
        assert len(list(client.chunks())) == 3
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
        assert client.answer().status == 400
    waiting = over_tls(server, pem)
    waiting.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(0.1)
    waiting.sock.close()
    end = time.monotonic() + 5
    while True:
        with over_tls(server, pem) as client:
            client.send("GET /counts HTTP/1.1\r\nHost: a\r\n\r\n")
            counts = json.loads(client.answer().body)
        if counts["hangups"] == 1 and counts["kept"] == 0:
            break
        assert time.monotonic() < end, counts


def test_a_handshake_that_does_not_come_is_closed(start, pem):
    server = start("head_ms=500", f"cert={pem}/a.crt", f"key={pem}/a.key")
    with server.connect() as client:
        assert 0.4 < seconds_until_closed(client) < 0.9 + SLACK


def test_a_wrong_tls_file_is_named(pem):
    (pem / "huge.pem").write_text("x" * 300_000)
    for cert, key, culprit in (("none.crt", "a.key", "none.crt"), ("a.crt", "none.key", "none.key"),
                               ("a.key", "a.key", "a.key"), ("a.crt", "b.key", "b.key"), ("a.crt", "a.crt", "a.crt"),
                               ("huge.pem", "a.key", "huge.pem"), (".", "a.key", str(pem))):
        status, text = refused("127.0.0.1:0", arguments=(f"cert={pem}/{cert}", f"key={pem}/{key}"))
        assert status == 78 and culprit in text, text


# ---- the end ----


def test_stopping_waits_for_answers_and_ends_streams(start):
    server = start(env={"KEEP_SILENT": "1", "GRACE_MS": "3000"})
    idle, waiting = server.connect(), server.connect()
    idle.send(GET)
    idle.answer()
    waiting.send("GET /later?ms=800 HTTP/1.1\r\nHost: a\r\n\r\n")
    server.until(lambda counts: counts["kept"] == 1)
    server.process.send_signal(signal.SIGTERM)
    assert waiting.answer().body == b"later"
    assert idle.is_closed()
    assert server.stop() == 0
    assert "hangups=0 kept=0" in server.out


def test_stopping_cuts_what_is_not_answered_in_time(start):
    server = start(env={"KEEP_SILENT": "1", "GRACE_MS": "300"})
    clients = []
    for path in ("/never", "/stream", "/never", "/stream?flood=1&size=8000&every=0"):
        clients.append(server.connect())
        clients[-1].send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
    server.until(lambda counts: counts["kept"] == 4)
    begin = time.monotonic()
    assert server.stop() == 0
    assert 0.2 < time.monotonic() - begin < 1.5 + SLACK
    assert "hangups=4 kept=0" in server.out


def test_stopping_under_load_is_clean(start):
    server = start("threads=2")
    end = threading.Event()

    def load():
        while not end.is_set():
            with contextlib.suppress(OSError, EOFError):
                with server.connect() as client:
                    for _ in range(20):
                        client.send("GET /later?ms=1 HTTP/1.1\r\nHost: a\r\n\r\n" + GET)
                        client.answer()
                        client.answer()

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    assert server.stop() == 0
    end.set()
    for thread in threads:
        thread.join()
