"""dais-mcp-fixture: the protocol library with the tools that the conformance program expects."""
import os
import pathlib
import subprocess

from wire import Lines, Wire

BUILD = pathlib.Path(os.environ.get("DAIS_BUILD", pathlib.Path(__file__).parents[2] / "build"))
PROGRAM = BUILD / "tests/conformance/dais-mcp-fixture"


class Fixture(Wire):
    def __init__(self):
        self.process = subprocess.Popen([PROGRAM, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.stderr.read()
        super().__init__(int(self.url.split(":")[2].split("/")[0]))

    def stop(self):
        self.close()
        self.process.terminate()
        _, errors = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, errors
        assert "ERROR" not in errors, errors


class FixtureLines(Lines):
    def __init__(self):
        super().__init__([PROGRAM, "--lines"])
