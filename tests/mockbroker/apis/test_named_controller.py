"""The broker that Metadata and DescribeCluster name as the controller."""

from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

KRAFT, ZOOKEEPER = "kafka-4.4", "kafka-3.9-zk"
QUESTIONS: list[tuple[Any, int]] = [
    *((request_of("Metadata", topics=[]), version) for version in range(1, 14)),
    *((request_of("DescribeCluster"), version) for version in range(3)),
]


async def named(mock: MockCluster, rounds: int) -> list[int]:
    """The controller in answers to the same questions, over and over."""
    async with connect(mock, 2) as wire:
        found = []
        for body, version in QUESTIONS * rounds:
            if version in mock.served[body.API_KEY]:
                found.append((await wire.ask(body, version)).controller_id)
        return found


@pytest.mark.parametrize(
    ("profile", "rule", "expected"),
    [
        (KRAFT, None, {1, 2, 3}),
        (KRAFT, "random", {1, 2, 3}),
        (KRAFT, "leader", {1}),
        (KRAFT, 2, {2}),
        (ZOOKEEPER, None, {1}),
        (ZOOKEEPER, "leader", {1}),
        (ZOOKEEPER, "random", {1, 2, 3}),
        (ZOOKEEPER, 3, {3}),
    ],
)
@pytest.mark.requirement("A-53")
async def test_the_rule_decides_and_only_live_brokers_are_named(profile, rule, expected):
    async with MockCluster(profile=profile, named_controller=rule) as mock:
        assert set(await named(mock, 4)) == expected
        await mock.stop_broker(3)
        assert set(await named(mock, 4)) == (expected - {3} or {1})


@pytest.mark.requirement("A-53")
async def test_the_seed_decides_on_each_answer_whether_or_not_it_was_cached() -> None:
    async def drawn(seed: int, **options: Any) -> list[int]:
        async with MockCluster(profile=KRAFT, seed=seed, **options) as mock:
            return await named(mock, 5)

    first = await drawn(7)
    assert first == await drawn(7) != await drawn(8)
    assert first == await drawn(7, propagation_ms=1)  # nothing is cached
    lines = [first[index :: len(QUESTIONS)] for index in range(len(QUESTIONS))]
    assert any(len(set(each)) > 1 for each in lines)


@pytest.mark.parametrize("rule", ["follower", 9, -1, True])
def test_there_is_no_other_rule(rule: Any) -> None:
    with pytest.raises(ClusterError):
        MockCluster(named_controller=rule)
