"""What the server keeps only to be faster it gives back when nobody needs it."""
import pathlib
import re

import pytest

from harness import until


def resident_kb(dais):
    return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{dais.process.pid}/status").read_text())[1])


@pytest.mark.slow
def test_the_pages_of_the_writer_are_given_back_when_nothing_changes(stopped):
    stopped.start()
    root = stopped.item("notes")
    at_first = resident_kb(stopped)
    words = " ".join(f"w{n}" for n in range(9000))
    for n in range(200):
        stopped.note(root, f"n{n}", words, role="queue")
    busy = resident_kb(stopped)
    assert busy > at_first + 8 * 1024, "it keeps pages while it works"
    until(lambda: resident_kb(stopped) < at_first + (busy - at_first) / 2, 60)
