"""Programs under measurement, and what the kernel says about them."""
import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("DAIS_BUILD", ROOT / "build"))
PROGRAM = BUILD / "src/cli/dais"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

# The rules of the items that are advanced: a note is required in each phase, and each has guidance.
RULES = """work_item_schemas:
  bench:
    notes:
      - { key: plan, role: queue, required: true, description: What will be done, guidance: In a few sentences. }
      - { key: done, role: work, required: true, description: What was done, guidance: Name the files. }
      - { key: findings, role: review, required: true, description: What the review found, guidance: Facts only. }
"""


def tool(name):
    return str(BUILD / "bench" / name)


def run_json(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout)


class Process:
    """Something that says "…: ready URL" on its first line."""

    def __init__(self, command, cwd, log):
        self.began = time.monotonic()
        with open(log, "ab") as err:
            self.process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err,
                                            text=True)
        line = self.process.stdout.readline()
        self.ready_ms = (time.monotonic() - self.began) * 1000
        ready = re.fullmatch(r"\w+: ready (http://\S+)\n", line)
        if not ready:
            raise SystemExit(f"{command} did not start: {line!r}, see {log}")
        self.url = ready[1]
        self.pid = self.process.pid

    def cpu_us(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1_000_000 / CLOCK_TICKS

    def rss_mb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.pid}/status").read_text())[1]) / 1024

    def own_mb(self):
        """Without the files that are mapped: what readers have touched of the database stays there, and is the system's cache."""
        return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{self.pid}/status").read_text())[1]) / 1024

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class State:
    """A directory with a number of items, made once and used again: every run leaves it as it found it, but for events."""

    def __init__(self, work, items):
        self.items = items
        self.home = work / f"items-{items}"
        self.path = self.home / "state"
        self.cwd = self.home / "work"
        self.log = self.home / "log"
        self.fill_seconds = None

    def make(self):
        stamp = self.home / "complete"
        schema = b"".join(path.read_bytes() for path in sorted((ROOT / "src/store/migrations").iterdir()))
        mark = f"{hash_of(schema)} {hash_of((ROOT / 'bench/fill.c').read_bytes())}"
        if stamp.exists() and stamp.read_text() == mark:
            return self
        shutil.rmtree(self.home, ignore_errors=True)
        self.path.mkdir(parents=True, mode=0o700)
        (self.cwd / ".dais").mkdir(parents=True)
        (self.cwd / ".dais/config.yaml").write_text(RULES)
        began = time.monotonic()
        subprocess.run([tool("fill"), self.path, str(self.items), self.home], check=True, stderr=subprocess.DEVNULL)
        self.fill_seconds = time.monotonic() - began
        doctor = subprocess.run([PROGRAM, "doctor", "--state", self.path], capture_output=True, text=True)
        if "sound" not in doctor.stdout:
            raise SystemExit(f"the state directory that was made is not sound:\n{doctor.stdout}{doctor.stderr}")
        stamp.write_text(mark)
        os.sync()  # or the system writes hundreds of megabytes back beside the first measurement
        return self

    def serve(self):
        return Process([PROGRAM, "serve", "--state", self.path, "--listen", "127.0.0.1:0"], self.cwd, self.log)

    @property
    def token(self):
        return self.path / "admin.token"

    def words(self, name):
        return self.home / f"{name}.txt"

    def status(self):
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(str(self.path / "dais.sock"))
            ask = {"jsonrpc": "2.0", "method": "dais/admin", "params": {"op": "status"}}
            local.sendall(json.dumps(ask).encode() + b"\n")
            return json.loads(local.makefile().readline())

    def advance(self, server, items, trigger):
        """In calls of 64, so in commits of 64; each transition must succeed."""
        for first in range(0, len(items), 64):
            ops = [{"op": "transition", "itemId": item, "trigger": trigger} for item in items[first:first + 64]]
            request = urllib.request.Request(f"{server.url}/api/v1/ops/advance", json.dumps({"ops": ops}).encode(), {
                "Authorization": f"Bearer {self.token.read_text().strip()}", "Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                summary = json.load(answer)["summary"]
            assert summary == {"ok": len(ops), "failed": 0}, summary

    def load(self, server, tool_name, bodies, connections=1, seconds=3.0, words=None, window=0, journal=None, seed=1):
        return load_command(server.url, f"/api/v1/ops/{tool_name}", self.token, bodies, connections, seconds,
                            self.words(words) if words else None, window, seed, journal)

    def measure(self, server, *args, **kwargs):
        return measure(server, self.load(server, *args, **kwargs))


def hash_of(data):
    return hashlib.sha256(data).hexdigest()[:16]


def load_command(url, path, token, bodies, connections, seconds, words=None, window=0, seed=1, journal=None):
    command = [tool("load"), "--url", url, "--path", path, "--token-file", str(token), "--connections", str(connections),
               "--seconds", str(seconds), "--seed", str(seed)]
    if words:
        command += ["--words", str(words)]
    if window:
        command += ["--window", str(window)]
    if journal:
        command += ["--journal", str(journal)]
    return command + [json.dumps(body) if not isinstance(body, str) else body for body in bodies]


def measure(server, command):
    """A load and the processor time that the server spent on it."""
    before = server.cpu_us()
    result = run_json(*command)
    total = sum(result["byStatus"].values())
    result["cpuUs"] = (server.cpu_us() - before) / max(total, 1)
    return result


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def describe_machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"cpu": cpu[1] if cpu else "?", "cores": os.cpu_count(), "kernel": os.uname().release,
            "memoryMb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
            "loadAverage": os.getloadavg()[0], "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


Row = collections.namedtuple("Row", "budget what value unit limit holds baseline")


class Report:
    """Lines of the table. A limit is a text like ">= 0.6"; lines without one are for information."""

    def __init__(self):
        self.rows = []

    def add(self, budget, what, value, unit, limit=None, baseline=None):
        holds = None
        if limit is not None:
            sign, number = limit.split()
            holds = value >= float(number) if sign == ">=" else value <= float(number)
        row = Row(budget, what, round(value, 3), unit, limit, holds, baseline)
        self.rows.append(row)
        print(self.line(row), flush=True)

    @staticmethod
    def line(row):
        said = "" if row.holds is None else "holds" if row.holds else "MISSED"
        return f"{row.budget:4} {row.what:58} {row.value:>10} {row.unit:8} {row.limit or '':>9} {said:7} {row.baseline or ''}"

    def missed(self):
        return [row for row in self.rows if row.holds is False]
