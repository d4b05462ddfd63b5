"""Subscriptions and streams of notices (mcp 2.6, 6.2)."""
import time

import pytest
from mcp_fixture import Fixture
from wire import TAG, code, eventually


def listen(fx, id="listen:0", caps=None, headers=None, **filters):
    return fx.modern("subscriptions/listen", {"notifications": filters}, id=id, caps=caps, headers=headers)


@pytest.mark.parametrize("id", [0, "", "listen:0", -3])
def test_listen_ack_first(fx, id):
    """mcp 6.2 listen-ack-first, listen-id-zero, listen-id-string: 0 and "" are ids."""
    answer = listen(fx, id, toolsListChanged=True)
    ack = answer.message()
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    tag = ack["params"]["_meta"][TAG]
    assert tag == id and type(tag) is type(id)
    assert ack["params"]["notifications"] == {"toolsListChanged": True}
    fx.call("test_trigger_tool_change").json()
    note = answer.message()
    assert note["method"] == "notifications/tools/list_changed" and note["params"]["_meta"][TAG] == id
    answer.close()


def test_listen_filter(fx):
    answer = listen(fx, promptsListChanged=True)
    answer.message()
    fx.call("test_trigger_tool_change").json()
    fx.call("test_trigger_prompt_change").json()
    assert answer.message()["method"] == "notifications/prompts/list_changed"
    answer.close()


def test_listen_foreign_uri_omitted(fx):
    answer = listen(fx, resourceSubscriptions=["test://watched-resource", "test://forbidden"])
    assert answer.message()["params"]["notifications"] == {"resourceSubscriptions": ["test://watched-resource"]}
    answer.close()


def test_subscribe_update_coalesced(fx):
    answer = listen(fx, resourceSubscriptions=["test://watched-resource"])
    answer.message()
    for _ in range(20):
        fx.call("test_trigger_resource_change", {"uri": "test://watched-resource"}).json()
    time.sleep(0.6)
    answer.sock.settimeout(0.2)
    seen = 0
    with pytest.raises(TimeoutError):
        while answer.message()["method"] == "notifications/resources/updated":
            seen += 1
    assert 1 <= seen <= 4
    answer.close()


def test_listen_tasks_need_the_extension(fx):
    answer = listen(fx, taskIds=["x"])
    assert answer.status in (200, 400) and code(answer) == -32021


def test_listen_over_limit():
    fixture = Fixture()
    streams = []
    for i in range(64):
        streams.append(listen(fixture, i, toolsListChanged=True))
        assert streams[-1].message()
    error = listen(fixture, 65, toolsListChanged=True).json()["error"]
    assert error["code"] == -32603 and error["data"]["retryAfterMs"] > 0
    streams[0].close()
    eventually(lambda: listen(fixture, 66, toolsListChanged=True).is_stream, 2)
    fixture.stop()


def test_listen_shutdown_result():
    fixture = Fixture()
    answer = listen(fixture, "bye", toolsListChanged=True)
    answer.message()
    fixture.process.terminate()
    last = answer.message()
    assert last["id"] == "bye" and last["result"]["resultType"] == "complete" and last["result"]["_meta"][TAG] == "bye"
    assert answer.message() is None
    fixture.stop()


def test_token_expires_midstream(fx):
    soon = {"Authorization": "Bearer soon"}
    answer = listen(fx, 1, headers=soon, toolsListChanged=True)
    running = fx.call("slow_compute", {"seconds": 1.2}, headers=soon)
    assert answer.message()["method"].endswith("acknowledged")
    assert answer.message()["result"]["resultType"] == "complete"
    assert running.result()["result"]


def test_token_expires_on_a_get_stream(fx):
    headers = [("Authorization", "Bearer soon")]
    stream = fx.session(headers=headers).get()
    assert stream.messages() == []
