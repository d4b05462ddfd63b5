"""The commands that look after a server: status, token, open, backup, doctor."""
import json
import os
import pwd
import sqlite3
import stat
import subprocess

import pytest

from harness import PROGRAM, until

COMMANDS = ["serve", "mcp-stdio", "call", "status", "items", "events", "project", "token", "init", "open", "demo", "backup",
            "export", "import", "doctor", "run", "threads", "providers"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(stopped, command):
    done = stopped.run(command, "--help", check=0)
    assert "Example" in done.stdout
    assert command in done.stdout.split("Example")[1]


@pytest.mark.parametrize("arguments", [["status", "--bogus"], ["status", "x"], ["token"], ["token", "make"], ["token", "revoke"],
                                       ["token", "create", "--ttl", "soon"], ["backup"], ["import"], ["events", "--type", "x"],
                                       ["events", "--since", "-1"], ["project"], ["project", "add"], ["items", "a", "b"],
                                       ["threads", "bogus"], ["threads", "show"], ["threads", "list", "--limit", "0"], ["run"],
                                       ["project", "remove", "00000000"], ["project", "add", "/nowhere"]])
def test_wrong_usage_ends_with_64(stopped, arguments):
    assert stopped.run(*arguments).returncode == 64


@pytest.mark.parametrize("arguments", [["status"], ["items"], ["events"], ["open"], ["project", "list"], ["call", "items_read"],
                                       ["threads"], ["providers"]])
def test_without_a_server_it_says_how_to_start_one(stopped, arguments):
    done = stopped.run(*arguments, check=69)
    assert "dais serve" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_home_variable_the_state_is_in_the_users_home_and_never_where_all_may_write(home):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("DAIS_", "XDG_", "HOME"))}
    done = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True, env=env if home is None else {**env, "HOME": home})
    try:
        place = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user without an entry, as in some containers
        assert done.returncode == 64 and "--state" in done.stderr
        return
    assert f"{place}/.local/state/dais" in done.stdout


@pytest.mark.parametrize("wrong, nearest", [("DAIS_LISTENN", "DAIS_LISTEN"), ("DAIS_STATE", "DAIS_STATE_DIR"),
                                            ("DAIS_HTTP_ALLOWED_HOSTS", "DAIS_ALLOWED_HOSTS")])
def test_a_variable_that_nothing_reads_is_named_with_the_nearest_one(stopped, wrong, nearest):
    stopped.environment = {wrong: "127.0.0.1:1", "DAIS_LOG_FORMAT": "json", "DAIS_TOKEN": "x", "DAIS_SEAT_TOKEN": "x"}
    lines = stopped.run("serve", "--print-config", check=0).stderr.splitlines()
    stopped.start()
    for log in (lines, stopped.log().splitlines()):
        warnings = [line for line in map(json.loads, filter(lambda line: line.startswith("{"), log)) if "variable" in line]
        assert [(line["level"], line["variable"], line["nearest"]) for line in warnings] == [("warn", wrong, nearest)]
    checks = json.loads(stopped.run("doctor", "--json", check=0).stdout)["checks"]
    assert [nearest in check["text"] for check in checks if check["check"] == "environment"] == [True]


# ---- status ----

def test_status_shows_address_projects_and_claims(dais):
    root = dais.item("Harbour", type="project")
    task = dais.item("Berths", parentId=root)
    dais.claim(task)
    status = json.loads(dais.run("status", "--json", check=0).stdout)
    assert status["pid"] == dais.process.pid
    assert status["url"] == dais.url
    assert status["activeClaims"] == 1
    assert [(project["title"], project["counts"]["queue"]) for project in status["projects"]] == [("Harbour", 2)]
    text = dais.run("status", check=0).stdout
    assert dais.url in text and "Harbour" in text


# ---- token ----

def test_a_new_token_is_all_that_stdout_gets(dais):
    done = dais.run("token", "create", "ci", "--cap", "read", check=0)
    assert done.stdout.startswith("dais_") and done.stdout.count("\n") == 1
    token = done.stdout.strip()
    assert token not in done.stderr
    item = dais.item("one")
    assert dais.http(token).get(item)["title"] == "one"


def test_tokens_are_made_listed_and_revoked_without_a_server_too(dais):
    dais.stop()
    token = dais.run("token", "create", "--id", "night", "--ttl", "3600", "--description", "for the night", check=0).stdout.strip()
    assert token not in dais.run("token", "list", "--json", check=0).stdout
    row = next(row for row in json.loads(dais.run("token", "list", "--json").stdout) if row["id"] == "night")
    assert row["description"] == "for the night" and row["expiresAt"] > row["createdAt"]
    dais.start()
    caller = dais.http(token)
    assert caller.ask("GET", "/api/v1/info")[0] == 200
    dais.run("token", "revoke", "night", check=0)
    assert caller.ask("GET", "/api/v1/info")[0] == 401


def test_a_token_name_is_given_once(dais):
    dais.run("token", "create", "ci", check=0)
    assert dais.run("token", "create", "ci").returncode == 1
    assert dais.run("token", "revoke", "nobody").returncode == 1
    assert dais.run("token", "create", "x", "--cap", "fly").returncode == 1


# ---- open ----

def test_open_prints_a_link_that_signs_in_once(dais):
    link = dais.run("open", "--print", check=0).stdout.strip()
    assert link.startswith(dais.url + "/signin?code=")
    path = link.removeprefix(dais.url)
    assert dais.http().ask("GET", path)[0] in (302, 303)
    assert dais.http().ask("GET", path)[0] >= 400


def test_a_used_link_tells_a_browser_in_html_how_to_get_another(dais):
    path = dais.run("open", "--print", check=0).stdout.strip().removeprefix(dais.url)
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    assert dais.http().ask("GET", path, headers=browser)[0] == 303
    status, headers, page = dais.http().ask("GET", path, headers=browser)
    assert (status, headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "<code>dais open</code>" in page.decode() and "set-cookie" not in headers
    status, headers, answer = dais.http().ask("GET", path, headers={"Accept": "*/*"})
    assert status == 401 and json.loads(answer)["error"]["code"] == "unauthenticated"


def test_a_browser_gets_the_link_in_a_file_not_in_its_arguments(dais):
    bin_dir = dais.home / "bin"
    bin_dir.mkdir()
    browser = bin_dir / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho "$@" > {dais.home}/seen\ncat "$1" > {dais.home}/page\n')
    browser.chmod(0o755)
    dais.environment = {"DISPLAY": ":9", "PATH": f"{bin_dir}:{os.environ['PATH']}"}
    assert dais.run("open", check=0).stdout == ""
    assert "code=" not in (dais.home / "seen").read_text()
    assert dais.url + "/signin?code=" in (dais.home / "page").read_text()


# ---- backup ----

def test_a_backup_made_while_the_server_works_is_private_and_whole(dais):
    item = dais.item("kept")
    copy = dais.home / "copy.db"
    dais.run("backup", copy, check=0)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    later = dais.item("later")
    before = copy.read_bytes()
    assert dais.run("backup", copy).returncode == 73
    assert copy.read_bytes() == before
    dais.run("backup", copy, "--force", check=0)
    dais.stop()
    (dais.state / "dais.db").unlink()
    copy.rename(dais.state / "dais.db")
    dais.start()
    assert dais.get(item)["title"] == "kept" and dais.get(later)["title"] == "later"


@pytest.mark.parametrize("place", ["nowhere/copy.db", "state/dais.db", "work"])
def test_a_backup_has_to_go_somewhere_else(dais, place):
    for flags in ([], ["--force"]):
        assert dais.run("backup", dais.home / place, *flags).returncode == 73
    assert dais.item("still there")


def test_a_backup_touches_no_file_but_its_own(dais):
    bystander = dais.home / "copy.db.partial"
    bystander.write_text("somebody's")
    dais.run("backup", dais.home / "copy.db", check=0)
    assert bystander.read_text() == "somebody's"
    assert sorted(path.name for path in dais.home.glob("copy*")) == ["copy.db", "copy.db.partial"]


def test_a_backup_of_nothing_is_refused(stopped):
    assert stopped.run("backup", stopped.home / "copy.db").returncode == 69
    assert not (stopped.home / "copy.db").exists()


# ---- doctor ----

def findings(dais, code):
    report = json.loads(dais.run("doctor", "--json", check=code).stdout)
    assert report["ok"] == (code == 0)
    return {check["check"]: check["text"] for check in report["checks"] if check["finding"] == "problem"}


def test_a_state_that_does_not_exist_yet_is_no_problem(stopped):
    assert findings(stopped, 0) == {}
    assert not stopped.state.exists()


def test_doctor_changes_nothing_and_works_beside_a_server(dais):
    dais.item("one")
    assert findings(dais, 0) == {}
    assert "server" in dais.run("doctor").stdout


def test_doctor_names_files_that_others_may_open(dais):
    (dais.state / "admin.token").chmod(0o644)
    assert "admin.token" in findings(dais, 1)["files"]
    (dais.state / "admin.token").chmod(0o600)
    dais.state.chmod(0o755)
    assert "755" in findings(dais, 1)["state"]
    dais.state.chmod(0o700)


def test_doctor_finds_what_no_call_could_have_done(dais):
    dais.item("child", parentId=dais.item("root"))
    dais.stop()
    with sqlite3.connect(dais.state / "dais.db") as database:
        database.execute("UPDATE item SET depth = 5 WHERE parent_n IS NOT NULL")
        database.execute("UPDATE root_tally SET queue = 7")
    database.close()
    done = dais.run("doctor", check=1)
    assert "depth contradicts" in done.stdout and "counts are wrong" in done.stdout
    dais.checks_doctor = False


def test_doctor_compares_the_search_index_with_the_texts_while_no_server_runs(dais):
    item = dais.item("root")
    dais.note(item, "k", "the tide turns", role="work")
    assert "while a server runs" in dais.run("doctor", check=0).stdout
    dais.stop()
    before = (dais.state / "dais.db").read_bytes()
    assert "index matches the texts" in dais.run("doctor", check=0).stdout
    assert (dais.state / "dais.db").read_bytes() == before
    with sqlite3.connect(dais.state / "dais.db") as database:
        database.execute("DROP TRIGGER note_fts_update")
        database.execute("UPDATE note_body SET body = 'something else'")
    database.close()
    done = dais.run("doctor", check=1)
    assert "note_fts_text does not match" in done.stdout and "note_fts_grams does not match" in done.stdout
    assert "item_fts" not in done.stdout
    dais.checks_doctor = False


@pytest.mark.parametrize("content", [os.urandom(1 << 20), b"x" * 50], ids=["random", "short"])
def test_doctor_names_a_file_that_is_no_database(stopped, content):
    stopped.state.mkdir(mode=0o700)
    database = stopped.state / "dais.db"
    database.write_bytes(content)
    database.chmod(0o600)
    assert "not a database of dais" in findings(stopped, 1)["database"]
    assert database.read_bytes() == content
    stopped.checks_doctor = False


def test_doctor_names_a_newer_schema(dais):
    dais.stop()
    with sqlite3.connect(dais.state / "dais.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = (dais.state / "dais.db").read_bytes()
    assert "99" in findings(dais, 1)["database"]
    assert (dais.state / "dais.db").read_bytes() == before
    dais.checks_doctor = False


def test_an_empty_database_file_is_a_new_one(stopped):
    stopped.state.mkdir(mode=0o700)
    (stopped.state / "dais.db").touch(mode=0o600)
    assert findings(stopped, 0) == {}
    stopped.start()
    until(lambda: stopped.item("works"))
