"""Resources, prompts, completion and change notices of the product, in both eras (mcp 6.4, 3.7, 3.8)."""
import json
import time

import pytest

from harness import SLACK
from wire import TAG, eventually

UNKNOWN = "ffffffff-ffff-4fff-bfff-ffffffffffff"
RULES = "work_item_schemas:\n  task:\n    notes:\n      - { key: plan, role: queue, required: true }\n"


@pytest.fixture(scope="module")
def dais(shared):
    return shared


@pytest.fixture(scope="module")
def local(dais):
    return dais.local()


@pytest.fixture(scope="module")
def wire(dais):
    return dais.wire()


@pytest.fixture(scope="module")
def harbour(local):
    """A project with an item, notes, rules and a document whose slug has a slash."""
    root = local.item("Harbour", type="project")
    item = local.item("Tide tables", type="task", parentId=root)
    local.note(item, "plan", "Read the yearly file.", role="queue")
    local.note(item, "a/b", "odd key", role="work")
    local.rules(root, RULES)
    local.op("docs_write", "put", rootId=root, slug="pages/tides", kind="page", title="Tides", body="# Tides\n")
    return root, item


def read(wire, uri):
    answer = wire.modern("resources/read", {"uri": uri})
    return answer.json()


def content(wire, uri):
    contents = read(wire, uri)["result"]["contents"]
    assert len(contents) == 1 and contents[0]["uri"] == uri
    return contents[0]


# ---- reading ----

def test_everything_listed_can_be_read(wire, harbour):
    """mcp 3.7: never empty contents; what is JSON is what the tool says."""
    for resource in wire.modern("resources/list").json()["result"]["resources"]:
        given = content(wire, resource["uri"])
        assert given["mimeType"] == resource["mimeType"] and given["text"]
    root, item = harbour
    for uri in (f"dais://item/{item}", f"dais://item/{item}/tree", f"dais://item/{item}/notes", f"dais://item/{item}/note/plan",
                f"dais://config/{root}"):
        json.loads(content(wire, uri)["text"])


def test_template_encoded_slash(wire, harbour):
    """mcp 6.4: a slash inside a variable travels as %2F; unreserved characters may be escaped or not."""
    root, item = harbour
    assert "# Tides" in content(wire, f"dais://doc/{root}/pages%2Ftides")["text"]
    assert "odd key" in content(wire, f"dais://item/{item}/note/a%2Fb")["text"]
    assert "odd key" in read(wire, f"dais://item/{item}/note/a%2fb")["result"]["contents"][0]["text"]
    assert "yearly" in read(wire, f"dais://item/{item}/note/pl%61n")["result"]["contents"][0]["text"]
    assert "error" in read(wire, f"dais://doc/{root}/pages/tides")


@pytest.mark.parametrize("uri", [f"dais://item/{UNKNOWN}", f"dais://config/{UNKNOWN}", "dais://nothing", "dais://item/..", "file:///etc/passwd",
                                 "dais://item/%00", "dais:", "", "dais://item/x/../y", "DAIS://guide", "dais://guide/../guide"])
def test_resource_missing(wire, uri):
    """mcp 6.4: missing is said in the words of the era, with the URI."""
    modern = read(wire, uri)
    assert modern["error"]["code"] == -32602
    legacy = wire.session().request("resources/read", {"uri": uri}).json()
    assert legacy["error"]["code"] in ((-32002,) if uri else (-32002, -32602))
    if uri:
        assert modern["error"]["data"]["uri"] == legacy["error"]["data"]["uri"] == uri


def test_template_1mb_uri(wire):
    begun = time.monotonic()
    answer = wire.modern("resources/read", {"uri": "dais://item/" + "a" * 1_000_000}, drop=["Mcp-Name"])
    assert answer.json()["error"]["code"] in (-32602, -32020) and time.monotonic() - begun < 1 * SLACK


def test_read_forbidden_equals_read_missing(dais, local, wire, harbour):
    """mcp 6.4: whoever may not read a project cannot tell it from one that does not exist."""
    root, item = harbour
    own = local.item("Own project", type="project")
    done = dais.run("token", "create", "--id", "scoped", "--capabilities", "read,write-items", "--root", own, "--json", check=0)
    scoped = dais.wire(json.loads(done.stdout)["token"])
    assert "result" in read(scoped, f"dais://item/{own}")

    def without(answer, text):
        return json.loads(json.dumps({key: value for key, value in answer.items() if key != "id"}).replace(text, "ID"))

    for uri in (f"dais://item/{item}", f"dais://item/{item}/notes", f"dais://item/{item}/note/plan", f"dais://config/{root}",
                f"dais://doc/{root}/pages%2Ftides"):
        hidden = uri.split("/")[3]
        assert without(read(scoped, uri), hidden) == without(read(scoped, uri.replace(hidden, UNKNOWN)), UNKNOWN)
    blind = dais.wire(dais.new_token("blind", "write-items"))
    assert read(blind, "dais://overview")["error"]["code"] == -32602


# ---- cursors ----

def test_cursor_tampered(wire):
    """mcp 6.4: a cursor that is not ours is refused, whatever it is."""
    for method in ("tools/list", "resources/list", "prompts/list", "resources/templates/list"):
        for cursor in ("", "AAAA", "x" * 1025, "=?", "\u00e4"):
            error = wire.modern(method, {"cursor": cursor}).json()["error"]
            assert error["code"] == -32602


def test_cursor_foreign_filter(local, wire):
    """mcp 6.4: a cursor of one listing opens no other, and not the same one for somebody else's filter."""
    project = local.item("Cursors", type="project")
    for n in range(5):
        local.item(f"c{n}", parentId=project)

    def page(**arguments):
        return wire.call("items_read", {"select": "list", "limit": 2, **arguments}).result()["result"]["structuredContent"]

    first = page(ancestorId=project)
    cursor = first["page"]["nextCursor"]
    assert page(ancestorId=project, cursor=cursor)["ok"]
    for wrong in ({"sortBy": "title", "cursor": cursor, "ancestorId": project}, {"cursor": cursor},
                  {"ancestorId": project, "cursor": cursor[:-2] + "AA"}, {"ancestorId": project, "cursor": ""}):
        assert page(**wrong)["error"]["code"] in ("invalid_cursor", "invalid_request"), wrong


# ---- prompts ----

def test_prompts_show_the_live_state(local, wire, harbour):
    root, item = harbour
    for name in ("next_item", "resume_session"):
        for arguments in ({}, {"project": root}):
            for answer in (wire.modern("prompts/get", {"name": name, "arguments": arguments}).json()["result"],
                           wire.session().request("prompts/get", {"name": name, "arguments": arguments}).json()["result"]):
                text = answer["messages"][0]["content"]["text"]
                assert answer["messages"][0]["role"] == "user" and len(text.encode()) <= 16 * 1024
    assert "Tide tables" in wire.modern("prompts/get", {"name": "next_item", "arguments": {"project": root}}).json()["result"][
        "messages"][0]["content"]["text"]


@pytest.mark.parametrize("params", [
    {"name": "nonsense"}, {"name": "plan_tree"}, {"name": "plan_tree", "arguments": {}}, {"name": 7}, {},
    {"name": "plan_tree", "arguments": []}, {"name": "plan_tree", "arguments": {"goal": 7}},
    {"name": "retrospective", "arguments": {"project": UNKNOWN}}, {"name": "retrospective", "arguments": {"project": "no id"}}])
def test_a_prompt_that_cannot_be_made_is_a_fault_of_the_client(wire, params):
    """mcp 4.1: unknown prompt, missing or impossible argument; never a prompt that talks about an error."""
    modern = wire.modern("prompts/get", params)
    assert (modern.status, modern.json()["error"]["code"]) == (200, -32602)
    assert wire.session().request("prompts/get", params).json()["error"]["code"] == -32602


# ---- completion ----

def complete(wire, ref, argument, value, **context):
    params = {"ref": ref, "argument": {"name": argument, "value": value}}
    if context:
        params["context"] = {"arguments": context}
    return wire.modern("completion/complete", params).json()


def of(template):
    return {"type": "ref/resource", "uri": template}


def test_completion_of_ids_keys_and_slugs(local, wire, harbour):
    root, item = harbour
    given = complete(wire, of("dais://item/{id}"), "id", item[:5])["result"]["completion"]
    assert item in given["values"] and given["hasMore"] is False
    keys = complete(wire, of("dais://item/{id}/note/{key}"), "key", "pl", id=item)["result"]["completion"]
    assert keys["values"] == ["plan"] and keys["total"] == 1
    assert complete(wire, of("dais://item/{id}/note/{key}"), "key", "pl")["result"]["completion"]["values"] == []
    assert complete(wire, of("dais://doc/{root}/{slug}"), "slug", "pages/")["result"]["completion"]["values"] == ["pages/tides"]
    other = local.item("Other", type="project")
    assert complete(wire, of("dais://doc/{root}/{slug}"), "slug", "pages/", root=other)["result"]["completion"]["values"] == []
    assert complete(wire, of("dais://doc/{root}/{slug}"), "slug", "pages/", root=root)["result"]["completion"]["values"] == ["pages/tides"]
    assert root in complete(wire, {"type": "ref/prompt", "name": "retrospective"}, "project", root[:4])["result"]["completion"]["values"]
    assert complete(wire, of("dais://item/{id}"), "colour", "x")["result"]["completion"]["values"] == []


@pytest.mark.parametrize("ref", [{"type": "ref/prompt", "name": "nonsense"}, {"type": "ref/resource", "uri": "dais://nonsense/{id}"},
                                 {"type": "ref/resource", "uri": "file://{id}"}, {"type": "x"}, {}, None, "x"])
def test_completion_of_what_does_not_exist(wire, ref):
    assert complete(wire, ref, "id", "")["error"]["code"] == -32602
    answer = wire.session().request("completion/complete", {"ref": ref, "argument": {"name": "id", "value": ""}})
    assert answer.json()["error"]["code"] == -32602


def test_complete_100_cap(local, wire):
    """mcp 6.4: at most a hundred values, and that there are more is said."""
    project = local.item("Many", type="project")
    for _ in range(2):
        local.ops("items_write", *({"op": "create", "title": f"n{n}", "parentId": project} for n in range(80)))
    given = complete(wire, of("dais://item/{id}"), "id", "")["result"]["completion"]
    assert len(given["values"]) == 100 and given["hasMore"] is True


def test_completion_shows_nobody_more_than_reading_does(dais, local, harbour):
    root, item = harbour
    own = local.item("Completed", type="project")
    done = dais.run("token", "create", "--id", "completes", "--capabilities", "read", "--root", own, "--json", check=0)
    scoped = dais.wire(json.loads(done.stdout)["token"])
    assert complete(scoped, of("dais://item/{id}"), "id", item[:8])["result"]["completion"]["values"] == []
    assert complete(scoped, of("dais://item/{id}/note/{key}"), "key", "", id=item)["result"]["completion"]["values"] == []
    assert complete(scoped, of("dais://item/{id}"), "id", own[:8])["result"]["completion"]["values"] == [own]
    blind = dais.wire(dais.new_token("blind2", "write-items"))
    assert complete(blind, of("dais://item/{id}"), "id", item[:8])["result"]["completion"]["values"] == []


# ---- change notices ----

def listen(wire, uris, id="watch"):
    answer = wire.modern("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}, id=id)
    ack = answer.message()
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    answer.sock.settimeout(5 * SLACK)
    return answer, ack["params"]["notifications"].get("resourceSubscriptions", [])


def drain(stream, seconds=0.8):
    stream.sock.settimeout(seconds)
    found = []
    try:
        while (message := stream.message()) is not None:
            found.append(message)
    except TimeoutError:
        return found
    return found


def test_listen_foreign_uri_omitted(dais, local, wire, harbour):
    """mcp 6.2: unknown and forbidden URIs are left out of what is acknowledged, silently."""
    root, item = harbour
    asked = [f"dais://item/{item}", f"dais://item/{UNKNOWN}", "dais://nonsense", "dais://guide"]
    stream, honoured = listen(wire, asked)
    assert honoured == [f"dais://item/{item}", "dais://guide"]
    stream.close()
    own = local.item("Listened", type="project")
    done = dais.run("token", "create", "--id", "listens", "--capabilities", "read", "--root", own, "--json", check=0)
    stream, honoured = listen(dais.wire(json.loads(done.stdout)["token"]), [f"dais://item/{item}", f"dais://item/{own}"])
    assert honoured == [f"dais://item/{own}"]
    stream.close()
    stream, honoured = listen(dais.wire(dais.new_token("blind3", "write-items")), ["dais://overview", f"dais://item/{item}"])
    assert honoured == []
    stream.close()


@pytest.mark.parametrize("id", [0, "", "listen:0"])
def test_subscribe_update_coalesced(local, wire, id):
    """mcp 6.4: many changes of one thing are few notices, tagged, and the last change is among them."""
    item = local.item("Busy")
    uri = f"dais://item/{item}"
    stream, _ = listen(wire, [uri], id=id)
    for n in range(20):
        local.op("items_write", "update", itemId=item, summary=f"s{n}")
    notes = drain(stream, 1.0)
    assert 1 <= len(notes) <= 6
    for note in notes:
        assert note["method"] == "notifications/resources/updated" and note["params"]["uri"] == uri
        assert note["params"]["_meta"][TAG] == id
    local.op("items_write", "update", itemId=item, summary="last")
    assert drain(stream)
    local.item("Somebody else")
    assert drain(stream) == []
    stream.close()


def test_legacy_subscribe_and_unsubscribe(local, wire):
    """mcp 1.6: the older way to the same notices, over the session's GET stream."""
    item = local.item("Followed")
    uri = f"dais://item/{item}"
    session = wire.session("2025-06-18")
    assert session.request("resources/subscribe", {"uri": uri}).json()["result"] == {}
    error = session.request("resources/subscribe", {"uri": f"dais://item/{UNKNOWN}"}).json()["error"]
    assert error["code"] == -32002 and error["data"]["uri"].endswith(UNKNOWN)
    stream = session.get()
    local.op("items_write", "update", itemId=item, summary="one")
    stream.sock.settimeout(5 * SLACK)
    assert stream.message() == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
    assert session.request("resources/unsubscribe", {"uri": uri}).json()["result"] == {}
    local.op("items_write", "update", itemId=item, summary="two")
    assert drain(stream) == []


def test_a_subscription_goes_away_with_its_reader(local, wire):
    item = local.item("Left")
    streams = [listen(wire, [f"dais://item/{item}"], id=n)[0] for n in range(20)]
    for stream in streams:
        stream.close()
    local.op("items_write", "update", itemId=item, summary="nobody hears it")
    stream, _ = listen(wire, [f"dais://item/{item}"])
    local.op("items_write", "update", itemId=item, summary="one hears it")
    eventually(lambda: drain(stream, 0.3))
    stream.close()
