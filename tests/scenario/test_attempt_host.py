"""An agent runs under a host that outlives the server: nothing of its output is lost or doubled, and nothing of it stays."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess

import pytest

import harness
from attempt_host import Attempt, fnv1a, lives, settle
from harness import until

SPOOL_LIMIT = 64 * 1024 * 1024


@pytest.fixture
def new_attempt():
    attempts = []

    def make(*args, **kwargs):
        attempts.append(Attempt(*args, **kwargs))
        return attempts[-1]

    yield make
    for attempt in attempts:
        attempt.finish()


@pytest.fixture
def attempt(new_attempt):
    return new_attempt()


@pytest.fixture(params=["where cgroups may be made", "without cgroups"])
def any_attempt(request, new_attempt):
    return new_attempt(**({} if request.param.startswith("where") else {"NO_CGROUP": "1"}))


# ---- what goes through ----

def test_lines_go_in_and_out_and_each_is_confirmed(attempt):
    server = attempt.start(script='while read -r line; do echo "heard $line"; done; echo bye >&2; exit 7', note="of thread 12")
    ready = server.wait("ready")
    assert ready["note"] == "of thread 12" and lives(ready["pid"])
    server.say("write 1 one", "write 2 two")
    server.wait("confirmed", seq=2)
    server.say("close_stdin")
    end = server.wait("exited")
    assert server.texts() == ["heard one", "heard two"]
    assert (end["code"], end["signal"], end["cause"], end["cleared"]) == (7, 0, "exited", True)
    assert end["stderr"] == "bye\n"


def test_bytes_pass_as_they_are(attempt):
    odd = bytes(range(1, 10)) + bytes(range(11, 256)) + b"\xc3\x28\xed\xa0\x80\r"
    server = attempt.start(python=f"import sys\nsys.stdout.buffer.write({odd!r} + b'\\n\\n' + {odd[::-1]!r} + b'\\n')\n"
                                  "sys.stdout.buffer.write(sys.stdin.buffer.readline())\nsys.stderr.buffer.write(b'a\\xffz')\n")
    server.say(b"write 1 " + odd)
    end = server.wait("exited")
    assert [line["hash"] for line in server.lines()] == [fnv1a(odd), fnv1a(b""), fnv1a(odd[::-1]), fnv1a(odd)]
    assert end["stderr"] == "a\ufffdz", "what a person sees is valid text"


def test_a_last_line_without_its_end_is_a_line_too(attempt):
    server = attempt.start(script="printf 'one\\ntwo'")
    server.wait("exited")
    assert server.texts() == ["one", "two"]


def test_a_line_of_64_mib(attempt):
    size = 64 * 1024 * 1024
    server = attempt.start("sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; echo; echo after", line_bytes=size)
    server.wait("exited", 120)
    assert [line["bytes"] for line in server.lines()] == [size, 5]


def test_a_line_over_the_limit_ends_the_program(attempt):
    server = attempt.start(script="echo fine; head -c 5000 /dev/zero | tr '\\0' x; echo; sleep 1000", line_bytes=4096)
    assert server.wait("exited")["cause"] == "line_too_long"
    assert server.texts() == ["fine"]


def test_a_large_line_reaches_a_program_that_reads_slowly(attempt):
    server = attempt.start(python="import sys, time\nn = 0\nwhile (part := sys.stdin.buffer.raw.read(300000)):\n"
                                  "    n += len(part); time.sleep(0.01)\nprint(n)\n")
    server.say("fill 1 5000000", "write 2 x", "close_stdin")
    server.wait("confirmed", seq=2)
    server.wait("exited")
    assert server.texts() == [str(5_000_000 + 1 + 2)]


def test_a_line_is_confirmed_only_when_the_program_took_all_of_it(attempt):
    server = attempt.start(script="sleep 1000")
    server.wait("ready")
    server.say("write 1 small", "fill 2 1000000")
    server.wait("confirmed", seq=1)
    settle(0.3)
    server.say("end")
    server.wait("exited")
    assert not [e for e in server.seen if e["event"] == "confirmed" and e["seq"] == 2]


def test_lines_for_a_program_that_does_not_read_are_bounded(attempt):
    server = attempt.start(script="sleep 1000")
    server.wait("ready")
    server.say(*(f"fill {n} 10000000" for n in range(1, 8)))
    failure = server.wait("failure")
    assert failure["code"] == "unavailable" and "does not read" in failure["message"]
    server.say("end")
    assert server.wait("exited")["cleared"]


def test_a_line_that_found_no_room_is_asked_for_again_and_none_overtakes_it(attempt):
    os.mkfifo(attempt.place / "go")
    server = attempt.start(python="import sys\nopen('go').read()\nfor line in sys.stdin:\n    print(len(line), line[0], flush=True)\n")
    server.wait("ready")
    server.say(*(f"fill {n} 20000000" for n in range(1, 5)), "write 5 small")
    assert "bytes wait" in server.wait("failure")["message"]
    assert "earlier line" in server.wait("failure")["message"]
    (attempt.place / "go").write_text("")
    assert server.wait("ready")["confirmed"] == 3
    server.say(*(f"fill {n} 20000000" for n in range(1, 5)), "write 5 small", "close_stdin")
    server.wait("exited", 60)
    assert server.texts() == ["20000001 f"] * 4 + ["6 s"]


def test_a_program_that_closes_its_input_is_not_ended_for_it(attempt):
    server = attempt.start(script="exec <&-; read x < go; echo went on; exit 4")
    os.mkfifo(attempt.place / "go")
    server.wait("ready")
    until(lambda: not [n for n in os.listdir(f"/proc/{attempt.record()['agentPid']}/fd") if n == "0"])
    server.say("write 1 nobody reads this")
    (attempt.place / "go").write_text("\n")
    end = server.wait("exited")
    assert (end["code"], end["cause"]) == (4, "exited") and server.texts() == ["went on"]


# ---- the server comes and goes ----

COUNTER = """
import sys
for line in sys.stdin:
    for n in range(200):
        print(line.strip(), n, flush=True)
"""


def test_a_killed_server_finds_its_agent_again_and_nothing_is_lost_or_doubled(attempt):
    server = attempt.start(python=COUNTER, secret="sesame", note="n")
    pid = server.wait("ready")["pid"]
    texts, offset, seq, confirmed = [], 0, 0, 0
    for life in range(5):
        for _ in range(3):
            seq += 1
            server.say(f"write {seq} {seq}")
        for _ in range(40 + 97 * life):
            server.wait("line")
        server.kill()
        stored = server.lines()[:-7]  # what came last was not stored when it died
        texts += [bytes.fromhex(line["start"]).decode() for line in stored]
        offset = stored[-1]["end"] if stored else offset
        server = attempt.connect(offset)
        ready = server.wait("ready")
        assert (ready["pid"], ready["secret"], ready["note"], ready["exited"]) == (pid, "sesame", "n", False)
        confirmed = ready["confirmed"]
        server.say(*(f"write {n} {n}" for n in range(1, seq + 1)))  # all of them: the host knows which it has
    assert confirmed > 0
    server.say("close_stdin")
    assert server.wait("exited", 60)["code"] == 0
    texts += server.texts()
    assert texts == [f"{s} {n}" for s in range(1, seq + 1) for n in range(200)]


def test_an_agent_that_ended_while_no_server_ran_tells_all_of_it_later(attempt):
    server = attempt.start(script="read x; echo $x; echo more; exit 5")
    server.wait("ready")
    server.say("write 1 go")
    server.wait("confirmed")
    server.kill()
    until(lambda: not attempt.host_lives())
    for offset, expected in ((0, ["go", "more"]), (3, ["more"])):
        server = attempt.connect(offset)
        assert server.wait("ready")["exited"]
        end = server.wait("exited")
        assert server.texts() == expected and (end["code"], end["cause"]) == (5, "exited")


def test_a_server_that_dies_at_once_leaves_an_agent_that_runs(attempt):
    server = attempt.start(script="read x; echo $x")
    server.say("write 1 early")
    server.wait("confirmed", seq=1)
    server.kill()
    server = attempt.connect(0)
    assert server.wait("exited")["code"] == 0 and server.texts() == ["early"]


def test_the_newer_of_two_servers_is_heard(attempt):
    older = attempt.start(script='while read -r x; do echo "$x"; done')
    older.wait("ready")
    newer = attempt.connect(0)
    newer.wait("ready")
    newer.say("write 1 of the newer")
    newer.wait("line")
    older.say("end")
    settle(0.5)
    newer.say("write 2 still here", "close_stdin")
    assert newer.wait("exited")["cause"] == "exited"
    assert newer.texts() == ["of the newer", "still here"] and older.texts() == []


def test_a_host_that_was_killed_is_told_as_lost_and_its_strays_are_gone(any_attempt):
    server = any_attempt.start(script="(setsid sh -c 'sleep 1000' &) ; sleep 1000 & echo up; sleep 1000")
    server.wait("line")
    until(lambda: len(any_attempt.processes()) >= 4)
    os.kill(any_attempt.record()["pid"], signal.SIGKILL)
    end = server.wait("exited")
    assert (end["cause"], end["cleared"], end["code"]) == ("lost", True, -1)
    assert any_attempt.processes() == [] and server.texts() == ["up"]


def test_host_and_server_killed_together_leave_nothing_after_the_next_start(any_attempt):
    server = any_attempt.start(script="setsid sleep 1000 & echo up; sleep 1000")
    server.wait("line")
    server.kill()
    os.kill(any_attempt.record()["pid"], signal.SIGKILL)
    server = any_attempt.connect(0)
    assert server.wait("ready")["exited"]
    assert server.wait("exited")["cause"] == "lost" and server.texts() == ["up"]
    assert any_attempt.processes() == []


def test_a_directory_where_nothing_was_started_is_lost(attempt):
    server = attempt.connect(0)
    end = server.wait("exited")
    assert (end["cause"], end["cleared"], end["stderr"]) == ("lost", True, "")


def test_the_server_has_no_children_and_no_zombies(attempt):
    server = attempt.start(script="read x")
    server.wait("ready")
    children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    assert children.read_text() == ""
    host = attempt.record()["pid"]
    assert os.getsid(host) == host != os.getsid(server.process.pid)
    agent = attempt.record()["agentPid"]
    assert os.getsid(agent) == agent


# ---- bounds ----

def disk_bytes(path):
    return path.stat().st_blocks * 512


def test_a_flood_waits_for_a_slow_server(attempt):
    total = 200 * 1024 * 1024
    server = attempt.start(script=f"yes {'y' * 9999} | head -c {total}", read="off")
    server.wait("ready")
    spool = attempt.directory / "out.jsonl"
    until(lambda: spool.stat().st_size >= SPOOL_LIMIT, 60)
    settle(1)
    stopped_at = spool.stat().st_size
    assert stopped_at <= SPOOL_LIMIT + 1024 * 1024, "it waits"
    largest = 0
    while not any(event["event"] == "exited" for event in server.seen):
        server.say("take 1000")
        for _ in range(1000):
            if server.next(60)["event"] == "exited":
                break
        largest = max(largest, disk_bytes(spool))
    assert [line["bytes"] for line in server.lines()] == [9999] * (total // 10000) + [total % 10000]
    assert largest <= SPOOL_LIMIT + 4 * 1024 * 1024, "the space of what was stored came back"


def test_stderr_is_drained_and_its_end_is_kept(attempt):
    server = attempt.start(script="yes noise | head -n 900000 >&2; echo the reason >&2; exit 1")
    end = server.wait("exited")
    assert end["stderr"].endswith("noise\nthe reason\n") and len(end["stderr"]) == 16384
    assert (attempt.directory / "err.log").stat().st_size == 256 * 1024


# ---- ends ----

def test_end_closes_stdin_first_where_that_helps(attempt):
    server = attempt.start(script="trap 'echo term' TERM; while read x; do :; done; echo orderly", ends_with_stdin=True)
    server.wait("ready")
    server.say("end")
    end = server.wait("exited")
    assert (end["code"], end["cause"]) == (0, "ended") and server.texts() == ["orderly"]


def test_end_sends_sigterm_and_hears_what_is_said_then(attempt):
    server = attempt.start(python="import os, signal, time\ndef bye(*_):\n    os.write(1, b'cleaned up\\n'); os._exit(9)\n"
                                  "signal.signal(signal.SIGTERM, bye)\nos.write(1, b'up\\n')\ntime.sleep(1000)\n")
    server.wait("line")
    server.say("end")
    end = server.wait("exited")
    assert (end["code"], end["cause"]) == (9, "ended") and server.texts() == ["up", "cleaned up"]


def test_a_program_that_ignores_sigterm_is_killed(attempt):
    server = attempt.start(script="trap '' TERM; echo up; while :; do sleep 1; done")
    server.wait("line")
    server.say("end")
    end = server.wait("exited")
    assert (end["code"], end["signal"], end["cause"], end["cleared"]) == (-1, signal.SIGKILL, "ended", True)


def test_a_stopped_program_is_ended(attempt):
    server = attempt.start(script="echo up; sleep 1000")
    pid = server.wait("ready")["pid"]
    server.wait("line")
    os.kill(pid, signal.SIGSTOP)
    server.say("end")
    end = server.wait("exited")
    assert end["cause"] == "ended" and end["cleared"] and not lives(pid)


# A daemon by the book, in a session of its own; one that ignores SIGTERM; one that makes children all the time.
ORPHANS = """
import os, signal, subprocess, sys, time
def orphan(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)
def deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
def busy():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        if os.fork() == 0:
            os.setsid()
            time.sleep(3)
            os._exit(0)
        time.sleep(0.02)
orphan(lambda: time.sleep(1000))
orphan(deaf)
orphan(busy)
subprocess.Popen(["sleep", "1000"], start_new_session=True, env={})
print("up", flush=True)
"""


@pytest.mark.parametrize("how", ["a normal end", "the ladder", "SIGKILL from outside"])
def test_orphans_in_sessions_of_their_own_go_with_the_agent(any_attempt, how):
    server = any_attempt.start(python=ORPHANS + {"a normal end": "time.sleep(0.3)\n"}.get(how, "time.sleep(1000)\n"))
    pid = server.wait("ready")["pid"]
    server.wait("line")
    if how == "the ladder":
        server.say("end")
    elif how == "SIGKILL from outside":
        os.kill(pid, signal.SIGKILL)
    end = server.wait("exited", 60)
    assert end["cleared"] and any_attempt.processes() == []
    without_marker = [p for p in filter(str.isdigit, os.listdir("/proc")) if is_sleep(p, str(any_attempt.place))]
    assert without_marker == [], "the one with an empty environment descends from the agent all the same"


def is_sleep(pid, place):
    try:
        return os.readlink(f"/proc/{pid}/cwd") == place
    except OSError:
        return False


def test_a_program_that_closed_its_output_and_lives_is_ended(attempt):
    server = attempt.start(script="echo last; exec >&- ; sleep 1000")
    end = server.wait("exited", 40)
    assert end["cause"] == "stdout_closed" and end["cleared"] and server.texts() == ["last"]


def test_a_program_that_closes_its_output_before_it_ends_just_ended(attempt):
    server = attempt.start(script="echo last; exec >&- ; sleep 0.5; exit 6")
    end = server.wait("exited")
    assert (end["cause"], end["code"]) == ("exited", 6)


def test_output_held_open_by_what_was_left_does_not_hold_the_end(attempt):
    server = attempt.start(script="sleep 1000 & echo done")
    end = server.wait("exited")
    assert (end["cause"], end["code"], end["cleared"]) == ("exited", 0, True)


def test_a_program_that_says_nothing_is_ended(attempt):
    server = attempt.start(script="printf almost; sleep 1000", start_ms=500)
    assert server.wait("exited")["cause"] == "start_timeout"


def test_a_first_line_in_time_is_a_start(attempt):
    server = attempt.start(script="echo here; read x; exit 0", start_ms=1500)
    server.wait("line")
    settle(2)
    server.say("write 1 x")
    assert server.wait("exited")["cause"] == "exited"


def test_a_deadline_ends_the_program_without_a_server(attempt):
    server = attempt.start(script="echo up; sleep 1000", deadline_ms=1500)
    server.wait("line")
    server.kill()
    until(lambda: not attempt.host_lives(), 30)
    server = attempt.connect(0)
    assert server.wait("exited")["cause"] == "deadline"


def test_a_host_that_was_stopped_gives_the_program_the_time_it_had(attempt):
    server = attempt.start(script="echo up; sleep 1000", deadline_ms=9000)
    server.wait("line")
    host = attempt.record()["pid"]
    os.kill(host, signal.SIGSTOP)
    settle(13)
    os.kill(host, signal.SIGCONT)
    settle(1)
    assert attempt.host_lives(), "the deadline passed while it was stopped, and moved"
    assert server.wait("exited", 30)["cause"] == "deadline"


# ---- starts that fail ----

def test_an_absent_program_is_an_end_like_any_other(attempt):
    server = attempt.start("no-such-agent", "--flag")
    end = server.wait("exited")
    assert (end["cause"], end["code"], end["cleared"]) == ("spawn_failed", -1, True)
    assert "no-such-agent" in end["stderr"] and "No such file" in end["stderr"] and "PATH" in end["stderr"]


def test_an_agent_starts_where_the_group_of_the_server_was_once_killed(attempt):
    """Linux then kills what is cloned from it into another cgroup; where there are no cgroups it just starts."""
    server = attempt.server()
    with killed_cgroup(server.process.pid):
        server.say("arg echo", "arg alive", "env PATH=/bin", f"env {attempt.marker}", f"start {attempt.directory}")
        end = server.wait("exited")
    assert (end["code"], end["cause"]) == (0, "exited") and server.texts() == ["alive"]


@contextlib.contextmanager
def killed_cgroup(pid):
    group = pathlib.Path(f"/sys/fs/cgroup/unified/dais-test-{pid}")
    try:
        group.mkdir()
        (group / "cgroup.kill").write_text("1")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        group = None
    yield
    if group:
        with contextlib.suppress(OSError):  # it has ended
            (group.parent / "cgroup.procs").write_text(str(pid))
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_an_absent_directory_is_named(attempt):
    server = attempt.start("true", cwd="/no/such/place")
    end = server.wait("exited")
    assert end["cause"] == "spawn_failed" and "/no/such/place" in end["stderr"]


def test_a_directory_with_a_path_longer_than_a_socket_address_works(new_attempt):
    attempt = new_attempt(lambda place: place.joinpath(*["deep-directory-name"] * 12))
    assert len(str(attempt.directory)) > 200
    server = attempt.start(script="read x; echo $x")
    server.wait("ready")
    server.kill()
    server = attempt.connect(0)
    server.wait("ready")
    server.say("write 1 through")
    server.wait("exited")
    assert server.texts() == ["through"]


# ---- the program itself ----

def settings_message(attempt, *argv, cwd="/"):
    words = [*argv, "PATH=/usr/bin:/bin", attempt.marker, cwd]
    body = b"".join(word.encode() + b"\0" for word in words)
    head = {"is": "settings", "argv": len(argv), "env": 2, "writable": 0, "secret": 0, "placeholder": 0, "note": 0,
            "startMs": 0, "deadlineMs": 0, "lineBytes": 1000, "readOnly": 0, "endsWithStdin": 0, "bytes": len(body)}
    return json.dumps(head).encode() + b"\n" + body


def run_host(attempt, message):
    """`dais attempt-host` with this on its descriptor 0, until it ends; what it said there, and its exit code."""
    ours, its = socket.socketpair()
    with subprocess.Popen([harness.PROGRAM, "attempt-host", attempt.directory], stdin=its, stderr=subprocess.PIPE) as host:
        its.close()
        ours.sendall(message)
        ours.shutdown(socket.SHUT_WR)
        host.communicate(timeout=30 * harness.SLACK)
        said = b""
        with ours, contextlib.suppress(ConnectionResetError):  # it did not read all of it
            while part := ours.recv(4096):
                said += part
        return said, host.returncode


def test_the_command_runs_a_program_to_its_end(attempt):
    said, code = run_host(attempt, settings_message(attempt, "echo", "hello"))
    assert code == 0 and b'"state"' in said
    assert (attempt.directory / "out.jsonl").read_text() == "hello\n"
    assert json.loads((attempt.directory / "exit.json").read_text())["cause"] == "exited"


@pytest.mark.parametrize("damage", [lambda m: b"", lambda m: m[:-1], lambda m: b"{}\n", lambda m: b"\x00" * 5000,
                                    lambda m: m.replace(b'"argv": 2', b'"argv": 9')])
def test_without_settings_that_are_whole_nothing_is_started(attempt, damage):
    said, code = run_host(attempt, damage(settings_message(attempt, "echo", "hello")))
    assert code == 76 and said == b"" and not (attempt.directory / "out.jsonl").exists()
    assert attempt.connect(0).wait("exited")["cause"] == "lost"


def test_a_second_host_of_a_directory_is_refused(attempt):
    server = attempt.start(script="read x; echo $x")
    server.wait("ready")
    assert run_host(attempt, settings_message(attempt, "echo", "second"))[1] == 75
    server.say("write 1 first")
    server.wait("exited")
    assert server.texts() == ["first"]


# ---- read-only ----

WRITER = """
try() { if "$@" 2>/dev/null; then echo "did $*"; else echo "refused $*"; fi; }
try touch allowed/new
try sh -c 'echo x > allowed/new'
try truncate -s 0 kept
try sh -c 'echo x >> kept'
try touch other
try mkdir sub
try rm kept
try mv kept allowed/kept
try ln -s kept link
try cat kept
try sh -c 'echo x > /dev/null'
"""


def test_a_read_only_agent_reads_all_and_writes_where_it_may(attempt):
    (attempt.place / "allowed").mkdir()
    (attempt.place / "kept").write_text("content\n")
    server = attempt.start(script=WRITER, read_only=True, writable=str(attempt.place / "allowed"))
    server.wait("exited")
    assert server.texts() == [
        "did touch allowed/new", "did sh -c echo x > allowed/new", "refused truncate -s 0 kept",
        "refused sh -c echo x >> kept", "refused touch other", "refused mkdir sub", "refused rm kept",
        "refused mv kept allowed/kept", "refused ln -s kept link", "content", "did cat kept",
        "did sh -c echo x > /dev/null"]
    assert (attempt.place / "kept").read_text() == "content\n"


def test_what_a_read_only_agent_starts_is_read_only_too(attempt):
    server = attempt.start(script="setsid sh -c 'touch escaped && echo wrote || echo held' 2>/dev/null", read_only=True)
    server.wait("exited")
    assert server.texts() == ["held"]


def test_without_landlock_a_read_only_agent_does_not_start(new_attempt):
    attempt = new_attempt(NO_LANDLOCK="1")
    server = attempt.start(script="touch written; echo ran", read_only=True)
    end = server.wait("exited")
    assert end["cause"] == "spawn_failed" and "no Landlock" in end["stderr"]
    assert server.texts() == [] and not (attempt.place / "written").exists()


def test_a_writable_directory_that_is_missing_is_named(attempt):
    server = attempt.start(script="echo ran", read_only=True, writable="/no/such/place")
    end = server.wait("exited")
    assert end["cause"] == "spawn_failed" and "/no/such/place" in end["stderr"]


# ---- privacy ----

def readable(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def test_the_secret_is_in_no_file_argument_or_environment(attempt):
    secret = "open-sesame-4711"
    server = attempt.start(script="read a; read b; [ ${#b} = 20 ] && echo long; printenv >&2; read c", secret=secret,
                           placeholder="@@", note=f"note with {secret}")
    server.wait("ready")
    server.say("write 1 a @@ b", "secret_write 2 is @@.")
    server.wait("line")
    places = [f"/proc/{pid}/{name}" for pid in os.listdir("/proc") if pid.isdigit() for name in ("cmdline", "environ")]
    places += [str(path) for path in attempt.directory.rglob("*") if path.is_file()]
    assert [place for place in places if secret.encode() in readable(place)] == []
    server.say("write 3 x")
    assert secret not in server.wait("exited")["stderr"]
    assert [str(path) for path in attempt.directory.rglob("*") if secret.encode() in readable(path)] == []


def test_only_a_line_that_says_so_gets_the_secret(attempt):
    server = attempt.start(script='read -r a; read -r b; echo "$a"; echo "$b"', secret="S3", placeholder="@@")
    server.say("write 1 plain @@", "secret_write 2 @@ and @@")
    server.wait("exited")
    assert server.texts() == ["plain @@", "S3 and S3"]


def test_the_host_cannot_be_dumped_and_its_files_are_private(attempt):
    server = attempt.start(script="read x")
    server.wait("ready")
    host = attempt.record()["pid"]
    assert pathlib.Path(f"/proc/{host}/environ").stat().st_uid == 0, "not dumpable: /proc belongs to root"
    for path in attempt.directory.iterdir():
        assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path
    assert stat.S_ISSOCK((attempt.directory / "host.sock").lstat().st_mode)
    server.say("write 1 x")
    server.wait("exited")


def test_the_agent_gets_its_environment_and_nothing_of_ours(attempt):
    os.umask(mask := os.umask(0))
    server = attempt.start(python="import os, signal\nprint(sorted(k for k in os.environ if k != 'LC_CTYPE'), flush=True)\n"
                                  "print(sorted(map(int, os.listdir('/proc/self/fd'))), flush=True)\n"
                                  "print(os.umask(0), os.getcwd(), flush=True)\n"
                                  "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('SigBlk')])\n")
    server.wait("exited")
    names, descriptors, places, blocked = server.texts()
    assert names == "['DAIS_ATTEMPT', 'PATH']"
    assert descriptors == "[0, 1, 2, 3]", "its three pipes, and the directory that it lists"
    assert places == f"{mask} {attempt.place}"
    assert blocked == "['0000000000000000']"


def test_a_stranger_on_the_socket_disturbs_nothing(attempt):
    server = attempt.start(script='while read -r x; do echo "$x"; done')
    server.wait("ready")
    strangers = []
    for noise in (b"", b"x" * 10000, b"{}\n", b'{"is":"end"}\n', b'{"is":"write","bytes":99999999999}\n'):
        stranger = socket.socket(socket.AF_UNIX)
        stranger.connect(str(attempt.directory / "host.sock"))
        stranger.sendall(noise)
        strangers.append(stranger)
    server.say("write 1 undisturbed", "close_stdin")
    assert server.wait("exited")["cause"] == "exited" and server.texts() == ["undisturbed"]
    for stranger in strangers:
        stranger.close()
