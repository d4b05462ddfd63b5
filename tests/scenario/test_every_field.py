"""Bad input, everywhere: each field of each operation of each tool, at any depth, with each kind of wrong value.

The tables of the program say what there is (describe), so nothing is left out when a tool or a field is added. A
wrong value is refused by a closed code with the exact path, or read as what it plainly means with a warning that
names the path; and whatever was refused left nothing behind. To prove that, each change goes out in one atomic
call with a second operation that always fails: afterwards an export must be what it was before.
"""
import json

import pytest

import eras
import harness

NOBODY = "00000000-0000-4000-8000-000000000000"
CODES = {"invalid_request", "unknown_parameter", "payload_too_large", "invalid_cursor", "config_invalid"}
# An operation of each changing tool that is right in shape and never possible.
IMPOSSIBLE = {
    "items_write": {"op": "update", "itemId": NOBODY, "title": "x"},
    "notes_write": {"op": "upsert", "itemId": NOBODY, "key": "k", "role": "queue", "body": "x"},
    "deps_write": {"op": "delete", "depId": NOBODY},
    "advance": {"op": "transition", "itemId": NOBODY, "trigger": "start"},
    "docs_write": {"op": "delete", "docId": NOBODY},
    "config": {"op": "rollback", "rootId": NOBODY, "version": 1},
    "report": {"op": "close_run", "runId": NOBODY},
}
TOOLS = ["items_read", "items_write", "notes_read", "notes_write", "deps_read", "deps_write", "advance", "docs_read", "docs_write",
         "config", "report"]
SHARED = {"ops": [{"name": "atomic", "type": "boolean"}, {"name": "idempotencyKey", "type": "string", "max": 128},
                  {"name": "describe", "type": "boolean"}],
          "selects": [{"name": "ids", "type": "enum", "values": ["full", "short"]}, {"name": "describe", "type": "boolean"}]}


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


# ---- right values ----

def right(parameter):
    kind = parameter["type"]
    if kind.endswith("[]"):
        return [right({**parameter, "type": kind[:-2]})]
    return {"string": "x", "id": NOBODY, "time": "2026-03-02T08:15:30Z", "integer": parameter.get("min", 1), "boolean": True,
            "enum": parameter.get("values", ["x"])[0], "object": filled(parameter.get("params", []))}[kind]


def filled(parameters, but=None):
    """What must be there, beside the parameter `but`: of a group where one is needed, one."""
    group = but["required"] if but and str(but.get("required", "")).startswith("one-of:") else None
    seen, arguments = {group}, {}
    for parameter in parameters:
        need = parameter.get("required")
        if not need or (but and parameter["name"] == but["name"]) or (need is not True and need in seen):
            continue
        seen.add(need)
        arguments[parameter["name"]] = right(parameter)
    return arguments


# ---- places ----

def places(parameters, path=""):
    """(path, parameter, place): place(value) are arguments that hold the value there and are right elsewhere."""
    for parameter in parameters:
        here = path + parameter["name"]

        def place(value, parameter=parameter):
            return {**filled(parameters, but=parameter), parameter["name"]: value}

        yield here, parameter, place
        if "params" not in parameter:
            continue
        is_list = parameter["type"].endswith("[]")
        for below, inner, put in places(parameter["params"], f"{here}[0]." if is_list else f"{here}."):
            yield below, inner, lambda value, put=put, place=place, is_list=is_list: place([put(value)] if is_list else put(value))


def levels(parameters, path=""):
    """(path, place) of each object: place(members) are arguments with these members added there."""
    yield path, lambda more: {**filled(parameters), **more}
    for here, parameter, place in places(parameters, path):
        if "params" in parameter:
            is_list = parameter["type"].endswith("[]")

            def put(more, parameter=parameter, place=place, is_list=is_list):
                members = {**filled(parameter["params"]), **more}
                return place([members] if is_list else members)

            yield f"{here}[0]." if is_list else f"{here}.", put


# ---- wrong values ----

OTHER_TYPES = {
    "string": [["x"], {"x": 1}, 1.5], "id": [{}, ["x"], "x", "0123", "zzzzzzzz", "0" * 37, "é" * 8],
    "time": [[], {}, "", "yesterday", "2026-13-01T00:00:00Z", "2026-03-02"], "enum": [[], {}, "no such word", ""],
    "integer": [1.5, True, {}, [], "x", "1.5", "9" * 40, ""], "boolean": [1, [], {}, "maybe", "1"],
    "[]": [1, True, {"x": 1}, "x", "[", '["x"', '"[]"', ""], "object": [1, True, "x", [1], "{", '{"a":'],
}


def group_of(parameter):
    return "[]" if parameter["type"].endswith("[]") else parameter["type"]


def wrong_values(parameter):
    """Values that must be refused, each with what it is."""
    kind = group_of(parameter)
    for value in OTHER_TYPES[kind]:
        # One id alone, or one op alone, is a list of one where a list is due.
        if not (kind == "[]" and parameter["type"] in ("id[]", "object[]") and isinstance(value, dict | str)):
            yield f"{value!r} for {kind}", value
    if not (kind == "object" and "params" not in parameter):
        yield "forty levels", nested(40)
    if kind in ("string", "id", "time", "enum"):
        yield "a NUL inside", "a\0b"
        yield "a NUL alone", "\0"
    if kind == "string" and "max" in parameter:
        yield "one character too many", "x" * (parameter["max"] + 1)
    if kind == "integer":
        yield "too small", parameter.get("min", 0) - 1
        if "max" in parameter and parameter["max"] < 2 ** 63 - 1:
            yield "too large", parameter["max"] + 1
    if kind == "[]":
        yield "a list of null", [None]
        if "max" in parameter and parameter["type"] != "object[]":
            inner = {**parameter, "type": parameter["type"][:-2]}
            yield "one entry too many", [right(inner)] * (parameter["max"] + 1) if inner["type"] == "enum" else [
                f"{n:08}" if inner["type"] == "id" else f"e{n}" for n in range(parameter["max"] + 1)]
        if parameter["type"] == "string[]" and "entryMax" in parameter:
            yield "an entry too long", ["x" * (parameter["entryMax"] + 1)]
        yield "a list of lists", [[["x"]]]


def huge_values(parameter):
    kind = group_of(parameter)
    if kind in ("string", "id", "time", "enum"):
        yield "a million characters", "x" * 1_000_000
    yield "a list of 100,000", ["x"] * 100_000


def readable_values(parameter):
    """Values of another type that plainly mean something: read, and told."""
    kind = group_of(parameter)
    if kind == "integer":
        yield str(parameter.get("min", 1))
    elif kind == "boolean":
        yield "true"
    elif kind == "[]" and parameter["type"] != "object[]":
        yield json.dumps(right(parameter))
    elif kind == "string" and parameter.get("max", 100) > 5 and "syntax" not in parameter:
        yield 7


# ---- the walk ----

class Rest:
    def __init__(self, stage):
        self.caller = stage.dais.admin()

    def envelope(self, tool, arguments):
        return self.caller.envelope(tool, arguments)

    def raw(self, tool, body):
        status, _, answer = self.caller.ask("POST", f"/api/v1/ops/{tool}", body)
        return status, json.loads(answer)["error"]["code"]


class Walk:
    def __init__(self, stage, surface, tool):
        self.stage, self.tool = stage, tool
        self.is_rest = surface == "rest"
        self.caller = Rest(stage) if self.is_rest else stage.boss
        self.manual = harness.data(stage.boss.envelope(tool, {"describe": True}))

    def operations(self):
        for kind in ("selects", "ops"):
            for name, operation in self.manual.get(kind, {}).items():
                yield kind, name, operation["params"]

    def call(self, kind, name, arguments):
        if kind == "selects":
            return {"select": name, **arguments}
        return {"ops": [{"op": name, **arguments}, IMPOSSIBLE[self.tool]], "atomic": True}

    def ask(self, kind, name, arguments):
        return self.caller.envelope(self.tool, self.call(kind, name, arguments))

    def told(self, kind, path):
        return path if kind == "selects" else f"ops[0].{path}"

    def must_refuse(self, what, envelope, path):
        error = envelope.get("error", {})
        assert envelope["ok"] is False and error["code"] in CODES, (self.tool, path, what, str(envelope)[:600])
        named = paths(error)
        assert any(name == path or name.startswith((path + "[", path + ".")) for name in named), (self.tool, path, what, error)
        assert "results" not in envelope and error["message"] and error["fix"]
        assert len(json.dumps(envelope)) < 60 * 1024, "a refusal is no echo"


def paths(error):
    detail = error.get("detail", {})
    whole = [detail["field"]] if "field" in detail else []
    return whole + [field["field"] for field in detail.get("fields", [])] + list(detail.get("parameters", []))


@pytest.fixture(params=["rest", *eras.ERAS])
def walk_of(request, shared):
    stage = eras.Stage(shared, eras.ERAS[0] if request.param == "rest" else request.param)
    before = stage.everything()
    yield lambda tool: Walk(stage, request.param, tool)
    assert stage.everything() == before, "something that was refused left something behind"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_wrong_value_is_refused_with_its_path(walk_of, tool):
    """behaviour 1.15, with the next one: what describe tells is what is checked."""
    walk = walk_of(tool)
    for kind, name, parameters in walk.operations():
        for path, parameter, place in places(parameters):
            for what, value in wrong_values(parameter):
                walk.must_refuse(f"{name}: {what}", walk.ask(kind, name, place(value)), walk.told(kind, path))
        for parameter in SHARED[kind]:
            for what, value in wrong_values(parameter):
                arguments = {**walk.call(kind, name, filled(parameters)), parameter["name"]: value}
                walk.must_refuse(f"{name}: {what}", walk.caller.envelope(tool, arguments), parameter["name"])


@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_name_is_refused_at_any_depth(walk_of, tool):
    """behaviour 1.15"""
    walk = walk_of(tool)
    for kind, name, parameters in walk.operations():
        for path, put in levels(parameters):
            for unknown in ("no_such_thing", "actor", "", "x" * 300, "é\u202e"):
                envelope = walk.ask(kind, name, put({unknown: 1}))
                assert envelope["error"]["code"] == "unknown_parameter", (name, path, unknown, envelope)
                assert "results" not in envelope
                if len(unknown) < 100:
                    assert walk.told(kind, path + unknown) in envelope["error"]["detail"]["parameters"], envelope
        envelope = walk.caller.envelope(tool, {**walk.call(kind, name, filled(parameters)), "no_such_thing": 1})
        assert (envelope["error"]["code"], paths(envelope["error"])) == ("unknown_parameter", ["no_such_thing"])


@pytest.mark.parametrize("tool", TOOLS)
def test_what_plainly_means_something_is_read_and_told(walk_of, tool):
    walk = walk_of(tool)
    for kind, name, parameters in walk.operations():
        for path, parameter, place in places(parameters):
            for value in readable_values(parameter):
                envelope = walk.ask(kind, name, place(value))
                warned = [warning.get("path") for warning in envelope.get("warnings", []) if warning["code"] == "json_string_coerced"]
                assert walk.told(kind, path) in warned, (name, path, value, envelope)
        for flag in ("atomic", "describe") if kind == "ops" else ("describe",):
            envelope = walk.caller.envelope(tool, {**walk.call(kind, name, filled(parameters)), flag: "true"})
            assert ("json_string_coerced", flag) in [(warning["code"], warning.get("path")) for warning in envelope["warnings"]]
            assert envelope["ok"] is (flag == "describe")


@pytest.mark.slow
@pytest.mark.parametrize("walk_of", ["rest"], indirect=True)
@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_far_too_much_is_refused_at_once(walk_of, tool):
    walk = walk_of(tool)
    for kind, name, parameters in walk.operations():
        for path, parameter, place in places(parameters):
            for what, value in huge_values(parameter):
                envelope = walk.ask(kind, name, place(value))
                error = envelope["error"]
                assert error["code"] in {*CODES, "not_found"}, (name, path, what, error)
                assert len(json.dumps(envelope)) < 60 * 1024
                if parameter["name"] != "cursor":  # whose only fault is not to be one of ours
                    walk.must_refuse(f"{name}: {what}", envelope, walk.told(kind, path))


@pytest.mark.parametrize("walk_of", ["rest"], indirect=True)
@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_no_json_text_never_reaches_a_tool(walk_of, tool):
    """Over REST: the bytes of an MCP message are the protocol's, and tested with it."""
    walk = walk_of(tool)
    for kind, name, parameters in walk.operations():
        for path, parameter, place in places(parameters):
            body = json.dumps(walk.call(kind, name, place("@@"))).encode()
            assert body.count(b'"@@"') >= 1
            for bad in (b'"\xff\xfe"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"a\0b"', b'"a\nb"', b"[" * 65 + b"]" * 65,
                        b"[" * 100_000, b"1e999", b"NaN", b"9" * 10_000, b'{"a":1,"a":1}'):
                status, code = walk.caller.raw(tool, body.replace(b'"@@"', bad))
                assert (status, code) in ((400, "invalid_request"), (413, "payload_too_large")), (name, path, bad[:20], status, code)
