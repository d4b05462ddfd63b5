"""A15: every script, line ends, and texts at the edge of their limit."""
import json
import unicodedata

import pytest


from harness import Refused, refused

DROP = "\U0001f4a6"


@pytest.fixture
def local(dais):
    return dais.local()


def titles_of(local):
    return [item["title"] for item in local.read("items_read", "list", sortBy="createdAt", sortDir="asc")["items"]]


def test_a15_ids_do_not_come_from_titles(local):
    first, second = local.item("数据库升级"), local.item("数据库升级")
    assert first != second
    assert titles_of(local) == ["数据库升级"] * 2


@pytest.mark.parametrize("title", [
    "数据库升级", "٣ مهام", "012345678901234567890123456789012345678" + DROP * 2, DROP * 500, "e\u0301", "\u00e9", "a\u202eb", "a\u2028b",
    "a\tb", "a\nb", "\ufeffmark", "\U0010ffff", "a\u200db"])
def test_a15_a_title_comes_back_as_it_was(local, title):
    item = local.item(title)
    assert local.get(item)["title"] == title
    assert titles_of(local) == [title]


def test_a15_composed_and_decomposed_letters_stay_different(local):
    a, b = local.item("e\u0301"), local.item("\u00e9")
    assert local.get(a)["title"] != local.get(b)["title"]


@pytest.mark.parametrize("title", [DROP * 501, "   ", "", "a\0b", "\0"])
def test_a15_a_title_that_cannot_be_is_refused_with_its_path(local, title):
    with refused("invalid_request", path="ops[0].title"):
        local.item(title)
    assert titles_of(local) == []


@pytest.mark.parametrize("text", ['"a\\ud800b"', '"\\udc00"', '"\\ud83d\\ud83d"'])
def test_a15_half_a_surrogate_pair_is_refused(dais, text):
    body = f'{{"ops":[{{"op":"create","title":{text}}}]}}'.encode()
    status, _, answer = dais.admin().ask("POST", "/api/v1/ops/items_write", body)
    assert status == 400
    assert json.loads(answer)["error"]["code"] == "invalid_request"


def test_a15_line_ends_become_lf_and_that_is_told(local):
    item = local.item("note")
    envelope = local.envelope("notes_write", {"ops": [
        {"op": "upsert", "itemId": item, "key": "n", "role": "work", "body": "a\r\nb\rc\n"}]})
    warnings = envelope.get("warnings", []) + envelope["results"][0].get("warnings", [])
    assert "body_normalised" in [warning["code"] for warning in warnings]
    assert local.body(item, "n") == "a\nb\nc\n"


@pytest.mark.parametrize("body, fits", [
    ("x" * 65536, True), ("x" * 65537, False), ("x" * 65535 + "é", False), ("x" * 65534 + "é", True),
    ("line\n" * 10000, True), ("\r\n" * 32769, False), (DROP * 16384, True), (DROP * 16385, False)])
def test_a15_the_limit_of_a_note_is_in_bytes_and_said_up_front(local, body, fits):
    item = local.item("note")
    if fits:
        local.note(item, "n", body, role="work")
        whole, offset = "", 0
        while True:
            note = local.read("notes_read", "get", itemId=item, key="n", offset=offset)["note"]
            whole += note["body"]
            if not note.get("truncated"):
                break
            offset = note["nextOffset"]
        assert whole == body
        return
    with refused("payload_too_large") as refusal:
        local.note(item, "n", body, role="work")
    assert refusal.detail["max"] == 65536
    assert refusal.detail["actual"] == len(body.encode())


def test_a15_the_longest_note_of_a_schema_counts_characters(dais, local):
    root = local.item("shelf", type="project")
    local.rules(root, "note_limits: { mode: reject }\nwork_item_schemas:\n  t:\n    notes:\n"
                      "      - { key: short, role: work, required: true, maxLength: 10 }\n")
    item = local.item("one", type="t", parentId=root)
    local.note(item, "short", DROP * 10)
    with refused("note_too_long") as refusal:
        local.note(item, "short", DROP * 11)
    assert (refusal.detail["max"], refusal.detail["actual"]) == (10, 11)


def test_a15_snippets_are_cut_between_characters(dais, local):
    item = local.item("snippet")
    local.note(item, "n", ("💦é日 " * 400) + "needle " + ("💦é日 " * 400), role="work")
    hit = local.read("items_read", "search", query="needle")["hits"][0]
    assert "\ufffd" not in hit["snippet"] and "<mark>needle</mark>" in hit["snippet"]


@pytest.mark.parametrize("language", ["C", "C.UTF-8", "POSIX"])
def test_a15_the_language_of_the_terminal_changes_nothing_in_the_data(stopped, language):
    stopped.environment.update(LANG=language, LC_ALL=language)
    stopped.start()
    item = stopped.item("数据库升级 é")
    assert stopped.get(item)["title"] == "数据库升级 é"


def test_a15_a_terminal_never_gets_raw_control_or_direction_characters(dais):
    for title in ("red \u001b[31m text", "a\u202eb", "bell \u0007", "del \u007f", "c1 \u009b31m", "line\u2028sep"):
        try:
            dais.item(title)
        except Refused as refusal:
            assert refusal.code == "invalid_request"
    shown = dais.run("items", check=0).stdout
    for bad in "\u001b\u202e\u0007\u007f\u009b\u2028":
        assert bad not in shown


def test_a15_a_list_fits_a_narrow_terminal_with_wide_characters(dais):
    dais.environment["COLUMNS"] = "80"
    dais.item("数据库" * 100)
    shown = dais.run("items", check=0).stdout
    assert "\ufffd" not in shown

    for line in shown.splitlines():
        width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
        assert width <= 80, line


def test_a15_export_and_import_keep_every_character(dais, new_dais):
    local = dais.local()
    root = local.item("数据库升级", type="project", description="é\u0301 \u2028 " + DROP, tags=["ui"], properties={"k": "日"})
    child = local.item("٣ مهام", parentId=root)
    local.note(child, "n", "naïve\ncafé " + DROP, role="work")
    exported = dais.run("export", check=0).stdout
    other = new_dais()
    other.run("import", "-", stdin=exported, check=0)
    caller = other.start().local()
    for item in (root, child):
        wanted = local.get(item, "description", "properties", "tags")
        assert caller.get(item, "description", "properties", "tags")["title"] == wanted["title"]
    assert caller.body(child, "n") == "naïve\ncafé " + DROP
    assert other.run("export", check=0).stdout == exported, "a round trip loses nothing"


TITLES = ["数据库升级", "٣ مهام", "0123" + DROP * 2, "e\u0301", "\u00e9", "a\u202eb", "a\u2028b"]


def test_a15_documents_keep_their_titles_and_bodies(local):
    root = local.item("shelf", type="project")
    for n, title in enumerate(TITLES):
        put = local.envelope("docs_write", {"ops": [{"op": "put", "kind": "page", "rootId": root, "slug": f"page-{n}", "title": title,
                                                     "body": f"{title}\r\n"}]})
        assert put["ok"] and "body_normalised" in str(put), put
        document = local.read("docs_read", "get", rootId=root, slug=f"page-{n}")["document"]
        assert (document["title"], document["body"]) == (title, f"{title}\n")
    assert [row["title"] for row in local.read("docs_read", "list", rootId=root)["documents"]] == TITLES
    for title in (DROP * 501, "a\0b"):
        with refused("invalid_request", path="ops[0].title"):
            local.op("docs_write", "put", kind="page", rootId=root, slug="other", title=title, body="x")
