"""Sessions of the older versions: ids, replay, batches, limits (mcp 6.2, 2.7 to 2.9)."""
import contextlib
import json
import threading
import time

import pytest
from mcp_fixture import Fixture
from wire import BOTH, code, eventually


def test_legacy_disconnect_continues(fx):
    session = fx.session()
    answer = session.call("slow_compute", {"seconds": 0.4}, id=9)
    last = answer.event()["id"]
    answer.close()
    again = session.get(last)
    messages = again.messages()
    assert [m["id"] for m in messages] == [9]
    time.sleep(0.1)
    assert [m["id"] for m in session.get(last).messages()] == [9]  # what was resumed once can be again


def test_priming_only_for_the_newest_legacy(fx):
    prime = fx.session("2025-11-25").call("slow_compute", {"seconds": 0.01}).event()
    assert prime["retry"] == "1000" and prime["data"] == ""
    first = fx.session("2025-06-18").call("slow_compute", {"seconds": 0.01}).event()
    assert json.loads(first["data"])["result"] and first["id"]


def test_replay_isolated(fx):
    session = fx.session()
    one = session.call("slow_compute", {"seconds": 0.05}, id="one")
    two = session.call("slow_compute", {"seconds": 0.05}, id="two")
    first, second = one.event()["id"], two.event()["id"]
    one.messages(), two.messages()
    assert [m["id"] for m in session.get(first).messages()] == ["one"]
    assert [m["id"] for m in session.get(second).messages()] == ["two"]


def test_replay_of_another_session(fx):
    """Case A12 j: an id that another session was given finds what this session has under it, or nothing; never the other's."""
    mine, theirs = fx.session(), fx.session()
    call = theirs.call("test_echo", {"secret": "x"}, id="theirs", accept=BOTH)
    call.result()
    streamed = theirs.call("slow_compute", {"seconds": 0.05}, id="theirs too")
    last = streamed.event()["id"]
    streamed.messages()
    got = mine.get(last)
    assert got.status == 200 and got.is_stream
    own = mine.call("slow_compute", {"seconds": 0.05}, id="mine")
    primed = own.event()["id"]
    own.messages()
    assert [m["id"] for m in mine.get(primed).messages()] == ["mine"]
    got.sock.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while (message := got.message()) is not None:
            assert "theirs" not in str(message)
    assert [m["id"] for m in theirs.get(last).messages()] == ["theirs too"]


def test_replay_unknown_id(fx):
    session = fx.session()
    for last in ("zz.9", "nonsense", "", "1.1.1", "." * 200):
        answer = session.get(last)
        assert answer.status == 200 and answer.is_stream
        answer.close()


def test_get_twice(fx):
    session = fx.session()
    session.request("resources/subscribe", {"uri": "test://watched-resource"}).json()
    old, new = session.get(), session.get()
    assert old.event()["retry"] and new.event()["retry"]
    fx.call("test_trigger_resource_change", {"uri": "test://watched-resource"}).json()
    assert new.message()["method"] == "notifications/resources/updated"
    old.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        old.event()


def test_session_unknown(fx):
    answer = fx.post({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}, [("Mcp-Session-Id", "unknown")])
    assert answer.status == 404
    assert answer.json() == {"jsonrpc": "2.0", "id": 5, "error": {"code": -32001, "message": "Session not found"}}


def test_session_missing(fx):
    answer = fx.post({"jsonrpc": "2.0", "id": 5, "method": "tools/list"})
    assert (answer.status, code(answer)) == (400, -32600)


def test_session_foreign_principal(fx):
    session = fx.session(headers=[("Authorization", "Bearer ada")])
    assert session.request("ping").status == 200
    answer = fx.post({"jsonrpc": "2.0", "id": 5, "method": "ping"},
                     [("Mcp-Session-Id", session.id), ("Authorization", "Bearer bob")])
    assert answer.status == 404


def test_init_with_stale_id(fx):
    answer = fx.initialize(headers=[("Mcp-Session-Id", "stale")])
    assert answer.status == 200 and answer.lower["mcp-session-id"] != "stale"


def test_delete_then_use(fx):
    session = fx.session()
    assert session.delete().status == 200
    assert session.request("tools/list").status == 404
    assert session.delete().status == 404
    assert fx.send("DELETE").status == 400


def test_parallel_init(fx):
    one, two = fx.session(), fx.session()
    assert one.id != two.id
    assert one.request("ping").status == two.request("ping").status == 200


def test_version_header_of_a_session(fx):
    session = fx.session("2025-06-18")
    def ask(version):
        return fx.post({"jsonrpc": "2.0", "id": 1, "method": "ping"},
                       [("Mcp-Session-Id", session.id), ("MCP-Protocol-Version", version)])
    assert ask("2025-11-25").status == 200
    answer = ask("1900-01-01")
    assert (answer.status, code(answer)) == (400, -32022)


def batch(*elements):
    return [{"jsonrpc": "2.0", **e} for e in elements]


PING = {"id": 1, "method": "ping"}


NOTE = {"method": "notifications/initialized"}


def test_batch_table(fx):
    old, new = fx.session("2025-03-26"), fx.session("2025-11-25")
    assert code(old.post([])) == -32600
    assert code(new.post(batch(PING))) == -32600
    assert code(fx.post(batch(PING))) == -32600
    assert code(old.post([fx.envelope("tools/list")])) == -32600
    assert code(old.post(batch({"id": 1, "method": "initialize", "params": {}}))) == -32600
    assert old.post(batch(NOTE, NOTE)).status == 202
    assert code(old.post(batch(*[{"id": i, "method": "ping"} for i in range(51)]))) == -32600
    answers = old.post(batch(PING, NOTE, {"id": "b", "method": "tools/list"})).messages()
    assert sorted(str(a["id"]) for a in answers) == ["1", "b"]
    array = old.post(batch(PING, {"id": 2, "method": "ping"}), accept="application/json").json()
    assert sorted(a["id"] for a in array) == [1, 2]
    answers = old.post(batch(PING, PING)).messages()
    assert sorted("error" in a for a in answers) == [False, True]
    answers = old.post([{"jsonrpc": "2.0", **PING}, 7]).messages()
    assert sorted("error" in a for a in answers) == [False, True]


def test_same_id_in_one_session(fx):
    session = fx.session()
    first = session.call("slow_compute", {"seconds": 0.4}, id=5)
    answer = session.request("ping", id=5)
    assert (answer.status, code(answer)) == (400, -32600)
    assert first.result()["result"]
    one, two = fx.call("slow_compute", {"seconds": 0.2}, id=5), fx.call("slow_compute", {"seconds": 0.2}, id=5)
    assert one.result()["result"] and two.result()["result"]


def test_set_level(fx):
    session = fx.session()
    assert session.request("logging/setLevel", {"level": "loud"}).json()["error"]["code"] == -32602
    assert session.request("logging/setLevel", {"level": "error"}).json()["result"] == {}
    assert not session.call("test_tool_with_logging").is_stream


def test_id_collision(fx):
    one, two = fx.session(), fx.session()
    wrong = []

    def work(session, name):
        sock = fx.connect()
        for i in range(200):
            result = session.call("test_echo", {"who": name, "i": i}, id=i, sock=sock).json()
            if result["id"] != i or result["result"]["structuredContent"] != {"who": name, "i": i}:
                wrong.append(result)

    threads = [threading.Thread(target=work, args=(s, n)) for s, n in ((one, "one"), (two, "two"))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == []


def test_many_sessions(fx):
    headers = [("Authorization", "Bearer many")]
    first = fx.session(headers=headers)
    ids = [fx.session(headers=headers) for _ in range(64)]
    assert first.request("ping").status == 404  # the least recently used one went
    assert ids[0].request("ping").status == ids[-1].request("ping").status == 200


def test_session_request_limit():
    fixture = Fixture()
    session = fixture.session()
    waiting = [session.call("slow_compute", {"seconds": 20}) for _ in range(64)]
    error = session.request("ping").json()["error"]
    assert error["code"] == -32603 and error["data"]["retryAfterMs"] > 0
    assert fixture.call("test_simple_text").status == 200
    assert session.delete().status == 200
    assert all(w.messages() == [] for w in waiting)
    eventually(lambda: int(fixture.text("test_in_flight")) == 1)
    fixture.stop()
