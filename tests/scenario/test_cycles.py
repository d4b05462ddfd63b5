"""A02: cycles of dependencies and parents are found at once and named truly."""
import time

import pytest

from harness import Refused, refused, together


def edges_of(local, pairs):
    pairs = list(pairs)
    for at in range(0, len(pairs), 100):
        local.ops("deps_write", *({"op": "create", "from": a, "to": b} for a, b in pairs[at:at + 100]))


def items_of(local, count, **more):
    made = []
    for at in range(0, count, 100):
        made += [row["id"] for row in local.ops("items_write", *(
            {"op": "create", "title": f"item {i}", **more} for i in range(at, min(count, at + 100))))]
    return made


def timed(work):
    """The answer, refusal or not, and the seconds it took."""
    began = time.monotonic()
    try:
        return work(), time.monotonic() - began
    except Refused as refusal:
        return refusal, time.monotonic() - began


def assert_real_cycle(path, edges):
    assert path[0] == path[-1] and len(path) > 2
    for a, b in zip(path, path[1:]):
        assert (a, b) in edges, (a, b)


def test_a02a_a_cycle_through_two_to_the_24_paths_is_found_by_looking_at_each_edge_once(dais):
    local = dais.local()
    items = items_of(local, 48)
    layers = [items[i:i + 2] for i in range(0, 48, 2)]
    edges = {(a, b) for upper, lower in zip(layers, layers[1:]) for a in upper for b in lower}
    _, drawing = timed(lambda: edges_of(local, sorted(edges)))
    closing = (layers[-1][0], layers[0][0])
    refusal, closed = timed(lambda: local.block(*closing))
    assert isinstance(refusal, Refused) and refusal.code == "cycle_detected", refusal
    assert_real_cycle(refusal.detail["path"], edges | {closing})
    harmless, added = timed(lambda: local.block(layers[0][0], layers[-1][0]))
    assert not isinstance(harmless, Refused)
    # Each of the 92 edges was looked at for a cycle too. A walk over the paths would take a hundred thousand times that.
    assert max(closed, added) < 20 * drawing


def test_a02b_related_items_may_form_a_ring_and_never_gate(dais):
    local = dais.local()
    a, b, c = items_of(local, 3)
    for first, then in ((a, b), (b, c), (c, a), (b, a)):
        local.block(first, then, type="RELATES_TO")
    local.advance(b, "start")


def test_a02c_a_reversed_edge_is_the_same_edge(dais):
    local = dais.local()
    a, b = items_of(local, 2)
    local.block(a, b)
    with refused("cycle_detected"):
        local.block(a, b, type="IS_BLOCKED_BY")
    with refused("duplicate"):
        local.block(b, a, type="IS_BLOCKED_BY")
    with refused("dependency_unmet"):
        local.advance(b, "start")


def test_a02d_an_item_does_not_block_itself(dais):
    local = dais.local()
    item = local.item("alone")
    with refused("invalid_request"):
        local.block(item, item)


def test_a02e_an_item_does_not_move_under_its_own_grandchild(dais):
    local = dais.local()
    top = local.item("top")
    child = local.item("child", parentId=top)
    grandchild = local.item("grandchild", parentId=child)
    with refused("cycle_detected"):
        local.op("items_write", "reroot", itemId=top, parentId=grandchild)
    with refused("invalid_request", path="ops[0].parentId"):
        local.op("items_write", "reroot", itemId=top, parentId=top)
    assert [local.get(item).get("parentId") for item in (top, child, grandchild)] == [None, top, child]


@pytest.mark.concurrent
def test_a02f_of_two_opposite_edges_added_at_once_one_is_stored(dais):
    local = dais.local()
    two = [dais.token("t1"), dais.token("t2")]
    for _ in range(200):
        a, b = items_of(local, 2)
        ways = {id(two[0]): (a, b), id(two[1]): (b, a)}
        answers = together(two, lambda caller: caller.envelope("deps_write", {"ops": [
            {"op": "create", "from": ways[id(caller)][0], "to": ways[id(caller)][1]}]}))
        assert sorted(answer["ok"] for answer in answers) == [False, True]
        refusal = next(answer for answer in answers if not answer["ok"])
        assert refusal["error"]["code"] == "cycle_detected"
        assert len(local.read("deps_read", "edges", itemId=a)["edges"]) == 1


def test_a02g_a_tree_whose_dependencies_form_a_loop_is_not_made(dais):
    local = dais.local()
    with refused("cycle_detected"):
        local.op("items_write", "create_tree", root={"title": "top"}, children=[
            {"ref": ref, "title": ref} for ref in "abc"],
            deps=[{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "c", "to": "a"}])
    assert local.read("items_read", "list")["items"] == []


def test_a02h_closing_a_chain_of_5000_costs_less_than_drawing_it(dais):
    local = dais.local()
    items = items_of(local, 5000)
    _, drawing = timed(lambda: edges_of(local, zip(items, items[1:])))
    refusal, took = timed(lambda: local.block(items[-1], items[0]))
    assert isinstance(refusal, Refused) and refusal.code == "cycle_detected", refusal
    assert took < drawing
    path = refusal.detail["path"]
    assert path[0] == path[-1] == items[-1]
    assert refusal.detail["pathLength"] == 5001
    assert len(path) + refusal.detail["pathOmitted"] == 5001
    assert len(str(refusal.envelope)) < 60 * 1024
