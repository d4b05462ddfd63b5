"""A08: configuration as editors really write it. The same verdict from push, validate and at start."""
import re
import signal

import pytest

from harness import Refused, refused, until

LINES = ["work_item_schemas:", "  bug:", "    notes:", "      - { key: cause, role: work, required: true }", ""]
TEXT = "\n".join(LINES)
HEAD = "work_item_schemas:\n"

SAME = {
    "a as is": TEXT.encode(),
    "b with a byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "c with CRLF": TEXT.replace("\n", "\r\n").encode(),
    "d with CR alone": TEXT.replace("\n", "\r").encode(),
    "e with a comment at the left margin": "\n".join([*LINES[:2], "# why", *LINES[2:]]).encode(),
}
# name: (bytes, what the message has to say)
BROKEN = {
    "f indented by a tab": ("\n".join([*LINES[:2], "\tnotes:", *LINES[3:]]).encode(), "tab"),
    "g a second document": (TEXT.encode() + b"---\ntraits: {}\n", "document"),
    "h UTF-16": (b"\xff\xfe" + TEXT.encode("utf-16-le"), "UTF-8"),
    "i Latin-1": (TEXT.replace("cause", "caus\xe9").encode("latin-1"), "UTF-8"),
    "j a NUL in a key": (b'work_item_schemas:\n  "a\\0b": {}\n', "NUL"),
    "k half a surrogate pair": (b'work_item_schemas:\n  "\\uD83D": {}\n', "escape"),
    "duplicate keys": (TEXT.encode() + TEXT.encode(), "twice"),
    "a merge key": (b"traits:\n  a: &a { notes: [] }\n  b: { <<: *a }\n", "merge"),
    "a tag": (b"traits: !!python/object {}\n", "tag"),
    "a root that is a list": (b"- a\n", "mapping"),
    "a section of the wrong shape": (b"traits: []\n", "mapping"),
    "an alias of itself": (b"traits: &a\n  x: *a\n", "alias"),
    "65 levels": (b"traits: " + b"[" * 65 + b"]" * 65 + b"\n", "64"),
}


# Where the fault is: line and column.
PLACES = {"f": (3, 1), "g": (5, 1), "h": (1, 1), "i": (4, 20), "j": (2, 3), "k": (2, 6)}


def as_text(raw):
    """What a JSON string can carry; None when it cannot."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def errors_of(refusal):
    assert refusal.code == "config_invalid", refusal
    return str(refusal.detail["errors"])


def write_rules(dais, text):
    folder = dais.work / ".dais"
    folder.mkdir()
    (folder / "config.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def shelf(dais):
    dais.root = dais.item("shelf", type="project")
    return dais


def test_a08_every_spelling_of_the_same_rules_is_the_same(shelf):
    fingerprints = {}
    for name, raw in SAME.items():
        text = as_text(raw)
        assert shelf.op("config", "validate", yaml=text)["valid"] is True
        pushed = shelf.op("config", "push", rootId=shelf.root, yaml=text, force=True)
        fingerprints[name[0]] = pushed["fingerprint"]
        schema = shelf.read("items_read", "schema", type="bug", rootId=shelf.root)
        assert [(note["key"], note["role"], note["required"]) for note in schema["notes"]] == [("cause", "work", True)], name
    assert fingerprints["a"] == fingerprints["b"] == fingerprints["c"]


@pytest.mark.parametrize("name", [name for name, (raw, _) in BROKEN.items() if as_text(raw) is not None])
def test_a08_broken_text_is_refused_by_push_and_validate_alike(shelf, name):
    raw, says = BROKEN[name]
    verdicts = []
    for op, more in (("validate", {}), ("push", {"rootId": shelf.root})):
        with pytest.raises(Refused) as caught:
            shelf.op("config", op, yaml=as_text(raw), **more)
        verdicts.append(errors_of(caught.value))
        assert says.lower() in verdicts[-1].lower(), verdicts[-1]
        if name[:2].strip() in PLACES:
            assert "at line %d, column %d" % PLACES[name[0]] in verdicts[-1]
    assert verdicts[0] == verdicts[1]
    with pytest.raises(Refused) as caught:
        shelf.read("config", "current", rootId=shelf.root)
    assert caught.value.code == "not_found", "nothing was stored"


@pytest.mark.parametrize("name", BROKEN)
def test_a08_broken_text_stops_the_start_with_its_place(stopped, name):
    raw, says = BROKEN[name]
    write_rules(stopped, raw)
    code, said = stopped.fails_to_start()
    assert code == 78, said
    assert says.lower() in said.lower(), said
    place = "%d:%d" % PLACES[name[0]] if name[:2].strip() in PLACES else r"\d+:\d+"
    assert re.search(rf"\.dais/config\.yaml:{place}: ", said), said
    assert "internal" not in said
    assert not stopped.state.exists(), "nothing else was touched"


@pytest.mark.parametrize("name", SAME)
def test_a08_every_spelling_is_read_at_start(stopped, name):
    write_rules(stopped, SAME[name])
    stopped.start()
    item = stopped.item("leak", type="bug")
    stopped.advance(item, "start")
    with pytest.raises(Refused) as caught:
        stopped.advance(item, "complete")
    assert caught.value.code == "gate_blocked"


def test_a08_the_older_place_of_the_rules_is_read_too(stopped):
    (stopped.work / ".taskorchestrator").mkdir()
    (stopped.work / ".taskorchestrator/config.yaml").write_text(TEXT)
    stopped.start()
    assert [note["key"] for note in stopped.read("items_read", "schema", type="bug")["notes"]] == ["cause"]


EMPTY = ["", "# only a comment\n", "\n\n", "{}\n", "\ufeff"]


@pytest.mark.parametrize("text", EMPTY)
def test_a08_an_empty_document_is_an_empty_mapping(shelf, text):
    assert shelf.op("config", "validate", yaml=text)["valid"] is True
    shelf.rules(shelf.root, text)
    assert shelf.read("config", "effective", rootId=shelf.root)["types"] == []


@pytest.mark.parametrize("text", EMPTY)
def test_a08_an_empty_document_is_no_reason_not_to_start(stopped, text):
    write_rules(stopped, text)
    stopped.start()
    assert stopped.read("config", "effective")["types"] == []


def padded(size):
    return TEXT + "#" * (size - len(TEXT) - 1) + "\n"


def test_a08_a_document_has_a_largest_size(shelf):
    local = shelf.local()
    for op, more in (("validate", {}), ("push", {"rootId": shelf.root})):
        local.op("config", op, yaml=padded(131072), **more)
        with refused("payload_too_large"):
            local.op("config", op, yaml=padded(131073), **more)
    assert local.read("config", "current", rootId=shelf.root)["version"] == 1


def test_a08_a_file_of_rules_has_the_same_largest_size(stopped):
    write_rules(stopped, padded(131073))
    code, said = stopped.fails_to_start()
    assert code == 78 and ".dais/config.yaml" in said and "131072" in said, said
    (stopped.work / ".dais/config.yaml").write_text(padded(131072))
    stopped.start()
    assert stopped.run("project", "add", stopped.work).returncode == 0
    (stopped.work / ".dais/config.yaml").write_text(padded(131073))
    assert "131072" in stopped.run("project", "add", stopped.work, check=78).stderr


def test_words_that_look_like_something_else_stay_text(shelf):
    shelf.rules(shelf.root, "work_item_schemas:\n  no:\n    notes:\n      - { key: 0123, role: work, description: off }\n")
    notes = shelf.read("items_read", "schema", type="no", rootId=shelf.root)["notes"]
    assert [(note["key"], note["description"]) for note in notes] == [("0123", "off")]


def test_a_bad_file_changes_nothing_while_the_server_runs(stopped):
    write_rules(stopped, TEXT)
    rules = stopped.work / ".dais/config.yaml"
    stopped.start()
    rules.write_text("traits: []\n")
    stopped.process.send_signal(signal.SIGHUP)
    until(lambda: "mapping" in stopped.log())
    assert [note["key"] for note in stopped.read("items_read", "schema", type="bug")["notes"]] == ["cause"]
    rules.write_text(TEXT.replace("cause", "reason"))
    stopped.process.send_signal(signal.SIGHUP)
    until(lambda: [note["key"] for note in stopped.read("items_read", "schema", type="bug")["notes"]] == ["reason"])
