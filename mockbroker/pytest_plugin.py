"""The fixtures ``mock_kafka`` and ``mock_kafka_factory``, by the name ``mock_kafka`` among pytest's
plugins. Installed with the package; nothing of it is imported before a test asks for one.

A test that fails shows what was said on the wire.
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
    "mock_kafka(**options): options of mockbroker.MockCluster for the fixture mock_kafka, "
    "such as brokers=6, topics=['foo=1,2,3'], profile='kafka-2.4'"
)
_CLUSTERS = pytest.StashKey[list[Any]]()
_SHOWN = 200
"""Lines of a journal at most under a failed test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "mock_kafka_profile", "the profile of mock_kafka where a test names none", default=""
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def mock_kafka_factory(request: pytest.FixtureRequest) -> Iterator[MockKafkaFactory]:
    """Starts clusters: ``mock_kafka_factory(brokers=6, topics=["foo=1,2,3"])``. Each is stopped
    at the end of the test."""
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
        except Exception as error:  # the others still have to be stopped
            errors.append(error)
    if errors:
        raise errors[0]


@pytest.fixture
def mock_kafka(request: pytest.FixtureRequest, mock_kafka_factory: MockKafkaFactory) -> MockKafka:
    """A running mock cluster of this test's own, in this process and on free ports. The marker
    ``@pytest.mark.mock_kafka(...)`` has its options; the nearest one decides each."""
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
            report.sections.append((f"mock_kafka at {cluster.bootstrap}", cluster.said(_SHOWN)))
