"""Who is shown the door leaves at once: open streams, kept connections and later calls of an ended credential."""
import json

import pytest

from harness import SLACK
from wire import TAG, eventually

SOON = 3 * SLACK  # seconds; the ordinary look at credentials comes every thirty


def event_stream(wire):
    """GET /api/v1/events, past its greeting."""
    answer = wire.send("GET", path="/api/v1/events", headers=[("Accept", "text/event-stream")])
    assert answer.status == 200
    answer.sock.settimeout(SOON)
    return answer


def listen(wire, id="watch"):
    answer = wire.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=id)
    assert answer.message()["method"] == "notifications/subscriptions/acknowledged"
    answer.sock.settimeout(SOON)
    return answer


def notification_stream(session):
    answer = session.get()
    assert answer.status == 200
    answer.sock.settimeout(SOON)
    return answer


def names(answer):
    """The names of the events until the stream ends."""
    found = []
    while (event := answer.event()) is not None:
        found.append(event.get("event"))
    return [name for name in found if name]


@pytest.fixture
def three_streams():
    """Opens what can stay open: REST events, a modern subscription, a legacy notification stream."""
    def open_all(wire):
        return event_stream(wire), listen(wire), notification_stream(wire.session())
    return open_all


def ends_all(streams):
    events, subscription, notifications = streams
    assert names(events)[-1] == "auth.expired"
    last = subscription.message()
    assert last["id"] == "watch" and last["result"]["resultType"] == "complete"
    assert last["result"]["_meta"][TAG] == "watch"
    assert subscription.message() is None
    assert notifications.messages() == []


def stay_open(streams):
    for stream in streams:
        stream.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            while stream.event() is not None:
                pass


@pytest.mark.concurrent
def test_revoking_a_token_ends_its_streams_promptly_and_nobody_elses(dais, three_streams):
    """Authentication is per request and per stream: the end of a credential is the end of what it opened."""
    ada, bob = dais.wire(dais.new_token("ada")), dais.wire(dais.new_token("bob"))
    of_ada, of_bob = three_streams(ada), three_streams(bob)
    dais.run("token", "revoke", "ada", check=0)
    ends_all(of_ada)
    assert ada.modern("tools/list").status == 401
    stay_open(of_bob)
    assert bob.modern("tools/list").status == 200


def test_a_legacy_session_of_a_revoked_token_is_refused_not_forgotten(dais):
    ada = dais.wire(dais.new_token("ada"))
    session = ada.session()
    dais.run("token", "revoke", "ada", check=0)
    answer = session.request("tools/list")
    assert answer.status == 401 and "invalid_token" in answer.lower["www-authenticate"]


def seat(dais):
    """A project, a run on it, and a seat: (item, run, seat, token)."""
    item = dais.item("Harbour", type="project")
    run = dais.op("report", "open_run", rootId=item, title="Wave")["runId"]
    given = dais.op("report", "issue_seat", runId=run, seat="implementer")
    return item, run, given["seatId"], given["token"]


def end_seat(dais, run, seat):
    dais.op("report", "revoke_seat", seatId=seat)


def end_run(dais, run, seat):
    dais.op("report", "close_run", runId=run)


@pytest.mark.parametrize("end", [end_seat, end_run])
def test_the_end_of_a_seat_or_its_run_ends_the_seats_streams(dais, three_streams, end):
    _, run, seat_id, token = seat(dais)
    wire = dais.wire(token)
    streams = three_streams(wire)
    end(dais, run, seat_id)
    ends_all(streams)
    assert wire.modern("tools/list").status == 401


@pytest.mark.parametrize("end", [end_seat, end_run])
def test_a_seat_over_stdio_ends_with_its_token_although_the_connection_stays(dais, end):
    """Over lines nobody presents a token again, so every call asks whether the seat still is one."""
    item, run, seat_id, token = seat(dais)
    line = dais.lines("--no-spawn", DAIS_SEAT_TOKEN=token)
    write = ("notes_write", {"ops": [{"op": "upsert", "itemId": item, "key": "n", "role": "work", "body": "x"}]})
    read = ("items_read", {"select": "get", "itemId": item})
    assert line.call(*write)["result"]["structuredContent"]["ok"] and line.call(*read)["result"]["structuredContent"]["ok"]
    end(dais, run, seat_id)
    for call in (write, read):
        result = line.call(*call)["result"]
        assert result["isError"] and result["structuredContent"]["error"]["code"] == "unauthenticated"
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_a_subscription_over_stdio_ends_with_the_seat(dais):
    _, run, seat_id, token = seat(dais)
    line = dais.lines("--no-spawn", DAIS_SEAT_TOKEN=token)
    line.send({"jsonrpc": "2.0", "id": 0, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}})
    assert line.read()["method"].endswith("acknowledged")
    end_run(dais, run, seat_id)
    assert line.read()["result"]["resultType"] == "complete"


def test_a_token_that_runs_out_ends_its_streams(dais):
    done = dais.run("token", "create", "--id", "soon", "--capabilities", "read", "--ttl", 2, "--json", check=0)
    wire = dais.wire(json.loads(done.stdout)["token"])
    subscription, notifications = listen(wire), notification_stream(wire.session())
    assert subscription.message()["result"]["resultType"] == "complete"
    assert notifications.messages() == []
    eventually(lambda: wire.modern("tools/list").status == 401)
