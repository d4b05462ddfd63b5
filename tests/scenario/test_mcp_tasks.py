"""Calls that become tasks, over HTTP and on a line (mcp 3.5, 6.4)."""
import re
import time

import pytest
from wire import CAPS, MODERN, TAG, TASKS, VERSION, code, eventually

YES = {"action": "accept", "content": {"confirm": True}}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Client:
    """Tasks of one caller, over HTTP or on a line."""

    def __init__(self, caller, caps=TASKS, who=None):
        self.caller, self.caps, self.who = caller, caps, who

    def ask(self, method, **params):
        if hasattr(self.caller, "port"):
            headers = {"Authorization": f"Bearer {self.who}"} if self.who else None
            return self.caller.modern(method, params, caps=self.caps, headers=headers).result()
        return self.caller.modern(method, params, meta={CAPS: self.caps})

    def begin(self, tool, **arguments):
        made = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        assert made["resultType"] == "task", made
        return made["taskId"]

    def get(self, task):
        result = self.ask("tasks/get", taskId=task)["result"]
        del result["_meta"]
        return result

    def over(self, task):
        eventually(lambda: self.get(task)["status"] in ("completed", "failed", "cancelled"), 20)
        return self.get(task)

    def update(self, task, **answers):
        assert self.ask("tasks/update", taskId=task, inputResponses=answers)["result"].keys() <= {"resultType", "_meta"}

    def cancel(self, task):
        done = self.ask("tasks/cancel", taskId=task)["result"]
        assert done["resultType"] == "complete" and done.keys() <= {"resultType", "_meta"}


@pytest.fixture(params=["http", "line"])
def client(request):
    return Client(request.getfixturevalue("fx" if request.param == "http" else "line"))


def text_of(task):
    assert task["status"] == "completed"
    return task["result"]["content"][0]["text"]


def test_a_call_becomes_a_task_and_its_result_is_fetched(client):
    made = client.ask("tools/call", name="slow_compute", arguments={"seconds": 0.4})["result"]
    assert (made["resultType"], made["status"]) == ("task", "working")
    assert re.fullmatch(r"[0-9a-f]{32}", made["taskId"]) and "content" not in made and "task" not in made
    assert TIME.fullmatch(made["createdAt"]) and TIME.fullmatch(made["lastUpdatedAt"])
    assert (made["ttlMs"], made["pollIntervalMs"]) == (7 * 24 * 3600 * 1000, 2000)
    got = client.get(made["taskId"])
    assert (got["resultType"], got["status"], got["taskId"]) == ("complete", "working", made["taskId"])
    assert not {"result", "error", "inputRequests"} & got.keys()
    over = client.over(made["taskId"])
    assert text_of(over) == "Computed." and over["createdAt"] == made["createdAt"] and over["lastUpdatedAt"] >= made["lastUpdatedAt"]
    assert "io.modelcontextprotocol/related-task" not in str(over)


def test_task_ids_are_not_guessed(fx):
    """128 random bits: no two alike, none next to another."""
    client = Client(fx)
    ids = [int(client.begin("confirm_delete"), 16) for _ in range(20)]
    assert len(set(ids)) == 20 and min(abs(a - b) for a in ids for b in ids if a != b) > 2 ** 64


def test_task_iserror_completed(client):
    """mcp 6.4: a result that says the work failed is a result; failed is what broke the protocol."""
    one, two = client.begin("failing_job"), client.begin("protocol_error_job")
    ended = client.over(one)
    assert text_of(ended) == "The job failed." and ended["result"]["isError"] is True and "error" not in ended
    broken = client.over(two)
    assert broken["status"] == "failed" and broken["error"] == {"code": -32603, "message": "The job broke down."}
    assert "result" not in broken


def test_task_cancel(client):
    """The work itself ends, and what it still says changes nothing; mcp 6.4 task-cancel-terminal."""
    task = client.begin("slow_compute", seconds=0.3)
    client.cancel(task)
    assert client.get(task)["status"] == "cancelled"
    other = client.begin("slow_compute", seconds=0.3)
    assert text_of(client.over(other)) == "Computed."
    assert client.get(task)["status"] == "cancelled" and "result" not in client.get(task)
    for terminal in (task, other):
        before = client.get(terminal)
        client.cancel(terminal)
        client.update(terminal, confirm_1=YES)
        assert client.get(terminal) == before


@pytest.mark.parametrize("task", ["0" * 32, "x", "", "A" * 5000, "%00", 7, None, ["a"]])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_an_unknown_task(fx, line, method, task):
    """mcp 3.5: -32602, whatever it is; over HTTP its name stands in a header too."""
    params = {"taskId": task, "inputResponses": {}}
    assert line.modern(method, params, meta={CAPS: TASKS})["error"]["code"] == -32602
    header = task if isinstance(task, str) and len(task) < 100 else "x"
    assert code(fx.modern(method, params, caps=TASKS, headers={"Mcp-Name": header})) in (-32602, -32020)


def test_task_foreign(fx):
    """mcp 6.4 task-foreign: another caller's task is as unknown as one that never was, and stays as it is."""
    mine, theirs = Client(fx, who="ada"), Client(fx, who="bob")
    task = mine.begin("confirm_delete")
    unknown = theirs.ask("tasks/get", taskId="0" * 32)["error"]
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert theirs.ask(method, taskId=task, inputResponses={"confirm_1": YES})["error"] == unknown
    stream = fx.modern("subscriptions/listen", {"notifications": {"taskIds": [task]}}, caps=TASKS, headers={"Authorization": "Bearer bob"})
    assert stream.message()["params"]["notifications"].get("taskIds", []) == []
    stream.close()
    assert mine.get(task)["status"] == "input_required"


@pytest.mark.parametrize("caps", [{}, {"extensions": {}}, {"tasks": {}}, {"extensions": {"io.modelcontextprotocol/other": {}}}])
def test_task_undeclared(fx, line, caps):
    """mcp 6.4 task-undeclared: the same tool works within the call; what is a task or nothing says what it needs."""
    for client in (Client(fx, caps), Client(line, caps)):
        done = client.ask("tools/call", name="slow_compute", arguments={"seconds": 0.05})["result"]
        assert done["resultType"] == "complete" and done["content"][0]["text"] == "Computed."
        refused = client.ask("tools/call", name="failing_job", arguments={})["error"]
        assert refused["code"] == -32021 and refused["data"]["requiredCapabilities"] == TASKS
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert client.ask(method, taskId="0" * 32, inputResponses={})["error"]["code"] == -32021
    assert fx.call("failing_job", caps=caps).status == 400


def test_tasks_are_no_part_of_the_older_eras(fx, line):
    """The experimental tasks of 2025-11-25 are not offered: its parameter is ignored, its methods are unknown."""
    session = fx.session(caps={**TASKS, "tasks": {"list": {}, "cancel": {}}})
    answer = session.request("tools/call", {"name": "slow_compute", "arguments": {"seconds": 0.05}, "task": {"ttl": 1000}}).result()
    assert answer["result"]["content"][0]["text"] == "Computed." and "task" not in answer["result"]
    line.initialize(caps=TASKS)
    for method in ("tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result"):
        params = {"taskId": "0" * 32, "inputResponses": {}}
        assert code(session.request(method, params)) == -32601
        line.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert line.read()["error"]["code"] == -32601
    for method in ("tasks/list", "tasks/result"):
        assert code(fx.modern(method, {"taskId": "0" * 32}, caps=TASKS)) == -32601


@pytest.mark.parametrize("response,said", [
    (YES, "The file was deleted."), ({"action": "accept", "content": {"confirm": False}}, "The file was kept."),
    ({"action": "decline"}, "The file was kept."), ({"action": "cancel"}, "The file was kept."), ({}, "The file was kept.")])
def test_a_task_asks_while_it_runs(client, response, said):
    task = client.begin("confirm_delete", filename="a")
    asked = client.get(task)
    assert asked["status"] == "input_required" and list(asked["inputRequests"]) == ["confirm_1"]
    assert asked["inputRequests"]["confirm_1"]["method"] == "elicitation/create"
    client.update(task, confirm_1=response)
    assert text_of(client.over(task)) == said
    client.update(task, confirm_1=YES)  # answered is answered
    assert text_of(client.get(task)) == said


def test_task_update_partial(client):
    """mcp 6.4: what is not answered stays open; what nobody asked is ignored."""
    task = client.begin("multi_input")
    assert set(client.get(task)["inputRequests"]) == {"first", "second"}
    client.update(task)
    client.update(task, other=YES)
    assert set(client.get(task)["inputRequests"]) == {"first", "second"}
    client.update(task, first=YES, other={})
    assert client.get(task)["status"] == "input_required" and set(client.get(task)["inputRequests"]) == {"second"}
    client.update(task, first={"action": "accept"}, second=YES)
    assert client.over(task)["status"] == "completed"


@pytest.mark.parametrize("answers", [None, [], "x", 7])
def test_answers_of_another_shape(client, answers):
    task = client.begin("confirm_delete")
    assert client.ask("tasks/update", taskId=task, inputResponses=answers)["error"]["code"] == -32602
    assert client.get(task)["status"] == "input_required"


def test_a_question_first_and_then_a_task(client):
    """mcp 3.5: what must be known before there is a task is asked within the call."""
    client.caps = {**TASKS, "elicitation": {}}
    call = {"name": "test_tool_with_task", "arguments": {}}
    asked = client.ask("tools/call", **call)["result"]
    assert asked["resultType"] == "input_required" and "taskId" not in asked
    given = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}
    made = client.ask("tools/call", **call, requestState=asked["requestState"], inputResponses=given)["result"]
    assert made["resultType"] == "task"
    assert text_of(client.over(made["taskId"])) == "Done for Ada"


def test_polling_too_often_is_no_fault(fx):
    client = Client(fx)
    task = client.begin("slow_compute", seconds=0.5)
    for _ in range(100):
        assert client.get(task)["status"] in ("working", "completed")
    assert text_of(client.over(task)) == "Computed."


def test_a_task_tells_no_progress_and_writes_no_log(fx):
    """mcp 3.5: not even to who wants both; the answer is the task alone."""
    wants = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}
    messages = fx.call("slow_compute", {"seconds": 0.3}, caps=TASKS, meta=wants).messages()
    assert len(messages) == 1 and messages[0]["result"]["resultType"] == "task"


def test_leaving_ends_no_task(fx):
    """The connection that made it is gone; the work goes on."""
    answer = fx.call("slow_compute", {"seconds": 0.3}, caps=TASKS)
    task = answer.result()["result"]["taskId"]
    answer.close()
    assert text_of(Client(fx).over(task)) == "Computed."


def test_the_id_of_a_task_stands_in_the_header_too(fx):
    client = Client(fx)
    task = client.begin("confirm_delete")
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        params = {"taskId": task, "inputResponses": {}}
        for more in ({"headers": {"Mcp-Name": "0" * 32}}, {"drop": ["Mcp-Name"]}):
            refused = fx.modern(method, params, caps=TASKS, **more)
            assert (refused.status, code(refused)) == (400, -32020)
    assert client.get(task)["status"] == "input_required"


# ---- notices ----

def test_listeners_hear_of_every_change_in_full(fx):
    client = Client(fx)
    task, other = client.begin("confirm_delete"), client.begin("confirm_delete")
    stream = fx.modern("subscriptions/listen", {"notifications": {"taskIds": [task, "foreign"]}}, id="s", caps=TASKS)
    assert stream.message()["params"]["notifications"] == {"taskIds": [task]}
    client.update(other, confirm_1=YES)
    client.update(task, confirm_1=YES)
    notices = []
    while not notices or notices[-1]["params"]["status"] != "completed":
        notices.append(stream.message())
    stream.close()
    for notice in notices:
        assert notice["method"] == "notifications/tasks" and "id" not in notice
        assert notice["params"]["taskId"] == task and notice["params"]["_meta"][TAG] == "s"
    assert notices[-1]["params"]["result"]["content"][0]["text"] == "The file was deleted."


def test_listening_on_a_line(line):
    client = Client(line)
    task = client.begin("slow_compute", seconds=0.4)
    line.send({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {
        "notifications": {"taskIds": [task]}, "_meta": {VERSION: MODERN, CAPS: TASKS}}})
    assert line.read()["params"]["notifications"] == {"taskIds": [task]}
    notice = line.read()
    assert notice["method"] == "notifications/tasks" and notice["params"]["_meta"][TAG] == 7
    assert text_of(notice["params"]) == "Computed."


def test_a_task_that_is_over_is_told_nothing_more(fx):
    client = Client(fx)
    task = client.begin("slow_compute", seconds=0.3)
    stream = fx.modern("subscriptions/listen", {"notifications": {"taskIds": [task]}}, caps=TASKS)
    stream.message()
    client.cancel(task)
    assert stream.message()["params"]["status"] == "cancelled"
    time.sleep(0.5)  # its work has ended meanwhile
    stream.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        stream.event()
