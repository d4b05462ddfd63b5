"""dais export and dais import, and dais demo: everything there and back, and the story by itself."""
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import tempfile

import pytest

import harness


def fill(dais):
    """One of everything that people make."""
    root = dais.item("Harbour 数据库 \u202e", type="project", properties={"b": 1, "a": [1.5, None]}, description="two\nlines",
                     tags=["x", "a"], metadata="m")
    dais.rules(root, "work_item_schemas:\n  task:\n    notes:\n      - { key: plan, role: queue, required: true }\n"
                     "traits:\n  t:\n    resources: [staging]\n")
    first = dais.item("first", parentId=root, type="task", traits=["t"], priority="high", complexity=3)
    second = dais.item("second", parentId=root)
    dais.block(first, second, unblockAt="review")
    dais.op("deps_write", "create", **{"from": first, "to": second, "type": "RELATES_TO"})
    dais.note(first, "plan", "one")
    dais.note(first, "plan", "two\r\nlines 💦")
    dais.note(second, "blank", "", role="queue")
    dais.claim(first)
    dais.advance(first, "start", summary="go")
    gone = dais.item("gone", parentId=root)
    dais.op("items_write", "delete", itemId=gone)
    # under a parent that was made later
    later = dais.item("later", parentId=root)
    dais.op("items_write", "reroot", itemId=second, parentId=later)
    dais.op("docs_write", "put", kind="page", rootId=root, slug="glossary", title="Glossary", body="# Hull\n")
    dais.op("docs_write", "put", kind="page", rootId=root, slug="glossary", title="Glossary", body="# Hull\nmore\n")
    run = dais.op("report", "open_run", rootId=root, title="wave 1")["runId"]
    dais.op("report", "issue_seat", runId=run, seat="worker", label="w")
    dais.op("report", "post", runId=run, kind="risk", body="fog")
    asked = dais.op("report", "post", runId=run, kind="decision", needsDecision=True, body="Keep it?")
    dais.op("report", "decide", reportId=asked["reportId"], decision="Yes.")
    return root, first, second, run


def everything(dais, run, root, *items):
    return [dais.get(item, "description", "properties", "metadata", "childCounts", "notes", "dependencies", "tags") for item in
            (root, *items)] + [
        dais.read("items_read", "history", rootId=root, limit=100), dais.read("config", "current", rootId=root),
        dais.read("docs_read", "versions", rootId=root, slug="glossary"), dais.body(items[0], "plan"),
        dais.read("items_read", "search", query="数据库"), dais.read("report", "run", runId=run)]


def test_everything_goes_there_and_back(dais, new_dais):
    root, first, second, run = fill(dais)
    dais.stop()  # the same moment for both
    file = dais.home / "work.jsonl"
    dais.run("export", file, check=0)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other = new_dais()
    other.run("import", file, check=0)
    again = other.run("export", check=0).stdout
    assert again == file.read_text()
    assert "sha256\"" not in again.replace("proof_sha256", "") and "dais_" not in again.replace("dais_export", "")
    dais.start(), other.start()
    assert everything(other, run, root, first, second) == everything(dais, run, root, first, second)
    assert json.loads(other.run("doctor", "--json", check=0).stdout)["ok"]
    # numbers go on behind the imported ones
    seq = json.loads(other.run("events", "--since", "0", "--json", "--count", "1").stdout)["seq"]
    newest = json.loads(other.run("status", "--json").stdout)["newestEvent"]
    other.item("next")
    assert json.loads(other.run("status", "--json").stdout)["newestEvent"] == newest + 1 > seq
    # work goes on where it stood
    assert other.advance(first, "complete")["newRole"] == "terminal"


def test_an_export_beside_a_busy_server_is_one_moment(dais, new_dais):
    fill(dais)
    file = dais.home / "work.jsonl"
    dais.run("export", file, check=0)
    before = file.read_text()
    assert dais.run("export", file).returncode == 73 and file.read_text() == before
    dais.run("export", file, "--force", check=0)
    other = new_dais()
    other.run("import", "-", stdin=file.read_text(), check=0)
    other.start()


def test_import_refuses_a_database_in_use_or_with_content(dais):
    dais.item("one")
    file = dais.home / "work.jsonl"
    dais.run("export", file, check=0)
    assert "pid" in dais.run("import", file, check=75).stderr
    dais.stop()
    assert "holds items" in dais.run("import", file, check=73).stderr
    dais.start()
    assert len(dais.read("items_read", "list")["items"]) == 1


@pytest.mark.parametrize("spoil, code", [
    (lambda lines: lines[:-1], 1),
    (lambda lines: lines[:1], 1),
    (lambda lines: [re.sub(r'"schema":\d+', '"schema":77', lines[0]), *lines[1:]], 78),
    (lambda lines: [line for line in lines if '"in":"item_text"' not in line], 1),
    (lambda lines: [*lines[:5], "x" * 5_000_000, *lines[5:]], 1),
    (lambda lines: [], 1),
], ids=["cut", "header", "newer", "without texts", "huge line", "empty"])
def test_a_bad_file_imports_nothing(dais, new_dais, spoil, code):
    fill(dais)
    lines = dais.run("export", check=0).stdout.splitlines()
    other = new_dais()
    done = other.run("import", "-", stdin="".join(line + "\n" for line in spoil(lines)))
    assert done.returncode == code, done.stderr
    other.start()
    assert other.read("items_read", "list")["items"] == []
    other.stop()
    other.run("import", "-", stdin="".join(line + "\n" for line in lines), check=0)


def test_a_state_whose_server_started_once_can_be_filled(dais, new_dais):
    root, *_ = fill(dais)
    other = new_dais()
    (other.work / ".dais").mkdir()
    (other.work / ".dais/config.yaml").write_text("note_limits: { mode: warn }\n")
    other.start()
    token = other.admin_token
    other.stop()
    other.run("import", "-", stdin=dais.run("export", check=0).stdout, check=0)
    other.start()
    assert other.http(token).get(root)["type"] == "project"


def test_the_demo_comes_out_as_told_and_leaves_nothing(stopped):
    place = pathlib.Path(tempfile.mkdtemp(prefix="d", dir=stopped.home))
    stopped.environment = {"TMPDIR": str(place), "DAIS_STORE": "postgresql://nowhere", "DAIS_LISTEN": "127.0.0.1:1"}
    done = stopped.run("demo", check=0)
    assert "plan" in done.stdout and "gate_blocked" in done.stdout and "dependency_unmet" in done.stdout
    assert "the same to the byte" in done.stdout
    assert list(place.iterdir()) == []
    assert not stopped.state.exists()


@pytest.mark.parametrize("signal_of_end", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_ended_early_leaves_nothing_either(stopped, signal_of_end):
    place = pathlib.Path(tempfile.mkdtemp(prefix="d", dir=stopped.home))
    stopped.environment = {"TMPDIR": str(place)}
    story = subprocess.Popen([harness.PROGRAM, "demo"], stdout=subprocess.PIPE, env=stopped.env(), start_new_session=True)
    assert story.stdout.readline()  # the server runs, the story has begun
    os.killpg(story.pid, signal_of_end)  # as a terminal sends it: to the story and to its server
    story.communicate(timeout=20 * harness.SLACK)
    assert story.returncode == -signal_of_end
    assert list(place.iterdir()) == []
