"""Where coordinators are, what moves them, and what their listeners learn of it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import (
    CoordinatorKind,
    java_hash,
    partition_for,
    share_key,
)
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulated import simulated_cluster

GROUP, TRANSACTION, SHARE = CoordinatorKind
VECTORS = Path(__file__).parent / "java" / "placement.json"
"""Made by ``java/Placement.java``, which says how."""
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def with_topic(brokers: int = 3, kind: CoordinatorKind = GROUP, **options: object) -> Cluster:
    cluster = simulated_cluster(brokers, **options)  # type: ignore[arg-type]
    assert cluster.coordinators.find(kind, "any", 1) is None
    return cluster


@pytest.mark.requirement("DP-COORD-01")
def test_keys_belong_to_the_partitions_that_java_computes() -> None:
    rows = json.loads(VECTORS.read_text())
    assert len(rows) >= 200
    for key, hashed, partition in rows:
        assert (java_hash(key), partition_for(key, 50)) == (hashed, partition)


@pytest.mark.requirement("DP-COORD-04")
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (f"g:{TOPIC_ID}:0", f"g:{TOPIC_ID}:0"),
        (f"a:b:{TOPIC_ID}:0", f"a:b:{TOPIC_ID}:0"),
        (f"g:{TOPIC_ID}:007", f"g:{TOPIC_ID}:7"),
        (f"g:{TOPIC_ID}:+1", f"g:{TOPIC_ID}:1"),
        (f"g:{TOPIC_ID}:-1", f"g:{TOPIC_ID}:-1"),
        (f"g:{TOPIC_ID}:0:", f"g:{TOPIC_ID}:0"),
        ("", None),
        ("g", None),
        (f" :{TOPIC_ID}:0", None),
        ("g::0", None),
        (f"g:{TOPIC_ID}:", None),
        (f"g:{TOPIC_ID}:x", None),
        (f"g:{TOPIC_ID}:99999999999", None),
        ("g:bogus:1", None),
        (f"g: {TOPIC_ID}:0", None),
    ],
)
def test_share_keys_are_read_as_kafka_reads_them(key: str, expected: str | None) -> None:
    """Expected values are those of SharePartitionKey in kafka-server-common 4.4.0."""
    assert share_key(key) == expected


@pytest.mark.requirement("DP-COORD-02")
@pytest.mark.parametrize(
    ("kind", "name", "configs", "lowered"),
    [
        (
            GROUP,
            "__consumer_offsets",
            {"cleanup.policy": "compact", "compression.type": "producer"},
            {},
        ),
        (
            TRANSACTION,
            "__transaction_state",
            {"cleanup.policy": "compact", "compression.type": "uncompressed"},
            {"min.insync.replicas": ("2", "1")},
        ),
        (
            SHARE,
            "__share_group_state",
            {"cleanup.policy": "delete", "retention.ms": "-1"},
            {"min.insync.replicas": ("2", "1")},
        ),
    ],
)
def test_the_first_search_creates_the_internal_topic(kind, name, configs, lowered):
    for brokers, factor, place in ((4, 3, 0), (1, 1, 1)):
        cluster = with_topic(brokers, kind)
        topic = cluster.topics[name]
        assert len(topic.partitions) == 50
        assert {len(partition.replicas) for partition in topic.partitions} == {factor}
        found = {**configs, "segment.bytes": "104857600"}
        found |= {config: values[place] for config, values in lowered.items()}
        for config, value in found.items():
            assert cluster.configs.topic(name, config).value == value
        assert cluster.coordinators.find(kind, "g", 1) is not None


@pytest.mark.requirement("DP-COORD-02")
def test_broker_configs_give_the_numbers_of_partitions_and_replicas() -> None:
    configs = {"offsets.topic.num.partitions": "7", "offsets.topic.replication.factor": "2"}
    cluster = simulated_cluster(3, broker_configs=configs)
    assert cluster.coordinators.partition_of(GROUP, "g") == ("__consumer_offsets", 103 % 7)
    cluster.coordinators.find(GROUP, "g", 1)
    partitions = cluster.topics["__consumer_offsets"].partitions
    assert len(partitions) == 7
    assert len(partitions[0].replicas) == 2


@pytest.mark.requirement("DP-COORD-01")
def test_a_topic_that_exists_says_how_many_partitions_there_are() -> None:
    cluster = Cluster(3, topics=["__consumer_offsets:10:2"])
    assert cluster.coordinators.partition_of(GROUP, "g") == ("__consumer_offsets", 3)
    found = cluster.coordinators.find(GROUP, "g", 1)
    assert found is not None
    assert found.broker_id == cluster.topics.partition("__consumer_offsets", 3).leader


@pytest.mark.requirement("DP-COORD-04")
def test_share_coordinators_exist_since_4_0() -> None:
    old = simulated_cluster(3, release=(3, 9))
    assert old.coordinators.find(SHARE, f"g:{TOPIC_ID}:0", 1) is None
    assert "__share_group_state" not in old.topics


@pytest.mark.requirement("DP-COORD-01", "DP-COORD-05")
def test_only_the_leader_of_the_partition_is_the_coordinator() -> None:
    cluster = Cluster(3)
    errors = cluster.coordinators.group_error
    assert [errors("g", broker_id) for broker_id in (1, 2, 3)] == [16, 16, 16]
    cluster.coordinators.find(GROUP, "g", 1)
    leader = cluster.topics.partition("__consumer_offsets", 3).leader
    for broker_id in (1, 2, 3):
        assert errors("g", broker_id) == (0 if broker_id == leader else 16)
    Operations(cluster).stop_broker(leader)
    successor = cluster.topics.partition("__consumer_offsets", 3).leader
    assert successor not in (leader, -1)
    assert (errors("g", leader), errors("g", successor)) == (16, 0)
    found = cluster.coordinators.find(GROUP, "g", successor)
    assert found is not None
    assert found.broker_id == successor


@pytest.mark.requirement("DP-COORD-02")
def test_a_partition_without_a_live_leader_has_no_coordinator() -> None:
    cluster = simulated_cluster(2, broker_configs={"offsets.topic.replication.factor": "1"})
    cluster.coordinators.find(GROUP, "g", 1)
    leader = cluster.topics.partition("__consumer_offsets", 3).leader
    Operations(cluster).stop_broker(leader)
    assert cluster.coordinators.find(GROUP, "g", 3 - leader) is None
    assert cluster.coordinators.group_error("g", 3 - leader) == ErrorCode.NOT_COORDINATOR


@pytest.mark.requirement("DP-COORD-01")
def test_a_broker_answers_from_its_own_metadata() -> None:
    cluster = with_topic()
    leader = cluster.topics.partition("__consumer_offsets", 3).leader
    late = next(i for i in (1, 2, 3) if i != leader)
    Operations(cluster).hold_metadata(late)
    Operations(cluster).stop_broker(leader)
    old = cluster.coordinators.find(GROUP, "g", late)
    assert old is not None
    assert old.broker_id == leader
    Operations(cluster).release_metadata(late)
    new = cluster.coordinators.find(GROUP, "g", late)
    assert new is not None
    assert new.broker_id != leader


class Listener:
    """Notes what a coordinator's keys go through."""

    def __init__(self, cluster: Cluster, keys: Sequence[str], kind: CoordinatorKind = GROUP):
        self.notes: list[tuple[str, list[str]]] = []
        cluster.coordinators.attach(
            kind,
            lambda: keys,
            on_unload=lambda found: self.notes.append(("unload", list(found))),
            on_load=lambda found: self.notes.append(("load", list(found))),
        )

    def take(self) -> list[tuple[str, list[str]]]:
        notes, self.notes = self.notes, []
        return notes


BOTH = [("unload", ["g"]), ("load", ["g"])]


@pytest.mark.requirement("DP-COORD-06", "DP-COORD-07", "DP-CTL-26")
def test_keys_are_unloaded_and_loaded_when_their_partition_moves() -> None:
    cluster = with_topic()
    listener = Listener(cluster, ["g", "h"])  # partitions 3 and 4
    transactions = Listener(cluster, ["g"], TRANSACTION)
    leader = cluster.topics.partition("__consumer_offsets", 3).leader
    other = next(i for i in (1, 2, 3) if i != leader)
    Operations(cluster).move_coordinator(GROUP, "g", other)
    assert cluster.topics.partition("__consumer_offsets", 3).leader_epoch == 1
    assert cluster.coordinators.group_error("g", leader) == ErrorCode.NOT_COORDINATOR
    assert cluster.coordinators.group_error("g", other) == ErrorCode.NONE
    assert listener.take() == BOTH
    Operations(cluster).move_coordinator(GROUP, "g", other)
    assert listener.take() == []
    cluster.elections.elect(0, [("__consumer_offsets", [3])])
    assert listener.take() == BOTH
    Operations(cluster).leave_isr(("__consumer_offsets", 3), other)
    assert listener.take() == []
    with pytest.raises(ClusterError, match=f"broker {other} cannot lead __consumer_offsets-3"):
        Operations(cluster).move_coordinator(GROUP, "g", other)
    assert transactions.take() == []


@pytest.mark.requirement("DP-COORD-06", "DP-COORD-07")
def test_keys_are_unloaded_once_and_loaded_when_a_leader_returns() -> None:
    cluster = with_topic(1)
    listener = Listener(cluster, ["g"])
    cluster.topics.add("foo:1:1")
    cluster.topics.delete([("foo", cluster.topics["foo"].topic_id.__class__(int=0))])
    assert listener.take() == []
    Operations(cluster).stop_broker(1)
    assert listener.take() == [("unload", ["g"])]
    Operations(cluster).start_broker(1)
    assert listener.take() == [("load", ["g"])]


@pytest.mark.requirement("DP-COORD-06")
def test_deleting_the_internal_topic_unloads_every_key() -> None:
    cluster = with_topic()
    listener = Listener(cluster, ["g", "h"])
    zero = cluster.topics["__consumer_offsets"].topic_id.__class__(int=0)
    cluster.topics.delete([("__consumer_offsets", zero)])
    assert listener.take() == [("unload", ["g"]), ("unload", ["h"])]
    assert cluster.coordinators.group_error("g", 1) == ErrorCode.NOT_COORDINATOR


@pytest.mark.requirement("DP-COORD-05", "DP-CTL-27")
def test_a_coordinator_loads_for_as_long_as_a_tester_wants() -> None:
    cluster = with_topic()
    listener = Listener(cluster, ["g"])
    leader = cluster.topics.partition("__consumer_offsets", 3).leader
    other = next(i for i in (1, 2, 3) if i != leader)
    Operations(cluster).load_coordinator(GROUP, "g")
    assert cluster.coordinators.loading == {("__consumer_offsets", 3)}
    assert cluster.coordinators.group_error("g", leader) == 14
    assert cluster.coordinators.group_error("g", other) == 16
    assert cluster.coordinators.group_error("h", cluster.topics.partition("__consumer_offsets", 4).leader) == 0  # fmt: skip  # noqa: E501
    with pytest.raises(ClusterError, match="is being loaded already"):
        Operations(cluster).load_coordinator(GROUP, "g")
    Operations(cluster).move_coordinator(GROUP, "g", other)
    assert cluster.coordinators.group_error("g", other) == 14
    assert listener.take() == [("unload", ["g"])]
    Operations(cluster).finish_loading(GROUP, "g")
    assert cluster.coordinators.group_error("g", other) == 0
    assert listener.take() == [("load", ["g"])]
    count = len(cluster.log)
    for kind in (GROUP, CoordinatorKind.TRANSACTION):
        with pytest.raises(ClusterError, match="is not being loaded"):
            Operations(cluster).finish_loading(kind, "g")
    assert len(cluster.log) == count, "no internal topic was created"
