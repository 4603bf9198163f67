"""DescribeTopicPartitions: any limit gives the same topics, page by page, as one large page."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.support.requests import request_of


def wanted(*names: str, **fields: Any) -> Any:
    return request_of(
        "DescribeTopicPartitions", topics=[{"name": name} for name in names], **fields
    )


def rows(answer: Any) -> list[tuple[str, int]]:
    return [(topic.name, p.partition_index) for topic in answer.topics for p in topic.partitions]


@given(
    counts=st.dictionaries(st.sampled_from("abcde"), st.integers(1, 7), min_size=1),
    limit=st.integers(-1, 9),
    named=st.booleans(),
)
def test_pages_make_the_whole(counts: dict[str, int], limit: int, named: bool) -> None:
    asked = DirectBroker(Cluster(topics=[f"{name}:{count}:1" for name, count in counts.items()]))
    names = list(counts) if named else []
    seen: list[tuple[str, int]] = []
    cursor = None
    while True:
        page = asked.ask(wanted(*names, response_partition_limit=limit, cursor=cursor), 0)
        assert 1 <= len(rows(page)) <= max(1, limit)
        seen += rows(page)
        if page.next_cursor is None:
            break
        cursor = {
            "topic_name": page.next_cursor.topic_name,
            "partition_index": page.next_cursor.partition_index,
        }
    assert seen == [(name, index) for name in sorted(counts) for index in range(counts[name])]


def test_errors_in_the_midst() -> None:
    answer = DirectBroker(Cluster(topics=["b:1:1"])).ask(wanted("c", "b", "a b", "b"), 0)
    assert [(t.name, t.error_code) for t in answer.topics] == [("a b", 17), ("b", 0), ("c", 3)]
    assert answer.next_cursor is None


@pytest.mark.parametrize("index", [-1, -(2**31)])
def test_a_cursor_below_0_is_refused(index: int) -> None:
    asked = DirectBroker(Cluster(topics=["b:1:1"]))
    answer = asked.ask(wanted("b", cursor={"topic_name": "b", "partition_index": index}), 0)
    assert [(t.name, t.error_code, t.partitions) for t in answer.topics] == [("b", 42, [])]


def test_what_a_partition_shows() -> None:
    asked = DirectBroker(Cluster(topics=["foo=1,2,3"]))
    Operations(asked.cluster).stop_broker(3)
    (topic,) = asked.ask(wanted("foo"), 0).topics
    (row,) = topic.partitions
    assert topic.topic_id == asked.cluster.topics["foo"].topic_id
    assert (row.leader_id, row.replica_nodes, row.isr_nodes) == (1, [1, 2, 3], [1, 2])
    assert (row.eligible_leader_replicas, row.last_known_elr, row.offline_replicas) == ([], [], [3])
    assert topic.topic_authorized_operations == 3576


@pytest.mark.requirement("K860-15")
def test_it_is_the_receiving_brokers_view() -> None:
    asked = DirectBroker(Cluster(topics=["foo=1,2,3"]))
    Operations(asked.cluster).hold_metadata(2)
    Operations(asked.cluster).leave_isr(("foo", 0), 3)
    views = [
        asked.ask(wanted("foo"), 0, broker_id=broker).topics[0].partitions[0].isr_nodes
        for broker in (1, 2)
    ]
    assert views == [[1, 2], [1, 2, 3]]
