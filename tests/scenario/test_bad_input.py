"""Calls that are wrong as a whole: bodies that are no JSON, too much of everything, operations that do not exist.

What is wrong inside a single field is walked through in test_every_field.py.
"""
import json

import pytest

import harness

CODES = {"invalid_request", "unknown_parameter", "payload_too_large", "not_found", "invalid_cursor", "config_invalid", "ambiguous_id"}
TOOLS = ["items_read", "items_write", "notes_read", "notes_write", "deps_read", "deps_write", "advance", "docs_read", "docs_write",
         "config", "report"]


@pytest.fixture(scope="module")
def dais(shared):
    return shared


@pytest.fixture(scope="module")
def local(dais):
    return dais.local()


def manual(local, tool):
    return harness.data(local.envelope(tool, {"describe": True}))


def operations(local, tool):
    described = manual(local, tool)
    for name, operation in described.get("selects", {}).items():
        yield "select", name, operation
    for name, operation in described.get("ops", {}).items():
        yield "op", name, operation


def call(kind, name, arguments):
    if kind == "select":
        return {"select": name, **arguments}
    return {"ops": [{"op": name, **arguments}]}


def error_of(envelope):
    assert envelope["ok"] is False, envelope
    return envelope["error"]


def paths(error):
    detail = error.get("detail", {})
    return [field["field"] for field in detail.get("fields", [])] + list(detail.get("parameters", []))


def total(local):
    return sum(harness.data(local.envelope("items_read", {"select": "overview"}))["totals"].values())


@pytest.fixture(autouse=True)
def nothing_is_half_done(request, local):
    if "writes" in request.keywords:
        yield
        return
    before = total(local)
    yield
    assert total(local) == before


def kind_of(parameter):
    type_ = parameter["type"]
    if type_ in ("strings", "words", "ids", "objects") or type_.endswith("[]") or type_.startswith(("list", "array")):
        return "array"
    if type_ in ("enum", "word"):
        return "string"
    return type_


@pytest.mark.parametrize("tool", TOOLS)
def test_a_list_of_a_hundred_thousand_is_refused(local, tool):
    for kind, name, operation in operations(local, tool):
        for parameter in operation["params"]:
            if kind_of(parameter) != "array":
                continue
            error = error_of(local.envelope(tool, call(kind, name, {parameter["name"]: ["x"] * 100_000})))
            assert error["code"] in CODES, (name, parameter["name"], error)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_string_that_is_too_long_or_holds_a_nul_is_refused(local, tool):
    for kind, name, operation in operations(local, tool):
        for parameter in operation["params"]:
            if kind_of(parameter) not in ("string", "id", "time"):
                continue
            for value in ("x" * 1_000_000, "a\0b", "\0"):
                error = error_of(local.envelope(tool, call(kind, name, {parameter["name"]: value})))
                assert error["code"] in CODES, (name, parameter["name"], error)


@pytest.mark.parametrize("tool", TOOLS)
def test_an_operation_that_does_not_exist_names_those_that_do(local, tool):
    described = manual(local, tool)
    if "ops" in described:
        error = error_of(local.envelope(tool, {"ops": [{"op": "no_such_op"}]}))
        assert error["code"] == "invalid_request" and "ops[0].op" in paths(error)
        for bad in ([], None, 1, "x", [1], [None], [[]], [{}], [{"op": 1}], [{"op": None}], {"x": 1}):
            assert error_of(local.envelope(tool, {"ops": bad}))["code"] in CODES
        assert error_of(local.envelope(tool, {"ops": [{"op": "x"}] * 101}))["code"] == "payload_too_large"
        assert error_of(local.envelope(tool, {"ops": [{"op": "x"}] * 100_000}))["code"] == "payload_too_large"
    if "selects" in described:
        error = error_of(local.envelope(tool, {"select": "no_such_select"}))
        assert error["code"] == "invalid_request" and "select" in paths(error)
        for bad in (None, 1, [], {}):
            assert error_of(local.envelope(tool, {"select": bad}))["code"] in CODES
    assert error_of(local.envelope(tool, {}))["code"] in CODES


@pytest.mark.parametrize("tool", TOOLS)
def test_a_batch_says_which_element(local, tool):
    names = [name for kind, name, _ in operations(local, tool) if kind == "op"]
    if not names:
        return
    error = error_of(local.envelope(tool, {"ops": [{"op": names[0], "no_such_thing": 1}] * 3}))
    assert {"ops[0].no_such_thing", "ops[1].no_such_thing", "ops[2].no_such_thing"} <= set(paths(error))


@pytest.mark.writes
@pytest.mark.parametrize("tool", TOOLS)
def test_every_example_of_the_manual_has_the_right_shape(local, tool):
    for kind, name, operation in operations(local, tool):
        assert "example" in operation, f"{tool} {name} has no example"
        envelope = local.envelope(tool, operation["example"])
        if not envelope["ok"]:
            assert envelope["error"]["code"] != "unknown_parameter", (name, envelope)


# ---- below the tools: bodies that are no JSON, or too much of it ----

BODIES = {
    "nothing": b"", "cut off": b'{"select":', "two values": b"{} {}", "an array": b"[]", "a number": b"1", "null": b"null", "a string": b'"x"',
    "duplicate members": b'{"select":"list","select":"list"}', "bad UTF-8": b'{"select":"\xff\xfe"}', "an overlong form": b'{"select":"\xc0\xaf"}',
    "a raw NUL": b'{"select":"a\0b"}', "a raw newline in a string": b'{"select":"a\nb"}', "a trailing comma": b'{"select":"list",}',
    "a comment": b'{"select":"list"/* */}', "single quotes": b"{'select':'list'}", "NaN": b'{"select":"list","limit":NaN}',
    "a huge number": b'{"select":"list","limit":1e999}', "a number of 10000 digits": b'{"select":"list","limit":' + b"9" * 10000 + b"}",
    "1000 levels": b'{"x":' * 1000 + b"1" + b"}" * 1000, "100000 brackets": b"[" * 100_000, "a byte order mark": b"\xef\xbb\xbf{}",
    "a million members": b"{" + b",".join(b'"%d":0' % i for i in range(250_000)) + b"}", "an empty key": b'{"":1}',
    "an integer beyond 64 bits": b'{"select":"list","limit":9223372036854775808}',
    "UTF-16": '{"select":"list"}'.encode("utf-16"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_object_is_refused(dais, name):
    for tool in ("items_read", "items_write"):
        caller = dais.admin()
        status, _, body = caller.ask("POST", f"/api/v1/ops/{tool}", BODIES[name])
        assert 400 <= status < 500, (name, status, body)
        assert json.loads(body)["error"]["code"] in CODES


def test_a_body_over_its_limit_is_refused_before_it_is_read(dais):
    caller = dais.admin()
    status, _, body = caller.ask("POST", "/api/v1/ops/items_write", b'{"ops":"' + b"x" * (1024 * 1024) + b'"}')
    assert status == 413
    assert json.loads(body)["error"]["code"] == "payload_too_large"


def test_an_unknown_tool_is_not_found(dais):
    status, _, body = dais.admin().ask("POST", "/api/v1/ops/no_such_tool", b"{}")
    assert status == 404 and json.loads(body)["error"]["code"] == "not_found"


@pytest.mark.parametrize("text", ["{", "[]", "1", "", "{} {}", '{"select":"\\ud800"}'])
def test_dais_call_says_what_is_wrong_with_its_argument(dais, text):
    done = dais.run("call", "items_read", text)
    assert done.returncode in (1, 64), done
    assert done.stdout or done.stderr


def test_errors_show_nothing_of_the_inside(dais, local):
    said = []
    for tool in TOOLS:
        for kind, name, operation in operations(local, tool):
            said.append(json.dumps(local.envelope(tool, call(kind, name, {}))))
    text = "\n".join(said)
    for inside in ("SELECT ", "sqlite", "SQLITE", str(dais.home), ".c:", "jansson", "0x7f"):
        assert inside not in text
