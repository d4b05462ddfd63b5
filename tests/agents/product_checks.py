"""What is expected of an agent that works for dais, whichever it is. A check gets a Product, and asserts."""
import os
import signal
import time

from checks import LAST_WORDS, SPOKEN, Skip

HARMLESS = "echo it ran > {}"
ASKED_ABOUT = "rm -f old.txt; echo it ran > {}"


def a_task_is_done(product):
    task = product.delegate(f"@@slow 20 {SPOKEN}")
    assert (task["status"], task["summary"]) == ("completed", SPOKEN), (task, product.failure(task))
    assert product.sessions(task)[0]["program_version"] == product.agent.program.version, product.sessions(task)
    usage = product.runs(task)[-1]["usage"]
    assert usage and "outputTokens" in usage, usage


def text_arrives_while_it_is_written(product):
    task = product.delegate(f"@@slow 600 {SPOKEN}", wait=False)
    early = product.until(lambda: product.text(task), what="text", task=task)
    assert SPOKEN.startswith(early) and early != SPOKEN, early
    task = product.ended(task)
    assert (task["status"], task["summary"]) == ("completed", SPOKEN), task


def with_full_access_nobody_is_asked(product):
    task = product.delegate(product.agent.shell(HARMLESS.format("ran.txt")), "@@say done")
    assert (task["status"], task["summary"]) == ("completed", "done"), (task, product.failure(task))
    assert product.repo_file("ran.txt") == "it ran\n", product.items(task)
    assert not product.requests(task), product.requests(task)
    assert any(item["type"] == 7 and item["status"] == 3 for item in product.items(task)), product.items(task)


def without_full_access_it_waits_for_a_person(product):
    task = product.delegate(product.agent.shell(ASKED_ABOUT.format("never.txt")), "@@say done", wait=False, runtimeMode="approval-required")
    product.until(lambda: product.status(task)["status"] == "waiting", what="a question", task=task)
    assert [request["status"] for request in product.requests(task)] == [0], product.requests(task)
    product.call("task_cancel", taskId=task["taskId"])
    assert product.ended(task)["status"] == "interrupted", product.runs(task)
    assert product.repo_file("never.txt") is None
    assert all(request["status"] != 0 for request in product.requests(task)), product.requests(task)


def asked(product, decision):
    """A task whose command a person decides about."""
    task = product.delegate(product.agent.shell(ASKED_ABOUT.format("decided.txt")), "@@say done", wait=False, runtimeMode="approval-required")
    question, = product.until(product.questions, what="a question", task=task)
    assert question["prompt"]["title"], question
    product.decide(question, decision)
    # Some ask about the parts of a command one by one.
    while product.until(lambda: product.questions() or product.runs(task)[-1]["status"] > 4):
        for question in product.questions():
            product.decide(question, decision)
        if product.runs(task)[-1]["status"] > 4:
            return product.ended(task)


def an_allowed_command_runs(product):
    task = asked(product, "accept")
    if not product.agent.runs_what_was_allowed:
        raise Skip("its sandbox holds what was allowed")
    assert task["status"] == "completed" and task["summary"].endswith("done"), (task, product.failure(task))
    assert product.repo_file("decided.txt") == "it ran\n", product.items(task)


def a_declined_command_does_not_run(product):
    task = asked(product, "decline")
    assert task["status"] in ("completed", "interrupted"), (task, product.failure(task))
    assert product.repo_file("decided.txt") is None, product.items(task)


def its_tools_are_those_of_dais(product):
    steps = product.agent.mcp_steps("orchestrator_capabilities", {})
    task = product.delegate(*steps, "@@say done")
    assert (task["status"], task["summary"]) == ("completed", "done"), (task, product.failure(task))
    shown = [output for entry in product.model.requests for output in entry.get("outputs", ())]
    assert any("inheritedProviderInstanceId" in output for output in shown), shown
    assert not product.requests(task), product.requests(task)


def it_delegates_to_another_agent(product):
    other = {"providerInstanceId": product.other.name}
    steps = product.agent.mcp_steps("delegate_task", {"task": "@@say from the other one", "target": other, "mode": "wait", "timeoutMs": 60000})
    task = product.delegate(*steps, "@@say done")
    task = product.ended(task["taskId"])
    assert (task["status"], task["summary"]) == ("completed", "done"), (task, product.failure(task))
    drivers = [row["driver"] for row in product.rows("SELECT driver FROM provider_session ORDER BY n")]
    assert drivers == [product.agent.driver, product.other.driver], drivers
    shown = [output for entry in product.model.requests for output in entry.get("outputs", ())]
    assert any("from the other one" in output and "taskId" in output for output in shown), shown


def a_message_in_mid_turn_is_heard_in_it(product):
    command = "touch started.txt; until [ -e go.txt ]; do sleep 0.1; done"
    task = product.delegate(product.agent.shell(command), "@@say I heard nothing", wait=False)
    product.until(lambda: product.repo_file("started.txt") is not None, what="the command", task=task)
    # Where the program has no way for that, dais interrupts the turn and begins another one with the message.
    sent = product.send(task, "@@say I heard it", mode="steer")
    assert sent["delivery"] == "steered", sent
    if product.agent.steering is not None or product.agent.driver != "acp":
        (product.repo / "go.txt").touch()
    task = product.ended(task)
    assert task["status"] == "completed" and task["summary"].endswith("I heard it"), (task, product.failure(task))
    assert len(product.runs(task)) == 1, product.runs(task)


def an_interrupt_ends_the_turn_and_the_thread_goes_on(product):
    task = product.delegate("@@hang first word", wait=False)
    product.until(lambda: product.text(task), what="text", task=task)
    told = product.call("t3_thread_interrupt", threadId=task["childThreadId"])
    assert told["status"] == "interrupt_requested", told
    assert product.wait(task, told["runId"]) == "interrupted", product.runs(task)
    status, answer = product.say(task, "@@say still here")
    assert status == "completed" and answer.endswith("still here"), (status, answer, product.failure(task))


def an_interrupt_ends_the_command(product):
    task = product.delegate(product.agent.shell("touch started.txt; until false; do date > alive.txt; sleep 0.2; done"), "@@say done", wait=False)
    product.until(lambda: product.repo_file("alive.txt"), what="the command", task=task)
    told = product.call("t3_thread_interrupt", threadId=task["childThreadId"])
    assert product.wait(task, told["runId"]) == "interrupted", product.runs(task)

    def is_over():
        (product.repo / "alive.txt").unlink(missing_ok=True)
        time.sleep(1)
        return product.repo_file("alive.txt") is None
    product.until(is_over, 30, "the end of the command")


def a_killed_agent_is_resumed(product):
    task = product.delegate("@@say the word is harbour")
    assert task["status"] == "completed", (task, product.failure(task))
    product.agent.before_resume()
    os.kill(product.processes(product.agent)[0], signal.SIGKILL)
    product.until(lambda: product.sessions(task)[-1]["status"] >= 4, what="the end of the session")
    status, answer = product.say(task, "@@say understood")
    assert status == "completed" and answer.endswith("understood"), (status, answer, product.failure(task))
    asked = str(product.answered(0)[-1]["body"])
    assert "the word is harbour" in asked, asked[-2000:]
    assert len(product.sessions(task)) == 2, product.sessions(task)


def an_agent_killed_at_work_is_told(product):
    task = product.delegate("@@hang first word", wait=False)
    product.until(lambda: product.runs(task)[-1]["status"] == 3 and product.answered(0), what="a running turn", task=task)
    os.kill(product.processes(product.agent)[0], signal.SIGKILL)
    task = product.ended(task)
    assert task["status"] == "failed" and product.failure(task)["code"] == "process_exit", (task, product.failure(task))


def a_crash_of_the_server_costs_nothing(product):
    words = " ".join(f"word{n}" for n in range(16))
    task = product.delegate(f"@@slow 400 {words}", wait=False)
    product.until(lambda: "word2" in product.text(task), what="text", task=task)
    product.crash()
    time.sleep(1.5)
    product.start_again()
    task = product.ended(task)
    assert (task["status"], task["summary"]) == ("completed", words), (task, product.failure(task))
    assert product.text(task) == words, product.items(task)
    assert len(product.sessions(task)) == len(product.runs(task)) == 1, "the work was done twice"


def its_tools_work_after_a_crash_of_the_server(product):
    steps = product.agent.mcp_steps("orchestrator_capabilities", {})
    wait = "touch started.txt; until [ -e go.txt ]; do sleep 0.1; done"
    task = product.delegate(product.agent.shell(wait), *steps, "@@say done", wait=False)
    product.until(lambda: product.repo_file("started.txt") is not None, what="the command", task=task)
    product.crash()
    product.start_again()
    (product.repo / "go.txt").touch()
    task = product.ended(task)
    assert (task["status"], task["summary"]) == ("completed", "done"), (task, product.failure(task))
    shown = [output for entry in product.model.requests for output in entry.get("outputs", ())]
    assert any("inheritedProviderInstanceId" in output for output in shown), shown


def failing(product, step, does, codes):
    """A turn whose model fails: what the program does about it (Agent.on_400), and what dais calls it."""
    task = product.delegate(step, wait=False)
    if does == "retries":
        product.until(lambda: len(product.answered(0)) > 1, what="a second try", task=task)
        product.call("task_cancel", taskId=task["taskId"])
        assert product.ended(task)["status"] == "interrupted", product.runs(task)
        return
    task = product.ended(task)
    if does == "completes":
        assert task["status"] == "completed" and task["summary"] == LAST_WORDS, (task, product.failure(task))
        return
    assert task["status"] == "failed" and product.failure(task)["code"] in codes, (task, product.failure(task))


def a_bad_request_fails_the_run(product):
    failing(product, "@@status 400", product.agent.on_400, product.agent.codes["400"])


def a_refused_key_fails_the_run(product):
    product.model.accepts = "another key"
    failing(product, "@@say never", product.agent.on_401, product.agent.codes["401"])


def a_rate_limit_fails_the_run(product):
    failing(product, "@@status 429", product.agent.on_429, product.agent.codes["429"])


def a_cut_stream_fails_the_run(product):
    failing(product, f"@@half {LAST_WORDS}", product.agent.product_on_cut or product.agent.on_cut, product.agent.codes["cut"])


def an_answer_that_stops_early_fails_the_run(product):
    failing(product, f"@@early {LAST_WORDS}", product.agent.product_on_cut or product.agent.on_early, product.agent.codes["cut"])


CHECKS = [a_task_is_done, text_arrives_while_it_is_written, with_full_access_nobody_is_asked, without_full_access_it_waits_for_a_person,
          an_allowed_command_runs, a_declined_command_does_not_run,
          its_tools_are_those_of_dais, it_delegates_to_another_agent, a_message_in_mid_turn_is_heard_in_it,
          an_interrupt_ends_the_turn_and_the_thread_goes_on, an_interrupt_ends_the_command, a_killed_agent_is_resumed,
          an_agent_killed_at_work_is_told, a_crash_of_the_server_costs_nothing, its_tools_work_after_a_crash_of_the_server,
          a_bad_request_fails_the_run, a_refused_key_fails_the_run, a_rate_limit_fails_the_run, a_cut_stream_fails_the_run,
          an_answer_that_stops_early_fails_the_run]
