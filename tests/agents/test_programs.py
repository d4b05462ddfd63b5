"""Installing a program, with what the registry would bring written by the test. Nothing is fetched."""
import pytest

import programs


class Fetched(programs.Program):
    """A program whose package is this one script."""
    script = "#!/bin/sh\necho 'tool 1.2.3 (build 9)'\n"
    fetches = 0

    def fetch(self):
        type(self).fetches += 1
        self.path.parent.mkdir(parents=True)
        self.path.write_text(self.script)


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "CACHE", tmp_path / "cache")
    Fetched.fetches = 0
    return lambda version, kind=Fetched: kind("tool", "a-package", version, tmp_path / f"cache/tool-{version}/node_modules/tool", "--version")


def test_a_program_that_tells_the_wanted_version_is_installed_once(program):
    tool = program("1.2.3")
    tool.install()
    tool.install()
    assert tool.is_installed() and Fetched.fetches == 1


def test_a_program_of_another_version_leaves_nothing_and_says_both_versions(program):
    tool = program("2.0.0")
    with pytest.raises(programs.Unavailable, match=r"2\.0\.0 was asked for, the program says 1\.2\.3"):
        tool.install()
    assert not tool.is_installed() and not tool.directory.exists()


def test_a_program_that_does_not_start_leaves_nothing(program):
    class Broken(Fetched):
        script = "#!/no/such/interpreter\n"

    with pytest.raises(programs.Unavailable, match="does not start"):
        program("1.2.3", Broken).install()
    assert not program("1.2.3").directory.exists()


def test_a_half_made_installation_is_made_anew(program):
    tool = program("1.2.3")
    tool.fetch()  # as if the machine had been switched off here
    assert not tool.is_installed()
    tool.install()
    assert tool.is_installed()


def test_every_row_of_the_table_is_exact():
    for program in programs.table().values():
        assert program.version.count(".") == 2 and "{" not in f"{program.package}{program.path}", program


def test_every_agent_has_a_row():
    import agents
    assert {agent.name for agent in agents.AGENTS} == set(programs.table())
