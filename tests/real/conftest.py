"""Real Kafka clusters, one a release and run; the counts, printed at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.compare import Comparison
from tests.real.kafka import RealKafka
from tests.support.toolchain import require

_COMPARISONS = pytest.StashKey[dict[str, Comparison]]()


@pytest.fixture(scope="session")
def kraft_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """The newest Kafka. Skips (fails where required) without Java or Maven."""
    require("java", "maven")
    with RealKafka("4.4.0", tmp_path_factory.mktemp("kafka"), zookeeper=False) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def comparisons(pytestconfig: pytest.Config) -> dict[str, Comparison]:
    return pytestconfig.stash.setdefault(_COMPARISONS, {})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    comparisons = config.stash.get(_COMPARISONS, {})
    if comparisons:
        terminalreporter.section("real Kafka")
    for release, found in comparisons.items():
        terminalreporter.write_line(f"{release}: {found}")
