"""A hook of a client: a small shell script of the user's own that calls `dais project`, `dais call` and `dais items`.

A08 goes through it too: the script never reads YAML itself, so it cannot read it differently.
"""
import json
import os
import subprocess

import pytest

import harness
from test_yaml import BROKEN, PLACES, SAME, TEXT

# What a client runs when a session starts: JSON on stdin, JSON on stdout, and exit 0 whatever happens.
HOOK = r"""#!/bin/sh
nothing() { printf '{}\n'; exit 0; }

json() { python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))'; }

tell() {
	printf '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":%s}}\n' "$(json)"
	exit 0
}

cwd=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["cwd"])' 2>/dev/null) || nothing
[ -f "$cwd/.dais/config.yaml" ] || nothing
root=$(dais project add "$cwd" 2>"$TMPDIR/said") || { [ $? -eq 78 ] || nothing; tell <"$TMPDIR/said"; }
types=$(dais call config "{\"select\":\"effective\",\"rootId\":\"$root\"}" |
	python3 -c 'import json, sys; print(*(t["type"] for t in json.load(sys.stdin)["data"]["types"]))') || nothing
{
	echo "Types of work: $types"
	dais items --root "$root" --open
} | tell
"""


class Hook:
    """The script beside a checkout, with `dais` on its PATH as an installation has it."""

    def __init__(self, server):
        self.server = server
        self.checkout = server.home / "a checkout"
        (self.checkout / ".dais").mkdir(parents=True)
        self.rules = self.checkout / ".dais/config.yaml"
        folder = server.home / "bin"
        folder.mkdir()
        (folder / "dais").symlink_to(harness.PROGRAM)
        self.script = folder / "session-start"
        self.script.write_text(HOOK)
        self.script.chmod(0o700)
        self.environment = {**server.env(), "PATH": f"{folder}:{os.environ['PATH']}", "DAIS_STATE_DIR": str(server.state),
                            "TMPDIR": str(server.home)}

    def raw(self, stdin):
        done = subprocess.run([self.script], input=stdin, capture_output=True, timeout=60, cwd="/", text=True,
                              env=self.environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def run(self):
        """What the agent is told; None: nothing."""
        answer = self.raw(json.dumps({"session_id": "s1", "hook_event_name": "SessionStart", "cwd": str(self.checkout)}))
        return answer and answer["hookSpecificOutput"]["additionalContext"]

    def root(self):
        return json.loads(self.server.run("project", "list", "--json", check=0).stdout)[0]["id"]


@pytest.fixture
def hook(dais):
    return Hook(dais)


def test_a08_the_hook_reads_every_spelling_of_the_same_rules_alike(hook):
    told, fingerprints = set(), {}
    for name, raw in SAME.items():
        hook.rules.write_bytes(raw)
        told.add(hook.run())
        fingerprints[name[0]] = hook.server.read("config", "current", rootId=hook.root())["fingerprint"]
    assert told == {"Types of work: bug\n" + hook.server.run("items", "--root", hook.root(), "--open", check=0).stdout}
    assert fingerprints["a"] == fingerprints["b"] == fingerprints["c"]


@pytest.mark.parametrize("name", BROKEN)
def test_a08_the_hook_hands_on_what_is_wrong_and_where(hook, name):
    raw, says = BROKEN[name]
    hook.rules.write_bytes(raw)
    told = hook.run()
    assert says.lower() in told.lower() and str(hook.rules) in told, told
    if name[:2].strip() in PLACES:
        line, column = PLACES[name[0]]
        assert f"config.yaml:{line}:{column}: " in told, told
    assert hook.server.read("items_read", "list")["items"] == [], "nothing was made"


def test_a_bad_file_leaves_the_rules_that_hold(hook):
    hook.rules.write_text(TEXT)
    hook.run()
    hook.rules.write_text("traits: []\n")
    assert "mapping" in hook.run()
    assert hook.server.read("config", "current", rootId=hook.root())["version"] == 1


def test_the_hook_tells_what_is_open(hook):
    hook.rules.write_text(TEXT)
    hook.run()
    items = {title: hook.server.item(title, type="bug", parentId=hook.root()) for title in ("Läuft \"über\"", "Fertig")}
    hook.server.item("of somebody else")
    hook.server.note(items["Fertig"], "cause", "None.")
    hook.server.advance(items["Fertig"], "start")
    hook.server.advance(items["Fertig"], "complete")
    told = hook.run()
    assert "Läuft \"über\"" in told and "Fertig" not in told and "somebody else" not in told


def test_a_hook_never_stands_in_the_way(hook):
    """No rules, no JSON, no server: nothing to say, and no error."""
    assert hook.run() == {}
    for stdin in ("", "{", "[]", '{"cwd": 5}', json.dumps({"cwd": "/nowhere"})):
        assert hook.raw(stdin) == {}
    hook.rules.write_text(TEXT)
    hook.server.stop()
    assert hook.run() == {}
