"""A07: what people type is data, never query syntax."""
import json

import pytest

import harness
from harness import refused

BODIES = {
    "n1": "compile with --error-on-warnings enabled",
    "n2": "don't drop the parser's state",
    "n3": "std::vector a::b notes",
    "n4": "version 38.101 of the spec",
    "n5": "C++ and C# builds",
    "n6": "NOT AND OR NEAR words",
    "n7": "日本語のテスト",
    "n8": "naïve café",
    "n9": 'a-b-c dash 50% off "quoted"',
    "n10": "Walker's and Rider's Guild",
}


@pytest.fixture(scope="module")
def library(shared):
    local = shared.local()
    root = local.item("shelf")
    for key, body in BODIES.items():
        item = local.item(f"item {key[1:]}", parentId=root)
        local.note(item, key, body, role="work")
    shared.titled = local.item("日本語のテスト", parentId=root)
    return shared


@pytest.fixture(scope="module")
def local(library):
    return library.local()


def hits(caller, query, **more):
    return caller.read("items_read", "search", query=query, **more)["hits"]


def keys(found):
    return {hit.get("key") for hit in found if hit["kind"] == "note"}


@pytest.mark.parametrize("query, key", [
    ("--error-on-warnings", "n1"), ("don't", "n2"), ("a::b", "n3"), ("38.101", "n4"), ("C++", "n5"), ("NOT", "n6"),
    ("50%", "n9"), ("Walker's and Rider's", "n10"), ("café", "n8"), ('"quoted"', "n9"),
])
@pytest.mark.parametrize("mode", ["text", "auto"])
def test_a07_it_finds_what_was_typed(local, query, key, mode):
    assert key in keys(hits(local, query, matchMode=mode))


@pytest.mark.parametrize("query, key", [
    ("--error-on-warnings", {"n1"}), ("don't", {"n2"}), ("a::b", {"n3"}), ("38.101", {"n4"}), ("C++", {"n5"}),
    ("NOT", {"n3", "n6"}), ("50%", {"n9"}), ("Walker's and Rider's", {"n10"}), ("café", {"n8"}), ("cafe", set()),
    ("日本語", {"n7"}),
])
def test_a07_substring_finds_exactly_where_it_stands(local, query, key):
    assert keys(hits(local, query, matchMode="substring")) == key


def test_a07_text_folds_diacritics(local):
    assert keys(hits(local, "cafe", matchMode="text")) == {"n8"}


def test_a07_two_characters_are_scanned_within_a_bound_that_is_told(local, library):
    with refused("invalid_request", path="query"):
        hits(local, "日本", matchMode="substring")
    envelope = local.envelope("items_read", {"select": "search", "query": "日本", "matchMode": "auto"})
    found = harness.data(envelope)["hits"]
    assert library.titled in [hit["id"] for hit in found if hit["kind"] == "item"]
    told = {warning["code"]: warning["message"] for warning in envelope["warnings"]}
    assert "titles, summaries and note bodies" in told["search_fallback"], "what was read is said"


ODD = ["foo AND", "NEAR(", '"unbalanced', "*", "(", ":", "-word", "title:x* OR -(", "^start", "(" * 500, '"', "'", "\\", "%", "_",
       "a\tb", "AND", "OR", "NOT NOT", "{a b}", "col : x", "a^2", "\u202eabc", "\U0001f4a6", "'; DROP TABLE item; --", "$1", "?1"]


@pytest.mark.parametrize("mode", ["text", "substring", "auto"])
@pytest.mark.parametrize("query", ODD)
def test_a07_no_query_is_an_error_of_the_engine(local, library, query, mode):
    mcp = local.envelope("items_read", {"select": "search", "query": query, "matchMode": mode})
    rest = library.admin().envelope("items_read", {"select": "search", "query": query, "matchMode": mode})
    if not mcp["ok"]:
        # Refused for being short, with the reason; never for its characters.
        assert mode == "substring" and mcp["error"]["code"] == "invalid_request", mcp
    assert mcp.get("data") == rest.get("data") and mcp.get("page") == rest.get("page"), "both surfaces answer alike"


def test_a07_only_punctuation_finds_nothing(local):
    for query in ("*", "(", ":", "***", "()"):
        assert hits(local, query, matchMode="text") == []


def test_a07_a_query_has_a_longest_and_is_not_blank(local):
    for character in ("x", "日", "\U0001f4a6"):
        hits(local, character * 500)
        with refused("invalid_request", path="query"):
            hits(local, character * 501)
    for blank in ("", "   ", "\t\n", "\u3000\u00a0"):
        for mode in ("text", "substring", "auto"):
            with refused("invalid_request", path="query"):
                hits(local, blank, matchMode=mode)


def test_a_snippet_marks_the_match_between_characters(local):
    hit = next(hit for hit in hits(local, "café") if hit.get("key") == "n8")
    assert "<mark>café</mark>" in hit["snippet"]
    json.dumps(hit).encode()
