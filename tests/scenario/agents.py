"""Servers whose agents do what a scenario says."""
import json
import pathlib
import subprocess
import threading

from harness import PROGRAM, SLACK, until

SCENARIO = """
models: [small]
turns:
  - when: "^tools"
    steps:
      - run: [sh, -c, "echo from-the-shell"]
      - write_file: {path: made.txt, text: "made"}
      - text: "made it"
  - when: "^slow"
    steps:
      - text: "begun "
      - until_cancelled: true
  - when: "^steer"
    steps:
      - text: "waiting "
      - until_steered: true
      - text: "told: {{steer}}"
  - when: "^wait for"
    steps:
      - text: "first "
      - run: [sh, -c, "until test -e go; do sleep 0.1; done"]
      - text: "then the rest"
  - when: "^permission"
    steps:
      - ask: {title: "write parser.c", kind: edit}
      - text: "it was allowed"
  - when: "^question"
    steps:
      - question: {text: "Which colour?", options: [red, blue]}
      - text: "it is {{answer}}"
  - when: "^delegate"
    steps:
      - mcp: {tool: delegate_task, arguments: {task: "child", title: "the child", mode: wait, timeoutMs: 60000, clientRequestId: one}, save: task}
      - text: "the child said {{task.summary}}"
  - when: "^child"
    steps:
      - text: "hello from below"
  - when: "^fails"
    steps:
      - fail: {code: model_error, message: "no luck"}
"""


class Agents:
    """A running server with one scripted provider, and what people do on its command line."""

    def __init__(self, dais, *flags):
        self.dais = dais
        scenario = dais.home / "scenario.yaml"
        scenario.write_text(SCENARIO)
        config = dais.home / "agents.yaml"
        config.write_text(f"providers:\n  rehearse: {{ driver: script, scenario: {scenario} }}\n"
                          "  missing: { driver: acp, command: [no-such-program-anywhere] }\n")
        dais.environment["DAIS_CONFIG"] = str(config)
        dais.start(*flags)

    def begin(self, task, *flags, cwd=None):
        """`dais run` in the background; its process."""
        return subprocess.Popen([PROGRAM, "run", "--state", str(self.dais.state), task, *flags], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.dais.env(),
                                cwd=cwd or self.dais.work)

    @staticmethod
    def end(process):
        """Exit code, and what was said on stdout and stderr."""
        out, err = process.communicate(timeout=60 * SLACK)
        return process.returncode, out, err

    def run(self, task, *flags, cwd=None):
        return self.end(self.begin(task, *flags, cwd=cwd))

    def threads(self, *flags):
        return json.loads(self.dais.run("threads", "list", "--json", *flags, check=0).stdout)["threads"]

    def show(self, thread):
        return json.loads(self.dais.run("threads", "show", thread, "--json", check=0).stdout)

    def text(self, thread):
        return "".join(item.get("text", "") for item in self.show(thread)["items"] if item["type"] == "assistant_message")

    def live(self, title, says=""):
        """The id of the thread with this title, once its run is at work and has said so much."""
        def look():
            found = [thread["id"] for thread in self.threads() if thread["title"] == title and thread["runStatus"] == "running"]
            return found[0] if found and says in self.text(found[0]) else None
        return until(look)

    def asked(self):
        """The one open question."""
        return until(lambda: json.loads(self.dais.run("threads", "answer", "--json", check=0).stdout)["requests"])[0]

    def processes(self):
        """Processes of agents and their hosts, by the state directory that their environment or arguments name."""
        found = []
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(self.dais.home).encode() in b" ".join(words) and (b"script-agent" in words or b"attempt-host" in words):
                found.append(int(place.name))
        return found

    def finish(self):
        """Every thread is deleted, and with it its agent."""
        if self.dais.process is None:
            self.dais.start(*self.dais.flags)
        for thread in self.threads("--archived"):
            if thread["kind"] == "agent":
                self.dais.run("threads", "delete", thread["id"])
        until(lambda: not self.processes())
