"""Delegations to scripted agents on the real server: start them, kill what one likes, look at what is left."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3

from harness import Dais, Local, SLACK, free_port, until

ENDED = ("completed", "failed", "cancelled", "interrupted")


class Refusal(Exception):
    """A thread tool failed; `code` is the word of its catalogue."""

    def __init__(self, failure):
        self.code = failure.get("code")
        super().__init__(json.dumps(failure, ensure_ascii=False))


class Caller(Local):
    """Somebody on the Unix socket who calls thread tools."""

    def __init__(self, path, seconds=120):
        super().__init__(path)
        self.socket.settimeout(seconds)

    def tool(self, name, **arguments):
        answer = self.rpc("tools/call", {"name": name, "arguments": arguments})
        assert "result" in answer, answer
        if answer["result"].get("isError"):
            raise Refusal(answer["result"].get("structuredContent") or answer["result"])
        return answer["result"]["structuredContent"]


class Rehearsal:
    """A server whose only provider plays `turns`, a YAML list of turns. It keeps its port, so agents find it again."""

    def __init__(self, dais: Dais, turns, head="", settings="", providers=""):
        self.dais = dais
        self.project = dais.home / "project"
        self.project.mkdir()
        self.scenario = dais.home / "scenario.yaml"
        self.scenario.write_text(head + "turns:\n" + turns)
        self.config = dais.home / "dais.yaml"
        self.config.write_text(
            f"providers:\n  rehearse: {{driver: script, scenario: {self.scenario}}}\n{providers}{settings}")
        self.listen = f"127.0.0.1:{free_port()}"
        self.is_known = False

    def start(self):
        self.dais.start("--config", self.config, "--log-level", "debug", listen=self.listen)
        if not self.is_known:
            self.dais.run("project", "add", str(self.project), check=0)
            self.is_known = True
        return self

    def kill(self):
        self.dais.kill()
        return self

    def caller(self, seconds=120):
        caller = Caller(self.dais.socket, seconds * SLACK)
        self.dais.opened.append(caller)
        return caller

    # ---- what callers do ----

    def tool(self, name, **arguments):
        caller = Caller(self.dais.socket)
        try:
            return caller.tool(name, **arguments)
        finally:
            caller.close()

    def delegate(self, task, **more):
        """Not waited for; the answer, with its taskId and childThreadId."""
        return self.tool("delegate_task", task=task, mode="async", **more)

    def wait(self, task, **more):
        return self.caller().tool("delegate_task", task=task, mode="wait", timeoutMs=100000, **more)

    def status(self, task_id):
        return self.tool("task_status", taskId=task_id)

    def ended(self, task_id, seconds=30):
        """What became of a task, as soon as it has ended."""
        def look():
            try:
                status = self.status(task_id)
            except Refusal as refusal:
                if "disk" in str(refusal):  # it says when to come again
                    return None
                raise
            return status if status["status"] in ENDED else None
        return until(look, seconds)

    def send(self, thread, message, **more):
        return self.tool("t3_thread_send", threadId=thread, message=message, **more)

    def read(self, thread, **more):
        return self.tool("t3_thread_read", threadId=thread, **more)

    # ---- what can be looked at ----

    RUNNING, COMPLETED, FAILED = 3, 5, 7  # of thread_run.status

    def runs(self, task):
        """The states of the runs of a task's thread, in their order."""
        return [status for (status,) in self.rows(
            "SELECT r.status FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE t.id = ? ORDER BY r.ordinal",
            task["childThreadId"])]

    def memory(self):
        """Resident bytes of the server."""
        status = pathlib.Path(f"/proc/{self.dais.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def clear(self, seconds=30):
        """Once all is done nothing is left: no process, no directory. What a failed test has left is killed."""
        try:
            if self.dais.process is not None:
                until(lambda: not self.processes() and not self.directories(), seconds)
        finally:
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass

    def rows(self, sql, *values):
        file = f"file:{self.dais.state}/dais.db?mode=ro"
        with contextlib.closing(sqlite3.connect(file, uri=True, timeout=30)) as store:
            return store.execute(sql, values).fetchall()

    def processes(self):
        """Everything that lives for this server's agents: {pid: command line}. Found by the state directory (hosts) and
        by the variable that every process of an attempt has."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                environment = (entry / "environ").read_bytes() if os.access(entry / "environ", os.R_OK) else b""
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            is_host = "attempt-host" in command and str(self.dais.state) in command
            if state != "Z" and (is_host or (b"DAIS_ATTEMPT=" in environment and bytes(self.dais.state) in environment)):
                found[int(entry.name)] = command
        return found

    def hosts(self):
        return {pid: command for pid, command in self.processes().items() if "attempt-host" in command}

    def agents(self):
        return {pid: command for pid, command in self.processes().items() if "script-agent" in command}

    def one_agent(self):
        return until(lambda: list(self.agents()))[0]

    def directories(self):
        folder = self.dais.state / "agents"
        return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []

    def prompts(self):
        """How often each prompt was heard, by the histories that the agents keep: none may be heard twice."""
        heard = []
        for path in (self.dais.home / "xdg-state" / "dais-script").glob("*.json"):
            for line in path.read_text(errors="replace").splitlines():
                heard.append(line)
        return heard
