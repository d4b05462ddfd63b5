"""What people and scripts do with any program: redirect it, close its ends, pipe it, and guess at flags."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import PROGRAM, until


def shell(dais, command, timeout=20):
    """A line of shell with $DAIS and $STATE, in the words that a person would type."""
    env = {**dais.env(), "DAIS": PROGRAM, "STATE": str(dais.state)}
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, cwd=dais.work, timeout=timeout)


# ---- output that goes nowhere ----

@pytest.mark.parametrize("command", ["status", "items", "call items_read '{\"select\":\"context\"}'", "token create lost", "serve --print-config"])
def test_output_that_cannot_be_written_is_a_failure(dais, command):
    done = shell(dais, f"$DAIS {command} --state $STATE > /dev/full")
    assert done.returncode in (1, 73) and "written" in done.stderr, done
    if command.startswith("token"):
        assert "dais token revoke lost" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_failure(dais):
    dais.item("Harbour")
    done = shell(dais, "$DAIS items --state $STATE | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == "0\n" and done.stderr == ""


def test_closed_standard_descriptors_are_not_given_to_files_and_sockets(stopped):
    log = stopped.work / "log"
    server = subprocess.Popen(["bash", "-c", f"exec $0 serve --state $1 --listen 127.0.0.1:0 0<&- 1>&- 2>{log}", PROGRAM, stopped.state],
                              env=stopped.env(), cwd=stopped.work)
    try:
        until(lambda: "sign in" in log.read_text() if log.exists() else False)
        ends = [(stopped.state.parent / f"/proc/{server.pid}/fd/{fd}").readlink().as_posix() for fd in (0, 1)]
        assert ends == ["/dev/null", "/dev/null"]
        assert shell(stopped, "$DAIS status --state $STATE >&-").returncode == 0
    finally:
        server.terminate()
        assert server.wait(20) == 0


def test_following_ends_with_its_reader(dais):
    dais.item("Harbour")
    began = time.monotonic()
    done = shell(dais, "$DAIS events --since 0 --state $STATE | head -n 1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines()[1] == "0" and time.monotonic() - began < 10


# ---- flags where people put them ----

def test_shared_flags_may_stand_before_the_command(dais):
    told = shell(dais, "$DAIS --state $STATE --log-level=error status --json")
    assert json.loads(told.stdout)["pid"] == dais.process.pid
    assert shell(dais, "$DAIS --state=$STATE call items_read '{\"select\":\"context\"}'").returncode == 0
    for wrong in ("--state", "--state $STATE", "--bogus status"):
        done = shell(dais, f"$DAIS {wrong}")
        assert done.returncode == 64 and "dais --help" in done.stderr, done


@pytest.mark.parametrize("words", ["help items", "items -h", "items -?", "items --help"])
def test_help_is_found_by_every_habit(stopped, words):
    done = shell(stopped, f"$DAIS {words}")
    assert done.returncode == 0 and "Usage: dais items" in done.stdout


@pytest.mark.parametrize("words", ["-h", "-?", "help", "--help"])
def test_help_of_the_whole(stopped, words):
    done = shell(stopped, f"$DAIS {words}")
    assert done.returncode == 0 and "Commands:" in done.stdout


def test_the_version_is_short_too(stopped):
    assert shell(stopped, "$DAIS -V").stdout == shell(stopped, "$DAIS --version").stdout


def test_a_log_level_that_does_not_exist_is_refused_by_every_command(dais):
    for command in ("status", "items", "doctor"):
        done = dais.run(command, "--log-level", "loud", check=64)
        assert "trace, debug, info, warn, error or off" in done.stderr


def test_no_name_of_an_event_is_cut(dais, tmp_path):
    (tmp_path / ".dais").mkdir()
    (tmp_path / ".dais" / "config.yaml").write_text("work_item_schemas: {}\n")
    dais.run("project", "add", tmp_path, check=0)
    assert " project_config.upserted " in dais.run("events", "--since", "0", "--count", "2", check=0).stdout


# ---- messages that say what to do ----

def test_a_tool_that_does_not_exist_is_named_with_the_near_one(dais):
    done = dais.run("call", "items_raed", "{}", check=1)
    assert 'There is no tool "items_raed"; did you mean items_read?' in done.stderr
    raw = json.loads(dais.run("call", "--raw", "items_raed", "{}", check=1).stdout)
    assert raw["error"]["code"] == -32602


def test_a_bad_address_is_refused_before_anything_is_made(stopped):
    done = stopped.run("serve", "--listen", "foo", check=78)
    assert 'listen address "foo": expected HOST:PORT or [IPv6]:PORT.' in done.stderr
    assert not (stopped.state / "dais.db").exists()


def test_a_token_for_a_project_takes_a_short_id_and_names_wrong_words(dais):
    root = dais.item("Harbour", type="project")
    dais.run("token", "create", "ada", "--root", root[:8], check=0)
    tokens = json.loads(dais.run("token", "list", "--json", check=0).stdout)
    assert next(token for token in tokens if token["id"] == "ada")["roots"] == [root]
    assert "is not a project" in dais.run("token", "create", "bob", "--root", dais.item("x", parentId=root)[:8], check=1).stderr
    assert "first 8 digits" in dais.run("token", "create", "bob", "--root", "5b7d", check=1).stderr
    assert "reed" in dais.run("token", "create", "bob", "--cap", "reed", check=1).stderr
    assert "existingId" not in dais.run("token", "create", "ada", check=1).stderr


def test_a_token_whose_time_is_over_is_not_called_live(dais):
    dais.run("token", "create", "brief", "--ttl", "1", check=0)
    until(lambda: "ended" in dais.run("token", "list", check=0).stdout)


def test_a_project_is_added_with_json_for_machines_and_bad_rules_have_their_place(dais, tmp_path):
    (tmp_path / ".dais").mkdir()
    (tmp_path / ".dais" / "config.yaml").write_text("a: [1\nb: 2\n")
    done = dais.run("project", "add", tmp_path, check=78)
    assert "config.yaml:2:2: a ',' or ']' is missing." in done.stderr
    (tmp_path / ".dais" / "config.yaml").write_text("{}\n")
    added = json.loads(dais.run("project", "add", tmp_path, "--json", check=0).stdout)
    assert added == {"id": dais.run("project", "add", tmp_path, check=0).stdout.strip(), "path": str(tmp_path)}


def test_what_cannot_be_made_says_why(stopped, tmp_path):
    (tmp_path / ".dais").write_text("")
    assert "Not a directory" in stopped.run("init", tmp_path, check=73).stderr


# ---- names from other trackers ----

@pytest.mark.parametrize("name", ["role", "status", "state", "statusLabel"])
def test_the_phase_of_an_item_is_no_field_and_the_answer_says_which_tool_moves_it(dais, name):
    item = dais.item("Harbour")
    for op in ({"op": "update", "itemId": item, name: "work"}, {"op": "create", "title": "x", name: "work"},
               {"op": "create_tree", "root": {"title": "x"}, "children": [{"ref": "a", "title": "a", name: "work"}]}):
        error = dais.envelope("items_write", {"ops": [op]})["error"]
        assert error["code"] == "unknown_parameter" and "use the tool advance" in error["message"], error


def test_a_proposal_is_near_and_is_a_sentence(dais):
    item = dais.item("Harbour")
    told = dais.envelope("items_write", {"ops": [{"op": "update", "itemId": item, "titel": "x"}]})["error"]["message"]
    assert told == "Unknown parameter ops[0].titel: did you mean title?"
    told = dais.envelope("items_write", {"ops": [{"op": "update", "itemId": item, "assignee": "x"}]})["error"]["message"]
    assert told == "Unknown parameter ops[0].assignee: no such parameter."


def test_describe_of_an_op_that_does_not_exist_lists_those_that_do(dais):
    error = dais.envelope("advance", {"describe": True, "op": "clam"})["error"]
    assert error["detail"]["fields"][0]["field"] == "op"
    assert error["detail"]["fields"][0]["reason"] == "must be one of transition, claim, release, heartbeat"


# ---- somebody else's server on this machine ----

def test_a_client_starts_its_server_though_another_one_has_the_default_port(stopped):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", 3001))
            other.listen()
        except OSError:
            pass  # taken already, which is as good
        env = {key: value for key, value in stopped.env().items() if key != "DAIS_LISTEN"}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "items_read", "arguments": {"select": "overview"},
                           "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}
        done = subprocess.run([PROGRAM, "mcp-stdio", "--state", stopped.state], input=json.dumps(call) + "\n", capture_output=True,
                              text=True, env=env, cwd=stopped.work, timeout=60)
        status = json.loads(shell(stopped, "$DAIS status --json --state $STATE").stdout)
        try:
            assert json.loads(done.stdout)["result"]["structuredContent"]["ok"], done
            assert not status["url"].endswith(":3001")
        finally:
            os.kill(status["pid"], signal.SIGTERM)
            until(lambda: shell(stopped, "$DAIS status --state $STATE").returncode == 69)


# ---- the first project ----

def test_a_project_with_the_rules_of_init_stays_open_after_its_last_item(dais, tmp_path):
    dais.run("init", tmp_path, check=0)
    root = dais.run("project", "add", tmp_path, check=0).stdout.strip()
    dais.advance(dais.item("an errand", parentId=root), "complete")
    assert dais.get(root)["role"] == "queue"
    dais.item("the next errand", parentId=root)


def test_completion_finds_the_command_behind_shared_options():
    script = pathlib.Path(__file__).resolve().parents[2] / "packaging/completion/dais.bash"

    def complete(*words):
        typed = " ".join(f"'{word}'" for word in words)
        line = f'source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _dais; echo "${{COMPREPLY[@]}}"'
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout.split()

    assert complete("dais", "it") == complete("dais", "--state", "/tmp", "it") == complete("dais", "help", "it") == ["items"]
    assert complete("dais", "--state", "=", "/tmp", "items", "--ro") == complete("dais", "items", "--ro") == ["--role", "--root"]
    assert complete("dais", "--state", "/tmp", "--log") == ["--log-level"]


# ---- a relay that may not in ----

def relayed(dais, *requests, **environment):
    """What a stdio client is answered, and what dais mcp-stdio said beside it."""
    opened = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    relay = subprocess.Popen([PROGRAM, "mcp-stdio", "--no-spawn", "--state", dais.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**dais.env(), **environment}, cwd=dais.work)
    deadline = threading.Timer(20, relay.kill)
    deadline.start()
    answers = []
    for request in (opened, *requests):
        try:
            relay.stdin.write(json.dumps(request) + "\n")
            relay.stdin.flush()
        except BrokenPipeError:
            break
        line = relay.stdout.readline()
        answers += [json.loads(line)] if line else []
    time.sleep(0.5)
    said = relay.communicate(timeout=20)[1]
    deadline.cancel()
    return relay.returncode, answers, said


OVERVIEW = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "items_read", "arguments": {"select": "overview"}}}


def test_a_profile_that_does_not_exist_is_refused_at_once(dais):
    code, answers, said = relayed(dais, OVERVIEW, MCP_TOOL_PROFILE="everything")
    assert code == 64 and answers == [] and "full, work, threads, knowledge or director" in said


def test_a_seat_token_that_is_not_valid_is_an_answer_and_no_storm(dais):
    code, answers, said = relayed(dais, OVERVIEW, DAIS_SEAT_TOKEN="dst_no")
    assert code == 0 and "DAIS_SEAT_TOKEN is not valid" in said
    assert answers[0]["result"]["serverInfo"]["name"] == "dais"
    assert "DAIS_SEAT_TOKEN is not valid" in json.dumps(answers[1])
    assert dais.log().count("a local connection was refused") <= 4


def test_a_seat_and_a_profile_that_are_valid_are_served(dais):
    root = dais.item("Harbour", type="project")
    run = dais.op("report", "open_run", rootId=root, title="r")["runId"]
    seat = dais.op("report", "issue_seat", runId=run, seat="any")["token"]
    _, answers, said = relayed(dais, OVERVIEW, DAIS_SEAT_TOKEN=seat, MCP_TOOL_PROFILE="director")
    assert answers[1]["result"]["structuredContent"]["ok"] and said == ""
    dais.op("report", "close_run", runId=run)
    _, answers, _ = relayed(dais, OVERVIEW, DAIS_SEAT_TOKEN=seat)
    assert answers[1]["result"]["isError"]
