"""dais mcp-stdio as clients start it, mistreat it and leave it (mcp 6.3)."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import pytest

from harness import PROGRAM, SLACK, together, until
from wire import CAPS, MODERN, VERSION, eventually

META = {VERSION: MODERN, CAPS: {}}


@pytest.fixture
def line(shared):
    made = shared.lines("--no-spawn")
    yield made
    made.close()


def request(method, id, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}


def call(id, name, **arguments):
    return request("tools/call", id, name=name, arguments=arguments)


def ends(line, seconds=1.0):
    begun = time.monotonic()
    line.process.wait(timeout=20 * SLACK)
    assert time.monotonic() - begun < seconds * SLACK
    return line.process.returncode


# ---- what is said ----

NOISE = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *talk(void *none)
{
	(void)none;
	for (;;) {
		(void)write(1, "noise on descriptor one\n", 24);
		puts("noise by stdio");
		fflush(stdout);
		usleep(2000);
	}
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	usleep(1000);
	pthread_create(&thread, NULL, talk, NULL);
}
"""


@pytest.mark.preload
def test_purity(shared, tmp_path):
    """mcp 6.3 purity: a library that prints all the time never gets a byte onto the protocol's stream."""
    source = tmp_path / "noise.c"
    source.write_text(NOISE.replace("usleep(1000);", "").replace("for (;;) {", "usleep(300000);\n\tfor (;;) {"))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "noise.so", source, "-lpthread"], check=True)
    line = shared.lines("--no-spawn", LD_PRELOAD=str(tmp_path / "noise.so"))
    tools = line.modern("tools/list")["result"]["tools"]
    time.sleep(0.4)
    for tool in tools:
        line.modern("tools/call", {"name": tool["name"], "arguments": {"describe": True}})
        line.modern("tools/call", {"name": tool["name"], "arguments": {"nonsense": 1}})
    line.process.stdin.close()
    line.process.stdin = None
    out, err = line.process.communicate(timeout=10 * SLACK)
    assert [json.loads(text) for text in out.splitlines()] == []  # every answer was read above, line by line
    assert b"noise on descriptor one" in err


def test_split_bytes(line):
    """mcp 6.3 split-bytes."""
    for byte in json.dumps(request("tools/list", 1)).encode() + b"\n":
        line.write(bytes([byte]))
    assert line.answer(1)["result"]["tools"]


def test_glued(line):
    """mcp 6.3 glued: 50 messages in one write, each answered once."""
    line.send(*[request("tools/list", n) for n in range(50)])
    assert sorted(line.read()["id"] for _ in range(50)) == list(range(50))


def test_crlf_bom_and_blank_lines(line):
    """mcp 6.3 crlf, bom, blank lines."""
    text = json.dumps(request("tools/list", 1)).encode()
    line.write(b"\xef\xbb\xbf" + text + b"\r\n\r\n\n  \n\t\r\n" + text.replace(b'"id": 1', b'"id": 2') + b"\n")
    assert {line.read()["id"], line.read()["id"]} == {1, 2}


@pytest.mark.parametrize("bad,code", [(b"{", -32700), (b"\xff\xfe", -32700), (b"[]", -32600), (b"7", -32600), (b'"x"', -32600),
                                      (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600), (b"[" * 100000, -32600)])
def test_bad_line_then_good(line, bad, code):
    """mcp 6.3 bad-line-then-good: an error without id, and on it goes."""
    line.write(bad + b"\n")
    error = line.read()
    assert error["error"]["code"] == code and "id" not in error
    line.send(request("tools/list", 1))
    assert line.answer(1)["result"]


def test_oversize_line(line):
    """mcp 6.3 oversize-line: read to its end, refused once, and on it goes."""
    line.write(b"x" * (9 * 1024 * 1024) + b"\n")
    error = line.read()
    assert error["error"]["code"] == -32600 and "id" not in error
    line.send(request("tools/list", 1))
    assert line.answer(1)["result"]


def test_separators_of_other_alphabets_stay_inside_a_line(shared, line):
    """mcp 4.3: U+2028 and its like are no line ends; text comes back byte for byte."""
    title = "a\u2028b\u2029c\u0085d \u202e rtl \ufeff \U0001f600 \uffff"
    made = line.call("items_write", {"ops": [{"op": "create", "title": title}]})["result"]["structuredContent"]
    item = made["results"][0]["id"]
    assert line.call("items_read", {"select": "get", "itemId": item})["result"]["structuredContent"]["data"]["item"]["title"] == title


def test_discover_then_init(line):
    """mcp 6.1 discover-then-init: a probe does not pin the process."""
    assert line.modern("server/discover", id="server-discover-probe-1")["result"]["supportedVersions"] == [MODERN]
    assert line.initialize()["result"]["protocolVersion"] == "2025-11-25"
    line.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert "resultType" not in line.answer(1)["result"]


def test_init_after_modern(line):
    """mcp 6.1 init-after-modern."""
    line.modern("tools/list")
    error = line.initialize()["error"]
    assert error["code"] == -32022 and error["data"]["supported"] == [MODERN]


def test_cancel_done_request(line):
    """mcp 6.3 cancel-done-request, 7: silence; some clients do it after every call, with _meta."""
    line.modern("tools/list", id=1)
    line.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": {"x": 1}}},
              {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never was"}})
    rest, _ = line.end()
    assert rest == []


def test_duplicate_inflight_id(line):
    """mcp 6.3 duplicate-inflight-id: refused, and the first goes on; a subscription is a request that stays."""
    line.send(request("subscriptions/listen", "s", notifications={"toolsListChanged": True}))
    assert line.read()["method"].endswith("acknowledged")
    line.send(request("tools/list", "s"))
    error = line.read()
    assert error["id"] == "s" and error["error"]["code"] == -32600
    line.send(request("tools/list", "t"))
    assert line.answer("t")["result"]


# ---- how it ends ----

def test_eof_exit(shared):
    """mcp 6.3 eof-exit: idle, and with an answer under way."""
    line = shared.lines("--no-spawn")
    line.modern("tools/list")
    rest, took = line.end()
    assert rest == [] and took < 1 * SLACK
    line = shared.lines("--no-spawn")
    line.send(call(1, "items_read", select="overview"))
    rest, took = line.end()
    assert [message["id"] for message in rest] == [1] and took < 1 * SLACK


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_within_a_tenth_of_a_second(shared, sent):
    """mcp 2.13: clients follow with SIGKILL soon."""
    line = shared.lines("--no-spawn")
    line.modern("tools/list")
    line.process.send_signal(sent)
    assert ends(line, 0.3) == 0


def test_sigint_sigterm_100ms(stopped):
    """mcp 6.3 sigint-sigterm-100ms: how Claude Code leaves, in the middle of writing; nothing is half done."""
    stopped.start()
    line = stopped.lines("--no-spawn")
    line.modern("tools/list")
    for n in range(200):
        line.send(call(n, "items_write", ops=[{"op": "create", "title": f"n{n}"}]))
    line.process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    line.process.send_signal(signal.SIGTERM)
    out, _ = line.process.communicate(timeout=10 * SLACK)
    whole = out[:out.rfind(b"\n") + 1]  # the signal may come in the middle of a line
    acknowledged = [message for message in map(json.loads, whole.splitlines()) if "result" in message]
    stopped.restart()
    total = stopped.read("items_read", "overview")["totals"].get("queue", 0)
    assert total >= len(acknowledged)
    assert stopped.run("doctor", "--json").returncode == 0


def test_parent_kill9_with_the_pipe_held_open(shared, tmp_path):
    """mcp 6.3 parent-kill9: the client is gone, somebody else still holds its end of the pipe; gone in 4 s."""
    script = f"""
import os, subprocess, sys, time
r, w = os.pipe()
child = subprocess.Popen([{PROGRAM!r}, "mcp-stdio", "--state", {str(shared.state)!r}, "--no-spawn"], stdin=r, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
os.write(w, b'{{"jsonrpc":"2.0","id":1,"method":"ping"}}\\n')
child.stdout.readline()  # whatever it says: it is up and knows its parent
holder = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[w],
                          stdout=subprocess.DEVNULL)
print(child.pid, holder.pid, flush=True)
time.sleep(60)
"""
    client = subprocess.Popen(["python3", "-c", script], stdout=subprocess.PIPE, env=shared.env(), text=True)
    relay, holder = map(int, client.stdout.readline().split())
    client.kill()
    client.communicate()
    try:
        eventually(lambda: is_gone(relay), 4 * SLACK)
    finally:
        os.kill(holder, signal.SIGKILL)


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_forking_thread_ends(shared):
    """mcp 6.3 forking-thread-ends: the thread that started it ends, its process does not."""
    made = []
    thread = threading.Thread(target=lambda: made.append(shared.lines("--no-spawn")))
    thread.start()
    thread.join()
    time.sleep(2.5)  # longer than the look at the parent
    assert made[0].modern("tools/list")["result"]


# ---- how it lives ----

def rss_kib(pid):
    for text in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if text.startswith("VmRSS:"):
            return int(text.split()[1])
    return 0


def test_reader_stalls(shared, line):
    """mcp 6.3 reader-stalls: a client that writes without reading is not served further, and costs no memory;
    when it reads again it gets every answer."""
    item = shared.item("large", description="x" * 60000)
    asked = 800  # some 48 MB of answers
    before = rss_kib(line.process.pid)
    sent = []

    def write():
        for n in range(asked):
            line.send(call(n, "items_read", select="get", itemId=item, fields=["description"]))
            sent.append(n)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    last = -1
    while len(sent) != last or last == 0:  # until nothing moves any more
        last = len(sent)
        time.sleep(1)
    assert rss_kib(line.process.pid) - before < 64 * 1024 or "san" in PROGRAM
    assert rss_kib(shared.process.pid) < 256 * 1024 or "san" in PROGRAM
    assert shared.item("served meanwhile")
    answered = {line.read()["id"] for _ in range(asked)}
    writer.join()
    assert answered == set(range(asked))


def test_scrubbed_env(stopped):
    """mcp 6.3 scrubbed-env: no PATH, no HOME, no TERM, nothing at all."""
    stopped.start()
    for environment in ({}, {"HOME": str(stopped.home)}):
        done = subprocess.run([PROGRAM, "mcp-stdio", "--state", str(stopped.state), "--no-spawn"], env=environment,
                              input=json.dumps(request("tools/list", 1)).encode() + b"\n", capture_output=True, timeout=20 * SLACK)
        assert done.returncode == 0 and json.loads(done.stdout)["result"]["tools"], done.stderr


def test_scrubbed_env_spawns_too(stopped):
    """The same when it has to start the server itself."""
    done = subprocess.run([PROGRAM, "mcp-stdio", "--state", str(stopped.state)], env={"DAIS_LISTEN": "127.0.0.1:0"},
                          input=json.dumps(request("tools/list", 1)).encode() + b"\n", capture_output=True, timeout=30 * SLACK)
    assert json.loads(done.stdout)["result"]["tools"], done.stderr
    end_spawned(stopped)


def end_spawned(dais):
    done = dais.run("status", "--json")
    os.kill(json.loads(done.stdout)["pid"], signal.SIGTERM)
    until(lambda: dais.run("status", "--json").returncode == 69)


def test_cwd_unwritable(shared, tmp_path):
    """mcp 6.3 cwd-unwritable, and a directory that is gone."""
    tmp_path.chmod(0o500)
    gone = tmp_path.parent / "gone"
    gone.mkdir(exist_ok=True)
    command = [PROGRAM, "mcp-stdio", "--state", str(shared.state), "--no-spawn"]
    for script in ('cd "$1" && shift && exec "$@"', 'cd "$1" && rmdir "$1" && shift && exec "$@"'):
        place = tmp_path if "rmdir" not in script else gone
        done = subprocess.run(["sh", "-c", script, "sh", place, *command], env=shared.env(), capture_output=True, timeout=20 * SLACK,
                              input=json.dumps(request("tools/list", 1)).encode() + b"\n")
        assert json.loads(done.stdout)["result"]["tools"], done.stderr
    tmp_path.chmod(0o700)


def test_two_processes_one_db(stopped):
    """mcp 6.3 two-processes-one-db: 200 writes each, none lost."""
    stopped.start()
    lines = [stopped.lines("--no-spawn"), stopped.lines("--no-spawn")]

    def write(line):
        answers = []
        for n in range(200):
            line.send(call(n, "items_write", ops=[{"op": "create", "title": f"n{n}"}]))
            if n >= 100:  # two of them stay below what one caller may have under way
                answers.append(line.read())
        return answers + [line.read() for _ in range(100)]

    for answers in together(lines, write):
        assert {answer["id"] for answer in answers} == set(range(200))
        assert all(answer["result"]["structuredContent"]["ok"] for answer in answers)
    assert stopped.read("items_read", "overview")["totals"]["queue"] == 400


def test_start_to_first_answer_is_quick(shared):
    """mcp 2.13: ready within 200 ms, so that no client's start-up timer sees it."""
    took = []
    for _ in range(5):
        begun = time.monotonic()
        line = shared.lines("--no-spawn")
        line.modern("server/discover")
        took.append(time.monotonic() - begun)
        line.close()
    assert min(took) < 0.2 * SLACK


def test_a_call_that_was_under_way_when_the_server_died_is_answered(new_dais):
    """Every request is answered once: by the server that comes back, or with an error that says what to do."""
    server = new_dais().start()
    listen = server.url.removeprefix("http://")
    line = server.lines("--no-spawn")
    line.initialize()
    server.process.kill()  # not server.kill(), which closes its callers
    server.process.communicate()
    server.process = None
    line.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    server.start(listen=listen)
    assert line.answer(1)["result"]["tools"]
    assert line.process.poll() is None


# ---- when there is no server to be had ----

@pytest.fixture
def nowhere(stopped):
    """A state directory that no server can be started on: a file stands where the database should be made."""
    stopped.state.mkdir(mode=0o700)
    (stopped.state / "dais.db").mkdir()
    stopped.checks_doctor = False
    yield stopped
    shutil.rmtree(stopped.state)


@pytest.mark.parametrize("flags", [[], ["--no-spawn"]])
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_start_no_db_permission(nowhere, flags, era):
    """mcp 6.3 start-no-db-permission: clients hide stderr, so the tools are listed and each call says why it fails."""
    line = nowhere.lines(*flags)
    if era == "legacy":
        hello = line.initialize()["result"]
        assert hello["protocolVersion"] == "2025-11-25" and hello["serverInfo"]["name"] == "dais"
        line.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        tools = line.answer(1)["result"]["tools"]
        line.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "items_read", "arguments": {"select": "overview"}}})
        result = line.answer(2)["result"]
    else:
        tools = line.modern("tools/list")["result"]["tools"]
        result = line.call("items_read", {"select": "overview"})["result"]
    assert {"items_read", "advance"} <= {tool["name"] for tool in tools}
    error = result["structuredContent"]["error"]
    assert result["isError"] and error["message"] and error["fix"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    rest, took = line.end()
    assert rest == [] and took < 5 * SLACK


def test_when_the_server_can_be_had_again_the_same_session_goes_on(stopped):
    """What stood in for the server steps back as soon as there is one."""
    line = stopped.lines("--no-spawn")
    line.initialize()
    line.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "items_read", "arguments": {"select": "overview"}}})
    assert line.answer(1)["result"]["isError"]
    stopped.start()

    def works():
        line.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "items_read", "arguments": {"select": "overview"}}})
        return not line.answer(2)["result"].get("isError")

    until(works)
