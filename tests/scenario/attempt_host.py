"""A server of one attempt host (tests/support/host-client) and the agent under it, for the stories about hosts."""
import fcntl
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from harness import SLACK, until

BUILD = pathlib.Path(os.environ.get("DAIS_BUILD", pathlib.Path(__file__).parents[2] / "build"))
CLIENT = BUILD / "tests/support/host-client"


def fnv1a(data):
    """The hash that the client tells of a line; slow in Python, so for short ones."""
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2**64
    return f"{value:016x}"


class Server:
    """One life of a server: it starts or finds the host of a directory, and can be killed."""

    def __init__(self, **environment):
        self.process = subprocess.Popen([CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **environment}, start_new_session=True)
        self.events = queue.Queue()
        self.seen = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put(None)

    def say(self, *lines):
        for line in lines:
            self.process.stdin.write(line if isinstance(line, bytes) else line.encode())
            self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def next(self, seconds=30):
        event = self.events.get(timeout=seconds * SLACK)
        assert event is not None, f"the server ended; it had said {self.seen[-5:]}"
        self.seen.append(event)
        return event

    def wait(self, kind, seconds=30, **values):
        """The next event of this kind with these values; what came before it stays in `seen`."""
        while True:
            event = self.next(seconds)
            if event["event"] == kind and all(event[key] == value for key, value in values.items()):
                return event

    def lines(self):
        return [event for event in self.seen if event["event"] == "line"]

    def texts(self):
        return [bytes.fromhex(event["start"]).decode() for event in self.lines()]

    def kill(self):
        """As a crash, with all of its process group; what it had said is still read."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        while (event := self.events.get(timeout=10 * SLACK)) is not None:
            self.seen.append(event)

    def finish(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        assert self.process.wait(20 * SLACK) in (0, -signal.SIGKILL)


class Attempt:
    """An agent program and the directory of its host. `script` is for sh, or for Python when `python` is true."""

    def __init__(self, directory=None, **environment):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="dais-host-"))
        self.directory = directory(self.place) if directory else self.place / "host"
        self.directory.mkdir(mode=0o700, parents=True)
        self.marker = f"DAIS_ATTEMPT={uuid.uuid4().hex}"
        self.environment = environment
        self.servers = []

    def server(self):
        self.servers.append(Server(**self.environment))
        return self.servers[-1]

    def start(self, *argv, script=None, python=None, **settings):
        server = self.server()
        if script is not None:
            (self.place / "agent.sh").write_text(script)
            argv = ["/bin/sh", str(self.place / "agent.sh")]
        if python is not None:
            (self.place / "agent.py").write_text(python)
            argv = [sys.executable, str(self.place / "agent.py")]
        server.say(*(f"arg {word}" for word in argv), "env PATH=/usr/bin:/bin", f"env {self.marker}", f"cwd {self.place}")
        for name, value in settings.items():
            for one in value if isinstance(value, list) else [value]:
                server.say(name if one is True else f"{name} {one}")
        server.say(f"start {self.directory}")
        return server

    def connect(self, offset):
        server = self.server()
        server.say(f"connect {self.directory} {offset}")
        return server

    def record(self):
        return json.loads((self.directory / "host.json").read_text())

    def host_lives(self):
        """By its lock, which only the host holds."""
        try:
            with open(self.directory / "host.lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def processes(self):
        """Living ones with the marker of this attempt in their environment."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_ours(pid)]

    def _is_ours(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/stat") as stat:
                return self.marker.encode() in environ.read().split(b"\0") and stat.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def finish(self):
        for server in self.servers:
            server.finish()
        if self.host_lives():
            with_end = self.connect(0)
            with_end.say("read off", "end")
            until(lambda: not self.host_lives(), 40)
            with_end.finish()
        left = self.processes()
        said = (self.directory / "err.log").read_text(errors="replace") if (self.directory / "err.log").exists() else ""
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.place)
        assert "Sanitizer" not in said and "runtime error" not in said, said
        assert not left


def lives(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def settle(seconds):
    """A while in which nothing may happen."""
    time.sleep(seconds)
