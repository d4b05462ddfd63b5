"""The real program, for stories: start it, call it, kill it, look at what it left.

Nothing here sleeps to wait: a server is up when it says so, and gone when its process is.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from wire import Lines, Wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("DAIS_PROGRAM", str(ROOT / "build/src/cli/dais"))
# Sanitizers and a busy machine need time; what a test checks as a bound is multiplied by this.
SLACK = float(os.environ.get("DAIS_SLACK", "8" if "san" in PROGRAM else "4"))

SANITIZER = re.compile(r"(AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|Assertion .* failed)")


class Refused(Exception):
    """A tool answered ok:false. `error` is its error object, `envelope` the whole answer."""

    def __init__(self, envelope):
        self.envelope = envelope
        self.error = envelope["error"]
        self.code = self.error["code"]
        self.detail = self.error.get("detail", {})
        super().__init__(json.dumps(self.error, ensure_ascii=False))

    def paths(self):
        return [field["field"] for field in self.detail.get("fields", [])] + list(self.detail.get("parameters", []))


@contextlib.contextmanager
def refused(code, path=None, says=None):
    """with refused("claim_held", path="ops[0].title", says="holder"): the call inside must be refused like that."""
    class Holder:
        error = detail = None
    holder = Holder()
    try:
        yield holder
    except Refused as refusal:
        assert refusal.code == code, refusal
        if path is not None:
            assert path in refusal.paths(), f"{path} not in {refusal.paths()}: {refusal}"
        if says is not None:
            assert says in json.dumps(refusal.error, ensure_ascii=False), refusal
        holder.error, holder.detail, holder.envelope = refusal.error, refusal.detail, refusal.envelope
        return
    raise AssertionError(f"not refused: expected {code}")


def results(envelope):
    if not envelope.get("ok"):
        raise Refused(envelope)
    return envelope["results"]


def data(envelope):
    if not envelope.get("ok"):
        raise Refused(envelope)
    return envelope["data"]


class Tools:
    """What every way of calling shares. Subclasses say how `envelope` travels."""

    def envelope(self, tool, arguments):
        raise NotImplementedError

    def read(self, tool, select, **arguments):
        return data(self.envelope(tool, {"select": select, **arguments}))

    def ops(self, tool, *ops, **shared):
        return results(self.envelope(tool, {"ops": list(ops), **shared}))

    def op(self, tool, op, **arguments):
        return self.ops(tool, {"op": op, **arguments})[0]

    def item(self, title, **more):
        return self.op("items_write", "create", title=title, **more)["id"]

    def get(self, item, *fields):
        more = {"fields": list(fields)} if fields else {}
        return self.read("items_read", "get", itemId=item, **more)["item"]

    def note(self, item, key, body, **more):
        return self.op("notes_write", "upsert", itemId=item, key=key, body=body, **more)

    def body(self, item, key):
        return self.read("notes_read", "get", itemId=item, key=key)["note"]["body"]

    def advance(self, item, trigger, **more):
        return self.op("advance", "transition", itemId=item, trigger=trigger, **more)

    def claim(self, item, **more):
        return self.op("advance", "claim", itemId=item, **more)

    def block(self, first, then, **more):
        return self.op("deps_write", "create", **{"from": first, "to": then, **more})

    def rules(self, root, yaml):
        return self.op("config", "push", rootId=root, yaml=yaml)


class Http(Tools):
    """A caller over HTTP with one kept connection."""

    def __init__(self, url, token=None):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.token = parts.hostname, parts.port, token
        self.connection = None

    def ask(self, method, path, body=None, headers=None, timeout=60):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        sent.update(headers or {})
        try:
            self.connection.request(method, path, body=body, headers=sent)
            answer = self.connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except Exception:
            self.close()
            raise

    def envelope(self, tool, arguments):
        _, _, body = self.ask("POST", f"/api/v1/ops/{tool}", json.dumps(arguments).encode())
        return json.loads(body)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Local(Tools):
    """A caller on the Unix socket that keeps its connection: what `dais call` says, without a process per call."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")
        self.n = 0
        self.rpc("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "tests", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def rpc(self, method, params):
        self.n += 1
        self.send({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params})
        while True:
            line = self.file.readline()
            assert line, "the server closed the connection"
            message = json.loads(line)
            # What could not be read at all is answered without an id.
            if message.get("id", self.n) in (self.n, None) and "method" not in message:
                return message

    def envelope(self, tool, arguments):
        answer = self.rpc("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]["structuredContent"]

    def close(self):
        self.file.close()
        self.socket.close()


class Dais(Tools):
    """One state directory and the server on it."""

    def __init__(self, name="test"):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="dais-"))
        self.state = self.home / "state"
        self.work = self.home / "work"  # where the server is started
        self.work.mkdir()
        self.process = None
        self.url = None
        self.flags = []
        self.environment = {}
        self.log_path = self.home / "log"
        self.opened = []
        self.token_count = 0
        self.stopped_cleanly = True
        self.checks_doctor = True  # a test that leaves a damaged store says so

    # ---- the program ----

    def env(self):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("DAIS_")}
        return {**kept, "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"),
                "XDG_STATE_HOME": str(self.home / "xdg-state"), "NO_COLOR": "1", **self.environment}

    def run(self, *arguments, stdin=None, timeout=120, check=None, cwd=None):
        """Any subcommand on this state directory, to its end."""
        command = [PROGRAM, arguments[0], "--state", str(self.state), *map(str, arguments[1:])]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout, env=self.env(),
                              cwd=cwd or self.work, text=not isinstance(stdin, bytes))
        assert not SANITIZER.search(done.stderr if isinstance(done.stderr, str) else done.stderr.decode()), done.stderr
        if check is not None:
            assert done.returncode == check, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    @contextlib.contextmanager
    def follow(self, *arguments):
        """The lines that a subcommand prints, as they come; it is ended afterwards."""
        process = subprocess.Popen([PROGRAM, arguments[0], "--state", str(self.state), *map(str, arguments[1:])],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=self.env(), cwd=self.work, text=True)
        try:
            yield process.stdout
        finally:
            process.kill()
            process.communicate()

    def spawn(self, *flags, listen="127.0.0.1:0"):
        command = [PROGRAM, "serve", "--state", str(self.state)]
        if listen is not None:
            command += ["--listen", listen]
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen([*command, *map(str, flags)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=log, env=self.env(), cwd=self.work)
        log.close()
        return self.process

    def start(self, *flags, listen="127.0.0.1:0", seconds=30):
        assert self.process is None, "it runs already"
        self.flags = flags
        process = self.spawn(*flags, listen=listen)
        line = self.first_line(process, seconds * SLACK)
        ready = re.fullmatch(r"dais: ready (https?://\S+)\n", line)
        if not ready:
            code = process.wait(timeout=10)
            self.process = None
            raise AssertionError(f"not ready: {line!r}, exit {code}\n{self.log()}")
        self.url = ready[1]
        return self

    @staticmethod
    def first_line(process, seconds):
        line = []
        reader = threading.Thread(target=lambda: line.append(process.stdout.readline().decode()), daemon=True)
        reader.start()
        reader.join(seconds)
        assert line, f"the server said nothing within {seconds} s"
        return line[0]

    def fails_to_start(self, *flags, listen="127.0.0.1:0", seconds=5):
        """It must give up by itself: exit code and what it said on stderr."""
        before = len(self.log())
        process = self.spawn(*flags, listen=listen)
        try:
            out, _ = process.communicate(timeout=seconds * SLACK)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"still running after {seconds * SLACK} s\n{self.log()}")
        finally:
            self.process = None
        assert not out, f"said {out!r} though it did not start"
        return process.returncode, self.log()[before:]

    def stop(self, seconds=15):
        """SIGTERM and an orderly end."""
        if self.process is None:
            return self
        self.close_callers()
        self.process.send_signal(signal.SIGTERM)
        try:
            out, _ = self.process.communicate(timeout=seconds * SLACK)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            self.process = None
            raise AssertionError(f"no orderly stop within {seconds * SLACK} s\n{self.log()}")
        code = self.process.returncode
        self.process = None
        assert code == 0, f"exit {code} after SIGTERM\n{self.log()}"
        assert not out, f"more on stdout than the ready line: {out!r}"
        return self

    def kill(self):
        """kill -9, as a crash would be."""
        self.close_callers()
        self.process.kill()
        self.process.communicate()
        self.process = None
        return self

    def restart(self):
        return self.stop().start(*self.flags)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def children(self):
        if self.process is None:
            return []
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]

    def connections(self):
        """TCP connections that the server has not closed. Its descriptors are hidden from all but root."""
        port = f":{urllib.parse.urlsplit(self.url).port:04X}"
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(local.endswith(port) and state in ("01", "08") for _, local, _, state, *_ in rows)

    # ---- callers ----

    def envelope(self, tool, arguments):
        """By `dais call`, the way a script does it."""
        done = self.run("call", tool, "-", stdin=json.dumps(arguments))
        assert done.stdout, f"exit {done.returncode}: {done.stderr}"
        envelope = json.loads(done.stdout)
        assert done.returncode == (0 if envelope["ok"] else 1), (done.returncode, envelope)
        return envelope

    @property
    def socket(self):
        return self.state / "dais.sock"

    def local(self):
        caller = Local(self.socket)
        self.opened.append(caller)
        return caller

    @property
    def admin_token(self):
        return (self.state / "admin.token").read_text().strip()

    def token(self, name=None, capabilities="read write-items write-notes advance manage-dependencies"):
        """A new principal over HTTP."""
        return self.http(self.new_token(name, capabilities))

    def new_token(self, name=None, capabilities="read write-items write-notes advance manage-dependencies"):
        self.token_count += 1
        name = name or f"t{self.token_count}"
        done = self.run("token", "create", "--id", name, "--capabilities", capabilities, "--json", check=0)
        return json.loads(done.stdout)["token"]

    def http(self, token=None):
        caller = Http(self.url, token)
        self.opened.append(caller)
        return caller

    def wire(self, token=None):
        """Raw MCP and HTTP, with this token (default: the administrator's) on every request."""
        caller = Wire(urllib.parse.urlsplit(self.url).port, [("Authorization", f"Bearer {token or self.admin_token}")])
        self.opened.append(caller)
        return caller

    def lines(self, *flags, **environment):
        """`dais mcp-stdio`, as a client starts it."""
        command = [PROGRAM, "mcp-stdio", "--state", str(self.state), *flags]
        caller = Lines(command, env={**self.env(), **environment}, cwd=self.work)
        self.opened.append(caller)
        return caller

    def admin(self):
        return self.http(self.admin_token)

    def close_callers(self):
        for caller in self.opened:
            caller.close()
        self.opened = []

    # ---- the end ----

    def finish(self):
        """Every scenario ends with these."""
        try:
            if self.process is not None and self.process.poll() is not None:
                code = self.process.returncode
                self.process = None
                raise AssertionError(f"the server died during the test: {code}\n{self.log()}")
            if self.process is not None:
                until(lambda: not self.children())  # git, asked for the checkpoint of a run that has just ended, ends too
                self.stop()
            assert not SANITIZER.search(self.log()), self.log()
            if self.checks_doctor and (self.state / "dais.db").exists():
                done = self.run("doctor", "--json")
                assert done.returncode == 0, f"doctor: {done.stdout}{done.stderr}"
        finally:
            if self.process is not None:
                self.process.kill()
                self.process.communicate()
                self.process = None
            self.close_callers()

    def remove(self):
        shutil.rmtree(self.home, ignore_errors=True)


def together(callers, work):
    """Run work(caller) of every caller at the same moment; their answers in order."""
    barrier = threading.Barrier(len(callers))
    answers = [None] * len(callers)
    errors = []

    def one(i):
        barrier.wait()
        try:
            answers[i] = work(callers[i])
        except BaseException as error:  # the thread ends; the test must hear of it
            errors.append(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(callers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return answers


def until(condition, seconds=10):
    """Wait for what no event announces; the value that was true."""
    end = time.monotonic() + seconds * SLACK
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"still {value!r} after {seconds * SLACK} s"
        time.sleep(0.01)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
