"""A13: ports, sockets and locks that others hold, or that a crash left behind."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest

import harness
from harness import until


@contextlib.contextmanager
def occupied(host="127.0.0.1", family=socket.AF_INET):
    with socket.socket(family) as other:
        other.bind((host, 0))
        other.listen()
        yield other.getsockname()[1]


def assert_says_why(said, *words):
    lines = [line for line in said.splitlines() if words[0] in line]
    assert lines, said
    for word in words:
        assert word in lines[-1], said


def assert_left_nothing(dais):
    """The lock is free again, and no half of a server stayed."""
    dais.start().stop()


def test_a13a_a_port_that_something_else_has_is_named(stopped):
    with occupied() as port:
        code, said = stopped.fails_to_start(listen=f"127.0.0.1:{port}")
        assert code == 73
        assert_says_why(said, f"127.0.0.1:{port}", "in use", f"process {os.getpid()}", "--listen 127.0.0.1:0")
    assert_left_nothing(stopped)


def test_a13b_a_port_that_another_dais_has_is_named(new_dais):
    first, second = new_dais().start(), new_dais()
    address = first.url.removeprefix("http://")
    code, said = second.fails_to_start(listen=address)
    assert code == 73
    # Who is not root may not look into a process that holds secrets.
    assert_says_why(said, address, "in use", f"process {first.process.pid}" if os.geteuid() == 0 else "another process")
    assert_left_nothing(second)


def seconds(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_a13_it_gives_up_as_quickly_as_it_starts(stopped):
    stopped.start().stop()
    ready, refused = [], []
    with occupied() as port:
        for _ in range(4):
            ready.append(seconds(stopped.start))
            stopped.stop()
            refused.append(seconds(lambda: stopped.fails_to_start(listen=f"127.0.0.1:{port}")))
    assert min(refused) < 3 * min(ready), (refused, ready)


def test_a13c_after_a_crash_it_starts_at_once_on_the_same_port(stopped):
    port = harness.free_port()
    address = f"127.0.0.1:{port}"
    stopped.start(listen=address)
    orderly, crashed = [], []
    for _ in range(4):
        stopped.stop()
        orderly.append(seconds(lambda: stopped.start(listen=address)))
        for caller in [stopped.http(stopped.admin_token) for _ in range(5)]:
            caller.item("kept alive")
        stopped.kill()
        assert stopped.socket.exists(), "the crash left its socket"
        crashed.append(seconds(lambda: stopped.start(listen=address)))
    assert min(crashed) < 3 * min(orderly), (crashed, orderly)
    assert len(stopped.read("items_read", "list")["items"]) == 20


def test_a13d_of_two_addresses_none_stays_bound_when_one_is_taken(stopped):
    free = harness.free_port()
    with occupied() as taken:
        code, said = stopped.fails_to_start("--listen", f"127.0.0.1:{taken}", listen=f"127.0.0.1:{free}")
        assert code == 73
        assert_says_why(said, f"127.0.0.1:{taken}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free))


def test_a13e_a_port_below_1024_is_not_for_everybody(stopped):
    limit = int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    if os.geteuid() == 0:
        # As root the kernel lets it pass; a namespace without the capability is a normal user.
        command = ["setpriv", "--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service",
                   "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chown(stopped.home, 65534, 65534)
        os.chown(stopped.work, 65534, 65534)
        os.chmod(stopped.home, 0o755)
    else:
        command = []
    done = subprocess.run([*command, harness.PROGRAM, "serve", "--state", str(stopped.state), "--listen", f"127.0.0.1:{limit - 1}"],
                          capture_output=True, text=True, timeout=10 * harness.SLACK, env=stopped.env(), cwd=stopped.work)
    assert done.returncode in (73, 77), done
    assert_says_why(done.stderr, f"127.0.0.1:{limit - 1}")
    stopped.checks_doctor = False


@pytest.mark.parametrize("family, host", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a13f_a_name_that_is_taken_in_one_family_is_taken(stopped, family, host):
    addresses = {address[4][0] for address in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
    with occupied(host, family) as port:
        if host not in addresses:  # this machine's localhost has one family: what the other one holds is no matter
            stopped.start(listen=f"localhost:{port}").stop()
            return
        code, said = stopped.fails_to_start(listen=f"localhost:{port}")
        assert code == 73
        assert_says_why(said, f"localhost:{port}", "in use")
    assert_left_nothing(stopped)


def test_a13f_of_both_families_none_stays_bound_when_one_is_taken(stopped):
    with occupied("::1", socket.AF_INET6) as port:
        code, said = stopped.fails_to_start("--listen", f"[::1]:{port}", listen=f"127.0.0.1:{port}")
        assert code == 73
        assert_says_why(said, f"[::1]:{port}", "in use")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    assert_left_nothing(stopped)


def test_a13g_a_spawning_relay_says_why_the_server_does_not_start(stopped):
    with occupied() as port:
        stopped.environment["DAIS_LISTEN"] = f"127.0.0.1:{port}"
        ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "items_read", "arguments": {"select": "overview"}}}
        done = stopped.run("mcp-stdio", stdin=json.dumps(ask) + "\n" + json.dumps(call) + "\n", timeout=20 * harness.SLACK)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert "result" in answers[1], (done.stdout, done.stderr)
    failed = answers[2]["result"]
    assert failed["isError"] and str(port) in failed["structuredContent"]["error"]["message"], (done.stdout, done.stderr)
    assert str(port) in done.stderr


def test_a13h_a_file_in_the_place_of_the_socket_is_not_overwritten(stopped):
    stopped.state.mkdir(mode=0o700)
    stopped.socket.write_text("precious")
    code, said = stopped.fails_to_start()
    assert code == 73
    assert_says_why(said, "dais.sock")
    assert stopped.socket.read_text() == "precious"
    stopped.checks_doctor = False  # it would complain of the mode of that file


@pytest.mark.parametrize("listen", ["127.0.0.1:99999", ":3001", ":3001x", "127.0.0.1", "[::1", "127.0.0.1:-1", "300.0.0.1:1", "a b:1"])
def test_a13i_an_address_that_is_none_is_named(stopped, listen):
    code, said = stopped.fails_to_start(listen=listen)
    assert code in (64, 73, 78), said
    assert listen in said
    assert_says_why(said, listen.split(":")[0] if listen[0].isdigit() else listen)


def test_a13i_ipv6_works(stopped):
    if not pathlib.Path("/proc/net/if_inet6").exists() or not pathlib.Path("/proc/net/if_inet6").read_text():
        with pytest.raises(AssertionError):
            stopped.start(listen="[::1]:0")
        return
    stopped.start(listen="[::1]:0")
    assert stopped.url.startswith("http://[::1]:")


def test_a13j_a_state_path_longer_than_a_socket_name_works_or_is_refused_by_name(stopped):
    stopped.state = stopped.home / ("deep" * 20) / ("deeper" * 12)
    process = stopped.spawn()
    try:
        line = stopped.first_line(process, 20 * harness.SLACK)
    finally:
        if process.poll() is None and line:
            stopped.item("works")
            process.terminate()
        process.communicate(timeout=20)
        stopped.process = None
    if not line:
        assert process.returncode in (64, 73, 78)
        assert "107" in stopped.log() or "too long" in stopped.log()


def test_a13k_the_second_of_two_relays_goes_on_when_the_first_leaves(stopped):
    stopped.environment["DAIS_LISTEN"] = "127.0.0.1:0"
    ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
    start = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}) + "\n"
    relays = []
    for _ in range(2):
        relay = subprocess.Popen([harness.PROGRAM, "mcp-stdio", "--state", str(stopped.state)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=stopped.env(), cwd=stopped.work)
        relay.stdin.write((start + ask).encode())
        relay.stdin.flush()
        relays.append(relay)
    try:
        for relay in relays:
            assert "result" in json.loads(relay.stdout.readline())
            assert "result" in json.loads(relay.stdout.readline())
        relays[0].stdin.close()
        assert relays[0].wait(timeout=10 * harness.SLACK) == 0
        relays[1].stdin.write(ask.replace('"id": 1', '"id": 2').encode())
        relays[1].stdin.flush()
        assert json.loads(relays[1].stdout.readline())["id"] == 2
    finally:
        for relay in relays:
            with contextlib.suppress(BrokenPipeError):
                relay.stdin.close()
            relay.wait(timeout=10 * harness.SLACK)
            relay.stdout.close()
        stop_spawned(stopped)


def stop_spawned(dais):
    """A server that a relay started is nobody's child of ours: find it by its own word, and end it."""
    status = json.loads(dais.run("status", "--json", check=0).stdout)
    os.kill(status["pid"], 15)
    until(lambda: not pathlib.Path(f"/proc/{status['pid']}").exists() or
          "State:\tZ" in pathlib.Path(f"/proc/{status['pid']}/status").read_text())


def test_a_second_server_on_one_state_directory_names_the_first(dais):
    done = dais.run("serve", "--listen", "127.0.0.1:0")
    assert done.returncode == 75
    assert str(dais.process.pid) in done.stderr
    dais.item("the first one still serves")


def test_a_second_server_on_one_database_is_refused_too(dais, stopped):
    code, said = stopped.fails_to_start("--store", f"sqlite:{dais.state}/dais.db")
    assert code == 75, said
    stopped.checks_doctor = False


@pytest.mark.parametrize("arguments", [["--listen"], ["--no-such-flag"], ["--log-level", "loud"], ["stray"]])
def test_a_wrong_command_line_is_told_and_nothing_starts(stopped, arguments):
    done = stopped.run("serve", *arguments)
    assert done.returncode in (64, 78)
    assert "dais" in done.stderr
    assert not (stopped.state / "dais.db").exists()
