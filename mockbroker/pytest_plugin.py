"""The pytest plugin ``mock_kafka`` with the fixtures ``mock_kafka`` and ``mock_kafka_factory``.

It is installed with the package and imports no more of it until a test requests a fixture. A
failing test reports the traffic of its clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from mockbroker.fixture import MockKafka

__all__ = ["MockKafkaFactory", "mock_kafka", "mock_kafka_factory"]

MockKafkaFactory: TypeAlias = "Callable[..., MockKafka]"

_MARKER = (
    "mock_kafka(**options): mockbroker.ClusterOptions for the fixture mock_kafka, "
    "such as brokers=6, topics=['foo=1,2,3'], profile='kafka-2.4'"
)
_CLUSTERS = pytest.StashKey[list[Any]]()
_SHOWN = 200
"""The most journal lines reported for a failed test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("mock_kafka_profile", "the default profile of mock_kafka", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def mock_kafka_factory(request: pytest.FixtureRequest) -> Iterator[MockKafkaFactory]:
    """A function that starts a cluster: ``mock_kafka_factory(brokers=6, topics=["foo=1,2,3"])``.
    All of them stop at the end of the test."""
    from mockbroker.fixture import MockKafka

    started: list[MockKafka] = request.node.stash.setdefault(_CLUSTERS, [])
    profile = request.config.getini("mock_kafka_profile")

    def start(**options: Any) -> MockKafka:
        if profile:
            options.setdefault("profile", profile)
        cluster = MockKafka(**options)
        cluster.start()
        started.append(cluster)
        return cluster

    yield start
    errors = []
    for cluster in started:
        try:
            cluster.stop()
        except Exception as error:  # stop the others first
            errors.append(error)
    if errors:
        raise errors[0]


@pytest.fixture
def mock_kafka(request: pytest.FixtureRequest, mock_kafka_factory: MockKafkaFactory) -> MockKafka:
    """A running mock cluster for this test alone, in this process and on free ports. The marker
    ``@pytest.mark.mock_kafka(...)`` sets its options; the nearest marker decides each."""
    options: dict[str, Any] = {}
    for marker in request.node.iter_markers("mock_kafka"):
        if marker.args:
            raise pytest.UsageError("the marker mock_kafka takes keyword arguments only")
        options = {**marker.kwargs, **options}
    return mock_kafka_factory(**options)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for cluster in item.stash.get(_CLUSTERS, []):
            report.sections.append(
                (f"mock_kafka at {cluster.bootstrap}", cluster.journal_text(_SHOWN))
            )
