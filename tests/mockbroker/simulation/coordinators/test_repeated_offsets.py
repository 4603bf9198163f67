"""Requests about offsets that name topics and partitions more than once, as three generations of
Kafka answer them: 3.4, 3.5 to 3.9, and 4.0. Seen on 2.8.2, 3.9.2 and 4.4.0."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import pytest

from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulation.coordinators.offset_requests import coordinated
from tests.support.requests import request_of

Topics: TypeAlias = list[tuple[str, list[int]]]
Answer: TypeAlias = list[tuple[str, list[tuple[int, int]]]]
"""The partitions of topics, and their error codes."""

REQUESTS: Final[Sequence[tuple[Topics, Answer, Answer, Answer]]] = [
    (
        [("foo", [0, 0, 1])],
        [("foo", [(0, 0), (1, 0)])],
        [("foo", [(0, 0), (1, 0)])],
        [("foo", [(0, 0), (0, 0), (1, 0)])],
    ),
    (
        [("foo", [0]), ("bar", [0]), ("foo", [1, 0, 1]), ("bar", [])],
        [("foo", [(0, 0), (1, 0)]), ("bar", [(0, 0)])],
        [("foo", [(0, 0), (1, 0)]), ("bar", [(0, 0)])],
        [("foo", [(0, 0)]), ("bar", [(0, 0)]), ("foo", [(1, 0), (0, 0), (1, 0)])],
    ),
    (
        [("foo", [1, 0]), ("bar", [0]), ("foo", [0, 5, 5]), ("none", [])],
        [("foo", [(5, 3), (1, 0), (0, 0)]), ("bar", [(0, 0)])],
        [("foo", [(5, 3), (5, 3), (1, 0), (0, 0)]), ("none", []), ("bar", [(0, 0)])],
        [("foo", [(5, 3), (5, 3), (1, 0), (0, 0), (0, 0)]), ("none", []), ("bar", [(0, 0)])],
    ),
    (
        [("none", [0, 0]), ("foo", [0]), ("none", [1, 0])],
        [("none", [(0, 3), (1, 3)]), ("foo", [(0, 0)])],
        [("none", [(0, 3), (0, 3), (1, 3), (0, 3)]), ("foo", [(0, 0)])],
        [("none", [(0, 3), (0, 3), (1, 3), (0, 3)]), ("foo", [(0, 0)])],
    ),
    ([("foo", [])], [], [], []),
    ([("none", [])], [], [("none", [])], [("none", [])]),
]
"""A request, and the answers of the three."""
RELEASES: Final = ((3, 4), (3, 5), (4, 0))


def _broker(release: tuple[int, int]) -> DirectBroker:
    cluster = coordinated(release=release, topics=["foo:2:1", "bar:1:1"])
    return DirectBroker(cluster, profile_name="kafka-{}.{}".format(*release))


def _commit(_at: DirectBroker, topics: Topics) -> Any:
    rows = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "committed_offset": place}
                for place, index in enumerate(indexes)
            ],
        }
        for name, indexes in topics
    ]
    return request_of("OffsetCommit", group_id="g", generation_id_or_member_epoch=-1, topics=rows)


def _delete(broker: DirectBroker, topics: Topics) -> Any:
    Operations(broker.cluster).set_offset("g", "foo-0", 1)
    rows = [
        {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
        for name, indexes in topics
    ]
    return request_of("OffsetDelete", group_id="g", topics=rows)


def _commit_in_transaction(broker: DirectBroker, topics: Topics) -> Any:
    broker.cluster.coordinators.find(CoordinatorKind.TRANSACTION, "t", 1)
    producer = broker.ask("InitProducerId", 1, transactional_id="t", transaction_timeout_ms=1000)
    ids = {
        "transactional_id": "t",
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "group_id": "g",
    }
    assert broker.ask("AddOffsetsToTxn", 1, **ids).error_code == 0
    rows = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "committed_offset": place}
                for place, index in enumerate(indexes)
            ],
        }
        for name, indexes in topics
    ]
    return request_of("TxnOffsetCommit", **ids, topics=rows)


@pytest.mark.requirement("DP-OFFSET-29")
@pytest.mark.parametrize("generation", range(3))
@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize(
    ("made", "version"), [(_commit, 7), (_commit_in_transaction, 3), (_delete, 0)]
)
def test_topics_and_partitions_that_come_more_than_once(made, version, case, generation):
    release = RELEASES[generation]
    broker = _broker(release)
    topics, *answers = case
    answer = broker.ask(made(broker, topics), version)
    found = [
        (topic.name, [(row.partition_index, row.error_code) for row in topic.partitions])
        for topic in answer.topics
    ]
    assert found == answers[generation]


@pytest.mark.requirement("DP-OFFSET-29")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
def test_the_last_row_of_a_partition_counts(release: tuple[int, int]) -> None:
    """Whose metadata is too long: before 4.0 nothing is stored."""
    broker = _broker(release)
    request = _commit(broker, [("foo", [0, 0])])
    request.topics[0].partitions[1].committed_metadata = "m" * 5000
    (topic,) = broker.ask(request, 7).topics
    codes = [each.error_code for each in topic.partitions]
    stored = broker.cluster.offsets.fetch("g", [("foo", 0)])[0].offset
    assert (codes, stored) == (([12], -1) if release < (4, 0) else ([0, 12], 0))


@pytest.mark.requirement("DP-OFFSET-27")
@pytest.mark.parametrize("release", [(3, 9), (4, 0)])
@pytest.mark.parametrize("version", [1, 7, 8])
def test_offsets_are_fetched_once_up_to_3_9(release: tuple[int, int], version: int) -> None:
    broker = _broker(release)
    wanted: Topics = [("foo", [0, 0]), ("none", [1]), ("foo", []), ("foo", [1, 0]), ("", [0])]
    if version < 8:
        rows = [{"name": name, "partition_indexes": indexes} for name, indexes in wanted]
        found = broker.ask("OffsetFetch", version, group_id="g", topics=rows)
    else:
        group = {
            "group_id": "g",
            "topics": [{"name": name, "partition_indexes": indexes} for name, indexes in wanted],
        }
        found = broker.ask("OffsetFetch", version, groups=[group]).groups[0]
    assert all(each.error_code == 0 for topic in found.topics for each in topic.partitions)
    shown = [(each.name, [row.partition_index for row in each.partitions]) for each in found.topics]
    once = [("foo", [0, 1]), ("none", [1]), ("", [0])]
    assert shown == (once if release < (4, 0) else wanted)
