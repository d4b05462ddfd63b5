"""Notes, documents and rules of both layers, in both eras of the protocol.

The global layer is a file that is read at start; a project's own rules are pushed.
"""
import json

import pytest

import eras
import harness
from harness import refused

BASE = """
work_item_schemas:
  task:
    notes:
      - { key: requirements, role: queue, required: true, skill: spec-quality }
      - { key: log, role: work, required: false, maxLength: 5000 }
"""


@pytest.fixture(params=eras.ERAS)
def layered(request, new_dais):
    """A function that starts a server on a global document; the stage of it."""
    dais = new_dais()

    def start(rules):
        write_global(dais, rules)
        return eras.Stage(dais.start(), request.param)

    return start


def write_global(dais, rules):
    (dais.work / ".dais").mkdir(exist_ok=True)
    (dais.work / ".dais" / "config.yaml").write_text(rules)


def task(stage, root, **more):
    return stage.ada.item("x", parentId=root, type="task", **more)


def schema(stage, root, **more):
    return stage.ada.read("items_read", "schema", rootId=root, **more)


def keys(schema_):
    return [note["key"] for note in schema_["notes"]]


# ---- notes ----

def test_a_note_keeps_its_identity(stage):
    """behaviour 5.1"""
    item = stage.ada.item("x", parentId=stage.project())
    first = stage.ada.note(item, "k", "one", role="queue")
    before = stage.ada.read("notes_read", "get", itemId=item, key="k", fields=["createdAt"])["note"]["createdAt"]
    second = stage.bob.note(item, "k", "two", role="queue")
    assert (first["version"], first["created"], second["version"], second["created"]) == (1, True, 2, False)
    assert first["id"] == second["id"]
    assert stage.ada.read("notes_read", "get", noteId=first["id"], fields=["createdAt"])["note"]["createdAt"] == before
    assert stage.ada.body(item, "k") == "two"


def test_the_schema_says_where_a_note_belongs(stage):
    """behaviour 5.2"""
    item = task(stage, stage.project(BASE))
    with refused("schema_violation", says="queue") as refusal:
        stage.ada.note(item, "requirements", "x", role="work")
    assert refusal.detail["type"] == "task"
    assert stage.ada.read("notes_read", "list", itemId=item)["notes"] == []


@pytest.mark.parametrize("mode", ["warn", "reject"])
def test_the_longest_note_counts_characters_of_what_is_stored(stage, mode):
    """behaviours 5.3, 5.4"""
    item = task(stage, stage.project(BASE + f"note_limits: {{ mode: {mode} }}\n"))
    fits = "é" * 4998 + "\r\n" + "x"  # 5000 once the line end is one character
    stage.ada.note(item, "log", fits)
    assert stage.ada.body(item, "log") == fits.replace("\r\n", "\n")
    envelope = stage.ada.envelope("notes_write", {"ops": [{"op": "upsert", "itemId": item, "key": "log", "body": "é" * 5001}]})
    if mode == "warn":
        assert envelope["ok"]
        warning = next(warning for warning in envelope["warnings"] if warning["code"] == "note_over_limit")
        assert "5000" in warning["message"] and "5001" in warning["message"]
        return
    assert envelope["error"]["code"] == "note_too_long"
    assert envelope["error"]["detail"] == {"key": "log", "max": 5000, "actual": 5001}
    with refused("payload_too_large") as refusal:
        stage.ada.note(item, "big", "x" * 65537, role="queue")
    assert refusal.detail == {"field": "ops[0].body", "max": 65536, "actual": 65537}


def test_a_list_of_notes_has_no_bodies(stage):
    """behaviour 5.5"""
    item = stage.ada.item("x", parentId=stage.project())
    stage.ada.note(item, "k", "long text", role="queue")
    row, = stage.ada.read("notes_read", "list", itemId=item)["notes"]
    assert (row["key"], row["bodyLength"]) == ("k", 9) and "body" not in row and "long" not in json.dumps(row)


# ---- a project's rules ----

def test_rules_hold_for_the_next_call(stage):
    """behaviour 5.13"""
    root = stage.project()
    first, second = task(stage, root), task(stage, root)
    stage.ada.advance(first, "start")
    stage.boss.rules(root, BASE)
    with refused("gate_blocked"):
        stage.ada.advance(second, "start")


def test_bad_rules_leave_the_good_ones(stage):
    """behaviours 5.14, 5.15"""
    root = stage.project(BASE)
    before = stage.everything()
    two = "work_item_schemas:\n  t:\n    seats:\n{}      - {{ name: a, phase: work, enters: true }}\n" \
          "      - {{ name: b, phase: work, enters: true }}\n"
    with refused("config_invalid") as refusal:
        stage.boss.rules(root, two.format(""))
    assert len(refusal.detail["errors"]) == 1 and "work" in refusal.detail["errors"][0]["reason"]
    with refused("config_invalid") as refusal:
        stage.boss.op("config", "validate", rootId=root, yaml=two.format("      - { name: unowned, phase: queue }\n"))
    assert len(refusal.detail["errors"]) == 1 and "unowned" in refusal.detail["errors"][0]["reason"]
    assert stage.everything() == before


@pytest.mark.parametrize("mode, effective, warned", [("off", "warn", True), ('"off"', "off", False), ("no", "warn", True)])
def test_an_unquoted_off_does_not_switch_off(stage, mode, effective, warned):
    """behaviour 5.16"""
    root = stage.project()
    pushed = stage.boss.rules(root, f"independence: {{ mode: {mode} }}\n")
    codes = [warning["code"] for warning in pushed.get("schemaWarnings", [])]
    assert codes == (["independence_unknown"] if warned else [])
    assert stage.ada.read("config", "effective", rootId=root)["independence"]["mode"] == effective


def test_rolling_back_goes_forward(stage):
    """behaviour 5.21"""
    root = stage.project()
    texts = [f"# version {n}\n{BASE}" for n in range(1, 8)]
    for text in texts:
        stage.boss.rules(root, text)
    back = stage.boss.op("config", "rollback", rootId=root, version=6)
    assert (back["version"], back["rolledBackTo"], back["changed"]) == (8, 6, True)
    assert stage.boss.read("config", "current", rootId=root)["yaml"] == texts[5]
    newest = stage.boss.read("config", "versions", rootId=root, limit=1)["versions"][0]
    assert (newest["version"], newest["source"]) == (8, "rollback")


def test_a_rule_is_read_by_the_note_it_is_for(stage):
    """behaviour 5.23"""
    root = stage.project(BASE)
    item = task(stage, root)
    put = stage.boss.op("docs_write", "put", kind="rule", rootId=root, key="spec-quality", body="State {{each}} rule once.")
    rule = stage.ada.read("docs_read", "rule", itemId=item, noteKey="requirements")["rule"]
    assert rule == {"key": "spec-quality", "body": "State {{each}} rule once.", "bytes": 25, "rulesVersion": put["contentHash"]}
    with refused("not_found"):
        stage.ada.read("docs_read", "rule", itemId=item, noteKey="log")


# ---- two layers ----

GLOBAL = """
work_item_schemas:
  task:
    notes:
      - { key: from-global, role: queue, required: true }
traits:
  swift:
    notes:
      - { key: swift-note, role: queue, required: false }
    resources: [berth]
resources:
  berth: { description: one at a time, defaultTtlSeconds: 60 }
status_labels: { start: doing }
"""
DEFAULT = "work_item_schemas:\n  default:\n    notes:\n      - { key: from-project, role: queue, required: true }\n"


@pytest.mark.parametrize("mode, note, source", [("legacy", "from-project", "project"), ("layered", "from-global", "global"),
                                                ("isolated", "from-project", "project")])
def test_each_way_of_resolving_finds_its_schema(layered, mode, note, source):
    """behaviour 5.17"""
    stage = layered(GLOBAL)
    root = stage.project(f"schema_resolution: {mode}\n{DEFAULT}")
    found = schema(stage, root, type="task")
    assert (keys(found), found["source"], found["resolution"]) == ([note], source, mode)
    with refused("gate_blocked", says=note):
        stage.ada.advance(task(stage, root), "start")


def test_a_resource_of_the_server_is_no_projects_to_redefine(layered):
    """behaviour 5.18"""
    stage = layered(GLOBAL)
    root = stage.project("resources:\n  berth: { description: mine, defaultTtlSeconds: 5 }\n")
    resource, = [row for row in stage.ada.read("config", "effective", rootId=root)["resources"] if row["key"] == "berth"]
    assert resource["defaultTtlSeconds"] == 60


def test_a_projects_trait_replaces_the_notes_and_keeps_the_resources(layered):
    """behaviour 5.19"""
    stage = layered(GLOBAL)
    root = stage.project(DEFAULT + "traits:\n  swift:\n    dispatch:\n      work: { agent: runner }\n")
    item = task(stage, root, traits=["swift"])
    found = stage.ada.read("items_read", "schema", itemId=item)
    assert keys(found) == ["from-project"], "the trait's notes are the project's: none"
    assert [resource["key"] for resource in found["resources"]] == ["berth"]
    assert found["dispatch"]["work"]["agent"] == "runner"


def test_a_label_of_null_is_no_label(layered):
    """behaviour 5.20"""
    stage = layered("status_labels: { start: doing }\n")
    plain, silent = stage.project(), stage.project("status_labels: { start: null }\n")
    doing, unnamed = (stage.ada.item("x", parentId=root) for root in (plain, silent))
    assert stage.ada.advance(doing, "start")["statusLabel"] == "doing"
    assert "statusLabel" not in stage.ada.advance(unnamed, "start")
    assert "statusLabel" not in stage.ada.get(unnamed)


def test_a_changed_file_holds_from_the_next_start(layered):
    """behaviour 5.22"""
    stage = layered("work_item_schemas:\n  task: { notes: [] }\n")
    dais, root = stage.dais, stage.project()
    write_global(dais, GLOBAL)
    stage.ada.advance(task(stage, root), "start")
    token = stage.ada.token
    dais.restart()
    ada = eras.Caller(dais.url, token, stage.era)
    item = ada.item("x", parentId=root, type="task")
    with refused("gate_blocked", says="from-global"):
        ada.advance(item, "start")
    ada.close()
    assert harness.data(dais.envelope("config", {"select": "versions"}))["versions"][0]["source"] == "import"
