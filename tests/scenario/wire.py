"""An MCP client of raw bytes: nothing between the test and the wire. For the fixture and for the product."""
import json
import socket
import subprocess
import time

MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPS = "io.modelcontextprotocol/clientCapabilities"
SERVER = "io.modelcontextprotocol/serverInfo"
TAG = "io.modelcontextprotocol/subscriptionId"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
BOTH = "application/json, text/event-stream"


class Answer:
    """One response; reads its body as it comes."""

    def __init__(self, sock):
        self.sock = sock
        self.rest = b""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        lines = head.split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if line]
        self.lower = {name.lower(): value for name, value in self.fields}
        self.events_seen = []
        self.comments = 0
        self.ended = False
        self._text = b""

    def _until(self, mark):
        while mark not in self.rest:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError(self.rest)
            self.rest += more
        part, self.rest = self.rest.split(mark, 1)
        return part

    def _exactly(self, n):
        while len(self.rest) < n:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError
            self.rest += more
        part, self.rest = self.rest[:n], self.rest[n:]
        return part

    @property
    def is_stream(self):
        return self.lower.get("content-type", "").startswith("text/event-stream")

    def body(self):
        if self.lower.get("transfer-encoding") == "chunked":
            out = b""
            while chunk := self.chunk():
                out += chunk
            return out
        return self._exactly(int(self.lower.get("content-length", 0)))

    def chunk(self):
        size = int(self._until(b"\r\n").split(b";")[0], 16)
        data = self._exactly(size)
        self._until(b"\r\n") if size else self._until(b"\r\n")
        return data

    def json(self):
        return json.loads(self.body())

    def event(self):
        """The next event as {"id", "retry", "data"}, or None at the end of the stream."""
        while True:
            while b"\n\n" not in self._text:
                chunk = b"" if self.ended else self.chunk()
                if not chunk:
                    self.ended = True
                    return None
                self._text += chunk
            block, self._text = self._text.split(b"\n\n", 1)
            fields = {}
            for line in block.decode().split("\n"):
                if line.startswith(":"):
                    self.comments += 1
                    continue
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            if fields:
                return fields

    def message(self):
        """The next JSON message, skipping events without data."""
        while (event := self.event()) is not None:
            if event.get("data"):
                return json.loads(event["data"])
        return None

    def messages(self):
        out = []
        while (message := self.message()) is not None:
            out.append(message)
        return out

    def result(self):
        """The last message, whatever the form of the answer."""
        return self.messages()[-1] if self.is_stream else self.json()

    def close(self):
        self.sock.close()


class Wire:
    """Requests to one server. `standing` headers go with each of them."""

    def __init__(self, port, standing=()):
        self.port = port
        self.standing = list(standing)
        self.sockets = []
        self.next_id = 100

    def close(self):
        for sock in self.sockets:
            sock.close()

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.sockets.append(sock)
        return sock

    def raw(self, data, sock=None):
        sock = sock or self.connect()
        sock.sendall(data)
        return Answer(sock)

    def send(self, method="POST", body=None, headers=(), path="/mcp", sock=None, host=None):
        fields = [("Host", host or f"localhost:{self.port}"), *self.standing, *headers]
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if body is not None:
            fields.append(("Content-Length", str(len(data))))
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in fields) + "\r\n"
        return self.raw(head.encode("latin-1") + data, sock)

    def post(self, body, headers=(), accept=BOTH, ctype="application/json", **more):
        fields = [("Content-Type", ctype)] if ctype else []
        if accept is not None:
            fields.append(("Accept", accept))
        return self.send(body=body, headers=[*fields, *headers], **more)

    # ---- modern ----
    def envelope(self, method, params=None, id=1, caps=None, version=MODERN, meta=None):
        params = dict(params or {})
        params["_meta"] = {VERSION: version, CAPS: {} if caps is None else caps, **(meta or {})}
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    def modern(self, method, params=None, id=1, caps=None, headers=None, meta=None, drop=(), extra=(), **more):
        body = self.envelope(method, params, id, caps, meta=meta)
        fields = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        name = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(
            method, "taskId" if method.startswith("tasks/") else None)
        if name and name in body["params"]:
            fields["Mcp-Name"] = body["params"][name]
        fields.update(headers or {})
        return self.post(body, [*((n, v) for n, v in fields.items() if n not in drop), *extra], **more)

    def call(self, name, arguments=None, **more):
        return self.modern("tools/call", {"name": name, "arguments": arguments or {}}, **more)

    def text(self, name, arguments=None, **more):
        return self.call(name, arguments, **more).result()["result"]["content"][0]["text"]

    # ---- legacy ----
    def initialize(self, version="2025-11-25", caps=None, headers=()):
        return self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": caps or {}, "clientInfo": {"name": "test", "version": "1"}}},
            headers)

    def session(self, version="2025-11-25", caps=None, headers=()):
        answer = self.initialize(version, caps, headers)
        assert answer.status == 200
        assert answer.json()["result"]["protocolVersion"] == version
        return Session(self, answer.lower["mcp-session-id"], version, headers)


class Session:
    def __init__(self, fixture, id, version, headers=()):
        self.fixture, self.id, self.version = fixture, id, version
        self.headers = [("Mcp-Session-Id", id), *headers]
        if version >= "2025-06-18":
            self.headers.append(("MCP-Protocol-Version", version))

    def post(self, body, headers=(), **more):
        return self.fixture.post(body, [*self.headers, *headers], **more)

    def request(self, method, params=None, id=None, **more):
        self.fixture.next_id += 1
        return self.post({"jsonrpc": "2.0", "id": self.fixture.next_id if id is None else id, "method": method,
                          "params": params or {}}, **more)

    def call(self, name, arguments=None, **more):
        return self.request("tools/call", {"name": name, "arguments": arguments or {}}, **more)

    def get(self, last=None):
        headers = [*self.headers, ("Accept", "text/event-stream")]
        if last is not None:
            headers.append(("Last-Event-ID", last))
        return self.fixture.send("GET", headers=headers)

    def delete(self):
        return self.fixture.send("DELETE", headers=self.headers)


class Lines:
    """A program that speaks MCP on its stdin and stdout."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        **options)
        self.next_id = 100

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, *messages):
        self.write(b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    def read(self):
        return json.loads(self.process.stdout.readline())

    def answer(self, id):
        """The answer to that request; what else was said before it goes to `passed`."""
        self.passed = []
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read().decode()
            message = json.loads(line)
            if message.get("id") == id and "method" not in message:
                return message
            self.passed.append(message)

    def modern(self, method, params=None, id=None, meta=None):
        self.next_id += 1
        id = self.next_id if id is None else id
        self.send({"jsonrpc": "2.0", "id": id, "method": method,
                   "params": {**(params or {}), "_meta": {VERSION: MODERN, CAPS: {}, **(meta or {})}}})
        return self.answer(id)

    def call(self, name, arguments=None, **more):
        return self.modern("tools/call", {"name": name, "arguments": arguments or {}}, **more)

    def initialize(self, version="2025-11-25", id=0, caps=None):
        self.send({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": caps or {}, "clientInfo": {"name": "t", "version": "1"}}})
        return self.read()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self):
        """Close stdin; what was still said, and how long it took."""
        begun = time.monotonic()
        out, errors = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, errors
        return [json.loads(line) for line in out.splitlines()], time.monotonic() - begun


def code(answer):
    """Of a JSON-RPC error."""
    return answer.json()["error"]["code"]


def eventually(check, seconds=5):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if check():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about")
