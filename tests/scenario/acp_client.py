"""A client of the Agent Client Protocol, as small as a test needs: the agent's program on two pipes."""
import json
import os
import queue
import subprocess
import threading

from harness import PROGRAM, SANITIZER, SLACK


class Gone(Exception):
    """The agent closed its stdout while something was awaited."""


class Agent:
    """One process. What it says is sorted as it comes: `updates` (the inner objects), `asked` (its requests), `garbage`
    (lines that are no JSON object), `lines` (all, as bytes)."""

    def __init__(self, command, env=None, cwd=None):
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env, cwd=cwd)
        self.updates, self.asked, self.garbage, self.lines, self.errors = [], [], [], [], []
        self.answers = {}
        self.session = None
        self.last_id = 0
        self.heard = queue.Queue()
        self.readers = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._read_errors, daemon=True)]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.heard.put(line)
        self.heard.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    # ---- the wire ----

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def take(self, seconds=20):
        """Hear one line and sort it; the message, or None for garbage."""
        line = self.heard.get(timeout=seconds * SLACK)
        if line is None:
            self.heard.put(None)
            raise Gone(b"".join(self.errors).decode("utf-8", "replace"))
        self.lines.append(line)
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self.garbage.append(line)
            return None
        if message.get("method") == "session/update":
            assert message["params"]["sessionId"] and "id" not in message, message
            self.updates.append(message["params"]["update"])
        elif "method" in message:
            self.asked.append(message)
        else:
            self.answers[message["id"]] = message
        return message

    def until(self, condition):
        """Hear until it is true of what was heard; its value."""
        while not (value := condition()):
            self.take()
        return value

    def ask(self, method, params=None, id=None):
        """Send a request; its id."""
        self.last_id += 1
        id = self.last_id if id is None else id
        self.send({"id": id, "method": method, "params": params or {}})
        return id

    def answer(self, id):
        """The whole answer to that request."""
        return self.until(lambda: self.answers.get(id))

    def call(self, method, params=None):
        return self.answer(self.ask(method, params))

    def result(self, method, params=None):
        answer = self.call(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method, params=None):
        answer = self.call(method, params)
        assert "error" in answer, answer
        return answer["error"]

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def reply(self, request, result):
        self.send({"id": request["id"], "result": result})

    # ---- the life of a session ----

    def initialize(self, **capabilities):
        return self.result("initialize", {"protocolVersion": 1, "clientInfo": {"name": "test", "version": "1"},
                                          "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False},
                                                                 "terminal": False, **capabilities}})

    def new(self, cwd, servers=()):
        """A new session, which the calls below are about."""
        result = self.result("session/new", {"cwd": str(cwd), "mcpServers": list(servers)})
        self.session = result["sessionId"]
        return result

    def begin(self, text, session=None):
        """Send a prompt; the id of the request."""
        return self.ask("session/prompt", {"sessionId": session or self.session, "prompt": [{"type": "text", "text": text}]})

    def prompt(self, text, session=None):
        """Send a prompt and hear it to its end; what was said before is forgotten. Its result."""
        self.updates.clear()
        answer = self.answer(self.begin(text, session))
        assert "result" in answer, answer
        return answer["result"]

    def cancel(self):
        self.notify("session/cancel", {"sessionId": self.session})

    def steer(self, text):
        return self.result("_session/steering", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})

    def wait_asked(self, method):
        """The next request of the agent, which must be this one."""
        self.until(lambda: self.asked)
        request = self.asked.pop(0)
        assert request["method"] == method, request
        return request

    def text(self, kind="agent_message_chunk"):
        """What was said since the last prompt was sent."""
        return "".join(update["content"]["text"] for update in self.updates if update["sessionUpdate"] == kind)

    def tool(self, n=-1):
        """One tool call, all its reports put together."""
        calls = {}
        for update in self.updates:
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                calls.setdefault(update["toolCallId"], {}).update(update)
        return list(calls.values())[n]

    # ---- the end ----

    def wait_end(self):
        """The exit code, as of subprocess: negative for a signal."""
        return self.process.wait(timeout=20 * SLACK)

    def end(self):
        """Close stdin; the exit code."""
        self.process.stdin.close()
        return self.wait_end()

    def finish(self):
        """Whatever is left of it, after a test."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(timeout=10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        stderr = b"".join(self.errors).decode("utf-8", "replace")
        assert not SANITIZER.search(stderr), stderr


class Scripted(Agent):
    """dais script-agent with this scenario (its text) in this home."""

    def __init__(self, home, scenario, **variables):
        path = home / "scenario.yaml"
        path.write_text(scenario)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DAIS_", "XDG_"))}
        super().__init__([PROGRAM, "script-agent", path], env={**kept, "HOME": str(home), **variables}, cwd=home)
