"""What people and scripts do with any program: redirect it, close its ends, pipe it, and guess at flags."""
import json
import subprocess
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
