#!/usr/bin/env python3
"""Keeps a server under mixed load for minutes or hours: does it grow, slow down or lose anything?

The first third of the time goes into short lives that end by kill -9 or SIGTERM under load; the rest is one long life, in
which memory and descriptors are compared at rest: once a quarter of it has gone by (caches are full then) and at its end.
Exit status 1 when a limit is missed, a call failed or anything acknowledged is missing."""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import crash
from machine import BUILD, ROOT, Report, State, median
from soak_callers import Follower, Life, Visitors, descriptors

ITEMS = 10000
SEGMENT = 10  # seconds of one load; connections are made anew for each
SHORT = 2     # segments of a short life, the last one cut off
RESTS = 4     # of the long life
REST_SECONDS = 30

# A limit stands for "does not grow", so none of them depends on how long it runs.
RSS_GROWTH_MB = 8      # heap pages that move about; a leak of 20 bytes per call is more within half an hour
DESCRIPTOR_GROWTH = 0
STORE_DESCRIPTORS = 40  # database and log of the writer, the checkpointer and at most 16 readers, and the files beside
LOG_MB = 128           # twice the size at which the writer restarts it: a reader may hold it up

NOTE_VERSIONS = "SELECT lower(hex(i.id)), n.version FROM note n JOIN item i ON i.n = n.item_n WHERE n.key = 'soak'"


def transition(trigger):
    return {"ops": [{"op": "transition", "itemId": "$WORD", "trigger": trigger}]}


def note(body):
    return {"ops": [{"op": "upsert", "itemId": "$WORD", "key": "soak", "role": "queue", "body": body}]}


CLAIM = {"ops": [{"op": "claim", "itemId": "$WORD", "ttlSeconds": 60}, {"op": "release", "itemId": "$WORD"}]}
SELECTOR = {"ops": [{"op": "claim", "selector": {"types": ["bench"], "roles": ["queue"]}, "ttlSeconds": 5}]}
# name, tool, bodies, connections, words, window, what its acknowledgements are looked up in
LOADS = [
    ("advance", "advance", [transition(trigger) for trigger in ("start", "complete", "reopen")], 8, "moving", 16,
     crash.ITEM_VERSIONS),
    ("notes", "notes_write", [note("Tide at nine. " * n) for n in (1, 40, 5)], 4, "still", 0, NOTE_VERSIONS),
    ("claims", "advance", [CLAIM, CLAIM, SELECTOR], 1, "still", 0, None),
    ("search", "items_read", [{"select": "search", "query": "$WORD"}], 1, "queries", 0, None),
    ("reads", "items_read", [{"select": "get", "itemId": "$WORD"}, {"select": "context"}, {"select": "next"},
                             {"select": "list", "limit": 100}], 2, "any", 0, None),
]


def stream_types():
    """Numbers of the event types that a stream carries."""
    table = (ROOT / "src/store/event.def").read_text()
    return [int(number) for number, stream in re.findall(r'EVENT\(\w+, (\d+), "[^"]+", ("[^"]+"|NULL)', table) if stream != "NULL"]


class Soak:
    def __init__(self, work, minutes, seed):
        self.seconds = minutes * 60
        self.chance = random.Random(seed)
        self.errors = []
        self.newest = {name: {} for name, *_, versions in LOADS if versions}
        self.acknowledged = self.lost = self.calls = self.segments = 0
        self.log_mb, self.p50, self.ready_ms, self.ends = 0.0, [], [], {"kill -9": 0, "SIGTERM": 0}
        # Made anew each time: events of earlier runs would make it another measurement.
        shutil.rmtree(work, ignore_errors=True)
        self.state = State(work, ITEMS).make()
        ids = self.state.words("bench").read_text().split()
        self.state.words("moving").write_text("\n".join(ids[::2]) + "\n")
        self.state.words("still").write_text("\n".join(ids[1::2]) + "\n")
        newest = self.query("SELECT max(seq) FROM event")
        self.followers = [Follower(newest), Follower(newest), Follower(newest, patience=7)]
        self.visitors = [Visitors(seed), Visitors(seed + 1)]

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.state.path}/dais.db?mode=ro", uri=True)) as database:
            return database.execute(sql).fetchone()[0]

    # ---- one life ----

    def begin(self):
        server = self.state.serve()
        self.ready_ms.append(server.ready_ms)
        self.look_for_lost()
        crash.settle(self.state, server)
        return server, Life(server, self.state.token.read_text().strip(), self.state.path / "dais.sock", self.errors)

    def callers(self, life):
        for n, follower in enumerate(self.followers):
            life.begin(f"follower {n}", follower.turn)
        for n, visitors in enumerate(self.visitors):
            life.begin(f"visitors {n}", visitors.turn)

    def look_for_lost(self):
        for name, *_, versions in LOADS:
            if versions:
                self.lost += crash.missing(self.state, self.newest[name], versions)

    def segment(self, server, life, cut=None):
        """All loads once; `cut` ends the server in the midst of them."""
        self.segments += 1
        loads = []
        for name, tool, bodies, connections, words, window, _ in LOADS:
            journal = self.state.home / f"journal-{name}"
            command = self.state.load(server, tool, bodies, connections, SEGMENT, words, window, journal, self.segments)
            loads.append((name, journal, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
        if cut is not None:
            time.sleep(self.chance.uniform(1, SEGMENT - 2))
            life.ending.set()
            server.end(cut)
        results = {name: self.collect(name, process, life) for name, _, process in loads}
        for name, journal, _ in loads:
            if name in self.newest:
                self.acknowledged += crash.acknowledged(journal, self.newest[name])
        log = self.state.path / "dais.db-wal"
        self.log_mb = max(self.log_mb, log.stat().st_size / 2**20 if log.exists() else 0)
        return results

    def collect(self, name, process, life):
        out, err = process.communicate(timeout=120)
        if process.returncode != 0 and not life.ending.is_set():
            self.errors.append(f"{name}: {err.strip()[:500]}")
        result = json.loads(out) if out.strip() else None
        self.calls += result["calls"] if result else 0
        return result

    def short_life(self, how):
        server, life = self.begin()
        with server:
            self.callers(life)
            for _ in range(SHORT - 1):
                self.segment(server, life)
            self.segment(server, life, cut=how)
        life.rest()
        self.ends[how.name if how != signal.SIGKILL else "kill -9"] += 1

    def long_life(self, ends_at):
        """(RSS, descriptors of the store, other descriptors, threads) at each rest."""
        server, life = self.begin()
        began, rests = time.monotonic(), []
        with server:
            for n in range(1, RESTS + 1):
                self.callers(life)
                until = began + (ends_at - began) * n / RESTS
                while True:
                    self.say(server, self.segment(server, life))
                    if time.monotonic() + SEGMENT > until:
                        break
                if n == RESTS:
                    self.catch_up()
                life.rest()
                rests.append(self.at_rest(server))
            life.ending.set()
        return rests

    def catch_up(self):
        """Until every follower has the newest event."""
        newest = self.query(f"SELECT max(seq) FROM event WHERE type IN ({','.join(map(str, stream_types()))})")
        give_up_at = time.monotonic() + 120
        while any(follower.last < newest for follower in self.followers) and time.monotonic() < give_up_at:
            time.sleep(0.2)

    def at_rest(self, server):
        """A call whose caller went away in its midst is kept until its deadline; the fewest seen count."""
        seen = []
        for _ in range(REST_SECONDS):
            time.sleep(1)
            threads = len(os.listdir(f"/proc/{server.pid}/task"))
            seen.append((server.own_mb(), *descriptors(server.pid), threads))
        best = tuple(min(column) for column in zip(*seen))
        print(f"# at rest: {best[0]:.1f} MB, {best[1]} + {best[2]} descriptors, {best[3]} threads", flush=True)
        return best

    def say(self, server, results):
        if not all(results.values()):
            return
        self.p50.append(results["advance"]["ms"]["p50"])
        rates = " ".join(f"{name} {result['perSecond']:.0f}/s" for name, result in results.items())
        print(f"# {rates}; advance p50 {self.p50[-1]:.1f}, p99 {results['advance']['ms']['p99']:.1f} ms; "
              f"{server.own_mb():.1f} MB, {sum(descriptors(server.pid))} descriptors", flush=True)

    # ---- all of it ----

    def run(self, report):
        began = time.monotonic()
        ways = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
        while time.monotonic() < began + self.seconds / 3:
            self.short_life(ways[sum(self.ends.values()) % len(ways)])
        print(f"# {self.ends} in {time.monotonic() - began:.0f} s", flush=True)
        rests = self.long_life(began + self.seconds)
        self.look_for_lost()
        # Bare growth says more than a ratio: 8 MB are too many for a small server and for a large one.
        report.add("soak", "memory at rest, growth after the first quarter", rests[-1][0] - rests[0][0], "MB",
                   f"<= {RSS_GROWTH_MB}", f"from {rests[0][0]:.1f} MB; {self.calls} measured calls in all lives")
        report.add("soak", "descriptors at rest, growth without the store's", rests[-1][2] - rests[0][2], "",
                   f"<= {DESCRIPTOR_GROWTH}", f"from {rests[0][2]}")
        report.add("soak", "descriptors of the store", rests[-1][1], "", f"<= {STORE_DESCRIPTORS}", f"from {rests[0][1]}")
        report.add("soak", "threads at rest, growth", rests[-1][3] - rests[0][3], "", "<= 0", f"from {rests[0][3]}")
        report.add("soak", "write-ahead log, the largest seen", self.log_mb, "MB", f"<= {LOG_MB}")
        quarter = max(1, len(self.p50) // RESTS)
        report.add("soak", "p50 of advance, last quarter to first", median(self.p50[-quarter:]) / median(self.p50[:quarter]), "",
                   None, f"{median(self.p50[:quarter]):.1f} and {median(self.p50[-quarter:]):.1f} ms")
        report.add("soak", "acknowledged changes missing", self.lost, "", "<= 0",
                   f"of {self.acknowledged}; ends: {self.ends}; slowest start {max(self.ready_ms):.0f} ms")
        self.compare_events(report)
        report.add("soak", "doctor finds the store sound", int(crash.doctor(self.state) == "sound"), "", ">= 1")
        report.add("soak", "calls that failed, callers that met an error", len(self.errors), "", "<= 0",
                   f"{sum(visitors.visits for visitors in self.visitors)} visits")
        for error in self.errors[:20]:
            print(f"  {error}")

    def compare_events(self, report):
        since = self.followers[0].since
        stored = self.query(f"SELECT count(*) FROM event WHERE seq > {since} AND type IN ({','.join(map(str, stream_types()))})")
        worst = max(abs(stored - follower.count) for follower in self.followers)
        report.add("soak", "events that a follower missed, the worst one", worst, "", "<= 0", f"of {stored}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=pathlib.Path, default=BUILD / "bench/soak")
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("The server hides its descriptors from all but root: run this as root.", file=sys.stderr)
        return 77
    report = Report()
    Soak(args.work, args.minutes, args.seed).run(report)
    missed = report.missed()
    print(f"# {len(missed)} of {sum(row.holds is not None for row in report.rows)} limits missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
