"""The story this server is for, told four ways: by dais call, by MCP over stdio, by MCP over HTTP, by REST.

An item cannot start without its required note, and the refusal names the note; with the note it goes
through; finishing it unblocks what waited, and finishing that closes the parent; a newcomer sees where
everything stands with one call; and a crash in between loses nothing.
"""
import json

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import harness
from harness import refused

# The two eras of the protocol: with a handshake, and without.
MODES = ["legacy", "auto"]

RULES = """
work_item_schemas:
  task:
    notes:
      - { key: plan, role: queue, required: true, description: What will be done }
      - { key: done, role: work, required: true, description: What was done }
"""


def tell(dais, caller, between=lambda: None):
    """`caller` plays the story; `between` happens when half of it is told."""
    root = caller.item("Harbour", type="project")
    caller.rules(root, RULES)
    tree = caller.op("items_write", "create_tree", root={"title": "Berth booking", "parentId": root}, children=[
        {"ref": "first", "title": "Tide table import", "type": "task"},
        {"ref": "second", "title": "Booking API", "type": "task"},
    ], deps=[{"from": "first", "to": "second"}])
    feature = tree["root"]["id"]
    first, second = (child["id"] for child in tree["children"])

    with refused("gate_blocked", says="plan") as refusal:
        caller.advance(first, "start")
    assert [missing["key"] for missing in refusal.detail["missing"]] == ["plan"]
    assert caller.get(first)["role"] == "queue"

    caller.note(first, "plan", "Read the yearly file.")
    started = caller.advance(first, "start")
    assert (started["previousRole"], started["newRole"]) == ("queue", "work")
    assert started["expectedNotes"] == ["done"]
    assert caller.get(feature)["role"] == "work", "the parent starts with its first child"

    between()

    caller.note(second, "plan", "Serve the berths.")
    with refused("dependency_unmet", says=first):
        caller.advance(second, "start")
    caller.note(first, "done", "Imported twelve months.")
    finished = caller.advance(first, "complete")
    assert finished["newRole"] == "terminal"
    assert [unblocked["itemId"] for unblocked in finished["unblockedItems"]] == [second]

    caller.advance(second, "start")
    context = caller.read("items_read", "context", rootId=root)
    assert second in [item["id"] for item in context["active"]]
    assert {"id": second, "missing": ["done"]} in context["stalled"]

    caller.note(second, "done", "Serves them.")
    closed = caller.advance(second, "complete")
    assert [event["itemId"] for event in closed["cascadeEvents"] if event["to"] == "terminal"][0] == feature
    assert caller.get(feature)["role"] == "terminal"


def test_the_story_by_dais_call_with_a_crash_in_the_middle(dais):
    tell(dais, dais, between=lambda: dais.kill().start())


def test_the_story_by_the_unix_socket(dais):
    tell(dais, dais.local())


def test_the_story_by_rest(dais):
    tell(dais, dais.admin())


class Mcp(harness.Tools):
    """The Python MCP client, driven from straight-line code."""

    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def envelope(self, tool, arguments):
        answer = self.portal.call(self.client.call_tool, tool, arguments)
        assert answer.structured_content is not None, answer
        assert json.loads(answer.content[0].text) == answer.structured_content
        return answer.structured_content


def by_mcp(transport, play, mode):
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(Client(transport, mode=mode)) as client:
            play(Mcp(portal, client))


def stdio(dais, *flags):
    return stdio_client(StdioServerParameters(command=harness.PROGRAM, env=dais.env(), cwd=str(dais.work),
                                              args=["mcp-stdio", "--state", str(dais.state), *flags]))


@pytest.mark.parametrize("mode", MODES)
def test_the_story_by_mcp_over_stdio(dais, mode):
    by_mcp(stdio(dais, "--no-spawn"), lambda caller: tell(dais, caller), mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_story_by_mcp_over_stdio_while_the_server_restarts(dais, mode):
    by_mcp(stdio(dais, "--no-spawn"), lambda caller: tell(dais, caller, between=dais.restart), mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_story_by_mcp_over_http(dais, mode):
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {dais.admin_token}"}, timeout=60)
    by_mcp(streamable_http_client(dais.url + "/mcp", http_client=client), lambda caller: tell(dais, caller), mode)


def test_what_was_told_is_still_true_after_a_crash(dais):
    item = dais.item("write the parser")
    dais.advance(item, "start")
    before = dais.get(item)
    dais.kill().start()
    assert dais.get(item) == before


def test_a_newcomer_sees_everything_with_one_call(dais):
    ada = dais.token("ada")
    root = ada.item("Harbour")
    item = ada.item("Booking API", parentId=root)
    ada.claim(item)
    ada.advance(item, "start")
    context = dais.token("bob").read("items_read", "context", rootId=root)
    assert item in [row["id"] for row in context["active"]]
    assert context["claims"]["active"] == 1
