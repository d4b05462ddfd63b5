"""Launched threads: where they work, how that place is made, what goes wrong with it, and what is kept of what they did."""
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from harness import SLACK, together, until

SCENARIO = """
turns:
  - when: "^where"
    steps: [{cwd: true}]
  - when: "^write"
    steps:
      - write_file: {path: made.txt, text: "one\\ntwo\\n"}
      - cwd: true
  - when: "^change"
    steps:
      - write_file: {path: first.txt, text: "changed\\n"}
      - delete_file: second.txt
  - when: "^slowly"
    steps:
      - sleep_ms: 1500
      - write_file: {path: made.txt, text: "one\\ntwo\\n"}
"""


def git(cwd, *arguments):
    done = subprocess.run(["git", "-C", str(cwd), "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def repository(path, **files):
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    commit(path, "first", **{"first.txt": "1\n", "second.txt": "2\n", **files})
    return path


def commit(path, message, **files):
    for name, text in files.items():
        (path / name).write_text(text)
    git(path, "add", "--all")
    git(path, "commit", "-q", "-m", message)


class Desk:
    """A server with a project, and its caller: an agent that dais did not start."""

    def __init__(self, dais):
        self.dais = dais
        self.root = dais.home / "project"
        (dais.home / "scenario.yaml").write_text(SCENARIO)
        (dais.home / "config.yaml").write_text(
            f"providers:\n  rehearse: {{ driver: script, scenario: {dais.home}/scenario.yaml }}\n")

    def open(self, is_repository=True):
        if is_repository:
            repository(self.root)
        else:
            self.root.mkdir()
        self.start()
        self.dais.run("project", "add", str(self.root), check=0)
        return self

    def start(self):
        self.dais.start("--config", self.dais.home / "config.yaml")

    def again(self):
        self.dais.kill()
        self.start()

    def call(self, tool, **arguments):
        done = self.dais.run("call", tool, "-", stdin=json.dumps(arguments), cwd=self.root)
        assert done.stdout, f"exit {done.returncode}: {done.stderr}"
        return json.loads(done.stdout)

    def launch(self, message=None, title="A thread", **arguments):
        if message is not None:
            arguments["message"] = message
        answer = self.call("t3_thread_launch", title=title, **arguments)
        assert "_tag" not in answer, answer
        return answer

    def worktree(self, message, base="main", branch=None, origin=False, **more):
        strategy = {"type": "worktree", "baseRef": base, "startFromOrigin": origin}
        if branch is not None:
            strategy["branch"] = branch
        return self.launch(message, workspaceStrategy=strategy, **more)

    def wait(self, thread):
        answer = self.call("t3_thread_wait", threadId=thread["threadId"], timeoutMs=int(30000 * SLACK))
        assert "_tag" not in answer and not answer["timedOut"], answer
        return answer["status"]

    # ---- what is on record ----

    def rows(self, sql, *values):
        connection = sqlite3.connect(f"file:{self.dais.state}/dais.db?mode=ro", uri=True, timeout=30)
        try:
            connection.row_factory = sqlite3.Row
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def thread(self, launched):
        return self.rows("SELECT * FROM thread WHERE id = ?", launched["threadId"])[0]

    def run_status(self, launched):
        words = ["preparing", "queued", "starting", "running", "waiting", "completed", "interrupted", "failed", "cancelled"]
        return words[self.rows("SELECT r.status FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE t.id = ?"
                               " ORDER BY r.ordinal DESC LIMIT 1", launched["threadId"])[0][0]]

    def failure(self, launched):
        row = self.rows("SELECT r.failure FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE t.id = ?", launched["threadId"])[0]
        return json.loads(row[0])

    def items(self, launched, type_number):
        return self.rows("SELECT i.*  FROM turn_item i JOIN thread t ON t.n = i.thread_n WHERE t.id = ? AND i.type = ?"
                         " ORDER BY i.ordinal", launched["threadId"], type_number)

    def said(self, launched):
        return "".join(row["text"] for row in self.items(launched, 1))

    def preparation(self, launched):
        words = ["pending", "running", "waiting", "completed", "failed", "cancelled", "interrupted"]
        return next(words[row["status"]] for row in self.items(launched, 21) if row["title"] == "Preparing workspace")

    def checkpoints(self, launched):
        return self.rows("SELECT c.* FROM checkpoint c JOIN thread t ON t.n = c.thread_n WHERE t.id = ? ORDER BY c.n",
                         launched["threadId"])

    def sessions(self, launched):
        return self.rows("SELECT s.* FROM provider_session s JOIN thread t ON t.n = s.thread_n WHERE t.id = ?",
                         launched["threadId"])

    def set_setup(self, script):
        """While the server is down: nothing offers this to callers, who could else run anything."""
        self.dais.stop()
        connection = sqlite3.connect(f"{self.dais.state}/dais.db")
        connection.execute("UPDATE project SET setup_script = ? WHERE kind = 0", (script,))
        connection.commit()
        connection.close()
        self.start()


@pytest.fixture
def desk(new_dais):
    desk = Desk(new_dais())
    yield desk
    if desk.dais.process is not None:
        # Idle agents outlive the server, which is not what this is about.
        desk.dais.process.send_signal(signal.SIGTERM)
        desk.dais.process.communicate(timeout=30 * SLACK)
        desk.dais.process = None
    for pid_file in desk.dais.state.glob("agents/*/pid"):
        try:
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
        except (ValueError, ProcessLookupError):
            pass


# ---- where ----

def test_a_thread_works_in_the_project_unless_it_is_told_otherwise(desk):
    desk.open()
    thread = desk.launch("where are you")
    assert thread["status"] == "preparing" and thread["runId"]
    assert desk.wait(thread) == "completed"
    assert str(desk.root.resolve()) in desk.said(thread)
    assert desk.thread(thread)["worktree_path"] is None
    assert desk.preparation(thread) == "completed"


def test_a_new_worktree_is_bound_before_the_agent_opens_in_it(desk):
    desk.open()
    thread = desk.worktree("where are you", branch="feature/Lexer Rewrite!!")
    assert desk.wait(thread) == "completed"
    row = desk.thread(thread)
    assert row["branch"] == "feature/lexer-rewrite"
    assert git(row["worktree_path"], "symbolic-ref", "--short", "HEAD") == row["branch"]
    assert {session["cwd"] for session in desk.sessions(thread)} == {row["worktree_path"]}
    assert row["worktree_path"] in desk.said(thread)
    assert git(desk.root, "config", f"branch.{row['branch']}.gh-merge-base") == "main"


def test_a_stacked_worktree_has_what_was_not_pushed_and_one_from_origin_has_not(desk):
    desk.open()
    origin = desk.dais.home / "origin.git"
    git(desk.dais.home, "clone", "-q", "--bare", str(desk.root), str(origin))
    git(desk.root, "remote", "add", "origin", str(origin))
    git(desk.root, "checkout", "-q", "-b", "parser")
    git(desk.root, "push", "-q", "origin", "parser")
    commit(desk.root, "not pushed", **{"third.txt": "3\n"})
    local = desk.worktree("where", base="parser", branch="local")
    pushed = desk.worktree("where", base="parser", branch="pushed", origin=True)
    assert desk.wait(local) == "completed" and desk.wait(pushed) == "completed"
    assert (pathlib.Path(desk.thread(local)["worktree_path"]) / "third.txt").exists()
    assert not (pathlib.Path(desk.thread(pushed)["worktree_path"]) / "third.txt").exists()


def test_an_existing_worktree_is_used_and_another_folder_is_refused(desk):
    desk.open()
    tree, elsewhere = desk.dais.home / "tree", desk.dais.home / "elsewhere"
    git(desk.root, "worktree", "add", "-q", "-b", "side", str(tree))
    repository(elsewhere)
    for path in (elsewhere, desk.dais.home, desk.dais.home / "nowhere"):
        refused = desk.call("t3_thread_launch", title="x", message="where",
                            workspaceStrategy={"type": "existing_worktree", "worktreePath": str(path)})
        assert refused["code"] == "invalid_request" and "worktreePath" in refused["message"], refused
    thread = desk.launch("where", workspaceStrategy={"type": "existing_worktree", "worktreePath": f"{tree}/../tree"})
    assert desk.wait(thread) == "completed"
    assert desk.thread(thread)["worktree_path"] == str(tree.resolve())
    assert str(tree.resolve()) in desk.said(thread)


def test_two_scratch_threads_of_one_title_have_two_folders(desk):
    desk.open()
    threads = [desk.launch("where", title="Try it out", scratch=True) for _ in range(2)]
    until(lambda: all(desk.run_status(thread) == "completed" for thread in threads), 8)
    folders = [desk.thread(thread)["worktree_path"] for thread in threads]
    assert len(set(folders)) == 2
    for folder, thread in zip(folders, threads):
        assert re.search(r"/scratch/\d{4}-\d\d-\d\d-try-it-out-", folder) and pathlib.Path(folder).is_dir()
        assert folder in desk.said(thread)
        assert thread["projectId"] == "project:scratch"


def test_a_thread_without_a_message_is_prepared_and_waits(desk):
    desk.open()
    thread = desk.worktree(None, branch="later")
    assert thread["runId"] is None and thread["status"] is None
    until(lambda: desk.preparation(thread) == "completed", 30)
    desk.call("t3_thread_send", threadId=thread["threadId"], message="where")
    assert desk.wait(thread) == "completed"
    assert desk.thread(thread)["worktree_path"] in desk.said(thread)


# ---- what goes wrong ----

@pytest.mark.parametrize("arguments, field", [
    ({"scratch": True, "projectId": "x"}, "projectId"),
    ({"scratch": True, "workspaceStrategy": {"type": "root"}}, "workspaceStrategy"),
    ({"projectId": "project:of-nobody"}, "projectId"),
    ({"prompt": "do it"}, "prompt"),
    ({"workspaceStrategy": {"type": "worktree"}}, "baseRef"),
    ({"workspaceStrategy": {"type": "existing_worktree"}}, "worktreePath"),
    ({"workspaceStrategy": {"type": "root", "startFromOrigin": True}}, "startFromOrigin"),
    ({"modelSelection": {"instanceId": "rehearse"}}, "model"),
])
def test_what_does_not_go_together_is_refused_by_name(desk, arguments, field):
    desk.open(is_repository=False)
    refused = desk.call("t3_thread_launch", title="x", **arguments)
    assert refused["code"] == "invalid_request" and field in refused["message"], refused
    assert not desk.rows("SELECT n FROM thread WHERE kind = 0")


def test_a_base_that_does_not_exist_is_a_failed_run_and_the_root_never_takes_its_place(desk):
    desk.open()
    thread = desk.worktree("where", base="no-such-ref", branch="lost")
    assert desk.wait(thread) == "failed"
    failure = desk.failure(thread)
    assert failure["class"] == "validation_error" and failure["code"] == "base_not_found", failure
    assert "no-such-ref" in failure["message"]
    assert desk.preparation(thread) == "failed" and len(desk.items(thread, 15)) == 1
    assert not desk.sessions(thread)
    assert "lost" not in git(desk.root, "branch", "--list")
    refused = desk.call("t3_thread_send", threadId=thread["threadId"], message="where")
    assert refused["code"] == "thread_not_sendable", refused


def test_without_a_repository_or_without_a_folder_there_is_no_work(desk):
    desk.open(is_repository=False)
    thread = desk.worktree("where")
    assert desk.wait(thread) == "failed"
    assert desk.failure(thread)["code"] == "repository_missing"
    thread = desk.launch()
    desk.root.rmdir()
    desk.dais.run("threads", "send", thread["threadId"], "where", check=0)
    until(lambda: desk.run_status(thread) == "failed")
    assert "folder is missing" in desk.failure(thread)["message"]


def test_of_two_launches_that_want_one_branch_one_gets_it(desk):
    desk.open()
    threads = together([desk] * 2, lambda desk: desk.worktree("where", branch="same"))
    ends = sorted(desk.wait(thread) for thread in threads)
    assert ends == ["completed", "failed"]
    lost = next(thread for thread in threads if desk.run_status(thread) == "failed")
    assert desk.failure(lost)["code"] == "branch_taken"
    assert desk.thread(lost)["worktree_path"] is None
    trees = git(desk.root, "worktree", "list", "--porcelain").count("worktree ")
    assert trees == 2


@pytest.mark.parametrize("wanted, made", [
    ("ÄÖÜ", "update"), ("--force", "force"), ("a..b~c^d:e", "a-b-c-d-e"), ("UPPER/Case.lock", "upper/case-lock"),
    ("$(touch pwned)", "touch-pwned"), ("x" * 200, "x" * 64),
])
def test_odd_branch_names_become_good_ones(desk, wanted, made):
    desk.open()
    thread = desk.worktree("where", branch=wanted)
    assert desk.wait(thread) == "completed"
    assert desk.thread(thread)["branch"] == made
    assert made in git(desk.root, "branch", "--list", "--format=%(refname:short)").splitlines()


def test_a_setup_script_runs_in_the_worktree_before_the_agent_and_its_failure_is_the_runs(desk):
    desk.open()
    desk.launch("where")
    desk.set_setup("pwd > setup.txt; test ! -e fail")
    good = desk.worktree("where", branch="good")
    assert desk.wait(good) == "completed"
    tree = pathlib.Path(desk.thread(good)["worktree_path"])
    assert (tree / "setup.txt").read_text().strip() == str(tree)
    commit(desk.root, "it will fail", fail="")
    bad = desk.worktree("where", branch="bad")
    assert desk.wait(bad) == "failed"
    assert desk.failure(bad)["code"] == "setup_failed" and not desk.sessions(bad)
    # It stays, to be looked at.
    assert pathlib.Path(desk.thread(bad)["worktree_path"]).is_dir()


# ---- in the middle ----

def slow_git(desk, when):
    """A git before the real one that waits at this subcommand, and leaves a mark; the file `go` lets it on."""
    folder = desk.dais.home / "bin"
    folder.mkdir()
    real = shutil.which("git")
    program = folder / "git"
    program.write_text(f"""#!/bin/sh
case " $* " in *" {when} "*)
	echo $$ >> {folder}/here
	while [ ! -e {folder}/go ]; do sleep 0.05; done;;
esac
exec {real} "$@"
""")
    program.chmod(0o755)
    desk.dais.environment = {**desk.dais.environment, "PATH": f"{folder}:{os.environ['PATH']}"}
    return folder


def test_an_interrupt_stops_the_preparation_and_the_agent_never_starts(desk):
    repository(desk.root)
    folder = slow_git(desk, "worktree add")
    desk.start()
    desk.dais.run("project", "add", str(desk.root), check=0)
    thread = desk.worktree("where", branch="unwanted")
    until((folder / "here").exists, 30)
    assert desk.run_status(thread) == "preparing" and desk.preparation(thread) == "running"
    answer = desk.call("t3_thread_interrupt", threadId=thread["threadId"])
    assert answer["status"] == "interrupt_requested", answer
    assert desk.wait(thread) == "interrupted"
    assert desk.preparation(thread) == "interrupted"
    assert len(desk.items(thread, 13)) == 1 and len(desk.items(thread, 14)) == 1
    until(lambda: "unwanted" not in git(desk.root, "branch", "--list"), 30)
    assert not desk.sessions(thread)
    # The helper is free for others.
    (folder / "go").touch()
    other = desk.worktree("where", branch="wanted")
    assert desk.wait(other) == "completed"


def test_what_the_last_server_was_preparing_is_cancelled_at_the_next_start(desk):
    repository(desk.root)
    folder = slow_git(desk, "worktree add")
    desk.start()
    desk.dais.run("project", "add", str(desk.root), check=0)
    thread = desk.worktree("where", branch="cut")
    silent = desk.worktree(None, branch="cut-too")
    until((folder / "here").exists, 30)
    desk.again()
    assert desk.run_status(thread) == "cancelled"
    assert desk.preparation(thread) == "cancelled" and desk.preparation(silent) == "cancelled"
    assert len(desk.items(silent, 15)) == 1
    (folder / "go").touch()
    refused = desk.call("t3_thread_send", threadId=silent["threadId"], message="where")
    assert refused["code"] == "thread_not_sendable", refused
    assert not desk.sessions(thread)


def test_a_repeated_call_launches_once(desk):
    desk.open()
    first = desk.worktree("where", branch="once", clientRequestId="k")
    again = desk.worktree("where", branch="once", clientRequestId="k")
    assert first["threadId"] == again["threadId"] and first["runId"] == again["runId"]
    refused = desk.call("t3_thread_launch", title="Another", message="where", clientRequestId="k")
    assert refused["code"] == "invalid_request" and "clientRequestId" in refused["message"]
    assert desk.wait(first) == "completed"
    assert len(desk.rows("SELECT n FROM thread WHERE kind = 0")) == 1


def test_an_agent_may_launch_for_the_user_and_a_narrower_one_may_not(desk):
    repository(desk.root)
    (desk.dais.home / "scenario.yaml").write_text(SCENARIO + """
  - when: "^launch"
    steps:
      - mcp: {tool: t3_thread_launch, arguments: {title: made, message: where, clientRequestId: a}, save: r}
      - text: "[{{r.status}}{{r.code}}]"
""")
    desk.start()
    desk.dais.run("project", "add", str(desk.root), check=0)
    wide = desk.launch("launch")
    assert desk.wait(wide) == "completed"
    narrow = desk.launch("launch", runtimeMode="auto-accept-edits")
    assert desk.wait(narrow) == "completed"
    assert desk.said(wide) == "[preparing]" and desk.said(narrow) == "[capability_denied]"


# ---- what is kept ----

def test_a_run_ends_with_a_checkpoint_of_what_it_changed(desk):
    desk.open()
    head = git(desk.root, "rev-parse", "HEAD")
    thread = desk.launch("change it")
    assert desk.wait(thread) == "completed"
    before, after = desk.checkpoints(thread)
    assert (before["ordinal"], before["status"], after["ordinal"], after["status"]) == (0, 0, 1, 0)
    assert {(file["path"], file["kind"]) for file in json.loads(after["files"])} == {
        ("first.txt", "modified"), ("second.txt", "deleted")}
    assert git(desk.root, "show", f"{before['ref']}:second.txt") == "2"
    assert git(desk.root, "show", f"{after['ref']}:first.txt") == "changed"
    item, = desk.items(thread, 12)
    assert json.loads(item["body"])["checkpointId"] == after["id"]
    statuses = [json.loads(row[0])["status"] for row in desk.rows(
        "SELECT data FROM event WHERE type = 43 AND thread_n = (SELECT n FROM thread WHERE id = ?) ORDER BY seq", thread["threadId"])]
    assert statuses[-2:] == [4, 5]
    assert git(desk.root, "rev-parse", "HEAD") == head and git(desk.root, "diff", "--cached") == ""


def test_the_checkpoints_of_a_deleted_thread_go_with_it_and_no_others(desk):
    desk.open()
    first, second = desk.launch("change it"), desk.launch("where")
    assert [desk.wait(thread) for thread in (first, second)] == ["completed"] * 2
    kept = {row["ref"] for row in desk.checkpoints(second)}
    desk.dais.run("threads", "delete", first["threadId"], check=0)
    until(lambda: set(git(desk.root, "for-each-ref", "--format=%(refname)", "refs/dais").split()) == kept)
    until(lambda: not desk.rows("SELECT n FROM effect"))


def test_where_there_is_no_repository_the_run_completes_all_the_same(desk):
    desk.open(is_repository=False)
    thread = desk.launch("write something")
    assert desk.wait(thread) == "completed"
    assert [row["status"] for row in desk.checkpoints(thread)] == [1, 1]
    assert not desk.items(thread, 12)


def test_a_repository_that_cannot_be_written_is_an_error_in_the_checkpoint_and_not_of_the_run(desk):
    repository(desk.root)
    folder = slow_git(desk, "nothing-waits-here")
    program = folder / "git"
    program.write_text(program.read_text().replace("exec ", 'case " $* " in *" commit-tree "*) echo "fatal: no" >&2; exit 128;; esac\nexec '))
    desk.start()
    desk.dais.run("project", "add", str(desk.root), check=0)
    thread = desk.launch("change it")
    assert desk.wait(thread) == "completed"
    assert [row["status"] for row in desk.checkpoints(thread)] == [2, 2]
    assert desk.checkpoints(thread)[1]["problem"]


def test_a_run_that_was_being_captured_when_the_server_died_is_captured_and_completed(desk):
    repository(desk.root)
    folder = slow_git(desk, "commit-tree")
    (folder / "go").touch()
    desk.start()
    desk.dais.run("project", "add", str(desk.root), check=0)
    thread = desk.launch("change it")
    assert desk.wait(thread) == "completed"
    (folder / "go").unlink()
    (folder / "here").unlink()
    desk.call("t3_thread_send", threadId=thread["threadId"], message="slowly write")
    # The prompt waits for what was there before.
    until((folder / "here").exists, 30)
    time.sleep(0.3)
    assert desk.run_status(thread) == "starting"
    (folder / "go").touch()
    until(lambda: desk.run_status(thread) == "running", 30)
    (folder / "go").unlink()
    (folder / "here").unlink()
    until((folder / "here").exists, 30)
    assert desk.run_status(thread) == "waiting"
    desk.again()
    assert desk.run_status(thread) == "waiting"
    (folder / "go").touch()
    assert desk.wait(thread) == "completed"
    last = desk.checkpoints(thread)[-1]
    assert (last["ordinal"], last["status"]) == (1, 0)
    assert [file["path"] for file in json.loads(last["files"])] == ["made.txt"]
