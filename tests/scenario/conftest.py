"""Fixtures of the stories: `dais`, a running server on a fresh state directory, and `new_dais`, more of them."""
import os
import resource

import pytest

import eras
import harness
from mcp_fixture import Fixture, FixtureLines

IN_CI = bool(os.environ.get("CI"))

# A login shell of Debian gives 1,024; some stories hold more connections than that. Servers inherit it.
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)) if hard != resource.RLIM_INFINITY else 8192, hard))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    # In CI a skip is a failure: nothing may look tested that was not.
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    if report.failed:
        held = [value for value in item.funcargs.values() if isinstance(value, harness.Dais)]
        for server in {id(server): server for server in item.stash.get(SERVERS, []) + held}.values():
            report.sections.append((f"log of {server.state}", server.log()[-6000:]))
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed


SERVERS = pytest.StashKey[list]()
FAILED = pytest.StashKey[bool]()


@pytest.fixture
def new_dais(request):
    """A function that makes a server on its own state directory, not yet started."""
    servers = request.node.stash.setdefault(SERVERS, [])

    def make():
        servers.append(harness.Dais())
        return servers[-1]

    yield make
    errors = []
    for server in servers:
        try:
            server.finish()
        except BaseException as error:
            errors.append(error)
    if not errors and not request.node.stash.get(FAILED, False):
        for server in servers:
            server.remove()
    if errors:
        raise errors[0]


@pytest.fixture
def dais(new_dais):
    return new_dais().start()


@pytest.fixture
def stopped(new_dais):
    """A state directory whose server the test starts itself."""
    return new_dais()


@pytest.fixture(scope="module")
def shared():
    """One server for the stories of a file that leave each other alone."""
    server = harness.Dais().start()
    yield server
    server.finish()
    server.remove()


@pytest.fixture(scope="module", params=eras.ERAS)
def stage(request):
    """A server that the stories of one file share, each in a project of its own; every story in both eras."""
    server = harness.Dais().start()
    yield eras.Stage(server, request.param)
    server.finish()
    server.remove()


@pytest.fixture(scope="module")
def fx():
    """The protocol library over HTTP, with tools that wait and ask, which the product does not have."""
    fixture = Fixture()
    yield fixture
    fixture.stop()


@pytest.fixture
def line():
    """The same on stdin and stdout."""
    made = FixtureLines()
    yield made
    made.close()
