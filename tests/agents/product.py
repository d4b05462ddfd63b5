"""The same programs through dais: a server of our own starts them, and everything is asked of it.

A check gets a Product: a server with a private state, whose provider instances run the installed programs in homes of their
own. What no tool tells yet is read from the database.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "scenario"))

import agents
import programs
from child import MARK
from model_server import ModelServer

LAST_WORDS = "these words are the last"
SPOKEN = "hello from the model of the tests"
SECONDS = 45  # for anything that ends by itself
ENDED = ("completed", "failed", "cancelled", "interrupted")
RUN = ("preparing", "queued", "starting", "running", "waiting", "completed", "interrupted", "failed", "cancelled", "rolled_back")


class Refused(Exception):
    """A tool answered with an error."""


def harness():
    """Of the scenarios; looked up late, for their DAIS_PROGRAM may not be built when only the programs are tested."""
    import harness as module
    return module


def is_built():
    return os.access(harness().PROGRAM, os.X_OK)


class Product:
    def __init__(self, agent, check, other=None):
        self.agent = agent
        self.all = [agent, *([other] if other else [])]
        self.other = other
        self.name = check.__name__
        # Not below /tmp: Codex does less there.
        self.home = programs.CACHE / "homes" / f"product-{agent.name}-{self.name}"
        shutil.rmtree(self.home, ignore_errors=True)
        record = programs.CACHE / "transcripts" / agent.name / f"product-{self.name}.model"
        record.parent.mkdir(parents=True, exist_ok=True)
        record.unlink(missing_ok=True)
        self.log_copy = record.with_suffix(".log")
        self.model = ModelServer(log=record)
        self.mark = f"product-{os.getpid()}-{time.monotonic_ns()}"

    # ---- set up, and the end ----

    def __enter__(self):
        self.model.start()
        self.places = {each.name: agents.Place(self.home / each.name, None, self.model) for each in self.all}
        for each in self.all:
            self.places[each.name].make()
            each.configure(self.places[each.name])
        self.repo = self.places[self.agent.name].repo
        self.dais = harness().Dais()
        config = self.dais.home / "config.yaml"
        config.write_text("".join(["providers:\n", *(self.instance(each) for each in self.all)]))
        # The port stays: an agent that outlives its server finds the next one where this one was.
        self.dais.start("--config", str(config), "--log-level", "debug", listen=f"127.0.0.1:{harness().free_port()}")
        self.listen = self.dais.url.removeprefix("http://")
        self.dais.run("project", "add", str(self.repo), check=0)
        return self

    def instance(self, agent):
        place = self.places[agent.name]
        lines = [f"  {agent.name}:", f"    driver: {agent.driver}", f"    command: {json.dumps([str(word) for word in agent.product_command(place)])}"]
        if agent.product_model:
            lines.append(f"    models: {json.dumps([agent.product_model])}")
        # TMPDIR is left to dais.
        env = {name: value for name, value in agent.env(place).items() if name != "TMPDIR"}
        lines.append("    env:")
        lines += [f"      {name}: {json.dumps(value)}" for name, value in {**env, **agent.product_env, MARK: self.mark}.items()]
        return "\n".join(lines) + "\n"

    def __exit__(self, kind, *_):
        try:
            if self.dais.process is not None:
                self.dais.stop()
        finally:
            self.end_processes()
            self.model.stop()
            self.log_copy.write_text(self.dais.log())
            self.dais.checks_doctor = kind is None
            self.dais.finish()
        assert not self.model.mistakes, self.model.mistakes
        if kind is None:
            self.dais.remove()
            shutil.rmtree(self.home)

    def processes(self, of=None):
        """Those that carry our mark, eldest first: the agents and what they started."""
        wanted, found = [f"{MARK}={self.mark}".encode()], []
        if of is not None:
            wanted.append(f"HOME={self.places[of.name].home}".encode())
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if set(wanted) <= set(entry.read_bytes().split(b"\0")):
                    found.append(int(entry.parent.name))
        return sorted(found)

    def hosts(self):
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = entry.read_bytes().split(b"\0")
                if b"attempt-host" in words and any(word.startswith(str(self.dais.state).encode()) for word in words):
                    found.append(int(entry.parent.name))
        return found

    def end_processes(self):
        for pids in (self.hosts, self.processes):
            for pid in pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def crash(self):
        """kill -9 of the server."""
        self.dais.kill()

    def start_again(self):
        self.dais.start(*self.dais.flags, listen=self.listen)

    # ---- callers ----

    def call(self, tool, **arguments):
        caller = self.dais.local()
        try:
            answer = caller.rpc("tools/call", {"name": tool, "arguments": arguments})
        finally:
            caller.close()
            self.dais.opened.remove(caller)
        if "error" in answer or answer["result"].get("isError"):
            raise Refused(json.dumps(answer.get("error") or answer["result"]))
        return answer["result"]["structuredContent"]

    def delegate(self, *steps, wait=True, **more):
        target = {"providerInstanceId": self.agent.name, **({"model": self.agent.product_model} if self.agent.product_model else {})}
        task = self.call("delegate_task", task="\n".join(steps), target=target, mode="wait" if wait else "async",
                         **({"timeoutMs": 45000} if wait else {}), **more)
        return self.ended(task["taskId"]) if wait else task

    def status(self, task):
        return self.call("task_status", taskId=task["taskId"] if isinstance(task, dict) else task)

    def ended(self, task, seconds=SECONDS):
        return self.until(lambda: (lambda found: found if found["status"] in ENDED else None)(self.status(task)), seconds, "the end of the task")

    def send(self, task, *steps, mode="auto"):
        return self.call("t3_thread_send", threadId=task["childThreadId"], message="\n".join(steps), mode=mode)

    def wait(self, task, run=None, seconds=SECONDS):
        more = {"runId": run} if run else {}
        end = time.monotonic() + seconds
        while True:
            found = self.call("t3_thread_wait", threadId=task["childThreadId"], timeoutMs=20000, **more)
            if not found["timedOut"]:
                return found["status"]
            assert time.monotonic() < end, f"run {run} goes on after {seconds} s"

    def say(self, task, *steps):
        """One more turn of the task's thread: status and answer."""
        sent = self.send(task, *steps)
        return self.wait(task, sent["runId"]), self.answer(task)

    def questions(self):
        """What agents ask people, as the status page shows it."""
        status, _, body = self.dais.admin().ask("GET", "/api/v1/threads/requests")
        assert status == 200, body
        return json.loads(body)["data"]["requests"]

    def decide(self, question, decision):
        name = question["id"].rsplit(":", 1)[-1]
        status, _, body = self.dais.admin().ask("POST", f"/api/v1/threads/requests/{name}", json.dumps({"decision": decision}).encode())
        assert status == 200, body

    def until(self, condition, seconds=SECONDS, what="it", task=None):
        """Wait for it; not longer than the run of the task goes on, in which it has to happen."""
        end = time.monotonic() + seconds
        while True:
            is_over = task is not None and self.runs(task)[-1]["status"] > 4
            value = condition()
            if value:
                return value
            assert not is_over, f"the run ended before {what}: {self.failure(task)}"
            assert time.monotonic() < end, f"waited {seconds} s for {what}\n{self.dais.log()[-3000:]}"
            time.sleep(0.05)

    # ---- the record ----

    def rows(self, sql, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.dais.state / 'dais.db'}?mode=ro", uri=True)) as store:
            store.row_factory = sqlite3.Row
            return [dict(row) for row in store.execute(sql, values)]

    def runs(self, task):
        return self.rows("SELECT r.* FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE t.id = ? ORDER BY r.ordinal", task["childThreadId"])

    def failure(self, task):
        return json.loads(self.runs(task)[-1]["failure"] or "{}")

    def items(self, task):
        return self.rows("SELECT i.* FROM turn_item i JOIN thread t ON t.n = i.thread_n WHERE t.id = ? ORDER BY i.ordinal", task["childThreadId"])

    def text(self, task):
        """All that its agent has said so far, streamed or whole."""
        said = []
        for item in self.items(task):
            if item["type"] == 1:
                chunks = self.rows("SELECT text FROM item_chunk WHERE item_n = ? ORDER BY at", item["n"])
                said.append(item["text"] or "".join(chunk["text"] for chunk in chunks))
        return "\n".join(said)

    def answer(self, task):
        return self.text(task).rsplit("\n", 1)[-1]

    def requests(self, task):
        return self.rows("SELECT q.* FROM runtime_request q JOIN thread t ON t.n = q.thread_n WHERE t.id = ? ORDER BY q.n", task["childThreadId"])

    def sessions(self, task):
        return self.rows("SELECT s.* FROM provider_session s JOIN thread t ON t.n = s.thread_n WHERE t.id = ? ORDER BY s.n", task["childThreadId"])

    def repo_file(self, name):
        path = self.repo / name
        return path.read_text() if path.exists() else None

    def answered(self, step):
        return [entry for entry in self.model.requests if entry.get("step") == step]
