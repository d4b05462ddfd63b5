"""A05: a token is nowhere but in its own file and with its owner."""
import base64
import json
import os
import pathlib
import sqlite3
import stat
import threading
import time
import urllib.parse

import pytest


def spellings(token):
    raw = token.encode()
    forms = {raw, urllib.parse.quote(token).encode(), token.encode("utf-16-le")}
    for shift in range(3):
        # base64 of the token at each of the three alignments, without the characters that its neighbours decide
        encoded = base64.b64encode(b"\0" * shift + raw)
        forms.add(encoded[4 if shift else 0:-4])
    return forms


class Watch(threading.Thread):
    """Samples the command line and environment-free facts of every process of this user."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = set()
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(process.read_bytes())
                except OSError:
                    pass
            time.sleep(0.005)

    def stop(self):
        self.ended.set()
        self.join()
        return b"\0".join(self.seen)


@pytest.fixture
def everything(stopped):
    """A server that has seen every way to present a token, the tokens, and all that was said meanwhile."""
    stopped.start("--log-level", "trace")
    watch = Watch()
    watch.start()
    said = []
    good = stopped.new_token("ada")
    tokens = {"admin": stopped.admin_token, "ada": good, "wrong": "dais_" + "W" * 43}
    root = stopped.http(good).item("root")
    run = stopped.admin().op("report", "open_run", rootId=root, title="wave")["runId"]
    tokens["seat"] = stopped.admin().op("report", "issue_seat", runId=run, seat="implementer")["token"]

    for token in (good, tokens["wrong"], tokens["seat"]):
        caller = stopped.http(token)
        for path in ("/api/v1/info", f"/api/v1/info?token={token}", f"/api/v1/events?access_token={token}", f"/{token}",
                     f"/signin?code={token}"):
            if "events" in path:  # a stream; who has no credential gets none
                status, headers, body = stopped.http().ask("GET", path)
                assert status == 401
            else:
                status, headers, body = caller.ask("GET", path)
            said.append(body + str(headers).encode())
        said.append(json.dumps(caller.envelope("items_read", {"select": "list"})).encode())
    for header in ("Bearer", "Bearer ", "Basic " + good, "Bearer " + good + " x", "Bearer " + good * 200, "bearer\t" + good):
        try:
            status, headers, body = stopped.http().ask("GET", "/api/v1/info", headers={"Authorization": header})
            said.append(body)
        except OSError:
            pass
    stopped.http(good).envelope("items_write", {"ops": [{"op": "create", "title": "t", "token": "x"}]})
    for arguments in (["token", "list"], ["token", "list", "--json"], ["status", "--json"], ["items"], ["events", "--json", "--since", "0", "--count", "1"], ["doctor"],
                      ["backup", stopped.home / "backup.db"], ["export"]):
        done = stopped.run(*arguments)
        said += [done.stdout.encode(), done.stderr.encode()]
    stopped.run("token", "revoke", "ada", check=0)
    stopped.tokens, stopped.said, stopped.seen_commands = tokens, b"\n".join(said), watch.stop()
    return stopped


def test_a05_tokens_are_nowhere_but_in_their_own_file(everything):
    dais = everything
    dais.kill()  # the write-ahead log stays as it was
    places = {str(path.relative_to(dais.home)): path.read_bytes() for path in dais.home.rglob("*") if path.is_file()}
    places["answers and output"] = dais.said
    places["command lines"] = dais.seen_commands
    hits = [(name, place) for name, token in dais.tokens.items() for form in spellings(token) for place, content in places.items()
            if form in content and place != "state/admin.token"]
    assert not hits


def test_a05_what_holds_secrets_is_readable_by_the_owner_alone(everything):
    for path in [everything.state, *everything.state.rglob("*"), everything.home / "backup.db"]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode & 0o077 == 0, f"{path.name}: {mode:o}"


def test_a05_tokens_are_stored_as_digests(everything):
    everything.stop()
    with sqlite3.connect(everything.state / "dais.db") as connection:
        rows = connection.execute("SELECT sha256 FROM token").fetchall()
    connection.close()
    assert rows and all(len(row[0]) == 32 for row in rows)


def test_a_revoked_token_is_refused_at_once(dais):
    ada = dais.token("ada")
    ada.item("works")
    dais.run("token", "revoke", "ada", check=0)
    status, _, body = ada.ask("GET", "/api/v1/info")
    assert status == 401
    envelope = ada.envelope("items_read", {"select": "list"})
    assert envelope["error"]["code"] == "unauthenticated"


@pytest.mark.parametrize("capabilities, tool, arguments", [
    ("read", "items_write", {"ops": [{"op": "create", "title": "t"}]}),
    ("write-items", "items_read", {"select": "list"}),
    ("read write-items", "advance", {"ops": [{"op": "claim", "selector": {}}]}),
    ("read advance", "notes_write", {"ops": [{"op": "delete", "noteIds": ["00000000"]}]}),
])
def test_a_token_does_only_what_it_was_made_for(dais, capabilities, tool, arguments):
    envelope = dais.token("narrow", capabilities).envelope(tool, arguments)
    assert envelope["error"]["code"] == "forbidden", envelope


def test_there_is_no_core_dump_of_what_holds_tokens(dais):
    limits = pathlib.Path(f"/proc/{dais.process.pid}/limits").read_text()
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    # A process that is not dumpable is owned by root in /proc whatever its user; as root, look at the limit.
    assert core.split()[4] == "0" or os.stat(f"/proc/{dais.process.pid}/mem").st_uid != os.getuid()
