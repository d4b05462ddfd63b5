"""The work graph promises numbered behaviours; a comment or docstring "behaviour 3.9" says which test stands for which.

1 ids, envelope, validation; 2 idempotency; 3 transitions and gates; 4 cascades and structure; 5 notes,
dependencies, documents, rules; 6 claims, leases, seats, search.
"""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
PROMISED = {1: 21, 2: 8, 3: 27, 4: 24, 5: 24, 6: 32}
CLAIM = re.compile(r"behaviours? ((?:\d\.\d+(?:, | and )?)+)")


def claimed():
    """number: files whose tests say that they stand for it"""
    found = {}
    for path in [*TESTS.glob("unit/*/*.c"), *TESTS.glob("scenario/test_*.py")]:
        for claim in CLAIM.findall(path.read_text()):
            for number in re.findall(r"\d\.\d+", claim):
                found.setdefault(number, set()).add(path.name)
    return found


def test_every_numbered_behaviour_has_its_test():
    promised = {f"{chapter}.{n}" for chapter, count in PROMISED.items() for n in range(1, count + 1)}
    found = claimed()
    assert sorted(promised - found.keys()) == [], "promised, and no test says it stands for it"
    assert sorted(found.keys() - promised) == [], "a number that nothing promises"
