"""What counts as ordinary passes every row of every release: the rows alone are the rules.

Each test takes the usual fetch and changes one or two facts at a time, in all ways listed.
"""

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.fetching.query import FetchQuery, PartitionPosition
from mockbroker.simulation.fetching.reading import (
    ACCESS,
    PartitionReader,
    _Access,
    is_ordinary_access,
)
from mockbroker.simulation.fetching.replica_selection import SELECTORS
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import NEWEST
from tests.mockbroker.simulation.fetching.fetching import append

SELECTOR = SELECTORS["org.apache.kafka.common.replica.RackAwareReplicaSelector"]
OTHER = uuid.UUID(int=7)
POSITION = {
    "topic": "foo", "topic_id": ZERO_UUID, "partition": 0, "offset": 3, "max_bytes": 1 << 20,
    "leader_epoch": -1, "last_fetched_epoch": -1,
}  # fmt: skip
ODD_POSITION: Mapping[str, Sequence[Any]] = {
    "topic": [None, "bar", "gone"],
    "topic_id": [OTHER],
    "partition": [-1, 1, 2],
    "offset": [-1, 0, 1, 2, 5, 6],
    "leader_epoch": [0, 1, 2, 3],
    "last_fetched_epoch": [0, 1, 5],
}
QUERY = {"broker_id": 1, "max_bytes": 1 << 20, "rack": ""}
ODD_QUERY: Mapping[str, Sequence[Any]] = {
    "broker_id": [2, 4],
    "replica_id": [0, 1, 2, 9],
    "read_committed": [True],
    "by_id": [True],
    "rack": [None, "b"],
    "refused": [True],
    "may_read": [lambda topic: False],
}


def a_cluster() -> Cluster:
    """Broker 1 leads foo-0, whose log begins at 2 and ends at 5, and bar-0, in later epochs."""
    cluster = Cluster(4, topics=["foo=1,2,3/2,1,3", "bar=1,2"])
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    for name, index in (("foo", 0), ("foo", 1), ("bar", 0)):
        Operations(cluster).join_isr((name, index), 1)
    cluster.elections.elect(0, None)
    assert cluster.topics.partition("foo", 0).leader == 1
    for _ in range(5):
        append(cluster, b"v")
    cluster.logs.advance_start("delete_records", ("foo", 0), 2)
    return cluster


def cases(cluster: Cluster) -> Iterator[tuple[FetchQuery, PartitionPosition]]:
    """The usual one first."""
    odd = [
        (kind, name, value)
        for kind, facts in enumerate((ODD_QUERY, ODD_POSITION))
        for name, values in facts.items()
        for value in (*values, cluster.topics["foo"].topic_id)[: len(values) + (name == "topic_id")]
    ]
    for some in ((), *zip(odd, strict=True), *itertools.combinations(odd, 2)):
        facts: tuple[dict[str, Any], dict[str, Any]] = dict(QUERY), dict(POSITION)
        for kind, name, value in some:
            facts[kind][name] = value
        position = PartitionPosition(**facts[1])
        yield FetchQuery(positions=[position], **facts[0]), position


def test_an_ordinary_access_passes_all_rows() -> None:
    cluster = a_cluster()
    for selector in (None, SELECTOR):
        reader = PartitionReader(cluster.controller, cluster.logs, NEWEST, selector)
        ordinary = []
        for query, position in cases(cluster):
            at = _Access(reader, query, position)
            ordinary.append(is_ordinary_access(at))
            if ordinary[-1]:
                assert [row.requirement for row in ACCESS if row.when(at)] == []
        assert ordinary[0] == (selector is None)
