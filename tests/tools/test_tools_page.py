"""docs/reference/tools.md counts the commands that the sessions have."""

from collections.abc import Iterable, Iterator

import pytest

from tests.tools import test_against_kafka, tools_page
from tests.tools.kafka_tools import RELEASES
from tests.tools.test_zookeeper_era import DRAFTS, OURS
from tests.tools.zookeeper_era import LENIENT, RELEASE
from tests.tools.zookeeper_session import LEGACY, SESSION, Command


def _rows() -> Iterator[tuple[str, str, Iterable[str]]]:
    drafts = ", ".join(f"`{name}`" for name in DRAFTS)
    mock = "the mock of `kafka-2.4`"
    yield f"Kafka {RELEASE}", f"Kafka {RELEASE} / {mock}", _commands(SESSION)
    beside = [tool for tool in _commands(SESSION) if tool in OURS]
    yield f"Kafka {RELEASE} / `kproto admin`", f"Kafka {RELEASE} / {mock}", beside
    yield f"Kafka {LENIENT}", f"Kafka {RELEASE} / mocks of {drafts}", _commands(LEGACY)
    for release in RELEASES:
        steps = [
            step.tool
            for step in test_against_kafka.SESSION
            if isinstance(step, test_against_kafka.Step) and release in step.only
        ]
        profile = test_against_kafka.PROFILES[release]
        yield f"Kafka {release} / `kproto admin`", f"the mock of `{profile}`", steps


def _commands(session: Iterable[object]) -> list[str]:
    return [step.tool for step in session if isinstance(step, Command)]


def test_the_counts_are_those_of_the_sessions() -> None:
    tools_page.settle("counts", tools_page.counts(_rows()))


def test_a_part_that_is_not_so_is_found() -> None:
    if not tools_page.WRITES:
        with pytest.raises(AssertionError, match="counts"):
            tools_page.settle("counts", "| tools | on |")
