"""What clients and models see of the tools: schemas that every client takes, and answers that say the same twice.

mcp 6.4, and the complaints about MCP servers that a schema or an answer can cause. A client that refuses one
schema loses the whole session, so the lint walks every tool of every profile.
"""
import json
import re

import pytest

import harness
from harness import data
from wire import MODERN

PATHS = ["/mcp", "/mcp/work", "/mcp/threads", "/mcp/knowledge", "/mcp/director"]
# One family a row: readOnly, destructive, idempotent, openWorld. A tool that does both has the worse value.
HINTS = {
    **dict.fromkeys(["items_read", "notes_read", "deps_read", "docs_read"], (True, False, True, False)),
    **dict.fromkeys(["items_write", "notes_write", "deps_write", "docs_write", "config"], (False, True, False, False)),
    **dict.fromkeys(["advance", "report"], (False, False, False, False)),
}
# Tools of one operation: (readOnly, destructive, idempotent, openWorld); they have neither select, op nor describe.
PLAIN = {
    **dict.fromkeys(["orchestrator_capabilities", "t3_thread_list", "t3_thread_wait"], (True, False, False, False)),
    **dict.fromkeys(["task_status", "t3_thread_read"], (False, False, True, False)),
    **dict.fromkeys(["task_cancel", "t3_thread_interrupt"], (False, True, False, False)),
    **dict.fromkeys(["delegate_task", "create_threads", "t3_thread_launch", "t3_thread_send"], (False, False, False, True)),
    "t3_thread_update": (False, False, False, False),
}
LONG = {"t3_thread_list", "t3_thread_read"}
# Below the root of a schema, and at it, clients choke on these: one refuses the session, one the tool.
FORBIDDEN = {"oneOf", "anyOf", "allOf", "not", "if", "then", "else", "$ref", "$defs", "definitions", "patternProperties",
             "const", "format", "prefixItems", "$schema"}


@pytest.fixture(scope="module")
def dais(shared):
    return shared


@pytest.fixture(scope="module")
def wire(dais):
    return dais.wire()


def tools(wire, path="/mcp"):
    return wire.modern("tools/list", path=path).json()["result"]["tools"]


def call(wire, name, arguments, **more):
    return wire.call(name, arguments, **more).result()["result"]


def walk(schema, where, depth=0):
    """Every schema below this one, with its place and depth."""
    yield schema, where, depth
    for name, below in schema.get("properties", {}).items():
        yield from walk(below, f"{where}.{name}", depth + 1)
    if "items" in schema:
        yield from walk(schema["items"], f"{where}[]", depth + 1)


@pytest.mark.parametrize("path", PATHS)
def test_lint_schemas(wire, path):
    """mcp 6.4 lint-schemas: the subset that Anthropic, OpenAI, Gemini and VS Code all take."""
    for tool in tools(wire, path):
        root = tool["inputSchema"]
        assert root["type"] == "object" and root["additionalProperties"] is False
        assert set(root.get("required", [])) <= set(root["properties"])
        assert len(json.dumps(root, separators=(",", ":"))) <= 8192, tool["name"]
        for schema, where, depth in walk(root, tool["name"]):
            assert isinstance(schema, dict) and schema, f"{where}: boolean or empty"
            assert not FORBIDDEN & set(schema), f"{where}: {FORBIDDEN & set(schema)}"
            assert isinstance(schema["type"], str) and schema["type"] != "null", where
            assert depth <= 4, where
            assert depth == 0 or schema.get("description") or where.endswith("[]"), f"{where} says nothing"
            if schema["type"] == "array":
                assert isinstance(schema["items"], dict), f"{where} has no items"
            for value in schema.get("enum", []):
                assert isinstance(value, str), where
            for bound in ("minimum", "maximum"):
                assert abs(schema.get(bound, 0)) <= 2**53 - 1, where


@pytest.mark.parametrize("path", PATHS)
def test_output_schemas_hold_for_failures_too(wire, path):
    """mcp 3.3: an older client checks a refusal against the schema; what it lacks would hide the message."""
    for tool in tools(wire, path):
        schema = tool["outputSchema"]
        assert schema["type"] == "object" and schema.get("additionalProperties", True) is True
        assert schema.get("required", []) == ([] if tool["name"] in PLAIN else ["ok"])
        for part, where, _ in walk(schema, tool["name"]):
            # What may be null is one of two: the inspector warns of lists of types.
            nullable = tool["name"] in PLAIN and "anyOf" in part
            assert [set(one) for one in part["anyOf"]] == [{"type"}] * 2 if nullable else isinstance(part["type"], str), where
            assert not (FORBIDDEN - ({"anyOf"} if nullable else set())) & set(part), where


@pytest.mark.parametrize("path", PATHS)
def test_lint_names(wire, path):
    """mcp 6.4 lint-names: short enough for every prefix, and of letters that no client rewrites."""
    names = [tool["name"] for tool in tools(wire, path)]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"[a-z][a-z0-9_]{2,39}", name)


@pytest.mark.parametrize("path", PATHS)
def test_lint_annotations(wire, path):
    """mcp 6.4 lint-annotations: absent means dangerous, so all four are there and true to the family."""
    for tool in tools(wire, path):
        hints = tool["annotations"]
        given = tuple(hints[name] for name in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"))
        if path in ("/mcp", "/mcp/work", "/mcp/threads"):
            assert given == {**HINTS, **PLAIN}[tool["name"]], tool["name"]
        assert all(isinstance(hint, bool) for hint in given)
        is_long = tool["name"] in LONG if tool["name"] in PLAIN else hints["readOnlyHint"]
        assert ("anthropic/maxResultSizeChars" in tool.get("_meta", {})) == is_long


def test_lint_sizes(wire):
    """mcp 6.4 lint-sizes: few tools, short texts; the tools together cost a model little."""
    full = tools(wire)
    assert len(full) <= 40
    assert sum(len(tool["description"]) for tool in full) <= 24 * 1024
    for tool in full:
        assert 0 < len(tool["title"]) <= 40 and 0 < len(tool["description"]) <= 1500
    for path in ("/mcp/work", "/mcp/threads", "/mcp/knowledge", "/mcp/director"):
        narrow = tools(wire, path)
        assert 0 < len(narrow) <= 12
        assert {tool["name"] for tool in narrow} < {tool["name"] for tool in full} or path == "/mcp/knowledge"
    instructions = wire.modern("server/discover").json()["result"]["instructions"]
    assert 0 < len(instructions) <= 4096


def test_list_order_stable_over_calls_and_restarts(new_dais):
    """mcp 6.4 list-order-stable: a list that changes breaks the prompt caches of clients."""
    server = new_dais().start()
    wire = server.wire()
    methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]

    def lists(wire):
        found = [wire.modern(method).json()["result"] for method in methods]
        return [{key: value for key, value in one.items() if key != "_meta"} for one in found]

    first = lists(wire)
    sock = wire.connect()
    for _ in range(25):
        for method, expected in zip(methods, first):
            got = wire.modern(method, sock=sock).json()["result"]
            assert {key: value for key, value in got.items() if key != "_meta"} == expected
    server.restart()
    assert lists(server.wire()) == first


def test_descriptions_show_no_local_paths(dais, wire):
    """mcp 6.4 descriptions-no-local-paths: nothing of this machine is in what every client caches."""
    shown = json.dumps([wire.modern(method).json()["result"] for method in
                        ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover")])
    for secret in (str(dais.home), str(dais.state), "/tmp", "/home", "/root", str(harness.ROOT)):
        assert secret not in shown


def test_discovery_matches_reality(wire):
    """mcp 1.4: what is declared answers, what is not is an unknown method, in both eras."""
    result = wire.modern("server/discover").json()["result"]
    assert result["supportedVersions"] == [MODERN]
    declared = result["capabilities"]
    assert set(declared) == {"tools", "resources", "prompts", "completions", "extensions"}
    session = wire.session()
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        modern = wire.modern(method)
        assert modern.status == 200 and modern.json()["result"]["resultType"] == "complete"
        legacy = session.request(method).json()["result"]
        assert not {"resultType", "ttlMs", "cacheScope"} & set(legacy)
    for method in ("sampling/createMessage", "roots/list", "tasks/list", "logging/setLevel", "ping"):
        assert wire.modern(method).status == 404
    assert session.request("logging/setLevel", {"level": "warning"}).json()["result"] == {}
    for method in ("tasks/get", "server/discover", "subscriptions/listen", "nonsense"):
        answer = session.request(method)
        assert (answer.status, answer.json()["error"]["code"]) == (200, -32601)


def test_lists_are_cacheable_but_private(wire):
    """mcp 1.4: what a caller sees depends on its capabilities, so no shared cache may keep it."""
    for method in ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        result = wire.modern(method).json()["result"]
        assert result["ttlMs"] == 300000 and result["cacheScope"] == "private" and "nextCursor" not in result
    for uri, ttl in (("dais://guide", 60000), ("dais://overview", 0)):
        result = wire.modern("resources/read", {"uri": uri}).json()["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (ttl, "private")


def test_a_caller_sees_the_tools_that_its_capabilities_allow(dais):
    """Who may only read is offered nothing that writes; what is hidden is unknown, not forbidden."""
    reader = dais.wire(dais.new_token("only-reads", "read"))
    names = [tool["name"] for tool in tools(reader)]
    assert "items_read" in names and "items_write" not in names and "advance" not in names
    error = reader.call("items_write", {"ops": []}).json()["error"]
    assert error["code"] == -32602 and error["data"]["name"] == "items_write"
    hidden = dais.wire().modern("tools/call", {"name": "advance", "arguments": {}}, path="/mcp/director").json()["error"]
    assert hidden["code"] == -32602


def test_an_unknown_tool_names_its_neighbours(wire):
    error = wire.call("item_read").json()["error"]
    assert error["code"] == -32602 and error["data"]["name"] == "item_read" and "items_read" in error["data"]["near"]


# ---- answers ----

def same_twice(result):
    assert len(result["content"]) == 1 and result["content"][0]["type"] == "text"
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["_meta"]["reqId"]
    return result["structuredContent"]


def test_text_equals_structured_for_every_tool(dais, wire):
    """mcp 6.4 text-equals-structured: some clients show the model only the one, some only the other."""
    for tool in tools(wire):
        if tool["name"] in PLAIN:
            result = call(wire, tool["name"], {"no_such_thing": 1})
            failure = same_twice(result)
            assert result["isError"] is True and failure["_tag"] == "OrchestratorMcpFailure"
            assert failure["code"] in ("invalid_request", "orchestration_error") and failure["message"]
            continue
        assert same_twice(call(wire, tool["name"], {"describe": True}))["ok"] is True
        result = call(wire, tool["name"], {"no_such_thing": 1})
        assert result["isError"] is True
        envelope = same_twice(result)
        assert envelope["ok"] is False and envelope["error"]["code"] in ("unknown_parameter", "invalid_request")
        assert envelope["error"]["message"] and envelope["error"]["fix"]
        for select in tool["inputSchema"]["properties"].get("select", {}).get("enum", []):
            same_twice(call(wire, tool["name"], {"select": select}))


def test_the_oldest_clients_get_text_alone(wire):
    """mcp 6.1 legacy-shape, on the product: no structure where the version has none, the same text."""
    given = wire.session("2025-03-26").call("items_read", {"select": "overview"}).json()["result"]
    assert "structuredContent" not in given and json.loads(given["content"][0]["text"])["ok"] is True
    listed = wire.session("2025-03-26").request("tools/list").json()["result"]["tools"]
    assert all("outputSchema" not in tool and tool["annotations"] for tool in listed)
    oldest = wire.session("2024-11-05").request("tools/list").json()["result"]["tools"]
    assert all("outputSchema" not in tool and "annotations" not in tool for tool in oldest)


def test_a_partial_failure_is_no_error_of_the_protocol(wire):
    """mcp 4.2: what stands and what does not are told together; the model reads which is which."""
    given = call(wire, "items_write", {"ops": [{"op": "create", "title": "stands"}, {"op": "update", "itemId": "f" * 32, "title": "x"}]})
    envelope = same_twice(given)
    assert [element["ok"] for element in envelope["results"]] == [True, False]
    assert not given.get("isError")


# ---- arguments ----

COERCED = [  # mcp 6.4 coerce-table: what models and clients send, and what it certainly means
    ("complexity", "3", 3), ("complexity", 3.0, 3), ("complexity", "10", 10), ("requiresVerification", "true", True),
    ("requiresVerification", "false", False), ("tags", '["a","b"]', ["a", "b"]), ("tags", "[]", []),
    ("properties", '{"k":1}', {"k": 1}), ("properties", '{"k":{"x":[1,"2"]}}', {"k": {"x": [1, "2"]}}),
    ("summary", None, None), ("tags", None, []), ("description", "[1,2]", "[1,2]"), ("title", "5", "5"),
    ("title", "true", "true"), ("title", "null", "null"),
]
REFUSED = [
    ("complexity", "3.5"), ("complexity", "three"), ("complexity", ""), ("complexity", "0x3"), ("complexity", " 3"),
    ("requiresVerification", "yes"), ("requiresVerification", 1), ("requiresVerification", "True"), ("tags", "a,b"),
    ("tags", '"a"'), ("properties", "k=1"), ("properties", "[]"), ("title", ["x"]), ("title", {"t": "x"}),
]


@pytest.mark.parametrize("name,given,meant", COERCED)
def test_coerce_table_what_is_certain_is_read(dais, wire, name, given, meant):
    made = call(wire, "items_write", {"ops": [{"op": "create", "title": "quirk", name: given}]})["structuredContent"]
    assert made["ok"], made
    item = data(call(wire, "items_read", {"select": "get", "itemId": made["results"][0]["id"],
                                          "fields": ["description", "properties", "tags", "summary"]})["structuredContent"])["item"]
    assert item.get(name, {"tags": [], "requiresVerification": False}.get(name)) == meant


@pytest.mark.parametrize("name,given", REFUSED)
def test_coerce_table_what_is_not_is_refused_with_its_path(wire, name, given):
    result = call(wire, "items_write", {"ops": [{"op": "create", "title": "quirk", name: given}]})
    error = same_twice(result)["error"]
    assert result["isError"] and error["code"] == "invalid_request"
    assert error["detail"]["fields"][0]["field"] == f"ops[0].{name}"


def test_unknown_arg_is_named_with_what_was_meant(wire):
    """mcp 6.4 unknown-arg."""
    error = call(wire, "items_read", {"select": "list", "limt": 3})["structuredContent"]["error"]
    assert error["code"] == "unknown_parameter" and "limit" in json.dumps(error)


def test_null_optional_and_missing_arguments(wire):
    """mcp 6.4 null-optional, args-missing: null is absence, and no arguments are none."""
    assert call(wire, "items_read", {"select": "list", "limit": None, "tags": None})["structuredContent"]["ok"]
    answer = wire.modern("tools/call", {"name": "items_read"}).json()["result"]
    assert answer["isError"] and answer["structuredContent"]["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("arguments", [[], "x", 7, True])
def test_arguments_of_another_shape_are_a_fault_of_the_client(wire, arguments):
    answer = wire.modern("tools/call", {"name": "items_read", "arguments": arguments})
    assert (answer.status, answer.json()["error"]["code"]) == (200, -32602)
