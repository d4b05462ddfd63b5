"""A server with scripted agents, and callers of the tools for tasks and threads."""
import json
import os
import pathlib
import signal

import harness
from harness import until

# Each turn is chosen by how its prompt begins. A child that is told a mode asks for it, for others.
SCENARIO = r"""
models: [small, large]
turns:
  - when: "^slow"
    steps: [{text: "begun"}, {until_cancelled: true}]
  - when: "^steer"
    steps: [{text: "begun"}, {until_steered: true}, {text: "told {{steer}}"}]
  - when: "^busy"
    steps:
      - plan: [{content: think, status: completed}, {content: write, status: pending}]
      - reasoning: "hm"
      - tool: {kind: search, title: "look", output: "found"}
      - run: [sh, -c, "echo out"]
      - write_file: {path: made.txt, text: "x\n"}
      - text: "done"
  - when: "^long"
    steps: [{run: [sh, -c, "true"]}, {result_text: "LONG"}]
  - when: "^family"
    steps:
      - mcp: {tool: delegate_task, arguments: {task: "slow child", clientRequestId: "one"}, save: d}
      - until_cancelled: true
  - when: "^(approval-required|auto-accept-edits|full-access|inherit)$"
    steps:
      - mcp: {tool: delegate_task, arguments: {task: "hello", mode: wait, timeoutMs: 30000, runtimeMode: "{{prompt}}", clientRequestId: "d"}, save: d}
      - mcp: {tool: create_threads, arguments: {threads: [{runtimeMode: "{{prompt}}"}], clientRequestId: "c"}, save: c}
      - text: "{{d.code}}/{{c.code}}"
  - when: "^(plan|default)$"
    steps:
      - mcp: {tool: delegate_task, arguments: {task: "hello", mode: wait, timeoutMs: 30000, interactionMode: "{{prompt}}", clientRequestId: "d"}, save: d}
      - mcp: {tool: create_threads, arguments: {threads: [{interactionMode: "{{prompt}}"}], clientRequestId: "c"}, save: c}
      - text: "{{d.code}}/{{c.code}}"
  - when: "^send to "
    steps:
      - mcp: {tool: t3_thread_list, arguments: {titleContains: "wide open", limit: 1}, save: l}
      - mcp: {tool: t3_thread_send, arguments: {threadId: "{{l.threads.0.threadId}}", message: "hello", clientRequestId: "s"}, save: s}
      - text: "{{s.delivery}}{{s.code}}"
  - when: "^read myself"
    steps:
      - mcp: {tool: orchestrator_capabilities, arguments: {}, save: o}
      - mcp: {tool: t3_thread_wait, arguments: {threadId: "{{o.parentThreadId}}"}, save: w}
      - text: "{{w.code}} {{o.inheritedProviderInstanceId}}"
"""
CONFIG = """providers:
  rehearse: {{ driver: script, scenario: {home}/scenario.yaml }}
  second: {{ driver: script, scenario: {home}/scenario.yaml, models: [large] }}
  missing: {{ driver: codex, command: [/nonexistent/codex] }}
"""
LONG = "ä€" * 15000  # 30,000 characters
TOOLS = ["orchestrator_capabilities", "delegate_task", "task_status", "task_cancel", "create_threads", "t3_thread_list",
         "t3_thread_read", "t3_thread_update", "t3_thread_send", "t3_thread_wait", "t3_thread_interrupt"]
ENDED = ("completed", "failed", "cancelled", "interrupted")


class Refusal(Exception):
    def __init__(self, failure):
        assert "_tag" in failure, str(failure)[:400]
        assert set(failure) <= {"_tag", "code", "message", "retryAfterMs"} and failure["_tag"] == "OrchestratorMcpFailure"
        self.code, self.message = failure["code"], failure["message"]
        super().__init__(f"{self.code}: {self.message}")


class refused:
    """with refused("invalid_request", says="title"): the call inside is refused like that."""

    def __init__(self, code, says=""):
        self.code, self.says = code, says

    def __enter__(self):
        return self

    def __exit__(self, kind, refusal, _):
        assert kind is not None, f"not refused: expected {self.code}"
        if not issubclass(kind, Refusal):
            return False
        assert refusal.code == self.code and self.says in refusal.message, refusal
        return True


class Caller:
    """One agent that dais did not start, over MCP and HTTP: a token of its own is a thread of its own."""

    def __init__(self, dais, token):
        self.dais, self.token = dais, token
        self.wire = dais.wire(token)

    def raw(self, tool, arguments):
        answer = self.wire.call(tool, arguments).result()
        assert "result" in answer, answer
        return answer["result"]

    def __getattr__(self, tool):
        def call(**arguments):
            result = self.raw(tool, arguments)
            said = result["structuredContent"]
            assert json.loads(result["content"][0]["text"]) == said
            if result.get("isError"):
                raise Refusal(said)
            return said
        return call

    def delegate(self, task, **more):
        return self.delegate_task(task=task, **more)

    def ended(self, task):
        def look():
            status = self.task_status(taskId=task["taskId"])
            return status if status["status"] in ENDED else None
        return until(look, 30)

    def create(self, **entry):
        return self.create_threads(threads=[entry])["threads"][0]

    def settled(self, thread, timeout=30000):
        return self.t3_thread_wait(threadId=thread["threadId"], timeoutMs=timeout)

    def running(self, thread_id):
        until(lambda: [i for i in self.items(thread_id) if i["type"] == "assistant_message"], 20)

    def items(self, thread_id, **more):
        return self.t3_thread_read(threadId=thread_id, view="activity", limit=100, **more)["items"]

    def own(self):
        return self.orchestrator_capabilities()["parentThreadId"]

    def wakes(self):
        return [item for item in self.items(self.own()) if item["type"] == "user_message"]


def hosts(dais):
    mark = f"{dais.state}/agents/".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Desk:
    """A server with a project and these agents; `place` is where the calls of `local` come from."""

    def __init__(self):
        self.dais = harness.Dais()
        self.place = self.dais.home / "project"
        self.place.mkdir()
        (self.dais.home / "scenario.yaml").write_text(SCENARIO.replace("LONG", LONG))
        (self.dais.home / "config.yaml").write_text(CONFIG.format(home=self.dais.home))
        self.dais.start("--config", self.dais.home / "config.yaml")
        self.dais.run("project", "add", str(self.place), check=0)

    def caller(self, capabilities="read orchestration"):
        return Caller(self.dais, self.dais.new_token(None, capabilities))

    def local(self, tool, place=None, **arguments):
        done = self.dais.run("call", tool, "-", stdin=json.dumps(arguments), cwd=place or self.place)
        answer = json.loads(done.stdout)
        if "_tag" in answer:
            raise Refusal(answer)
        return answer

    def close(self):
        """Agents outlive their server, and so what some story has left at work ends with its host, here."""
        try:
            self.dais.stop()
        finally:
            for pid in hosts(self.dais):
                os.kill(pid, signal.SIGKILL)
            until(lambda: not hosts(self.dais))
        self.dais.finish()
        self.dais.remove()
