"""kill -9 under load, again and again: is everything there that was acknowledged?"""
import contextlib
import random
import signal
import sqlite3
import subprocess
import time

from machine import PROGRAM


def acknowledged(journal, newest):
    """Adds the newest acknowledged version of each item; how many calls the journal holds."""
    count = 0
    for line in journal.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        item, version = line.split()
        newest[item] = max(newest.get(item, 0), int(version))
        count += 1
    return count


ITEM_VERSIONS = "SELECT lower(hex(id)), version FROM item"


def missing(state, newest, versions=ITEM_VERSIONS):
    """Each transition raises its item's version by one, so a lost one shows as a version that is too low."""
    with contextlib.closing(sqlite3.connect(f"file:{state.path}/dais.db?mode=ro", uri=True)) as database:
        stored = dict(database.execute(versions))
    return sum(max(0, version - stored.get(item.replace("-", ""), 0)) for item, version in newest.items())


def doctor(state):
    done = subprocess.run([PROGRAM, "doctor", "--state", state.path], capture_output=True, text=True)
    return "sound" if done.returncode == 0 and "sound" in done.stdout else "NOT SOUND"


def settle(state, server):
    """Items that the last load left half-way, back into the queue."""
    with contextlib.closing(sqlite3.connect(f"file:{state.path}/dais.db?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT lower(hex(i.id)), i.role FROM item i JOIN item_text t ON t.n = i.n"
                                " WHERE t.type = 'bench' AND i.role <> 0").fetchall()
    state.advance(server, [item for item, role in rows if role == 1], "complete")
    state.advance(server, [item for item, _ in rows], "reopen")


def run(state, steps, rounds):
    chance = random.Random(5)
    journal = state.home / "journal"
    newest, slowest, calls, lost = {}, 0.0, 0, 0
    for n in range(rounds):
        server = state.serve()
        if n > 0:
            slowest = max(slowest, server.ready_ms)
            lost += missing(state, newest)
            settle(state, server)
        command = state.load(server, "advance", steps, 16, 30, "bench", 16, journal=journal, seed=n)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            time.sleep(0.3 + 0.5 * chance.random())
            server.end(signal.SIGKILL)
            load.wait(timeout=30)
        calls += acknowledged(journal, newest)
    with state.serve() as server:
        slowest = max(slowest, server.ready_ms)
        lost += missing(state, newest)
        settle(state, server)
    return {"missing": lost, "acknowledged": calls, "slowestMs": slowest, "doctor": doctor(state)}
