"""Gates and cascades as a caller meets them, in both eras of the protocol."""
import pytest

from harness import refused

TASK = """
work_item_schemas:
  task:
    notes:
      - { key: requirements, role: queue, required: true, description: What, guidance: List it., skill: spec-quality }
      - { key: implementation-notes, role: work, required: true, description: How }
"""
ORDER = ["start", "complete", "block", "hold", "resume", "cancel", "reopen"]
# What each trigger leads to from each role, for an item without rules; a review phase needs rules that have one.
TABLE = {
    "queue": {"start": "work", "complete": "terminal", "block": "blocked", "hold": "blocked", "cancel": "terminal"},
    "work": {"start": "terminal", "complete": "terminal", "block": "blocked", "hold": "blocked", "cancel": "terminal"},
    "review": {"start": "terminal", "complete": "terminal", "block": "blocked", "hold": "blocked", "cancel": "terminal"},
    "blocked": {"resume": "queue", "cancel": "terminal"},
    "terminal": {"reopen": "queue"},
}
WAY = {"queue": [], "work": ["start"], "review": ["start", "start"], "blocked": ["block"], "terminal": ["complete"]}
REVIEWED = "work_item_schemas:\n  task:\n    notes:\n      - { key: verdict, role: review, required: false }\n"


@pytest.mark.parametrize("role", TABLE)
def test_the_table_of_transitions_is_complete(stage, role):
    """behaviour 3.1"""
    root = stage.project(REVIEWED)
    stage.ada.item("keeps the project open", parentId=root)
    for trigger in [*ORDER, "sideways"]:
        item = stage.ada.item("x", parentId=root, **({"type": "task"} if role == "review" else {}))
        for step in WAY[role]:
            stage.ada.advance(item, step)
        assert stage.ada.get(item)["role"] == role
        if trigger in TABLE[role]:
            answer = stage.ada.advance(item, trigger.upper())
            assert (answer["previousRole"], answer["newRole"]) == (role, TABLE[role][trigger])
            assert stage.ada.get(item)["role"] == TABLE[role][trigger]
            continue
        with refused("invalid_transition") as refusal:
            stage.ada.advance(item, trigger)
        assert refusal.detail == {"itemId": item, "fromRole": role, "trigger": trigger,
                                  "allowed": [allowed for allowed in ORDER if allowed in TABLE[role]]}
        assert stage.ada.get(item)["role"] == role


def test_a_start_without_its_note_is_refused_and_on_record(stage):
    """behaviour 3.2"""
    item = stage.ada.item("x", parentId=stage.project(TASK), type="task")
    with refused("gate_blocked") as refusal:
        stage.ada.advance(item, "start")
    assert refusal.detail == {"itemId": item, "role": "queue", "missing": [{"key": "requirements", "role": "queue"}]}
    assert f"Item {item} is missing 1 required note. Refused: start (queue → work)." in refusal.error["message"]
    assert refusal.error["fix"]
    assert stage.ada.get(item)["role"] == "queue"
    assert [event["type"] for event in stage.events(of=item)] == ["item.created", "transition.rejected"]


def test_gates_speak_in_their_order(stage):
    """behaviour 3.9"""
    root = stage.project(TASK)
    blocker, item = stage.ada.item("blocker", parentId=root), stage.ada.item("x", parentId=root, type="task")
    stage.ada.block(blocker, item)
    stage.bob.claim(item)
    with refused("not_claim_holder") as refusal:
        stage.ada.advance(item, "start")
    assert refusal.detail == {"itemId": item}
    stage.bob.op("advance", "release", itemId=item)
    with refused("dependency_unmet") as refusal:
        stage.ada.advance(item, "start")
    assert refusal.detail == {"itemId": item, "blockers": [{"id": blocker, "role": "queue"}]}
    stage.ada.advance(blocker, "complete")
    with refused("gate_blocked"):
        stage.ada.advance(item, "start")


def test_a_trait_brings_a_gate_of_its_own(stage):
    """behaviour 3.21"""
    root = stage.project("work_item_schemas:\n  task: { notes: [] }\n"
                         "traits:\n  needs-a11y:\n    notes:\n      - { key: a11y, role: review, required: true }\n")
    item = stage.ada.item("x", parentId=root, type="task", traits=["needs-a11y"])
    stage.ada.advance(item, "start")
    assert stage.ada.advance(item, "start")["newRole"] == "review"
    with refused("gate_blocked") as refusal:
        stage.ada.advance(item, "start")
    assert refusal.detail["missing"] == [{"key": "a11y", "role": "review"}]


def test_the_preview_tells_all_that_stands_in_the_way(stage):
    """behaviour 3.23"""
    root = stage.project(TASK)
    blocker, item = stage.ada.item("blocker", parentId=root), stage.ada.item("x", parentId=root, type="task")
    stage.ada.block(blocker, item)
    before = stage.everything()
    gate = stage.ada.read("items_read", "gate", itemId=item)
    assert (gate["canAdvance"], gate["blockedBy"], gate["targetRole"]) == (False, ["dependency", "note"], "work")
    assert gate["missing"] == [{"key": "requirements", "role": "queue"}]
    assert gate["blockers"] == [{"id": blocker, "role": "queue"}]
    assert (gate["guidanceKey"], gate["skillPointer"]) == ("requirements", "spec-quality")
    assert stage.everything() == before, "looking changes nothing"


def test_the_preview_shows_a_claim_but_not_whose(stage):
    """behaviour 3.24"""
    item = stage.ada.item("x", parentId=stage.project())
    stage.bob.claim(item)
    gate = stage.ada.read("items_read", "gate", itemId=item)
    assert gate["canAdvance"] is True and "blockedBy" not in gate
    assert gate["claim"] == {"state": "claimed"}
    assert "bob" not in str(gate)


SEATS = """
work_item_schemas:
  task:
    notes:
      - { key: built, role: work, required: true, seat: implementer }
      - { key: verdict, role: review, required: true, seat: reviewer, independent_of: [implementer] }
    seats:
      - { name: implementer, phase: work }
      - { name: reviewer, phase: review }
independence: { mode: reject }
"""


def in_review(stage):
    item = stage.ada.item("x", parentId=stage.project(SEATS), type="task")
    stage.ada.advance(item, "start")
    return item


def test_a_second_hand_does_not_launder_the_first(stage):
    """behaviour 3.27"""
    item = in_review(stage)
    stage.ada.note(item, "built", "by ada")
    stage.bob.note(item, "built", "by bob, over ada's")
    stage.ada.advance(item, "start")
    stage.ada.note(item, "verdict", "good, says ada")
    with refused("gate_blocked") as refusal:
        stage.ada.advance(item, "start")
    assert refusal.detail["missing"] == []
    assert refusal.detail["violations"] == [
        {"key": "verdict", "seat": "reviewer", "constraint": "same_actor", "conflictingSeat": "implementer"}]
    for word in ("api:", "'ada", "'bob"):
        assert word not in str(refusal.detail)


def test_a_waiver_must_be_later_than_what_it_waives(stage):
    """behaviour 3.26"""
    item = in_review(stage)
    stage.ada.note(item, "verdict", "independence: temporal-only\nwritten first", role="review")
    stage.ada.note(item, "built", "afterwards", role="work")
    stage.ada.advance(item, "start")
    with refused("gate_blocked") as refusal:
        stage.ada.advance(item, "start")
    assert "waived" not in refusal.detail["violations"][0]
    stage.ada.op("notes_write", "delete", itemId=item, key="verdict")
    stage.ada.note(item, "verdict", "independence: temporal-only\nwritten last", role="review")
    answer = stage.ada.advance(item, "start")
    assert answer["newRole"] == "terminal"
    assert answer["violations"] == [{"key": "verdict", "seat": "reviewer", "constraint": "same_actor",
                                     "conflictingSeat": "implementer", "waived": True}]


def test_the_last_child_completes_its_parents_up_to_the_root(stage):
    """behaviours 4.1, 4.2"""
    root = stage.project()
    feature = stage.ada.item("F", parentId=root)
    one, two = (stage.ada.item(title, parentId=feature) for title in "AB")
    stage.ada.advance(one, "start")
    assert "cascadeEvents" not in stage.ada.advance(one, "complete")
    answer = stage.ada.advance(two, "complete")
    assert answer["cascadeEvents"] == [
        {"itemId": feature, "title": "F", "from": "work", "to": "terminal", "trigger": "complete", "applied": True,
         "statusLabel": "done"},
        {"itemId": root, "title": "Harbour", "from": "work", "to": "terminal", "trigger": "complete", "applied": True,
         "statusLabel": "done"}]
    assert [(stage.ada.get(item)["role"], stage.ada.get(item)["statusLabel"]) for item in (feature, root)] == [("terminal", "done")] * 2
    told = [event["data"] for event in stage.events(of=feature, type="item.transitioned")][-1]
    assert (told["trigger"], told["origin"]) == ("cascade", "cascade")


def test_a_parent_held_by_its_gate_waits_in_ready_to_close(stage):
    """behaviour 4.6"""
    root = stage.project("work_item_schemas:\n  gated:\n    notes:\n      - { key: why, role: queue, required: true }\n")
    feature = stage.ada.item("F", parentId=root, type="gated")
    child = stage.ada.item("A", parentId=feature)
    answer = stage.ada.advance(child, "complete")
    assert (answer["newRole"], answer["cascadeEvents"]) == ("terminal", [
        {"itemId": feature, "title": "F", "from": "queue", "to": "terminal", "trigger": "complete", "applied": False,
         "gateBlocked": True, "missingNotes": [{"key": "why", "role": "queue"}]}])
    waiting = stage.ada.read("items_read", "context", rootId=root)["ready_to_close"]
    assert [row["id"] for row in waiting] == [feature]
    stage.ada.note(feature, "why", "because")
    assert stage.ada.get(feature)["role"] == "queue", "it waits for an explicit advance"
    stage.ada.advance(feature, "complete")
    assert "ready_to_close" not in stage.ada.read("items_read", "context", rootId=root)


def test_a_tree_is_all_or_nothing_and_so_is_its_plan(stage):
    """behaviour 4.19"""
    root = stage.project()
    stage.boss.op("docs_write", "put", kind="plan", rootId=root, slug="plan", body="# One\ntext\n")
    before = stage.everything()
    children = [{"ref": f"c{n}", "title": f"child {n}"} for n in range(9)]
    deps = [{"from": f"c{n}", "to": f"c{n + 1}"} for n in range(8)] + [{"from": "c8", "to": "c0"}]
    with refused("cycle_detected") as refusal:
        stage.ada.op("items_write", "create_tree", root={"title": "F", "parentId": root}, children=children, deps=deps,
                     docRef={"slug": "plan"})
    assert refusal.detail["path"] == ["c8", *(f"c{n}" for n in range(9))]
    assert stage.everything() == before
    assert stage.boss.read("docs_read", "get", rootId=root, slug="plan")["document"]["status"] == "pending"


def test_a_plans_section_is_copied_and_the_plan_adopted(stage):
    """behaviour 4.20"""
    root = stage.project()
    stage.boss.op("docs_write", "put", kind="plan", rootId=root, slug="plan",
                  body="# Plan\n## Tide tables\nfirst\n## Tide tables\nsecond\n## End\n")
    tree = stage.ada.op("items_write", "create_tree", root={"title": "F", "parentId": root}, docRef={"slug": "plan"}, children=[
        {"ref": "a", "title": "A", "noteAnchors": [{"noteKey": "k", "role": "queue", "anchor": "tide-tables-2"}]}])
    assert stage.ada.body(tree["children"][0]["id"], "k") == "## Tide tables\nsecond\n"
    assert tree["adopted"]["slug"] == "plan"
    plan = stage.boss.read("docs_read", "list", rootId=root, kinds=["plan"])["documents"][0]
    assert (plan["status"], plan["adoptedByItemId"]) == ("adopted", tree["root"]["id"])


def test_a_tree_ends_in_the_order_of_its_edges(stage):
    """behaviour 4.21"""
    root = stage.project(TASK)
    feature = stage.ada.item("F", parentId=root)
    screens, api = (stage.ada.item(title, parentId=feature) for title in ("screens", "api"))
    tides = stage.ada.item("tides", parentId=feature, type="task")
    stage.ada.block(tides, api)
    stage.ada.block(api, screens)

    def end():
        envelope = stage.ada.envelope("items_write", {"ops": [{"op": "complete_tree", "itemId": feature, "includeRoot": False}]})
        element = envelope["results"][0]
        return envelope, element, [(row["title"], row["outcome"], row.get("reason")) for row in element["items"]]

    envelope, element, rows = end()
    assert envelope["error"]["code"] == element["error"]["code"] == "partial_failure"
    assert rows == [("tides", "failed", None), ("api", "skipped", "dependency_failed"), ("screens", "skipped", "dependency_failed")]
    assert element["counts"] == {"total": 3, "completed": 0, "skipped": 2, "gateFailures": 1}
    for key in ("requirements", "implementation-notes"):
        stage.ada.note(tides, key, "x")
    envelope, element, rows = end()
    assert envelope["ok"] and rows == [(title, "applied", None) for title in ("tides", "api", "screens")]
    assert element["counts"] == {"total": 3, "completed": 3, "skipped": 0, "gateFailures": 0}
    assert stage.ada.get(feature)["role"] == "terminal", "its last child has ended"
