"""The picture of the rooms, kept true: every #include under src/ is an arrow, and arrows point down."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

# Room: the rooms it may use. http and mcp know nothing of our tools, so that others can use them.
MAY_USE = {
    "base": set(),
    "store": {"base"},
    "identity": {"base", "store"},
    "rules": {"base", "store"},
    "work": {"base", "store", "identity", "rules"},
    "agents": {"base"},
    "providers": {"base", "script"},
    "workspace": {"base"},
    "threads": {"base", "store", "identity", "agents", "providers", "workspace"},
    "tools": {"base", "store", "identity", "rules", "work", "threads"},
    "http": {"base"},
    "mcp": {"base", "http"},
    "server": {"base", "store", "identity", "rules", "work", "workspace", "tools", "http", "mcp", "providers", "threads"},
    "script": {"base"},
    "cli": {"base", "store", "identity", "rules", "work", "tools", "http", "mcp", "server", "agents", "providers", "threads", "script"},
}

# Headers that another room may include, one for each subject. Every other header stays inside its room;
# all of base is open.
DOORS = {
    "store": {"store.h", "event.def", "sequence.def", "transfer.h", "analyse.h"},
    "identity": {"identity.h"},
    "rules": {"rules.h", "cache.h"},
    "work": {"work.h", "advance.h", "config.h", "deps.h", "docs.h", "items.h", "notes.h", "parts.h", "report.h", "search.h", "select.h",
             "tree.h"},
    "tools": {"tools.h", "tool.h", "plain.h"},
    "agents": {"agents.h"},
    "providers": {"provider.h"},
    "workspace": {"workspace.h"},
    "threads": {"threads.h", "commands.h", "instructions.h", "command.h", "engine.h", "wait.h", "places.h"},
    "http": {"http.h", "guard.h"},
    "mcp": {"mcp.h"},
    "server": {"server.h", "admin.h", "stand_in.h"},
    "script": {"script.h"},
    "cli": set(),
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def arrows():
    for path in sorted(SOURCE.rglob("*.[ch]")):
        room = path.relative_to(SOURCE).parts[0]
        for included in INCLUDE.findall(path.read_text()):
            yield path.relative_to(ROOT), room, included


def test_every_room_is_known():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert rooms <= set(MAY_USE), f"new rooms need a row in {pathlib.Path(__file__).name}: {rooms - set(MAY_USE)}"


def test_includes_start_at_the_include_root():
    wrong = [f'{path}: "{included}"' for path, _, included in arrows() if not (SOURCE / included).is_file()
             and included != "migrations.c"]
    assert not wrong, wrong


def test_arrows_between_rooms_point_down():
    wrong = []
    for path, room, included in arrows():
        other = included.split("/")[0]
        if other != room and other not in MAY_USE[room]:
            wrong.append(f"{path}: {room} may not use {included}")
    assert not wrong, "\n".join(wrong)


def test_inner_headers_stay_inside():
    wrong = []
    for path, room, included in arrows():
        other, _, header = included.partition("/")
        if other not in (room, "base") and header not in DOORS[other]:
            wrong.append(f"{path}: {included} is not a door of {other}")
    assert not wrong, "\n".join(wrong)


def test_headers_stand_alone_in_name():
    wrong = []
    for path in sorted(SOURCE.rglob("*.h")):
        guard = "DAIS_" + "_".join(path.relative_to(SOURCE).with_suffix("").parts).upper() + "_H"
        if f"#ifndef {guard}" not in path.read_text():
            wrong.append(f"{path.relative_to(ROOT)}: no include guard {guard}")
    assert not wrong, wrong
