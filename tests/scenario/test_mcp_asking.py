"""Tools that need an answer of the person or the client (mcp 3.6, 6.4)."""


def test_legacy_elicitation(fx):
    session = fx.session(caps={"elicitation": {}})
    answer = session.call("test_elicitation", {"message": "who?"})
    question = answer.message()
    assert question["method"] == "elicitation/create" and question["id"].startswith("srv-")
    assert session.post({"jsonrpc": "2.0", "id": question["id"],
                         "result": {"action": "accept", "content": {"username": "ada"}}}).status == 202
    text = answer.message()["result"]["content"][0]["text"]
    assert "accept" in text and "ada" in text
    assert fx.session().call("test_elicitation", {"message": "x"}).json()["result"]["isError"] is True


def test_state_is_bound(fx):
    name = "test_input_required_result_request_state"
    caps = {"elicitation": {}}
    answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
    asked = fx.call(name, {"a": 1}, caps=caps).json()["result"]
    state = asked["requestState"]
    assert asked["resultType"] == "input_required" and "ttlMs" not in asked

    def retry(state, tool=name, args=None, who=None, given=answers):
        return fx.modern("tools/call", {"name": tool, "arguments": args or {"a": 1}, "requestState": state,
                                        "inputResponses": given}, id=99, caps=caps,
                         headers={"Authorization": f"Bearer {who}"} if who else None).json()

    assert retry(state)["result"]["content"][0]["text"] == "state-ok"
    assert retry(state, given={**answers, "extra": 1})["result"]["resultType"] == "complete"
    assert retry(state, given={})["result"]["resultType"] == "input_required"
    assert retry(state, given={"confirm": 7})["result"]["resultType"] == "input_required"
    for wrong in (retry(state[:-2] + "AA"), retry("x"), retry(7), retry(state, args={"a": 2}), retry(state, who="bob"),
                  retry(state, tool="test_input_required_result_tampered_state"), retry("A" * 5000)):
        assert wrong["error"]["code"] == -32602
