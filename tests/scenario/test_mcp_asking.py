"""Calls that need an answer of the person or the client, in both eras and on both transports (mcp 3.6, 6.4)."""
import json

import pytest
from mcp_fixture import Fixture
from wire import CAPS, MODERN, VERSION, code, eventually

FORM = {"elicitation": {}}
YES = {"action": "accept", "content": {"decision": "approve"}}


def text_of(answer):
    result = answer["result"]
    return result["content"][0]["text"], result.get("isError", False)


REFUSED = ("approval_required", True)
APPROVED = ("approved", False)

# What a person or a headless client may answer, and what it means: only accept with the right content is a yes.
VERDICTS = [
    (YES, APPROVED), ({"action": "accept", "content": {"decision": "approve", "reason": "since"}}, APPROVED),
    ({"action": "accept", "content": {"decision": "deny"}}, REFUSED), ({"action": "decline"}, REFUSED), ({"action": "cancel"}, REFUSED),
    ({"action": "decline", "content": {"decision": "approve"}}, REFUSED), ({"action": "cancel", "content": {"decision": "approve"}}, REFUSED),
    ({"action": "ACCEPT", "content": {"decision": "approve"}}, REFUSED), ({"content": {"decision": "approve"}}, REFUSED), ({}, REFUSED),
]


# ---- modern: the call ends with the question and comes again ----

class Modern:
    """A call that is repeated with answers, each time with an id of its own, over HTTP or on a line."""

    def __init__(self, caller, name="test_approval", caps=FORM):
        self.caller, self.name, self.caps = caller, name, caps
        self.id = 1000

    def __call__(self, arguments=None, **more):
        self.id += 1
        params = {"name": self.name, "arguments": arguments or {}, **more}
        if hasattr(self.caller, "process") and not hasattr(self.caller, "port"):
            return self.caller.modern("tools/call", params, id=self.id, meta={CAPS: self.caps})
        return self.caller.modern("tools/call", params, id=self.id, caps=self.caps).result()

    def ask(self, **more):
        result = self(**more)["result"]
        assert result["resultType"] == "input_required" and "content" not in result and "ttlMs" not in result
        return result["inputRequests"], result["requestState"]


@pytest.fixture(params=["http", "line"])
def approval(request):
    return Modern(request.getfixturevalue("fx" if request.param == "http" else "line"))


@pytest.mark.parametrize("response,means", VERDICTS)
def test_approve_accept_decline_cancel(approval, response, means):
    """mcp 6.4 approve-accept, decline, cancel: the question says what it wants; only a yes is one."""
    questions, state = approval.ask()
    (key, question), = questions.items()
    assert question["method"] == "elicitation/create" and question["params"]["mode"] == "form"
    schema = question["params"]["requestedSchema"]
    assert schema["type"] == "object" and schema["required"] == ["decision"]
    assert all(field["type"] == "string" for field in schema["properties"].values())
    assert text_of(approval(requestState=state, inputResponses={key: response})) == means


@pytest.mark.parametrize("caps", [{}, {"elicitation": {"url": {}}}, {"elicitation": None}, {"elicitation": True}, {"sampling": {}}])
def test_approve_no_capability(fx, caps):
    """mcp 6.4: who cannot be asked for a form gets the refusal that says what is missing, and no question."""
    assert text_of(Modern(fx, caps=caps)()) == REFUSED


@pytest.mark.parametrize("caps", [{"elicitation": {}}, {"elicitation": {"form": {}}}, {"elicitation": {"form": {}, "url": {}}}])
def test_approve_with_a_form(fx, caps):
    Modern(fx, caps=caps).ask()


@pytest.mark.parametrize("wrong", [
    {}, {"other": YES}, {"approval_1": 7}, {"approval_1": None}, {"approval_1": "approve"}, {"approval_1": []},
    {"approval_1": {"action": "accept"}}, {"approval_1": {"action": "accept", "content": {"decision": 1}}},
    {"approval_1": {"action": "accept", "content": {"decision": "maybe"}}}, {"approval_1": {"action": "accept", "content": "approve"}}])
def test_approve_missing_key_wrong_type(approval, wrong):
    """mcp 6.4: what is no answer is asked for again, three times in all; then it is not approved."""
    _, state = approval.ask()
    for _ in range(2):
        _, state = approval.ask(requestState=state, inputResponses=wrong)
    assert text_of(approval(requestState=state, inputResponses=wrong)) == REFUSED


def test_approve_extra_key(approval):
    """mcp 6.4: more answers than questions harm nobody."""
    _, state = approval.ask()
    assert text_of(approval(requestState=state, inputResponses={"approval_1": YES, "x": {"y": [1]}})) == APPROVED


def test_answers_without_the_question_are_none(approval):
    """A client cannot approve what it was not asked: the state proves that it was."""
    approval.ask(inputResponses={"approval_1": YES})


@pytest.mark.parametrize("responses", [[], "x", 7, True])
def test_answers_of_another_shape_are_a_fault_of_the_client(approval, responses):
    _, state = approval.ask()
    assert approval(requestState=state, inputResponses=responses)["error"]["code"] == -32602


def tampered(state):
    yield from ("", "x", "A" * 5000, state + "A", state[:-1], state[1:], state[::-1], state.upper(), 7, True, [state], {"s": state})
    for at in range(0, len(state), 7):
        yield state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1:]


def test_approve_tampered_state(approval):
    """mcp 6.4: a changed byte anywhere, and it is no state of ours."""
    _, state = approval.ask()
    for wrong in tampered(state):
        assert approval(requestState=wrong, inputResponses={"approval_1": YES})["error"]["code"] == -32602, wrong
    assert text_of(approval(requestState=state, inputResponses={"approval_1": YES})) == APPROVED


def test_approve_changed_arguments(approval):
    """mcp 6.4: approved is what was shown; the order of the members is no change."""
    _, state = approval.ask(arguments={"a": 1, "b": {"c": [1, 2], "d": None}})
    for arguments in ({}, {"a": 1}, {"a": 2, "b": {"c": [1, 2], "d": None}}, {"a": 1, "b": {"c": [2, 1], "d": None}},
                      {"a": "1", "b": {"c": [1, 2], "d": None}}, {"a": 1, "b": {"c": [1, 2]}}):
        wrong = approval(arguments, requestState=state, inputResponses={"approval_1": YES})
        assert wrong["error"]["code"] == -32602, arguments
    same = approval({"b": {"d": None, "c": [1, 2]}, "a": 1}, requestState=state, inputResponses={"approval_1": YES})
    assert text_of(same) == APPROVED


def test_state_is_bound(fx):
    """mcp 6.4 approve, other principal's state; another tool's."""
    name = "test_input_required_result_request_state"
    answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
    state = fx.call(name, {"a": 1}, caps=FORM).json()["result"]["requestState"]

    def retry(tool=name, who=None):
        return fx.modern("tools/call", {"name": tool, "arguments": {"a": 1}, "requestState": state, "inputResponses": answers}, id=99,
                         caps=FORM, headers={"Authorization": f"Bearer {who}"} if who else None).json()

    assert retry(who="bob")["error"]["code"] == -32602
    assert retry(tool="test_input_required_result_tampered_state")["error"]["code"] == -32602
    assert retry()["result"]["content"][0]["text"] == "state-ok"


def test_a_state_is_for_one_server(fx, line):
    """Another process has another key."""
    _, state = Modern(fx).ask()
    assert Modern(line)(requestState=state, inputResponses={"approval_1": YES})["error"]["code"] == -32602


def test_the_capabilities_of_the_repetition_count(fx):
    """mcp 1.4: nothing is remembered of the first request."""
    _, state = Modern(fx).ask()
    assert text_of(Modern(fx, caps={})(requestState=state, inputResponses={"approval_1": YES})) == REFUSED


def test_questions_may_follow_each_other(fx, line):
    for caller in (fx, line):
        call = Modern(caller, "test_input_required_result_multi_round")
        questions, state = call.ask()
        assert list(questions) == ["step1"]
        questions, state = call.ask(requestState=state, inputResponses={"step1": {"action": "accept", "content": {"name": "Ada"}}})
        assert list(questions) == ["step2"]
        said = call(requestState=state, inputResponses={"step2": {"action": "accept", "content": {"color": "red"}}})
        assert text_of(said) == ("Ada likes red", False)


def test_a_question_ends_a_stream(fx):
    """Progress, then the question as the last event; the repetition is a request of its own."""
    *steps, last = fx.call("test_streaming_elicitation", caps=FORM, meta={"progressToken": "p"}).messages()
    assert [step["params"]["progressToken"] for step in steps] == ["p"]
    assert last["result"]["resultType"] == "input_required"


def test_prompts_and_resources_may_ask(fx):
    """And what came out of an answer is not to be kept by anybody: ttlMs 0."""
    prompt = {"name": "test_input_required_result_prompt"}
    asked = fx.modern("prompts/get", prompt, caps=FORM).json()["result"]
    assert asked["resultType"] == "input_required" and list(asked["inputRequests"]) == ["user_context"]
    given = {"user_context": {"action": "accept", "content": {"context": "rain"}}}
    answered = fx.modern("prompts/get", {**prompt, "inputResponses": given}, caps=FORM).json()["result"]
    assert "rain" in json.dumps(answered["messages"])
    resource = {"uri": "test://for-a-name"}
    asked = fx.modern("resources/read", resource, caps=FORM).json()["result"]
    assert asked["resultType"] == "input_required" and "ttlMs" not in asked and "cacheScope" not in asked
    given = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}
    read = fx.modern("resources/read", {**resource, "inputResponses": given}, caps=FORM).json()["result"]
    assert (read["contents"][0]["text"], read["ttlMs"]) == ("Ada", 0)
    assert fx.modern("resources/read", {"uri": "test://static-text"}).json()["result"]["ttlMs"] == 60000


def test_nothing_else_asks(fx):
    """mcp 3.6: requestState and inputResponses mean nothing to other methods."""
    answer = fx.modern("tools/list", {"requestState": "x", "inputResponses": 7}).json()["result"]
    assert answer["resultType"] == "complete" and answer["ttlMs"] > 0


# ---- legacy: a request of the server's on the stream of the call ----

def answer_to(question, response):
    return {"jsonrpc": "2.0", "id": question["id"], "result": response}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("response,means", VERDICTS)
def test_legacy_approve(fx, version, response, means):
    session = fx.session(version, caps=FORM)
    call = session.call("test_approval", id="c")
    question = call.message()
    assert question["method"] == "elicitation/create" and question["id"].startswith("srv-")
    assert session.post(answer_to(question, response)).status == 202
    last = call.message()
    assert last["id"] == "c" and text_of(last) == means and call.message() is None


@pytest.mark.parametrize("response,means", VERDICTS)
def test_legacy_approve_on_a_line(line, response, means):
    line.initialize(caps=FORM)
    line.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_approval", "arguments": {}}})
    line.send(answer_to(line.read(), response))
    assert text_of(line.answer(1)) == means


@pytest.mark.parametrize("caps", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_legacy_no_capability(fx, line, caps):
    """Only in the way that the client said it can be asked: a form is no page to open."""
    assert text_of(fx.session(caps=caps).call("test_approval").result()) == REFUSED
    line.initialize(caps=caps)
    line.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_approval", "arguments": {}}})
    assert text_of(line.read()) == REFUSED


def test_legacy_who_takes_json_alone_is_not_asked(fx):
    session = fx.session(caps=FORM)
    assert text_of(session.call("test_approval", accept="application/json").json()) == REFUSED


@pytest.mark.parametrize("answer", [{"error": {"code": -32601, "message": "no"}}, {"error": {"code": 1, "message": "x"}, "result": YES},
                                    {"result": None}, {"result": []}, {"result": "approve"}])
def test_legacy_an_answer_that_is_none_is_no_yes(fx, answer):
    session = fx.session(caps=FORM)
    call = session.call("test_approval")
    status = session.post({"jsonrpc": "2.0", "id": call.message()["id"], **answer}).status
    if status == 202:
        assert text_of(call.message()) == REFUSED
    else:  # not a response at all: refused, and the call goes on waiting
        assert status == 400
        call.close()


def test_legacy_no_answer_in_time_is_no_yes(fx):
    """And what comes too late reaches nothing."""
    session = fx.session(caps=FORM)
    call = session.call("test_approval", {"deadlineMs": 300})
    question = call.message()
    assert text_of(call.message()) == REFUSED
    assert session.post(answer_to(question, YES)).status == 202


def test_legacy_an_answer_is_taken_from_its_own_session_and_once(fx):
    one, two = fx.session(caps=FORM), fx.session(caps=FORM)
    call = one.call("test_approval")
    question = call.message()
    for id in (question["id"], "srv-0", "srv-", "srv-x", "srv-18446744073709551616", 1, ""):
        assert two.post({"jsonrpc": "2.0", "id": id, "result": YES}).status == 202
    assert one.post({"jsonrpc": "2.0", "id": question["id"] + "0", "result": YES}).status == 202
    assert one.post(answer_to(question, {"action": "decline"})).status == 202
    assert one.post(answer_to(question, YES)).status == 202
    assert text_of(call.message()) == REFUSED


def test_legacy_two_questions_at_once_are_not_mixed_up(fx):
    session = fx.session(caps=FORM)
    calls = [session.call("test_approval", id=f"c{n}") for n in range(4)]
    questions = [call.message() for call in calls]
    assert len({question["id"] for question in questions}) == 4
    for n in (2, 0, 3, 1):
        session.post(answer_to(questions[n], YES if n % 2 else {"action": "decline"}))
    assert [text_of(call.message()) for call in calls] == [REFUSED, APPROVED] * 2


def test_legacy_a_question_outlives_its_stream(fx):
    """mcp 3.6: the client lost the stream, not the question: it answers by POST and fetches the result by GET."""
    session = fx.session(caps=FORM)
    call = session.call("test_approval", id="c")
    primed = call.event()["id"]
    question = call.message()
    call.close()
    assert session.post(answer_to(question, YES)).status == 202
    again = session.get(primed).messages()
    assert again[0] == question and text_of(again[1]) == APPROVED and len(again) == 2


def test_legacy_cancelling_a_call_withdraws_its_question(fx):
    session = fx.session(caps=FORM)
    call = session.call("test_approval", id="c")
    question = call.message()
    assert session.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}).status == 202
    assert call.messages() == []
    assert session.post(answer_to(question, YES)).status == 202
    eventually(lambda: int(fx.text("test_in_flight")) == 1)


def test_legacy_deleting_a_session_withdraws_its_questions(fx):
    session = fx.session(caps=FORM)
    call = session.call("test_approval")
    call.message()
    assert session.delete().status == 200
    assert call.messages() == []
    eventually(lambda: int(fx.text("test_in_flight")) == 1)


def test_a_server_that_stops_waits_for_no_answer():
    fixture = Fixture()
    calls = [fixture.session(caps=FORM).call("test_approval") for _ in range(3)]
    for call in calls:
        call.message()
    fixture.process.terminate()
    assert [text_of(call.message()) for call in calls] == [REFUSED] * 3
    fixture.stop()


def test_a_line_whose_client_leaves_has_no_questions_left(line):
    line.initialize(caps=FORM)
    line.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "test_approval", "arguments": {}}})
    assert line.read()["method"] == "elicitation/create"
    rest, _ = line.end()
    assert rest == []


def test_modern_answers_are_no_messages(fx, line):
    """mcp 2.4, 2.13: in the modern era a response of the client's is a fault over HTTP and nothing on a line."""
    answer = {"jsonrpc": "2.0", "id": "srv-1", "result": YES}
    refused = fx.post(answer, [("MCP-Protocol-Version", MODERN)])
    assert (refused.status, code(refused)) == (400, -32600)
    line.send(answer, {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {VERSION: MODERN, CAPS: {}}}})
    assert line.read()["id"] == 2
