"""The pytest plugin ``mock_kafka``: fixtures that run mock clusters for a test or for several.

It is installed with the package and imports no more of it until a test requests a fixture. A
failing test reports the traffic of its clusters. A test does not pass if one of its handlers
raised, or if ``strict_faults`` is on and no request has hit one of its fault rules.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from mockbroker.running.fixture import MockKafka, MockKafkaFactory

__all__ = [
    "MockKafkaFactory",
    "mock_kafka",
    "mock_kafka_factory",
    "mock_kafka_module",
    "mock_kafka_session",
    "mock_kafka_session_options",
    "mock_kafka_shared",
]

_MARKER: Final = (
    "mock_kafka(**options): mockbroker.ClusterOptions for the fixtures mock_kafka and "
    "mock_kafka_module, such as brokers=6, topics=['foo=1,2,3'], profile='kafka-2.4'"
)
_CLUSTERS: Final = pytest.StashKey[list[Any]]()
"""The clusters started by fixtures of this node: a test, a module or the session."""
_FAILED: Final = pytest.StashKey[bool]()
"""Whether a test of this node failed; its clusters' handlers and rules are not reported then."""
_SEEN: Final = pytest.StashKey[dict[Any, int]]()
"""The last journal entry of each cluster that already ran when the test began."""
_SHOWN: Final = 200
"""The most journal lines reported for a failed test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("mock_kafka_profile", "the default profile of mock_kafka", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


def __getattr__(name: str) -> Any:
    if name == "MockKafkaFactory":
        from mockbroker.running.fixture import MockKafkaFactory

        return MockKafkaFactory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- fixtures ------------------------------------------------------------------------------------


@pytest.fixture
def mock_kafka_factory(request: pytest.FixtureRequest) -> Iterator[MockKafkaFactory]:
    """A function that starts a cluster: ``mock_kafka_factory(brokers=6, topics=["foo=1,2,3"])``.
    All of them stop at the end of the test."""
    yield from _running(request)


@pytest.fixture
def mock_kafka(request: pytest.FixtureRequest, mock_kafka_factory: MockKafkaFactory) -> MockKafka:
    """A running mock cluster for this test alone, in this process and on free ports. The marker
    ``@pytest.mark.mock_kafka(...)`` sets its options; the nearest marker decides each."""
    return mock_kafka_factory(**_marked(request.node))


@pytest.fixture(scope="module")
def mock_kafka_module(request: pytest.FixtureRequest) -> Iterator[MockKafka]:
    """A running mock cluster that the tests of a module share. A marker in ``pytestmark`` sets its
    options."""
    for factory in _running(request):
        yield factory(**_marked(request.node))


@pytest.fixture
def mock_kafka_shared(mock_kafka_module: MockKafka) -> Iterator[MockKafka]:
    """The cluster of ``mock_kafka_module``, which is reset after each test: to its last
    ``snapshot``, which a fixture of the module may take, or to what it is before the first test."""
    if not mock_kafka_module.has_snapshot:
        mock_kafka_module.snapshot()
    yield mock_kafka_module
    mock_kafka_module.reset()


@pytest.fixture(scope="session")
def mock_kafka_session(
    request: pytest.FixtureRequest, mock_kafka_session_options: Mapping[str, Any]
) -> Iterator[MockKafka]:
    """A running mock cluster that all tests share."""
    for factory in _running(request):
        yield factory(**mock_kafka_session_options)


@pytest.fixture(scope="session")
def mock_kafka_session_options() -> Mapping[str, Any]:
    """The options of ``mock_kafka_session``: override this fixture in ``conftest.py``."""
    return {}


def _running(request: pytest.FixtureRequest) -> Iterator[MockKafkaFactory]:
    """Yield a factory of clusters. Afterwards stop all of them, then raise their errors."""
    from mockbroker.errors import raise_together
    from mockbroker.running.fixture import MockKafka

    started: list[MockKafka] = request.node.stash.setdefault(_CLUSTERS, [])
    profile = request.config.getini("mock_kafka_profile")

    def start(*arguments: Any, **options: Any) -> MockKafka:
        if profile:
            options.setdefault("profile", profile)
        options.setdefault("ready_coordinators", True)
        cluster = MockKafka(*arguments, **options)
        cluster.start()
        started.append(cluster)
        return cluster

    yield start
    errors: list[Exception] = []
    ends = [cluster.stop for cluster in started]
    if not request.node.stash.get(_FAILED, False):
        ends += [cluster.check for cluster in started]
    for end in ends:
        try:
            end()
        except Exception as error:  # end the others first
            errors.append(error)
    started.clear()
    raise_together("mock clusters", errors)


def _marked(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for marker in node.iter_markers("mock_kafka"):
        if marker.args:
            raise pytest.UsageError("the marker mock_kafka takes keyword arguments only")
        options = {**marker.kwargs, **options}
    if options:
        from mockbroker.options import unknown_option

        problem = unknown_option(options)
        if problem is not None:
            raise pytest.UsageError(f"the marker mock_kafka has {problem}")
    return options


# ---- the outcome of a test -----------------------------------------------------------------------


def _clusters(item: pytest.Item) -> list[MockKafka]:
    """The running clusters of a test, of its module and of the session."""
    return [each for node in item.listchain() for each in node.stash.get(_CLUSTERS, [])]


def _handler_errors(item: pytest.Item) -> list[Exception]:
    return [error for cluster in _clusters(item) for error in cluster.take_handler_errors()]


def _raise_handler_errors(item: pytest.Item) -> None:
    if errors := _handler_errors(item):
        from mockbroker.errors import raise_together

        raise_together("handlers of the test failed", errors)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_SEEN] = {each: each.journal.last_sequence for each in _clusters(item)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test whose handlers raised, with their tracebacks."""
    try:
        yield
    except BaseException:
        _handler_errors(item)  # the next test that shares a cluster is not to blame
        raise
    _raise_handler_errors(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield
    _raise_handler_errors(item)


def _shortened(item: pytest.Item, call: pytest.CallInfo[None]) -> str | None:
    """Leave frames of ours out of a test's traceback. Returns all there is to show if no frame is
    left."""
    ours = {"mock_kafka_factory", "mock_kafka_module", "mock_kafka_session"}
    uses = ours.intersection(getattr(item, "fixturenames", ()))
    if call.excinfo is None or not uses or item.config.getoption("fulltrace"):
        return None
    from mockbroker.running.tracebacks import shorten

    error = call.excinfo.value
    return f"{type(error).__name__}: {error}" if shorten(error) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    message = _shortened(item, call)
    report = yield
    if report.failed:
        report.longrepr = report.longrepr if message is None else message
        for node in item.listchain():
            node.stash[_FAILED] = True
        seen = item.stash.get(_SEEN, {})
        for cluster in _clusters(item):
            text = cluster.journal_text(_SHOWN, after=seen.get(cluster, 0))
            report.sections.append((f"mock_kafka at {cluster.bootstrap}", text or "nothing"))
    elif report.skipped:
        item.stash[_FAILED] = True
    return report
