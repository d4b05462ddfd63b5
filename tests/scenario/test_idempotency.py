"""The same call again: a retry is answered with what was done, and nothing is done twice."""
import sqlite3

import pytest

import eras
import harness
from harness import refused, until

RULES = "work_item_schemas:\n  task:\n    notes:\n      - { key: plan, role: queue, required: true }\n"


def once(caller, *ops, key="k", **more):
    return caller.envelope("items_write", {"ops": list(ops), "idempotencyKey": key, **more})


def create(title, parent):
    return {"op": "create", "title": title, "parentId": parent}


def children(caller, root):
    return sorted(row["title"] for row in caller.read("items_read", "list", parentId=root)["items"])


@pytest.fixture
def ada(stage):
    """Keys are a principal's own: each story has a new one."""
    return stage.agent("ada")


def test_a_retry_gets_the_stored_answer(stage, ada):
    """behaviour 2.1"""
    root = stage.project()
    first = once(ada, create("once", root))
    again = once(ada, create("once", root))
    assert again["replayed"] is True and again["results"][0]["replayed"] is True
    assert again["results"][0]["id"] == first["results"][0]["id"]
    assert children(ada, root) == ["once"]
    assert len(stage.events(of=first["results"][0]["id"])) == 1


def test_a_key_does_not_serve_two_payloads(stage, ada):
    """behaviour 2.2"""
    root = stage.project()
    once(ada, create("once", root))
    with refused("idempotency_mismatch") as refusal:
        harness.results(once(ada, create("twice", root)))
    assert refusal.detail == {"idempotencyKey": "k"}
    assert children(ada, root) == ["once"]


def test_what_a_gate_refused_is_tried_again(stage, ada):
    """behaviour 2.3"""
    item = stage.ada.item("one", parentId=stage.project(RULES), type="task")
    start = {"ops": [{"op": "transition", "itemId": item, "trigger": "start"}], "idempotencyKey": "k"}
    assert ada.envelope("advance", start)["error"]["code"] == "gate_blocked"
    ada.note(item, "plan", "Read the yearly file.")
    applied = ada.envelope("advance", start)
    assert applied["ok"] and "replayed" not in applied and "replayed" not in applied["results"][0]
    assert ada.get(item)["role"] == "work"
    assert ada.envelope("advance", start)["replayed"] is True


def test_a_wrong_call_is_refused_the_same_way_each_time(stage, ada):
    """behaviour 2.4. Only successes are kept; a fault of shape is found anew, and its key stays free."""
    root = stage.project()
    refusals = [once(ada, {"op": "create", "title": " ", "parentId": root}) for _ in range(3)]
    assert all(refusal["error"] == refusals[0]["error"] for refusal in refusals)
    assert refusals[0]["error"]["code"] == "invalid_request"
    assert once(ada, create("now right", root))["ok"]


def test_a_key_is_its_principals_own(stage, ada):
    """behaviour 2.5"""
    root, bob = stage.project(), stage.agent("bob")
    first, second = once(ada, create("one", root)), once(bob, create("other", root))
    assert "replayed" not in second
    assert first["results"][0]["id"] != second["results"][0]["id"]
    assert children(ada, root) == ["one", "other"]


def test_of_a_batch_only_what_failed_runs_again(stage, ada):
    """behaviour 2.6"""
    root = stage.project(RULES)
    waiting, free = ada.item("waiting", parentId=root, type="task"), ada.item("free", parentId=root)
    ops = [{"op": "claim", "itemId": free}, {"op": "transition", "itemId": waiting, "trigger": "start"},
           {"op": "transition", "itemId": free, "trigger": "start"}]
    call = {"ops": ops, "idempotencyKey": "k"}
    assert [element["ok"] for element in ada.envelope("advance", call)["results"]] == [True, False, True]
    ada.note(waiting, "plan", "x")
    again = ada.envelope("advance", call)
    assert [element.get("replayed", False) for element in again["results"]] == [True, False, True]
    assert again["ok"] and "replayed" not in again
    assert (ada.get(waiting)["role"], ada.get(free)["role"]) == ("work", "work")
    assert len(stage.events(of=free, type="item.transitioned")) == 1


@pytest.mark.parametrize("era", eras.ERAS)
def test_a_crash_between_commit_and_answer_is_covered_by_the_retry(new_dais, era):
    """behaviour 2.7"""
    dais = new_dais().start()
    stage = eras.Stage(dais, era)
    root, token = stage.project(), stage.ada.token
    stage.ada.says_and_leaves("items_write", {"ops": [create("once", root)], "idempotencyKey": "k"})
    stored, = until(lambda: stage.boss.read("items_read", "list", parentId=root)["items"])
    dais.kill().start()
    ada = eras.Caller(dais.url, token, era)
    again = once(ada, create("once", root))
    assert again["replayed"] is True
    assert again["results"][0]["id"] == stored["id"]
    assert children(dais, root) == ["once"]
    ada.close()


@pytest.mark.parametrize("era", eras.ERAS)
def test_a_key_lives_for_a_day(new_dais, era):
    """behaviour 2.8"""
    dais = new_dais().start()
    stage = eras.Stage(dais, era)
    root, token = stage.project(), stage.ada.token
    once(stage.ada, create("one", root), key="old")
    once(stage.ada, create("one", root), key="young")
    dais.stop()
    with sqlite3.connect(dais.state / "dais.db") as db:  # a day passes for one, an hour less for the other
        db.execute("UPDATE idempotency SET created_at = created_at - 86400000 WHERE key LIKE 'old:%'")
        db.execute("UPDATE idempotency SET created_at = created_at - 82800000 WHERE key LIKE 'young:%'")
    db.close()
    dais.start()
    ada = eras.Caller(dais.url, token, era)
    assert once(ada, create("one", root), key="young")["replayed"] is True
    assert "replayed" not in once(ada, create("one", root), key="old")
    assert children(dais, root) == ["one"] * 3
    ada.close()
