"""The HTTP room from outside: raw sockets to tests/support/http_server.c.

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
import subprocess
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


def refused(*addresses, arguments=()):
    process = subprocess.run([PROGRAM, *arguments, *addresses], capture_output=True, text=True, timeout=5)
    return process.returncode, process.stderr
