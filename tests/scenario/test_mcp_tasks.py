"""Calls that become tasks (mcp 3.5, 6.4)."""
from wire import TASKS, code


def test_tasks(fx):
    made = fx.call("slow_compute", {"seconds": 0.3}, caps=TASKS).result()["result"]
    assert made["resultType"] == "task" and made["status"] == "working"
    task = made["taskId"]

    def get(who=None, caps=TASKS):
        return fx.modern("tasks/get", {"taskId": task}, caps=caps, headers={"Authorization": f"Bearer {who}"} if who else None)

    assert get().json()["result"]["status"] == "working"
    assert code(get(who="bob")) == -32602
    assert code(get(caps={})) == -32021
    stream = fx.modern("subscriptions/listen", {"notifications": {"taskIds": [task, "foreign"]}}, caps=TASKS)
    assert stream.message()["params"]["notifications"] == {"taskIds": [task]}
    note = stream.message()
    assert note["method"] == "notifications/tasks" and note["params"]["status"] == "completed"
    stream.close()
    done = get().json()["result"]
    assert done["status"] == "completed" and done["result"]["content"][0]["text"] == "Computed."
    assert fx.modern("tasks/cancel", {"taskId": task}, caps=TASKS).json()["result"]["resultType"] == "complete"
    assert get().json()["result"]["status"] == "completed"


def test_task_undeclared(fx):
    assert fx.call("slow_compute", {"seconds": 0.05}).result()["result"]["resultType"] == "complete"
    answer = fx.call("failing_job")
    assert answer.status == 400
    assert answer.json()["error"]["data"]["requiredCapabilities"] == TASKS


def test_task_update_partial(fx):
    task = fx.call("multi_input", caps=TASKS).json()["result"]["taskId"]

    def get():
        return fx.modern("tasks/get", {"taskId": task}, caps=TASKS).json()["result"]

    def update(**answers):
        return fx.modern("tasks/update", {"taskId": task, "inputResponses": answers}, caps=TASKS).json()["result"]

    assert set(get()["inputRequests"]) == {"first", "second"}
    update(first={"action": "accept", "content": {"confirm": True}}, other={})
    assert get()["status"] == "input_required" and set(get()["inputRequests"]) == {"second"}
    update(first={"action": "accept"}, second={"action": "accept", "content": {"confirm": True}})
    assert get()["status"] == "completed"
