#!/usr/bin/env python3
"""Many delegations through a server that is killed all the while.

Half of the threads are parents: each delegates to a child and waits for it inside its call. 8 runs work at a time, and the
server is killed with SIGKILL at random moments and started again. Every task must end with its own summary, once, and
every prompt must have been played once.

    thread_soak.py [--threads 1000] [--kills 50] [--seed 1] [--seconds 0]

With --seconds the kills are spread over so long, and rounds of threads follow one another until then.
"""
import argparse
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/scenario"))

from harness import Dais  # noqa: E402
from rehearsal import Rehearsal  # noqa: E402

TURNS = """  - when: "^child"
    steps:
      - run: [sh, -c, "echo '{{prompt}}' >> heard"]
      - text: "part of {{prompt}} "
      - sleep_ms: 50
      - result_text: "done {{prompt}}"
  - when: "^parent"
    steps:
      - run: [sh, -c, "echo '{{prompt}}' >> heard"]
      - mcp: {tool: delegate_task, arguments: {task: "child of {{prompt}}", mode: wait, timeoutMs: 600000,
          clientRequestId: "{{session}}-{{turn}}"}, retry: true, save: r}
      - result_text: "told {{r.status}} {{r.summary}}"
"""
SETTINGS = "limits: {runs: 8}\nagents: {idle_ms: 300}\n"


def delegate(rehearsal, name):
    return rehearsal.delegate(f"parent {name}", clientRequestId=name)["taskId"]


def open_tasks(rehearsal):
    """Of the one caller, who may have 32."""
    return rehearsal.rows("SELECT count(*) FROM subagent s JOIN thread t ON t.n = s.thread_n"
                          " WHERE s.status < 3 AND t.kind = 1")[0][0]


def play(rehearsal, names, kills, moments, seconds):
    """The delegations of these names; the server is killed `kills` times meanwhile. The tasks, by name."""
    made, waiting, killed, longest = {}, list(names), 0, 0.0
    until_at = time.monotonic() + seconds
    while waiting or killed < kills:
        # A few ahead of what can work, so that there is always a queue.
        for _ in range(16):
            if waiting and open_tasks(rehearsal) < 30:
                name = waiting.pop()
                made[name] = delegate(rehearsal, name)
        time.sleep(moments.uniform(0, 0.4) if seconds == 0 else moments.uniform(0, 2 * seconds / max(kills, 1)))
        if killed < kills and (seconds == 0 or time.monotonic() < until_at or not waiting):
            rehearsal.kill()
            begun = time.monotonic()
            rehearsal.start()
            longest = max(longest, time.monotonic() - begun)
            killed += 1
    return made, longest


def check(rehearsal, made):
    wrong = []
    for name, task in made.items():
        ended = rehearsal.ended(task, 600)
        expected = f"told completed done child of parent {name}"
        if (ended["status"], ended["summary"]) != ("completed", expected):
            wrong.append(f"{name}: {ended['status']}: {ended['summary']}")
    heard = sorted((rehearsal.project / "heard").read_text().splitlines())
    expected = sorted(f"{kind}parent {name}" for name in made for kind in ("", "child of "))
    if heard != expected:
        lost = set(expected) - set(heard)
        wrong.append(f"prompts: {len(heard)} played, {len(expected)} expected; not played: {sorted(lost)[:5]};"
                     f" twice: {sorted({line for line in heard if heard.count(line) > 1})[:5]}")
    transfers = rehearsal.rows("SELECT count(*), count(DISTINCT result_transfer_n) FROM subagent")[0]
    if transfers != (2 * len(made), 2 * len(made)):
        wrong.append(f"results: {transfers}, {2 * len(made)} tasks")
    return wrong


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--threads", type=int, default=1000)
    ask.add_argument("--kills", type=int, default=50)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--seconds", type=float, default=0, help="spread the kills over about so long")
    args = ask.parse_args()
    dais = Dais()
    rehearsal = Rehearsal(dais, TURNS, settings=SETTINGS).start()
    begun = time.monotonic()
    moments = random.Random(args.seed)
    try:
        made, longest = play(rehearsal, [f"n{i}" for i in range(args.threads // 2)], args.kills, moments, args.seconds)
        wrong = check(rehearsal, made)
        took = time.monotonic() - begun
        memory = rehearsal.memory()
        rehearsal.clear(120)
    finally:
        if dais.process is not None:
            dais.stop()
        rehearsal.clear()
    print(f"threads: {2 * len(made)}, half of them delegated by the other half; 8 runs at a time; seed {args.seed}")
    print(f"kill -9: {args.kills}; longest start afterwards: {longest * 1000:.0f} ms")
    print(f"took {took:.1f} s, {2 * len(made) / took:.1f} threads a second; server at the end: {memory / 2**20:.1f} MiB")
    print(f"wrong: {len(wrong)}")
    for line in wrong[:20]:
        print("  " + line)
    if wrong:
        print(f"state: {dais.home}")
        return 1
    dais.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
