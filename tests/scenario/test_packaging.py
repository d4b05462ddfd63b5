"""What goes with the program says what the program says: completion, man page, README."""
import pathlib
import re
import subprocess

import pytest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = {"--config", "--log-level", "--state", "--help", "--usage", "--version"}


def said(*arguments):
    done = subprocess.run([harness.PROGRAM, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def commands():
    return re.findall(r"^  ([a-z][a-z-]+) +\S", said("--help").split("Options of every command")[0], re.MULTILINE)


def flags(command):
    lines = [line for line in said(command, "--help").splitlines() if re.match(r" +(-\S, )?--", line)]
    return set(re.findall(r"--[a-z][a-z-]+", "\n".join(lines))) - SHARED


def completed(*words):
    script = (f'source {ROOT}/packaging/completion/dais.bash; COMP_WORDS=({" ".join(map(repr, words))}); '
              f"COMP_CWORD={len(words) - 1}; _dais; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return set(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split())


def test_completion_knows_every_command():
    assert completed("dais", "") == {*commands(), "--help", "--version"}


@pytest.mark.parametrize("command", commands())
def test_completion_knows_every_flag(command):
    assert completed("dais", command, "--") == flags(command) | SHARED


def test_completion_knows_every_tool(dais):
    described = dais.local().rpc("tools/list", {})["result"]["tools"]
    assert completed("dais", "call", "") == {tool["name"] for tool in described}


def test_the_man_page_knows_every_command():
    page = (ROOT / "docs/man/dais.1").read_text().replace("\\-", "-")
    section = page[page.index(".SH COMMANDS"):page.index(".SH OPTIONS")]
    for command in commands():
        assert re.search(rf'^\.B[IR]* "?{command}\b', section, re.MULTILINE), command


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself_with_an_example(command):
    assert re.search(r"^  .*dais " + command + r"|\"dais\"", said(command, "--help").split("Example")[-1], re.MULTILINE)


def test_the_first_five_minutes_of_the_readme_work(dais):
    """The commands as they stand there; python stands in for jq, which is no part of the set-up."""
    text = (ROOT / "README.md").read_text()
    block = text[text.index("## The first five minutes"):]
    block = re.search(r"```sh\n(alias.*?)```", block, re.DOTALL)[1]
    block = re.sub(r"^alias.*\n", "", block)
    block = block.replace("jq -r '.results[0].id'", "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"results\"][0][\"id\"])'")
    script = f'dais() {{ local c=$1; shift; {harness.PROGRAM} "$c" --state {dais.state} "$@"; }}\n{block}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=dais.env(), timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("gate_blocked") >= 1
    assert '"newRole":"work"' in done.stdout
    assert "Tide table import" in done.stdout
