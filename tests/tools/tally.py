"""Adds up what the stages of scripts/test left: tally.py RESULTS STATUS prints "N passed, N failed"."""
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def unit(path):
    passed = failed = 0
    for line in path.read_text().splitlines():
        if json.loads(line)["result"] in ("OK", "EXPECTEDFAIL"):
            passed += 1
        else:
            failed += 1
    return passed, failed


def pytest(path):
    passed = failed = 0
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        bad = int(suite.get("failures")) + int(suite.get("errors"))
        failed += bad
        passed += int(suite.get("tests")) - bad - int(suite.get("skipped"))
    return passed, failed


def plain(path):
    passed, failed = path.read_text().split()
    return int(passed), int(failed)


def main():
    results, status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    passed = failed = 0
    readers = {"unit-*.json": unit, "*.xml": pytest, "fuzz.txt": plain, "conformance*.txt": plain, "agents.txt": plain}
    for pattern, read in readers.items():
        for path in sorted(results.glob(pattern)):
            more_passed, more_failed = read(path)
            passed, failed = passed + more_passed, failed + more_failed
    # A stage that failed without a test of its own (a build, a lint) counts as one failure.
    if status != 0 and failed == 0:
        failed = 1
    print(f"{passed} passed, {failed} failed")


main()
