"""kill -9 under load, twenty rounds: what was acknowledged is there, and it is ready again at once."""
import random
import statistics
import threading
import time

import pytest

import harness

WRITERS = 6


class Writer(threading.Thread):
    """Creates items and moves them, and remembers only what was acknowledged."""

    def __init__(self, caller, root, name, known):
        super().__init__(daemon=True)
        self.caller, self.root, self.name_, self.known = caller, root, name, known

    def run(self):
        n = 0
        try:
            while True:
                n += 1
                item = self.caller.item(f"{self.name_}-{n}", parentId=self.root)
                self.known[item] = "queue"
                self.caller.note(item, "n", f"note of {self.name_}-{n}", role="queue")
                self.known[item] = "noted"
                self.caller.advance(item, "start")
                self.known[item] = "work"
                if n % 3 == 0:
                    self.caller.advance(item, "complete")
                    self.known[item] = "terminal"
        except (OSError, ValueError, AssertionError, harness.Refused):
            return  # the server is gone; what is known stays known
        except Exception:  # http.client's own, all of a closed connection
            return


ORDER = ["queue", "noted", "work", "terminal"]


def kill_under_load(dais, callers, root, known, seconds):
    """kill -9 after so long of writing; `known` gets what each item had reached when it was acknowledged."""
    writers = [Writer(dais.http(token), root, name, known) for token, name in callers]
    opened, dais.opened = dais.opened, []
    for writer in writers:
        writer.start()
    time.sleep(seconds)
    dais.kill()
    for writer in writers:
        writer.join(10 * harness.SLACK)
    for caller in opened:
        caller.close()


def assert_all_is_there(dais, known):
    local = dais.local()
    assert len(known) > 20 * WRITERS, "there was load"
    for item, reached in known.items():
        role = local.get(item)["role"]
        if ORDER.index(reached) >= ORDER.index("noted"):
            assert local.body(item, "n").startswith("note of "), item
        if reached in ("work", "terminal"):
            assert ORDER.index(role) >= ORDER.index(reached), (item, reached, role)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_twenty_crashes_lose_no_acknowledged_call(stopped):
    seed = int(time.time())
    print("seed", seed)
    dice = random.Random(seed)
    known = {}
    plain, after_crash = [], []
    for _ in range(3):
        began = time.monotonic()
        stopped.start()
        plain.append(time.monotonic() - began)
        stopped.stop()
    root = stopped.start().item("load")
    for round_ in range(20):
        token = stopped.admin_token
        kill_under_load(stopped, [(token, f"r{round_}w{i}") for i in range(WRITERS)], root, known, dice.uniform(0.05, 0.6))
        began = time.monotonic()
        stopped.start(*stopped.flags)
        after_crash.append(time.monotonic() - began)
    assert statistics.median(after_crash) < 5 * statistics.median(plain), (after_crash, plain)
    assert_all_is_there(stopped, known)


def test_a_crash_in_the_middle_of_a_batch_leaves_all_of_an_atomic_call_or_nothing(stopped):
    stopped.start()
    for _ in range(5):
        token = stopped.admin_token
        caller = stopped.http(token)

        def load():
            try:
                while True:
                    caller.ops("items_write", *({"op": "create", "title": f"part {i}"} for i in range(20)), atomic=True)
            except Exception:
                return

        thread = threading.Thread(target=load, daemon=True)
        thread.start()
        time.sleep(0.2)
        stopped.opened = []
        stopped.kill()
        thread.join(10)
        caller.close()
        stopped.start()
        total = sum(stopped.read("items_read", "overview", limit=1)["totals"].values())
        assert total % 20 == 0
