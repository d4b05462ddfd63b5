"""A01: an item has one holder, however many ask for it at the same moment."""
import json

import pytest

from harness import Refused, refused, results, together, until

pytestmark = pytest.mark.concurrent
WORKERS = 8


def workers(dais):
    return [dais.token(f"worker-{i}") for i in range(WORKERS)]


def claims_on_record(dais):
    """The items of all claim.acquired, in order."""
    marker = dais.item("marker")
    dais.claim(marker)
    items, count = [], 1
    while marker not in items:
        lines = dais.run("events", "--json", "--since", "0", "--type", "claim.acquired", "--count", count, check=0).stdout.splitlines()
        items = [json.loads(line)["itemId"] for line in lines]
        count += 1
    return items[:-1]


def test_a01a_one_of_eight_gets_the_item_and_seven_hear_when_to_come_back(dais):
    eight = workers(dais)
    local = dais.local()
    items = [made["id"] for batch in (0, 100) for made in local.ops(
        "items_write", *({"op": "create", "title": f"item {i}"} for i in range(batch, batch + 100)))]
    for item in items:
        answers = together(eight, lambda worker: worker.envelope(
            "advance", {"ops": [{"op": "claim", "itemId": item, "ttlSeconds": 60}]}))
        assert sum(answer["ok"] for answer in answers) == 1
        for answer in answers:
            if answer["ok"]:
                continue
            assert answer["error"]["code"] == "claim_held", answer
            held = answer["error"]["detail"]
            assert answer["error"].get("retryAfterMs", held.get("retryAfterMs")) > 0
            assert "worker-" not in str(answer), "the holder's name is nobody's business"


def test_a01b_forty_items_go_to_forty_claims_of_eight_workers(dais):
    local = dais.local()
    root = local.item("batch")
    items = {row["id"] for row in local.ops(
        "items_write", *({"op": "create", "title": f"item {i}", "parentId": root} for i in range(40)))}

    def loop(worker):
        won = []
        while True:
            answer = worker.op("advance", "claim", selector={"ancestorId": root}, ttlSeconds=60)
            if not answer["claimed"]:
                return won, answer
            won.append(answer["itemId"])
            worker.advance(answer["itemId"], "start")

    answers = together(workers(dais), loop)
    won = [item for taken, _ in answers for item in taken]
    assert sorted(won) == sorted(items), "each item exactly once"
    for _, empty in answers:
        assert empty["reason"] in ("queue_empty", "none_eligible")
        assert ("retryAfterMs" in empty) is (empty["reason"] == "none_eligible")


def test_a01c_a_second_claim_in_one_call_is_refused_and_the_first_stays(dais):
    ada, bob = dais.token("ada"), dais.token("bob")
    one, two = ada.item("one"), ada.item("two")
    envelope = ada.envelope("advance", {"ops": [{"op": "claim", "itemId": one}, {"op": "claim", "itemId": two}]})
    first, second = envelope["results"]
    assert (first["ok"], first["itemId"]) == (True, one)
    assert (second["ok"], second["error"]["code"]) == (False, "invalid_request")
    assert second["error"]["detail"]["fields"][0]["field"] == "ops[1].op"
    assert ada.get(one, "claim")["claim"]["mine"] is True
    with refused("claim_held"):
        bob.claim(one)
    bob.claim(two)


def test_a01d_a_lapsed_claim_does_not_let_its_old_holder_act(dais):
    ada, bob = dais.token("ada"), dais.token("bob")
    item = ada.item("contested")
    generation = ada.claim(item, ttlSeconds=1)["claimGen"]
    until(lambda: answer_or_none(lambda: bob.claim(item, ttlSeconds=60)))
    with refused("not_claim_holder"):
        ada.advance(item, "start", claimGen=generation)
    assert bob.get(item, "claim")["claim"]["mine"] is True
    bob.advance(item, "start")


def answer_or_none(work):
    try:
        return work()
    except Refused:
        return None


def test_each_winner_left_exactly_one_claim_acquired(dais):
    eight = workers(dais)
    item = dais.item("watched")
    together(eight, lambda worker: worker.envelope("advance", {"ops": [{"op": "claim", "itemId": item}]}))
    assert claims_on_record(dais) == [item]


def test_a_refused_claim_changes_nothing_of_what_the_caller_holds(dais):
    ada, bob = dais.token("ada"), dais.token("bob")
    mine, theirs = ada.item("mine"), ada.item("theirs")
    ada.claim(mine)
    bob.claim(theirs)
    with refused("claim_held"):
        ada.claim(theirs)
    with refused("claim_held"):
        bob.claim(mine)


def test_same_idempotency_key_fifty_times_at_once_makes_one_item(dais):
    token = dais.new_token("ada")
    callers = [dais.http(token) for _ in range(50)]
    answers = together(callers, lambda caller: caller.envelope(
        "items_write", {"ops": [{"op": "create", "title": "once"}], "idempotencyKey": "same"}))
    assert len({results(answer)[0]["id"] for answer in answers}) == 1
    assert dais.read("items_read", "list", limit=10)["items"][0]["title"] == "once"
    assert len(dais.read("items_read", "list", limit=10)["items"]) == 1


def test_one_key_with_another_payload_is_refused(dais):
    ada = dais.token("ada")
    ada.ops("items_write", {"op": "create", "title": "once"}, idempotencyKey="k")
    with refused("idempotency_mismatch"):
        ada.ops("items_write", {"op": "create", "title": "twice"}, idempotencyKey="k")
