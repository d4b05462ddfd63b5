"""People and threads: dais run, dais threads, dais providers; answers over the command line, HTTP and the status page."""
import json
import re
import signal
import sqlite3
import subprocess

import pytest

from agents import Agents
from harness import PROGRAM, SLACK, until


@pytest.fixture
def agents(stopped):
    agents = Agents(stopped)
    yield agents
    agents.finish()


# ---- dais run ----

def test_a_run_prints_the_text_on_stdout_and_one_line_for_each_tool_on_stderr(agents):
    code, out, err = agents.run("tools please")
    assert (code, out) == (0, "made it\n")
    assert [line for line in err.splitlines() if line.startswith("run ")] == ["run sh -c echo from-the-shell"]
    assert [line for line in err.splitlines() if line.startswith("edit ") and "made.txt" in line]
    assert (agents.dais.work / "made.txt").read_text() == "made"


def test_a_run_works_in_the_folder_that_it_is_given(agents):
    place = agents.dais.home / "elsewhere"
    place.mkdir()
    assert agents.run("tools please", "--cwd", str(place))[0] == 0
    assert (place / "made.txt").exists()
    assert [thread["project"] for thread in agents.threads()] == ["elsewhere"]


def test_a_run_that_fails_says_why_and_exits_with_1(agents):
    code, out, err = agents.run("fails")
    assert (code, out) == (1, "")
    assert "failed: no luck" in err
    assert [thread["status"] for thread in agents.threads()] == ["failed"]


@pytest.mark.parametrize("flags, says", [(["--provider", "nobody"], "no provider instance nobody"),
                                         (["--provider", "missing"], "cannot run anything now"),
                                         (["--mode", "nonsense"], "runtimeMode")])
def test_a_run_that_cannot_begin_leaves_no_thread(agents, flags, says):
    code, _, err = agents.run("tools", *flags)
    assert code == 1 and says in err
    assert agents.threads() == []


def test_ctrl_c_stops_the_run(agents):
    process = agents.begin("slow work")
    thread = agents.live("slow work", "begun")
    process.send_signal(signal.SIGINT)
    code, _, err = agents.end(process)
    assert code == 1 and "stopping" in err and "interrupted" in err
    assert agents.show(thread)["runs"][0]["status"] == "interrupted"


def test_run_starts_a_server_when_none_runs(stopped):
    agents = Agents(stopped)
    stopped.stop()
    code, out, _ = agents.run("tools please")
    pid = json.loads(stopped.run("status", "--json", check=0).stdout)["pid"]
    for thread in agents.threads():
        stopped.run("threads", "delete", thread["id"], check=0)
    until(lambda: not agents.processes())
    subprocess.run(["kill", str(pid)], check=True)
    until(lambda: stopped.run("status").returncode == 69)
    assert (code, out) == (0, "made it\n")


# ---- looking ----

def test_the_list_shows_delegated_threads_below_those_that_delegated_them(agents):
    assert agents.run("delegate it")[1] == "the child said hello from below\n"
    lines = agents.dais.run("threads", check=0).stdout.splitlines()
    assert "delegate it" in lines[1] and "└ the child" in lines[2]
    parent, child = agents.threads()[1], agents.threads()[0]
    assert child["parentThreadId"] == parent["id"]
    assert agents.show(parent["id"])["tasks"][0]["threadId"] == child["id"]


def test_the_list_can_be_narrowed(agents):
    agents.run("tools one")
    agents.run("fails two")
    assert [thread["title"] for thread in agents.threads("--status", "failed")] == ["fails two"]
    assert agents.threads("--status", "live") == []
    assert len(agents.threads("--limit", "1")) == 1
    assert agents.threads("--project", "no such project") == []
    assert "must be live" in agents.dais.run("threads", "--status", "nonsense", check=1).stderr


def test_a_thread_is_found_by_any_part_at_the_end_or_beginning_that_no_other_has(agents):
    agents.run("tools one")
    agents.run("tools two")
    one = next(thread["id"] for thread in agents.threads() if thread["title"] == "tools one")
    for part in (one, one[-8:], one[:-4]):
        assert agents.show(part)["thread"]["title"] == "tools one"
    assert "More than one" in agents.dais.run("threads", "show", "thread:", check=1).stderr
    assert "no thread" in agents.dais.run("threads", "show", "nothing-of-the-kind", check=1).stderr


def test_show_tells_what_was_said_and_done(agents):
    agents.run("tools please")
    shown = agents.dais.run("threads", "show", agents.threads()[0]["id"], check=0).stdout
    for part in ("tools please", "rehearse", "completed", "> tools please", "run sh -c echo", "made it"):
        assert part in shown


def test_watch_draws_the_list_again_when_something_happens(agents):
    with agents.dais.follow("threads", "list", "--watch") as lines:
        assert lines.readline() == "No threads.\n"
        process = agents.begin("tools please")
        while "completed" not in lines.readline():
            pass
        assert agents.end(process)[0] == 0


# ---- following ----

def test_followers_see_the_text_while_it_is_streamed_each_piece_once(agents):
    process = agents.begin("wait for it")
    thread = agents.live("wait for it", "first")
    with agents.dais.follow("threads", "follow", thread) as lines:
        assert lines.readline() == "> wait for it\n"
        (agents.dais.work / "go").write_text("")
        said = lines.read()
    assert agents.end(process)[:2] == (0, "first then the rest\n") or "first" in said
    assert said.count("first ") == 1 and said.count("then the rest") == 1


def test_following_ends_at_once_when_the_run_has_ended(agents):
    agents.run("tools please")
    done = agents.dais.run("threads", "follow", agents.threads()[0]["id"], check=0)
    assert done.stdout.endswith("made it\n")


def test_followers_outlive_the_server_and_miss_nothing(agents):
    process = agents.begin("wait for it")
    thread = agents.live("wait for it", "first")
    with agents.dais.follow("threads", "follow", thread) as lines:
        assert lines.readline() == "> wait for it\n"
        agents.dais.kill().start(*agents.dais.flags)
        (agents.dais.work / "go").write_text("")
        said = lines.read()
    code, out, _ = agents.end(process)
    assert code == 0 and out.replace("\n", "").count("then the rest") == 1
    assert said.count("first") == 1 and said.count("then the rest") == 1


def test_json_gives_the_events_of_this_thread_only(agents):
    process = agents.begin("wait for it")
    thread = agents.live("wait for it", "first")
    agents_n = agents.show(thread)["thread"]["n"]
    with agents.dais.follow("threads", "follow", thread, "--json") as lines:
        agents.run("fails")
        (agents.dais.work / "go").write_text("")
        events = [json.loads(line) for line in lines]
    assert agents.end(process)[0] == 0
    assert events and {event["data"].get("threadN", agents_n) for event in events} == {agents_n}
    assert "then the rest" in "".join(event["data"].get("text", "") for event in events
                                      if event["type"] == "turn-item.text-appended")


# ---- saying something, stopping ----

def test_a_message_goes_into_the_queue_and_into_the_run(agents):
    process = agents.begin("steer me")
    thread = agents.live("steer me", "waiting")
    assert agents.dais.run("threads", "steer", thread, "left please", check=0).stdout == "steered\n"
    assert "told: left please" in agents.end(process)[1]
    assert agents.dais.run("threads", "send", thread, "-", stdin="tools again", check=0).stdout == "started\n"
    until(lambda: [run["status"] for run in agents.show(thread)["runs"]] == ["completed", "completed"])


def test_interrupt_stops_the_run_and_the_thread_goes_on(agents):
    process = agents.begin("slow work")
    thread = agents.live("slow work", "begun")
    assert agents.dais.run("threads", "interrupt", thread, check=0).stdout == "interrupt_requested\n"
    assert agents.end(process)[0] == 1
    assert agents.dais.run("threads", "interrupt", thread, check=0).stdout == "no_active_run\n"
    agents.dais.run("threads", "send", thread, "tools", check=0)
    until(lambda: agents.show(thread)["runs"][0]["status"] == "completed")


@pytest.mark.parametrize("verb, status", [("archive", "interrupted"), ("delete", "cancelled")])
def test_putting_a_thread_away_ends_its_runs_and_its_agent(agents, verb, status):
    process = agents.begin("slow work")
    thread = agents.live("slow work", "begun")
    agents.dais.run("threads", "send", thread, "tools later", "--mode", "queue", check=0)
    assert agents.processes()
    agents.dais.run("threads", verb, thread, check=0)
    code, _, err = agents.end(process)
    assert code == 1 and status in err
    until(lambda: not agents.processes())
    assert agents.threads() == []
    assert not (agents.dais.work / "made.txt").exists(), "the queued run never began"
    if verb == "archive":
        assert [run["status"] for run in agents.show(thread)["runs"]] == ["cancelled", "interrupted"]
        assert "archived" in agents.dais.run("threads", "send", thread, "hello", check=1).stderr
        assert len(agents.threads("--archived")) == 1
    else:
        assert "no thread" in agents.dais.run("threads", "show", thread, check=1).stderr


# ---- answering ----

def test_a_permission_is_given_on_the_command_line_and_it_is_on_record_by_whom(agents):
    process = agents.begin("permission please", "--mode", "approval-required")
    request = agents.asked()
    assert "write parser.c" in agents.dais.run("threads", "answer", check=0).stdout
    agents.dais.run("threads", "answer", request["id"], "--accept", check=0)
    assert agents.end(process)[:2] == (0, "it was allowed\n")
    with agents.dais.follow("events", "--since", "0", "--type", "runtime-request", "--json") as lines:
        events = [json.loads(lines.readline()) for _ in range(2)]
    assert [event["data"]["status"] for event in events] == ["pending", "resolved"]
    assert events[1]["actor"]["id"] == "local"
    assert "not open any more" in agents.dais.run("threads", "answer", request["id"], "--accept", check=1).stderr


def test_a_permission_can_be_declined_by_the_id_of_its_thread(agents):
    process = agents.begin("permission please", "--mode", "approval-required")
    agents.dais.run("threads", "answer", agents.asked()["threadId"], "--decline", check=0)
    assert "it was allowed" not in agents.end(process)[1]


def test_a_question_takes_its_answer_and_nothing_else(agents):
    process = agents.begin("question for you")
    request = agents.asked()
    assert request["prompt"]["questions"]
    assert "answers" in agents.dais.run("threads", "answer", request["id"], "--accept", check=1).stderr
    agents.dais.run("threads", "answer", request["id"], "blue", check=0)
    assert agents.end(process)[:2] == (0, "it is blue\n")


def test_a_question_of_a_run_that_was_stopped_is_not_open_any_more(agents):
    process = agents.begin("question for you")
    request = agents.asked()
    agents.dais.run("threads", "interrupt", request["threadId"], check=0)
    agents.end(process)
    assert "not open any more" in agents.dais.run("threads", "answer", request["id"], "--decline", check=1).stderr


def test_answers_over_http_need_the_capability_admin(agents):
    process = agents.begin("permission please", "--mode", "approval-required")
    asked = agents.asked()
    path = "/api/v1/threads/requests"
    worker, admin = agents.dais.token(), agents.dais.admin()
    for method, place, body in (("GET", path, None), ("POST", f"{path}/{asked['id']}", {"decision": "accept"})):
        assert worker.ask(method, place, body and json.dumps(body))[0] == 403
    status, _, listed = admin.ask("GET", path)
    assert status == 200 and [request["id"] for request in json.loads(listed)["data"]["requests"]] == [asked["id"]]
    assert admin.ask("POST", f"{path}/{asked['id']}", json.dumps({"decision": "perhaps"}))[0] == 400
    assert admin.ask("POST", f"{path}/{asked['id']}", json.dumps({"decision": "accept"}))[0] == 200
    assert agents.end(process)[1] == "it was allowed\n"


# ---- providers, where callers work, the end ----

def test_providers_are_listed_with_what_keeps_them_from_running(agents):
    listed = json.loads(agents.dais.run("providers", "--json", check=0).stdout)["providers"]
    assert [(provider["id"], provider["canRun"]) for provider in listed] == [("rehearse", True), ("missing", False)]
    shown = agents.dais.run("providers", check=0).stdout
    assert re.search(r"^missing +acp +cannot", shown, re.M) and "no-such-program-anywhere is not installed" in shown


def test_an_agent_that_dais_did_not_start_works_where_it_was_started(agents):
    for name in ("here", "there"):
        (agents.dais.home / name / "below").mkdir(parents=True)
        agents.dais.run("project", "add", str(agents.dais.home / name), check=0)
    agents.dais.run("call", "delegate_task", json.dumps({"task": "tools", "mode": "wait", "timeoutMs": 50000}),
                    cwd=agents.dais.home / "there" / "below", check=0)
    assert (agents.dais.home / "there" / "made.txt").exists()
    assert {thread["project"] for thread in agents.threads()} == {"there"}
    assert len([thread for thread in agents.threads() if thread["kind"] == "external"]) == 1


def test_a_stopped_server_leaves_its_agents_at_work_and_the_next_one_has_their_result(agents):
    process = agents.begin("wait for it")
    thread = agents.live("wait for it", "first")
    agents.dais.stop()
    assert agents.processes()
    agents.dais.start(*agents.dais.flags)
    (agents.dais.work / "go").write_text("")
    until(lambda: agents.show(thread)["runs"][0]["status"] == "completed")
    assert agents.end(process)[0] == 0
    assert agents.text(thread) == "first then the rest"


def test_a_server_that_drains_leaves_no_process(stopped):
    stopped.environment["DAIS_AGENTS_DRAIN_MS"] = "30000"
    agents = Agents(stopped)
    process = agents.begin("slow work")
    thread = agents.live("slow work", "begun")
    process.kill()
    process.communicate()
    stopped.stop(seconds=60)
    until(lambda: agents.processes() == [])
    stopped.start()
    assert agents.show(thread)["runs"][0]["status"] not in ("running", "starting")
    agents.finish()


def test_doctor_lists_the_agents_at_work(agents):
    process = agents.begin("slow work")
    thread = agents.live("slow work", "begun")
    assert re.search(r"agents.*slow work", agents.dais.run("doctor", check=0).stdout)
    agents.dais.run("threads", "interrupt", thread, check=0)
    agents.end(process)


def externals(agents):
    return [thread for thread in agents.threads() if thread["kind"] == "external"]


def test_an_agent_that_was_silent_for_long_gets_a_new_run_on_its_thread(agents):
    agents.dais.run("project", "add", str(agents.dais.work), check=0)
    agents.dais.run("call", "orchestrator_capabilities", check=0)
    agents.dais.run("call", "orchestrator_capabilities", check=0)
    thread = externals(agents)[0]["id"]
    assert [run["status"] for run in agents.show(thread)["runs"]] == ["running"]
    agents.dais.stop()
    with sqlite3.connect(agents.dais.state / "dais.db") as database:
        database.execute("UPDATE thread SET updated_at = updated_at - 3600000 WHERE id = ?", (thread,))
    database.close()
    agents.dais.start(*agents.dais.flags)
    agents.dais.run("call", "orchestrator_capabilities", check=0)
    assert [run["status"] for run in agents.show(thread)["runs"]] == ["running", "completed"]
    assert len(externals(agents)) == 1


def test_an_external_thread_that_was_put_away_is_followed_by_a_new_one(agents):
    agents.dais.run("project", "add", str(agents.dais.work), check=0)
    agents.dais.run("call", "orchestrator_capabilities", check=0)
    first = externals(agents)[0]["id"]
    agents.dais.run("threads", "archive", first, check=0)
    agents.dais.run("call", "orchestrator_capabilities", check=0)
    assert len(externals(agents)) == 1 and externals(agents)[0]["id"] != first
    assert agents.show(first)["runs"][0]["status"] == "interrupted"


def test_a_browser_answers_with_its_cookie_and_no_other_site_can(agents):
    process = agents.begin("permission please", "--mode", "approval-required")
    asked = agents.asked()
    link = agents.dais.run("open", "--print", check=0).stdout.strip()
    page = agents.dais.http()
    _, headers, _ = page.ask("GET", link.removeprefix(agents.dais.url))
    cookie = headers["Set-Cookie"].split(";")[0]
    assert "SameSite=Strict" in headers["Set-Cookie"]
    assert b"Agents ask" in page.ask("GET", "/", headers={"Cookie": cookie})[2]
    path = f"/api/v1/threads/requests/{asked['id'].split(':')[-1]}"
    answer = json.dumps({"decision": "accept"})
    assert page.ask("POST", path, answer, {"Cookie": cookie, "Origin": "https://elsewhere.example"})[0] == 403
    assert page.ask("POST", path, answer, {"Cookie": cookie, "Content-Type": "text/plain"})[0] == 415
    assert page.ask("POST", path, answer, {"Cookie": cookie, "Origin": agents.dais.url})[0] == 200
    assert agents.end(process)[1] == "it was allowed\n"
