"""A program that speaks lines of JSON, and the record of everything that was said."""
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time

MARK = "AGENT_OF_THE_TESTS"  # in the environment of the program and of all it starts, so that strays are found


class Silence(Exception):
    """What was waited for did not come in time."""


class Ended(Exception):
    """The program is gone."""


class Child:
    def __init__(self, command, env, cwd, transcript):
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.started = time.monotonic()
        self.transcript = transcript
        transcript.parent.mkdir(parents=True, exist_ok=True)
        self.record = open(transcript, "w", encoding="utf-8")
        self.lock = threading.Lock()
        self.lines = queue.Queue()
        self.errors = []
        self.process = subprocess.Popen([str(word) for word in command], env={**env, MARK: self.mark}, cwd=cwd, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.readers = [threading.Thread(target=reads, daemon=True) for reads in (self.read_lines, self.read_errors)]
        for reader in self.readers:
            reader.start()

    def note(self, way, value):
        with self.lock:
            if not self.record.closed:
                self.record.write(json.dumps({"at": round(time.monotonic() - self.started, 3), way: value}, ensure_ascii=False) + "\n")
                self.record.flush()

    def read_lines(self):
        for raw in self.process.stdout:
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            try:
                line = json.loads(text)
            except ValueError:
                self.note("noise", text)
                continue
            self.note("from", line)
            self.lines.put(line)
        self.lines.put(None)

    def read_errors(self):
        for raw in self.process.stderr:
            text = raw.decode("utf-8", "replace").rstrip()
            self.errors = [*self.errors[-20:], text]
            self.note("stderr", text)

    def send(self, value):
        self.note("to", value)
        try:
            self.process.stdin.write(json.dumps(value).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise Ended(self.last_words()) from None

    def receive(self, seconds):
        try:
            line = self.lines.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise Silence from None
        if line is None:
            self.lines.put(None)
            raise Ended(self.last_words())
        return line

    def last_words(self):
        self.process.wait(10)
        return f"exit {self.process.returncode}: " + " | ".join(self.errors[-5:])

    def end(self, patience=5):
        """Close its input, then be less and less polite; then end what it left running. Its exit status, negative for a signal."""
        steps = [self.process.stdin.close, self.process.terminate, self.process.kill]
        for step in steps:
            try:
                step()
            except OSError:
                pass
            try:
                self.process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        for pid, command in self.strays():
            self.note("stray", command)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for reader in self.readers:
            reader.join(5)
        self.note("exit", self.process.returncode)
        self.record.close()
        return self.process.returncode

    def strays(self):
        """Processes that carry our mark, with their commands: agents start these in sessions of their own."""
        wanted, found = f"{MARK}={self.mark}".encode(), []
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if wanted in entry.read_bytes().split(b"\0"):
                    command = (entry.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    found.append((int(entry.parent.name), command.strip()))
            except OSError:
                continue
        return found
