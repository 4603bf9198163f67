"""The running oracles, shared by every test here; the counts, printed at the end of the run."""

from collections.abc import Iterator, Mapping

import pytest

from kproto.oracle.oracle import RELEASES, Oracle
from tests.oracle.tally import Tally
from tests.support.toolchain import require

_TALLY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def oracles() -> Iterator[Mapping[str, Oracle]]:
    """A started Oracle for each release. Skips (fails where required) without Java or Maven."""
    require("java", "maven")
    started: dict[str, Oracle] = {}
    try:
        for release in RELEASES:
            started[release] = Oracle(release).__enter__()
        yield started
    finally:
        for oracle in started.values():
            oracle.close()


@pytest.fixture(scope="session")
def oracle_tally(pytestconfig: pytest.Config) -> Tally:
    return pytestconfig.stash.setdefault(_TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config):
    tally = config.stash.get(_TALLY, None)
    if tally is not None and (tally.values or tally.rewrites):
        terminalreporter.section("oracle")
        for line in tally.lines():
            terminalreporter.write_line(line)
