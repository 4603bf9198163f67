"""Real Kafka clusters, one at a time, each for its one test; the counts, printed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.compare import Comparison
from tests.real.data.play import Tally
from tests.real.kafka import RealKafka
from tests.real.programs.batch import Played
from tests.support.toolchain import require, require_module

_COMPARISONS = pytest.StashKey[dict[str, Comparison | Played]]()
_TALLIES = pytest.StashKey[dict[str, Tally]]()


@pytest.fixture
def kraft_kafka(tmp_path: Path) -> Iterator[RealKafka]:
    """The newest Kafka. Skips (fails where required) without Java or Maven."""
    require("java", "maven")
    with RealKafka("4.4.0", tmp_path, zookeeper=False) as kafka:
        yield kafka


@pytest.fixture
def older_kraft_kafka(tmp_path: Path) -> Iterator[RealKafka]:
    """The release that has both kinds of controller, with the newer one."""
    require("java", "maven")
    with RealKafka("3.9.2", tmp_path, zookeeper=False) as kafka:
        yield kafka


@pytest.fixture
def zookeeper_kafka(tmp_path: Path) -> Iterator[RealKafka]:
    """The same release with a ZooKeeper."""
    require("java", "maven")
    require_module("kazoo")
    with RealKafka("3.9.2", tmp_path, zookeeper=True) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def comparisons(pytestconfig: pytest.Config) -> dict[str, Comparison | Played]:
    return pytestconfig.stash.setdefault(_COMPARISONS, {})


@pytest.fixture(scope="session")
def tallies(pytestconfig: pytest.Config) -> dict[str, Tally]:
    return pytestconfig.stash.setdefault(_TALLIES, {})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    comparisons = config.stash.get(_COMPARISONS, {})
    tallies = config.stash.get(_TALLIES, {})
    if comparisons or tallies:
        terminalreporter.section("real Kafka")
    for release, found in comparisons.items():
        terminalreporter.write_line(f"{release}: {found}")
    for release, tally in tallies.items():
        terminalreporter.write_line(f"{release}, data: {tally}")
