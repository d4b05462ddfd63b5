"""Callers of the soak that are no measurement: followers of the events, clients that come and go.

Each is a thread of one life of the server. An error counts unless the life is ending: then it is what a caller sees of a
server that is killed."""
import http.client
import json
import os
import random
import socket
import struct
import threading
import time
import urllib.parse

ERAS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
READ = {"name": "items_read", "arguments": {"select": "next"}}


class Life:
    """One server from its start to its end."""

    def __init__(self, server, token, local, errors):
        self.url, self.token, self.local = server.url, token, local
        self.errors = errors  # shared by all lives
        self.ending = threading.Event()
        self.resting = threading.Event()
        self.threads = []

    def begin(self, name, turn):
        thread = threading.Thread(target=self.run, args=(name, turn), daemon=True)
        self.threads.append(thread)
        thread.start()

    def run(self, name, turn):
        while not (self.ending.is_set() or self.resting.is_set()):
            try:
                turn(self)
            except Exception as error:  # whatever it is, the report has to say it
                if not self.ending.is_set():
                    self.errors.append(f"{name}: {error!r}")
                    time.sleep(1)

    def rest(self):
        """Every caller hangs up."""
        self.resting.set()
        for thread in self.threads:
            thread.join(90)
            assert not thread.is_alive(), "a caller hangs"
        self.threads = []
        self.resting.clear()

    def connect(self):
        parts = urllib.parse.urlsplit(self.url)
        return socket.create_connection((parts.hostname, parts.port), timeout=60)

    def http(self):
        parts = urllib.parse.urlsplit(self.url)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)


class Follower:
    """Reads the event stream through all lives, each time from where it was. HTTP/1.0, so that no chunk sizes come between."""

    def __init__(self, since, patience=None):
        self.since = self.last = since
        self.count = 0
        self.patience = patience  # seconds read and seconds not, in turn; None: a good listener

    def turn(self, life):
        with life.connect() as sock:
            sock.settimeout(0.5)
            sock.sendall(f"GET /api/v1/events HTTP/1.0\r\nHost: {urllib.parse.urlsplit(life.url).netloc}\r\n"
                         f"Authorization: Bearer {life.token}\r\nLast-Event-ID: {self.last}\r\n\r\n".encode())
            self.follow(life, sock)

    def follow(self, life, sock):
        rest, began, silent_since = b"", time.monotonic(), time.monotonic()
        hang_up_at = began + random.uniform(5, 40)
        while not (life.ending.is_set() or life.resting.is_set()) and time.monotonic() < hang_up_at:
            if self.patience and (time.monotonic() - began) % (2 * self.patience) > self.patience:
                time.sleep(0.2)
                silent_since = time.monotonic()
                continue
            try:
                data = sock.recv(1 << 18)
            except TimeoutError:
                assert time.monotonic() - silent_since < 60, "not even a comment within a minute"
                continue
            assert data, "the stream ended"
            silent_since = time.monotonic()
            rest = self.take(rest + data)

    def take(self, data):
        """Only numbers are looked at; an event counts when all of it has come."""
        *blocks, rest = data.split(b"\n\n")
        for block in blocks:
            assert b"event: sync.lost" not in block, f"sync.lost after {self.last}"
            if (at := block.find(b"id: ")) >= 0:
                self.seen(int(block[at + 4:].split(b"\n", 1)[0]))
        return rest

    def seen(self, number):
        assert number > self.last, f"event {number} after {self.last}"
        self.last = number
        self.count += 1


class Visitors:
    """Connections that come and go in every way that clients have, over both eras."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.visits = 0

    def turn(self, life):
        self.random.choice((self.legacy, self.legacy, self.modern, self.local, self.hang_up))(life)
        self.visits += 1
        time.sleep(0.02)

    @staticmethod
    def ask(connection, life, method, body=None, **headers):
        sent = {"Authorization": f"Bearer {life.token}", "Accept": "application/json, text/event-stream",
                **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, "/mcp", None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        assert answer.status < 300, f"{method} {body}: {answer.status} {answer.read()[:300]}"
        return answer

    def legacy(self, life):
        version = self.random.choice(ERAS)
        client = life.http()
        try:
            hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
            answer = self.ask(client, life, "POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
            answer.read()
            session = {"Mcp_Session_Id": answer.headers["Mcp-Session-Id"]}
            if version >= "2025-06-18":
                session["MCP_Protocol_Version"] = version
            self.ask(client, life, "POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **session).read()
            self.ask(client, life, "POST", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **session).read()
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": READ}
            assert b'\\"ok\\":true' in self.ask(client, life, "POST", call, **session).read()
            stream = life.http()
            if self.random.random() < 0.5:
                self.ask(stream, life, "GET", **session)
            if self.random.random() < 0.7:
                self.ask(client, life, "DELETE", **session).read()
            stream.close()
        finally:
            client.close()

    def modern(self, life):
        client = life.http()

        def post(method, params, **headers):
            params = {**params, "_meta": {VERSION: MODERN, CAPABILITIES: {}}}
            return self.ask(client, life, "POST", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                            MCP_Protocol_Version=MODERN, Mcp_Method=method, **headers)

        try:
            post("server/discover", {}).read()
            assert b'\\"ok\\":true' in post("tools/call", READ, Mcp_Name="items_read").read()
            if self.random.random() < 0.5:
                post("subscriptions/listen", {"notifications": {"toolsListChanged": True}}).readline()
        finally:
            client.close()

    def local(self, life):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(str(life.local))
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
            for number, (method, params) in enumerate((("initialize", hello), ("tools/call", READ))):
                sock.sendall(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
                with sock.makefile("rb") as lines:
                    assert b'"result"' in lines.readline()

    def hang_up(self, life):
        """In the middle of a head, of a body, or before the answer; sometimes with a reset."""
        body = json.dumps({"select": "search", "query": "harbour tide"}).encode()
        head = (f"POST /api/v1/ops/items_read HTTP/1.1\r\nHost: {urllib.parse.urlsplit(life.url).netloc}\r\n"
                f"Authorization: Bearer {life.token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        with life.connect() as sock:
            sock.sendall((head + body)[:self.random.choice((20, len(head) + 5, len(head) + len(body)))])
            if self.random.random() < 0.5:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def descriptors(pid):
    """(those of the database, all others). The store opens connections as they are needed and keeps a bounded number."""
    links = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:  # closed meanwhile
            pass
    of_store = sum("/dais.db" in link for link in links)
    return of_store, len(links) - of_store
