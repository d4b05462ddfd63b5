"""The reference pages say what the tables of the program say."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DAIS_BUILD", ROOT / "build"))


def test_the_reference_pages_are_those_of_the_tables():
    done = subprocess.run([ROOT / "tests/tools/write_reference", BUILD / "tests/tools/reference", ROOT, "--check"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
