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
    script = (f'source "{ROOT}/packaging/completion/dais.bash"; COMP_WORDS=({" ".join(map(repr, words))}); '
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


def follow(page, dais):
    """The shell commands of a page as they stand there, in one shell, but for how the server is started."""
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    script = "\n".join(block for block in blocks if not re.match("make |export PATH=", block))
    env = dais.env()
    env.update(DAIS_STATE_DIR=str(dais.state), PATH=f"{pathlib.Path(harness.PROGRAM).parent}:{env['PATH']}")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, timeout=60 * harness.SLACK)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_five_minutes_of_the_readme_work(dais):
    text = (ROOT / "README.md").read_text()
    block = text[text.index("## The first five minutes"):text.index("`dais demo`")]
    out = follow(block.replace("export PATH=$PWD/build:$PATH\n", ""), dais)
    assert out.count("gate_blocked") >= 1
    assert '"newRole":"work"' in out
    assert "Tide table import" in out


def test_getting_started_can_be_followed_as_it_stands(dais):
    out = follow((ROOT / "docs/getting-started.md").read_text(), dais)
    assert '"claimed":true' in out and '"canAdvance":false' in out and "gate_blocked" in out
    assert re.findall(r'"newRole":"(\w+)"', out) == ["work", "review", "terminal"]
    assert '"unblockedItems":[{' in out
