"""Claims, leases, seats and search as their callers meet them, in both eras of the protocol."""
import json
import sqlite3

import pytest

from harness import data, refused, until

SEATS = """
work_item_schemas:
  task:
    seats:
      - { name: implementer, phase: work, enters: true }
      - { name: test-author, phase: work }
      - { name: reviewer, phase: review, reads_exclude: [implementation-notes] }
    notes:
      - { key: implementation-notes, role: work, required: true, seat: implementer }
      - { key: tests, role: work, required: false, seat: test-author }
      - { key: verdict, role: review, required: false }
"""
LEASES = """
work_item_schemas:
  both: { default_traits: [x, y], notes: [] }
  one: { default_traits: [y], notes: [] }
traits:
  x: { resources: [{ key: x, ttlSeconds: 60 }] }
  y: { resources: [{ key: y, ttlSeconds: 60 }] }
resources: { x: { description: X }, y: { description: Y } }
"""


def claims_of(stage, item):
    return [event["type"] for event in stage.events(of=item) if event["type"].startswith("claim.")]


# ---- claims ----

def test_whoever_comes_second_hears_when_to_come_back(stage):
    """behaviour 6.1"""
    item = stage.ada.item("x", parentId=stage.project())
    until_ = stage.ada.claim(item, ttlSeconds=60)["expiresAt"]
    with refused("claim_held") as refusal:
        stage.bob.claim(item)
    assert set(refusal.detail) == {"itemId", "expiresAt", "retryAfterMs"}
    assert refusal.detail["expiresAt"] == until_ and 0 < refusal.detail["retryAfterMs"] <= 60_000
    assert refusal.error["kind"] == "transient"
    assert "\"ada" not in json.dumps(refusal.envelope)
    assert claims_of(stage, item) == ["claim.acquired", "claim.rejected"]


def test_a_principal_holds_one_item_at_a_time(stage):
    """behaviour 6.3"""
    root = stage.project()
    one, two, theirs = (stage.ada.item(title, parentId=root) for title in ("one", "two", "theirs"))
    stage.bob.claim(theirs)
    stage.ada.claim(one)
    with refused("claim_held"):
        stage.ada.claim(theirs)
    assert stage.ada.get(one, "claim")["claim"]["mine"] is True, "a refusal takes nothing"
    assert stage.ada.claim(two)["superseded"] == [one]
    assert stage.ada.get(one, "claim")["claim"] == {"state": "unclaimed"}
    released = [event["data"] for event in stage.events(of=one, type="claim.released")]
    assert [data["reason"] for data in released] == ["superseded"]


def test_claiming_again_prolongs(stage):
    """behaviour 6.4"""
    item = stage.ada.item("x", parentId=stage.project())
    first = stage.ada.claim(item, ttlSeconds=60)
    again = stage.ada.claim(item, ttlSeconds=120, claimRef="w-7")
    assert again["refreshed"] is True and again["expiresAt"] > first["expiresAt"]
    assert (again["claimGen"], again["originalClaimedAt"]) == (first["claimGen"], first["claimedAt"])
    assert (again["ttlSeconds"], again["heartbeatEverySeconds"], again["claimRef"]) == (120, 60, "w-7")


def test_two_local_sessions_are_one_principal(dais):
    """behaviour 6.5"""
    first, second = dais.local(), dais.local()
    item = first.item("x")
    held = first.claim(item)
    again = second.claim(item)
    assert again["refreshed"] is True and again["claimGen"] == held["claimGen"]
    assert second.advance(item, "start")["newRole"] == "work"


def test_claiming_beating_and_releasing_change_no_version(stage):
    """behaviour 6.12"""
    item = stage.ada.item("x", parentId=stage.project())
    before = stage.ada.get(item)
    stage.ada.claim(item)
    stage.ada.op("advance", "heartbeat", itemId=item)
    stage.ada.op("advance", "release", itemId=item)
    assert stage.ada.get(item) == before


def test_what_has_ended_is_not_claimed(stage):
    """behaviour 6.13"""
    root = stage.project()
    item = stage.ada.item("x", parentId=root)
    stage.ada.advance(item, "complete")
    with refused("invalid_transition") as refusal:
        stage.ada.claim(item)
    assert refusal.detail == {"itemId": item, "fromRole": "terminal", "trigger": "claim", "allowed": ["reopen"]}
    with refused("invalid_request", path="ops[0].selector.roles[0]"):
        stage.ada.op("advance", "claim", selector={"roles": ["terminal"]})


@pytest.mark.parametrize("tool, kind, name", [("items_read", "select", "next"), ("advance", "op", "claim")])
def test_next_and_claim_list_the_roles_that_they_take(stage, tool, kind, name):
    params = data(stage.ada.envelope(tool, {"describe": True, kind: name}))[f"{kind}s"][name]["params"]
    fields = {param["name"]: param for param in params}
    roles = (fields if kind == "select" else {param["name"]: param for param in fields["selector"]["params"]})["roles"]
    assert roles["values"] == ["queue", "work", "review", "blocked"]
    for role in roles["values"] + ["terminal"]:
        filters = {"roles": [role]}
        call = {kind: name, **filters} if kind == "select" else {"ops": [{kind: name, "selector": filters}]}
        assert stage.ada.envelope(tool, call)["ok"] == (role != "terminal")


def test_of_two_claims_in_a_call_the_first_stands(stage):
    """behaviour 6.14. A claim ends the caller's other claims, so a call that makes two would keep one silently."""
    root = stage.project()
    one, two = stage.ada.item("one", parentId=root), stage.ada.item("two", parentId=root)
    envelope = stage.ada.envelope("advance", {"ops": [{"op": "claim", "itemId": one}, {"op": "claim", "itemId": two}]})
    assert [element["ok"] for element in envelope["results"]] == [True, False]
    error = envelope["results"][1]["error"]
    assert (error["code"], error["detail"]["fields"][0]["field"]) == ("invalid_request", "ops[1].op")
    assert stage.ada.get(one, "claim")["claim"]["mine"] is True
    assert stage.ada.get(two, "claim")["claim"] == {"state": "unclaimed"}


def test_an_older_session_of_the_same_principal_is_fenced_off(stage):
    """behaviour 6.16"""
    item = stage.ada.item("x", parentId=stage.project())
    late, prompt = stage.ada, stage.caller(stage.ada.token)
    old = late.claim(item, ttlSeconds=1)["claimGen"]
    until(lambda: prompt.get(item, "claim")["claim"]["state"] == "expired")
    new = prompt.claim(item)
    assert new["claimGen"] == old + 1 and "refreshed" not in new
    for op, more in (("transition", {"trigger": "start"}), ("heartbeat", {})):
        with refused("not_claim_holder"):
            late.op("advance", op, itemId=item, claimGen=old, **more)
    assert prompt.advance(item, "start", claimGen=new["claimGen"])["newRole"] == "work"
    assert claims_of(stage, item).count("claim.expired") == 1


# ---- leases ----

def test_resources_come_all_or_none(stage):
    """behaviour 6.17"""
    root = stage.project(LEASES.replace("key: x", f"key: x-{stage.era}").replace("key: y", f"key: y-{stage.era}"))
    holder, wants_both = stage.ada.item("holder", parentId=root, type="one"), stage.ada.item("both", parentId=root, type="both")
    stage.ada.advance(holder, "start")
    with refused("resource_unavailable") as refusal:
        stage.ada.advance(wants_both, "start")
    assert refusal.detail["resources"] == [{"name": f"y-{stage.era}", "mode": "exclusive"}]
    assert 0 < refusal.detail["retryAfterMs"] <= 60_000 and holder not in str(refusal.detail)
    assert stage.ada.get(wants_both)["role"] == "queue"
    assert stage.events(of=wants_both, type="lease.acquired") == [], "x stayed free"
    stage.ada.advance(holder, "complete")
    stage.ada.advance(wants_both, "start")
    assert len(stage.events(of=wants_both, type="lease.acquired")) == 2
    stage.ada.advance(wants_both, "cancel")


@pytest.mark.parametrize("way", ["block", "complete", "cancel", "delete", "cascade"])
def test_every_way_out_of_work_gives_the_resource_back(stage, way):
    """behaviour 6.18"""
    root = stage.project(LEASES.replace("key: y", f"key: y-{stage.era}-{way}"))
    stage.ada.item("keeps the project open", parentId=root)
    item, next_ = (stage.ada.item(title, parentId=root, type="one") for title in ("holder", "next"))
    stage.ada.advance(item, "start")
    if way == "delete":
        stage.ada.op("items_write", "delete", itemId=item)
    elif way == "cascade":
        stage.ada.advance(stage.ada.item("child", parentId=item), "complete")
        assert stage.ada.get(item)["role"] == "terminal"
    else:
        stage.ada.advance(item, way)
    released = stage.events(of=item, type="lease.released")
    assert [event["data"]["reason"] for event in released] == ["item_deleted" if way == "delete" else "released"]
    history = [json.loads(line) for line in stage.everything().splitlines() if '"lease_history"' in line]
    assert sum(row["resource_key"] == f"y-{stage.era}-{way}" for row in history) == 1
    stage.ada.advance(next_, "start")
    stage.ada.advance(next_, "cancel")


# ---- seats ----

class Run:
    def __init__(self, stage):
        self.stage = stage
        self.root = stage.project(SEATS)
        self.item = stage.ada.item("x", parentId=self.root, type="task")
        self.id = stage.boss.op("report", "open_run", rootId=self.root, title="Wave 3")["runId"]

    def seat(self, name):
        issued = self.stage.boss.op("report", "issue_seat", runId=self.id, seat=name)
        return self.stage.caller(issued["token"])


@pytest.fixture
def run(stage):
    return Run(stage)


def test_only_its_seat_enters_a_phase(stage, run):
    """behaviour 6.21"""
    reviewer, implementer = run.seat("reviewer"), run.seat("implementer")
    with refused("seat_forbidden") as refusal:
        reviewer.advance(run.item, "start")
    assert refusal.detail == {"itemId": run.item, "seat": "reviewer", "action": "enter:work", "allowedSeats": ["implementer"]}
    assert implementer.advance(run.item, "start")["newRole"] == "work"
    other = stage.ada.item("y", parentId=run.root, type="task")
    assert stage.ada.advance(other, "start")["newRole"] == "work", "who holds no seat is not held to seats"


def test_a_note_of_a_seat_is_that_seats(stage, run):
    """behaviour 6.22"""
    implementer, author = run.seat("implementer"), run.seat("test-author")
    with refused("note_owned_by_other") as refusal:
        implementer.note(run.item, "tests", "mine")
    assert refusal.detail == {"itemId": run.item, "key": "tests", "ownerSeat": "test-author"}
    author.note(run.item, "tests", "twelve cases")
    with refused("note_owned_by_other"):
        implementer.op("notes_write", "delete", itemId=run.item, key="tests")
    assert implementer.body(run.item, "tests") == "twelve cases"
    told = stage.boss.read("notes_read", "get", itemId=run.item, key="tests", fields=["actor", "verification"])["note"]
    assert (told["actor"]["kind"], told["actor"]["seat"], told["actor"]["runId"]) == ("seat", "test-author", run.id)
    assert told["actor"]["parent"] == "api:admin"
    assert told["verification"] == {"status": "unchecked", "verifier": "noop"}


def test_a_blind_seat_neither_reads_nor_finds(stage, run):
    """behaviour 6.23"""
    implementer, reviewer = run.seat("implementer"), run.seat("reviewer")
    implementer.note(run.item, "implementation-notes", "a peculiar needle")
    with refused("seat_forbidden") as refusal:
        reviewer.read("notes_read", "get", itemId=run.item, key="implementation-notes")
    assert (refusal.detail["action"], refusal.detail["allowedSeats"]) == ("read:implementation-notes", ["implementer", "test-author"])
    row, = reviewer.read("notes_read", "list", itemId=run.item, fields=["body", "sha256", "headings"])["notes"]
    assert row["key"] == "implementation-notes" and not {"body", "sha256", "headings", "snippet"} & set(row)
    for mode in ("auto", "text", "substring"):
        assert reviewer.read("items_read", "search", query="peculiar needle", matchMode=mode)["hits"] == []
        assert len(implementer.read("items_read", "search", query="peculiar needle", matchMode=mode)["hits"]) == 1


def test_a_closed_run_has_no_callers_and_no_claims(stage, run):
    """behaviour 6.24"""
    implementer = run.seat("implementer")
    implementer.claim(run.item)
    closed = stage.boss.op("report", "close_run", runId=run.id)
    assert (closed["revokedSeats"], closed["releasedClaims"]) == (1, 1)
    status, _, body = implementer.ask("POST", "/api/v1/ops/items_read", b'{"select":"list"}')
    assert (status, json.loads(body)["error"]["code"]) == (401, "unauthenticated")
    assert stage.ada.get(run.item, "claim")["claim"] == {"state": "unclaimed"}
    released, = stage.events(of=run.item, type="claim.released")
    assert (released["data"]["reason"], released["data"]["cause"]) == ("released", "run_closed")
    assert stage.ada.claim(run.item)["claimed"] is True


def test_a_new_seat_is_on_record_without_its_token(stage, run):
    issued = stage.boss.op("report", "issue_seat", runId=run.id, seat="implementer")
    minted = [event for event in stage.events(type="run.seat_minted") if event["data"]["seatId"] == issued["seatId"]]
    assert [event["data"] for event in minted] == [
        {"seatId": issued["seatId"], "seat": "implementer", "expiresAt": issued["expiresAt"]}]
    assert issued["token"] not in stage.everything()


# ---- search ----

def test_vacuum_changes_no_hit(new_dais):
    """behaviour 6.31"""
    dais = new_dais().start()
    items = [dais.item(f"needle number {n}") for n in range(20)]
    for item in items[:10]:
        dais.note(item, "k", "a needle in a note", role="queue")
    for item in items[::3]:
        dais.op("items_write", "delete", itemId=item)
    before = dais.read("items_read", "search", query="needle", limit=100)["hits"]
    dais.stop()
    db = sqlite3.connect(dais.state / "dais.db", isolation_level=None)
    db.execute("VACUUM")
    db.close()
    dais.start()
    assert len(before) > 10
    assert dais.read("items_read", "search", query="needle", limit=100)["hits"] == before


def test_who_did_it_is_told_only_to_those_who_may_know(stage):
    """behaviour 6.32"""
    root = stage.project()
    item = stage.ada.item("x", parentId=root)
    stage.ada.note(item, "k", "text", role="queue")
    stage.ada.advance(item, "start")
    put = {"kind": "page", "rootId": root, "slug": "p", "body": "x"}
    stage.boss.op("docs_write", "put", **put)
    asked = [("items_read", "history", {"itemId": item}), ("items_read", "get", {"itemId": item, "fields": ["createdBy"]}),
             ("notes_read", "list", {"itemId": item, "fields": ["actor", "verification"]}),
             ("notes_read", "revisions", {"itemId": item, "key": "k"}),
             ("docs_read", "list", {"rootId": root, "fields": ["actor"]}), ("docs_read", "versions", {"rootId": root, "slug": "p"})]
    for tool, select, arguments in asked:
        told = json.dumps(stage.boss.read(tool, select, **arguments))
        assert "api:" in told, (tool, select)
        text = json.dumps(stage.bob.read(tool, select, **arguments))
        for word in ("api:", '"actor"', '"verification"', '"createdBy"', '"ada'):
            assert word not in text, (tool, select, word)
