"""Ids, envelopes, validation: what every tool does alike, in both eras of the protocol.

The numbers are those of the behaviours this server promises; a test of its own stands for each.
"""
import json
import subprocess

import pytest

import eras
import harness
from harness import refused

TOOLS = ["items_read", "items_write", "notes_read", "notes_write", "deps_read", "deps_write", "advance", "docs_read", "docs_write",
         "config", "report"]


def test_eight_digits_in_any_case_name_an_item(stage):
    """behaviour 1.1"""
    item = stage.ada.item("one", parentId=stage.project())
    found = stage.ada.get(item[:8].upper())
    assert found["id"] == item and found["title"] == "one"


@pytest.mark.parametrize("cut", [0, 1, 7])
def test_fewer_than_eight_digits_name_nothing(stage, cut):
    """behaviour 1.2"""
    item = stage.ada.item("one")
    with refused("invalid_request", path="itemId") as refusal:
        stage.ada.get(item[:cut])
    assert refusal.detail["fields"][0]["reason"] == "not a UUID or an 8–32 digit hex prefix"


def test_hyphens_and_odd_lengths_do_not_matter(stage):
    """behaviour 1.3"""
    item = stage.ada.item("one")
    for text in (item[:10], item[:11], item[:15].replace("-", ""), item.replace("-", ""), f"  {item[:12]} ", item):
        assert stage.ada.get(text)["id"] == item, text


def test_a_thousand_ids_of_one_moment_have_no_common_beginning(stage):
    """behaviour 1.6"""
    root = stage.project()
    made = []
    for _ in range(10):
        made += [row["id"] for row in stage.ada.ops("items_write", *([{"op": "create", "title": "x", "parentId": root}] * 100))]
    prefixes = {item[:8] for item in made}
    assert len(prefixes) >= 999, "two of a thousand share eight digits once in ten thousand runs"
    assert all(len({prefix[at] for prefix in prefixes}) == 16 for at in range(8)), "every digit takes every value"


def test_an_unknown_parameter_comes_before_every_other_fault(stage):
    """behaviour 1.7"""
    before = stage.everything()
    with refused("unknown_parameter", path="ops[0].actor") as refusal:
        stage.ada.op("items_write", "create", actor="ada")
    assert "results" not in refusal.envelope
    assert stage.everything() == before


def test_the_nearest_name_is_proposed(stage):
    """behaviour 1.8"""
    item = stage.ada.item("one")
    with refused("unknown_parameter", path="ops[0].triger", says="trigger?"):
        stage.ada.op("advance", "transition", itemId=item, triger="start")


def test_all_faults_are_told_at_once(stage):
    """behaviour 1.9"""
    with refused("invalid_request") as refusal:
        stage.ada.op("items_write", "create", title="  ", complexity=11)
    assert [field["field"] for field in refusal.detail["fields"]] == ["ops[0].title", "ops[0].complexity"]
    assert "results" not in refusal.envelope


def test_ops_as_text_are_executed_and_that_is_told(stage):
    """behaviour 1.10"""
    envelope = stage.ada.envelope("items_write", {"ops": json.dumps([{"op": "create", "title": "as text"}])})
    assert stage.ada.get(envelope["results"][0]["id"])["title"] == "as text"
    assert [(warning["code"], warning["path"]) for warning in envelope["warnings"]] == [("json_string_coerced", "ops")]


def test_the_error_of_the_only_op_is_the_error_of_the_call(stage):
    """behaviour 1.11"""
    item = stage.ada.item("one")
    envelope = stage.ada.envelope("advance", {"ops": [{"op": "transition", "itemId": item, "trigger": "resume"}]})
    assert envelope["ok"] is False
    assert envelope["error"] == envelope["results"][0]["error"]
    assert envelope["error"]["code"] == "invalid_transition"
    assert stage.ada.result["isError"] is True


def test_a_batch_stores_what_is_good_and_says_what_is_not(stage):
    """behaviour 1.12"""
    root = stage.project()
    envelope = stage.ada.envelope("items_write", {"ops": [{"op": "create", "title": "good", "parentId": root},
                                                          {"op": "create", "title": "bad", "parentId": "00000000"}]})
    assert envelope["error"]["code"] == "partial_failure" and envelope["error"]["kind"] == "permanent"
    assert envelope["summary"] == {"ok": 1, "failed": 1}
    good, bad = envelope["results"]
    assert (good["ok"], bad["ok"], bad["index"], bad["error"]["code"]) == (True, False, 1, "not_found")
    assert [row["id"] for row in stage.ada.read("items_read", "list", parentId=root)["items"]] == [good["id"]]
    assert not stage.ada.result.get("isError"), "clients throw away the results of an error"


def test_an_atomic_batch_stores_all_or_nothing(stage):
    """behaviour 1.13"""
    root = stage.project()
    before = stage.everything()
    envelope = stage.ada.envelope("items_write", {"atomic": True, "ops": [
        {"op": "create", "title": "good", "parentId": root}, {"op": "create", "title": "bad", "parentId": "00000000"},
        {"op": "create", "title": "worse", "parentId": "00000001"}]})
    assert "results" not in envelope
    assert (envelope["error"]["code"], envelope["error"]["index"]) == ("not_found", 1)
    assert stage.everything() == before
    assert stage.ada.result["isError"] is True


@pytest.mark.parametrize("tool", TOOLS)
def test_describe_does_nothing(stage, tool):
    """behaviour 1.14"""
    described = harness.data(stage.boss.envelope(tool, {"describe": True}))
    before = stage.everything()
    for kind in ("ops", "selects"):
        for name, operation in described.get(kind, {}).items():
            asked = {**operation["example"], "describe": True}
            if kind == "ops":
                asked["idempotencyKey"] = f"described-{tool}-{name}"
            told = harness.data(stage.boss.envelope(tool, asked))
            assert told["tool"] == tool and name in told[kind]
    assert stage.everything() == before
    if tool == "items_write":  # nor was a key taken: the same key serves another payload
        stage.boss.ops("items_write", {"op": "create", "title": "mine"}, idempotencyKey="described-items_write-create")


def test_the_knowledge_profile_has_no_orchestration(stage):
    """behaviour 1.16"""
    reader = stage.caller(stage.dais.admin_token, "/mcp/knowledge")
    assert sorted(reader.tools()) == [
        "deps_read", "docs_read", "docs_write", "items_read", "items_write", "notes_read", "notes_write"]
    item = reader.item("one")
    with refused("forbidden") as refusal:
        reader.op("items_write", "delete", itemId=item)
    assert refusal.detail == {"scope": "capability", "required": "profile:full"}
    assert reader.get(item)["title"] == "one"
    with pytest.raises(eras.Protocol) as fault:
        reader.claim(item)
    assert fault.value.code == -32602


def test_the_director_profile_looks_and_reports(stage):
    """behaviour 1.17"""
    director = stage.caller(stage.dais.admin_token, "/mcp/director")
    assert list(director.tools()) == ["items_read", "deps_read", "report"]
    with pytest.raises(eras.Protocol):
        director.item("one")


@pytest.mark.parametrize("era", eras.ERAS)
def test_on_stdout_there_is_nothing_but_the_protocol(new_dais, era):
    """behaviour 1.18"""
    dais = new_dais()
    dais.start("--log-level", "debug")
    process = subprocess.Popen([harness.PROGRAM, "mcp-stdio", "--state", str(dais.state), "--no-spawn", "--log-level", "debug"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dais.env(), cwd=dais.work)
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": eras.MODERN,
                      "io.modelcontextprotocol/clientCapabilities": {}}} if era == "stateless" else {}
    greeting = [{"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": eras.LEGACY, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"}] if era == "handshake" else []
    calls = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {
        "name": TOOLS[n % 3], "arguments": {"select": "list"} if n % 3 == 0 else {"ops": [{"op": "create", "title": f"item {n}"}]},
        **meta}} for n in range(100)]
    process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in greeting + calls) + b"this is no message\n")
    process.stdin.flush()
    answered = set()
    while not answered >= set(range(100)):
        frame = json.loads(process.stdout.readline())
        assert frame["jsonrpc"] == "2.0" and ("result" in frame or "error" in frame or "method" in frame), frame
        answered.add(frame.get("id"))
    process.stdin.close()
    for line in process.stdout.read().splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0", line
    assert process.wait(timeout=30) == 0
    process.stdout.close()
    process.stderr.close()


def test_long_notes_come_in_pages_that_fit_and_lose_nothing(stage):
    """behaviour 1.19"""
    item = stage.ada.item("much")
    for n in range(100):
        stage.ada.note(item, f"n{n:03}", f"{n:03}" + "x" * 59_000, role="queue")
    seen, cursor = [], {}
    while True:
        envelope = stage.ada.envelope("notes_read", {"select": "list", "itemId": item, "fields": ["body"], **cursor})
        assert len(json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode()) <= 60 * 1024
        seen += [(note["key"], note["body"][:3]) for note in envelope["data"]["notes"]]
        if "nextCursor" not in envelope["page"]:
            break
        assert "page_shrunk" in [warning["code"] for warning in envelope["warnings"]]
        cursor = {"cursor": envelope["page"]["nextCursor"]}
    assert seen == [(f"n{n:03}", f"{n:03}") for n in range(100)]


def test_a_cursor_belongs_to_its_filters(stage):
    """behaviour 1.20"""
    root = stage.project()
    stage.ada.ops("items_write", *({"op": "create", "title": f"{n}", "parentId": root} for n in range(3)))
    page = stage.ada.envelope("items_read", {"select": "list", "parentId": root, "roles": ["queue"], "limit": 2})["page"]
    for other in ({"select": "list", "parentId": root, "roles": ["work"]}, {"select": "list", "parentId": root},
                  {"select": "overview"}, {"select": "history", "rootId": root}):
        with refused("invalid_cursor"):
            harness.data(stage.ada.envelope("items_read", {**other, "cursor": page["nextCursor"]}))
    rest = stage.ada.read("items_read", "list", parentId=root, roles=["queue"], limit=1, cursor=page["nextCursor"])
    assert len(rest["items"]) == 1, "another limit is no other filter"


def test_rows_of_one_moment_come_once_each(stage):
    """behaviour 1.21"""
    root = stage.project()
    made = {row["id"] for row in stage.ada.ops("items_write", *([{"op": "create", "title": "x", "parentId": root}] * 5), atomic=True)}
    assert len({stage.ada.get(item)["createdAt"] for item in made}) == 1
    for sort in ("createdAt", "priority", "title", "complexity", "modifiedAt", "roleChangedAt"):
        seen, cursor = [], {}
        while True:
            envelope = stage.ada.envelope("items_read", {"select": "list", "parentId": root, "sortBy": sort, "limit": 2, **cursor})
            seen += [row["id"] for row in envelope["data"]["items"]]
            if "nextCursor" not in envelope["page"]:
                break
            cursor = {"cursor": envelope["page"]["nextCursor"]}
        assert sorted(seen) == sorted(made), sort
