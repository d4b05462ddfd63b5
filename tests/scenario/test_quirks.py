"""A11: arrays and objects that a client or a model sent as text."""
import json

import pytest

from harness import refused, results

CREATE = {"op": "create", "title": "quirk"}


def create(caller, **more):
    return caller.envelope("items_write", {"ops": [{**CREATE, **more}]})


def codes(envelope):
    found = list(envelope.get("warnings", []))
    for element in envelope.get("results", []):
        found += element.get("warnings", [])
    return [warning["code"] for warning in found]


@pytest.fixture
def local(dais):
    return dais.local()


def count(local):
    return len(local.read("items_read", "list")["items"])


def test_a11a_ops_as_text_are_read(local):
    envelope = local.envelope("items_write", {"ops": json.dumps([CREATE])})
    assert local.get(results(envelope)[0]["id"])["title"] == "quirk"
    assert "json_string_coerced" in codes(envelope)


def test_a11b_one_op_alone_is_a_list_of_one(local):
    envelope = local.envelope("items_write", {"ops": CREATE})
    assert local.get(results(envelope)[0]["id"])["title"] == "quirk"
    assert "ops_wrapped" in codes(envelope)


def test_a11c_tags_as_text_are_the_same_tags(local):
    envelope = create(local, tags='["ui","db"]')
    assert "json_string_coerced" in codes(envelope)
    plain = create(local, tags=["ui", "db"])
    assert local.get(results(envelope)[0]["id"])["tags"] == local.get(results(plain)[0]["id"])["tags"] == ["ui", "db"]


@pytest.mark.parametrize("tags", ["ui,db", "ui", '"[\\"ui\\"]"', '["ui"', "[", "{}"])
def test_a11de_text_that_is_no_list_is_refused_with_its_path(local, tags):
    envelope = create(local, tags=tags)
    assert not envelope["ok"] and "results" not in envelope
    error = envelope["error"]
    assert error["code"] == "invalid_request"
    fault, = error["detail"]["fields"]
    assert fault["field"] == "ops[0].tags"
    assert "array" in fault["reason"] and "string" in fault["reason"], "what was expected, and what came"
    assert json.loads(fault["received"]) == tags
    assert error["fix"] and "\n" not in error["fix"]
    assert count(local) == 0


def test_a11f_properties_as_text_are_the_same_object(local):
    envelope = create(local, properties='{"k":1}')
    assert "json_string_coerced" in codes(envelope)
    assert local.get(results(envelope)[0]["id"], "properties")["properties"] == {"k": 1}


def test_a11gh_text_that_looks_like_json_stays_text_where_text_is_due(local):
    item = results(create(local, description="[1,2]"))[0]["id"]
    assert local.get(item, "description")["description"] == "[1,2]"
    local.note(item, "n", '{"not":"parsed"}', role="work")
    assert local.body(item, "n") == '{"not":"parsed"}'


@pytest.mark.parametrize("ops", ['[{"op":', json.dumps(json.dumps([CREATE])), "[" * 200, "[" * 200 + "]" * 200, "", "null", "[]",
                                 json.dumps([CREATE]) + " x"])
def test_a11ijk_text_that_is_not_exactly_a_list_is_refused(local, ops):
    with refused("invalid_request", path="ops"):
        local.envelope("items_write", {"ops": ops}) and results(local.envelope("items_write", {"ops": ops}))
    assert count(local) == 0


def test_a11l_more_than_a_hundred_ops_are_too_many_in_either_spelling(local):
    many = [CREATE] * 101
    for ops in (many, json.dumps(many)):
        with refused("payload_too_large"):
            results(local.envelope("items_write", {"ops": ops}))
    assert count(local) == 0


def test_null_for_an_optional_parameter_is_absence(local):
    envelope = create(local, summary=None, tags=None, complexity=None, parentId=None)
    assert envelope["ok"] and not codes(envelope)


def test_a_number_or_a_truth_as_text_is_read_and_that_is_told(local):
    envelope = create(local, complexity="5", requiresVerification="true")
    assert codes(envelope) == ["json_string_coerced"] * 2
    made = local.get(results(envelope)[0]["id"])
    assert (made["complexity"], made["requiresVerification"]) == (5, True)
