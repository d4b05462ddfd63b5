"""dais opencode-bridge: a server as a program that speaks lines. The server is a stand-in for OpenCode."""
import json
import os
import pathlib
import queue
import select
import subprocess
import sys
import threading

import pytest

DAIS = os.environ["DAIS_PROGRAM"]
SERVER = '''
import base64, http.server, json, os, sys, threading
expected = "Basic " + base64.b64encode(b"opencode:" + os.environ["OPENCODE_SERVER_PASSWORD"].encode()).decode()
events = threading.Semaphore(0)

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def answer(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def any(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers["authorization"] != expected:
            self.answer(401)
        elif self.path == "/event":
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(b'data: {"type":"server.connected"}\\n\\n')
            events.acquire()
            self.wfile.write(b'data: {"type":"one"}\\n\\ndata: {"type":"two"}\\n\\n')
        elif self.path == "/config/providers":
            self.answer(200, {"providers": [{"id": "p", "key": "sk-secret", "options": {"apiKey": "sk-secret"}, "models": {}}]})
        elif self.path == "/next":
            events.release()
            self.answer(204)
        elif self.path == "/end":
            os._exit(3)
        else:
            self.answer(200, {"method": self.command, "path": self.path, "body": json.loads(raw) if raw else None, "pid": os.getpid()})
    do_GET = do_POST = do_PATCH = any

port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("a word of its own", flush=True)
print(f"opencode server listening on http://127.0.0.1:{port}", flush=True)
server.serve_forever()
'''


class Bridge:
    def __init__(self, *command):
        self.process = subprocess.Popen([DAIS, "opencode-bridge", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()

    def says(self):
        return json.loads(self.lines.get(timeout=60))

    def asks(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def answer(self, **request):
        self.asks(**request)
        return self.says()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(60)


@pytest.fixture
def bridge(tmp_path):
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    made = Bridge(sys.executable, str(program))
    assert made.says() == {"ready": True}
    assert made.says() == {"event": {"type": "server.connected"}}
    yield made
    if made.process.poll() is None:
        made.process.stdin.close()
        made.process.wait(60)


def is_alive(pid):
    return pathlib.Path(f"/proc/{pid}").exists() and "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1][:3]


def test_a_request_is_answered_with_its_status_and_body(bridge):
    told = bridge.answer(id="1", method="POST", path="/session", body={"b": 1, "a": [2]})
    assert (told["id"], told["status"]) == ("1", 200)
    assert (told["body"]["method"], told["body"]["path"], told["body"]["body"]) == ("POST", "/session", {"b": 1, "a": [2]})
    assert bridge.answer(id="2", method="PATCH", path="/x", body={})["body"]["method"] == "PATCH"


def test_events_come_as_they_are_and_a_broken_stream_is_opened_anew(bridge):
    bridge.asks(id="1", method="POST", path="/next")
    said = [bridge.says() for _ in range(6)]
    assert {"id": "1", "status": 204} in said
    said.remove({"id": "1", "status": 204})
    assert said[:2] == [{"event": {"type": "one"}}, {"event": {"type": "two"}}]
    assert "lost" in said[2] and said[3:] == [{"ready": True}, {"event": {"type": "server.connected"}}]


def test_keys_of_providers_stay_inside(bridge):
    told = bridge.answer(id="1", method="GET", path="/config/providers")
    assert told["body"] == {"providers": [{"id": "p", "models": {}}]}


def test_the_end_of_its_input_ends_the_server(bridge):
    pid = bridge.answer(id="1", method="GET", path="/pid")["body"]["pid"]
    assert bridge.end() == 0
    assert not is_alive(pid)


def test_a_killed_bridge_takes_the_server_with_it(bridge):
    pid = bridge.answer(id="1", method="GET", path="/pid")["body"]["pid"]
    descriptor = os.pidfd_open(pid)
    bridge.process.kill()
    bridge.process.wait(60)
    assert select.select([descriptor], [], [], 60)[0], "the server goes on"
    os.close(descriptor)


def test_the_end_of_the_server_is_the_end(bridge):
    bridge.asks(id="1", method="POST", path="/end")
    assert bridge.process.wait(60) == 1


def test_a_program_that_is_not_there_is_told():
    made = Bridge("/nowhere/opencode")
    assert made.process.wait(60) == 1
    assert "/nowhere/opencode" in made.process.stderr.read()
    assert subprocess.run([DAIS, "opencode-bridge"], capture_output=True, text=True).returncode == 64
