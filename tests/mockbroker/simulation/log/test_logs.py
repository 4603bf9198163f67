"""Logs of a cluster: replicas, high watermarks, and what elections and limits do to records."""

import uuid

import pytest

from kproto.records import Record, RecordBatches, build_batch
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.batch_header import read_header
from mockbroker.simulation.log.logs import _common_size
from mockbroker.simulation.log.partition_log import PartitionLog
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LogStartMoved, RecordsLost
from tests.mockbroker.simulated import simulated_cluster

FOO = ("foo", 0)


def append(cluster: Cluster, *values: bytes, tp: tuple[str, int] = FOO) -> int:
    data = build_batch([Record(timestamp=1, value=value) for value in values])
    return cluster.logs.append(tp, data, read_header(data))


def values(log: PartitionLog, start: int = 0, end: int | None = None) -> list[bytes | None]:
    data = b"".join(
        log.read(start, log.end_offset if end is None else end, 1 << 30, at_least_one=True)
    )
    return [record.value for batch in RecordBatches(data) for record in batch]


def offsets(cluster: Cluster, tp: tuple[str, int] = FOO) -> tuple[int, int, int]:
    log = cluster.logs.log(tp)
    return log.start_offset, log.high_watermark, log.end_offset


def lost(cluster: Cluster) -> list[RecordsLost]:
    return [each.change for each in cluster.log if isinstance(each.change, RecordsLost)]


@pytest.mark.requirement("DP-LOG-03", "DP-LOG-04", "DP-LOG-06")
def test_records_get_offsets_and_the_watermark_follows() -> None:
    cluster = Cluster(3, topics=["foo=1,2,3"])
    assert [append(cluster, b"a", b"b"), append(cluster, b"c")] == [0, 2]
    assert offsets(cluster) == (0, 3, 3)
    assert values(cluster.logs.log(FOO)) == [b"a", b"b", b"c"]
    assert values(cluster.logs.log(FOO), 1) == [b"a", b"b", b"c"], "whole batches"
    assert values(cluster.logs.log(FOO), 2) == [b"c"]


@pytest.mark.requirement("DP-CTL-01", "DP-CTL-02", "DP-CTL-03")
def test_a_held_replica_holds_the_watermark() -> None:
    cluster = Cluster(3, topics=["foo=1,2,3"])
    append(cluster, b"a")
    cluster.logs.hold_replication(FOO, 3)
    append(cluster, b"b")
    append(cluster, b"c")
    assert offsets(cluster) == (0, 1, 3)
    assert cluster.logs.end_of(FOO, 3) == 1
    cluster.logs.replicate(FOO, 3, 2)
    assert offsets(cluster) == (0, 2, 3)
    Operations(cluster).leave_isr(FOO, 3)
    assert offsets(cluster) == (0, 3, 3)
    assert cluster.logs.end_of(FOO, 3) == 2
    cluster.logs.release_replication(FOO, None)
    assert cluster.logs.end_of(FOO, 3) == 2, "it joins the ISR by a step of its own"
    Operations(cluster).join_isr(FOO, 3)
    assert cluster.logs.end_of(FOO, 3) == 3
    with pytest.raises(ClusterError, match="broker 1 is not a follower of foo-0"):
        cluster.logs.hold_replication(FOO, 1)


@pytest.mark.requirement("DP-LOG-11", "DP-LOG-09")
def test_a_clean_election_loses_what_was_not_replicated() -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    append(cluster, b"a")
    cluster.logs.hold_replication(FOO, 2)
    append(cluster, b"b")
    Operations(cluster).stop_broker(1)
    assert offsets(cluster) == (0, 1, 1)
    assert lost(cluster) == [RecordsLost("foo", 0, 1, 1, acknowledged=0)]
    append(cluster, b"c")
    assert values(cluster.logs.log(FOO)) == [b"a", b"c"]
    epochs = cluster.logs.log(FOO).epochs
    assert [tuple(each) for each in epochs.starts] == [(0, 0), (1, 1)]


@pytest.mark.requirement("DP-LOG-11")
def test_a_replica_that_completes_a_reassignment_has_all_records() -> None:
    """It joins the ISR, which completes the reassignment, and leads: one change."""
    cluster = Cluster(2, topics=["foo=1"])
    append(cluster, b"a", b"b")
    cluster.reassignments.alter([("foo", [(0, [2])])])
    Operations(cluster).join_isr(FOO, 2)
    assert cluster.topics.partition(*FOO).leader == 2
    assert offsets(cluster) == (0, 2, 2)
    assert lost(cluster) == []


@pytest.mark.requirement("DP-CTL-12")
def test_an_unclean_election_loses_acknowledged_records() -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    append(cluster, b"a")
    Operations(cluster).leave_isr(FOO, 2)
    append(cluster, b"b")
    assert offsets(cluster) == (0, 2, 2), "acknowledged by the only in-sync replica"
    Operations(cluster).stop_broker(1)
    cluster.elections.elect(1, [("foo", [0])])
    assert cluster.topics.partition(*FOO).leader == 2
    assert offsets(cluster) == (0, 1, 1)
    assert lost(cluster) == [RecordsLost("foo", 0, 1, 1, acknowledged=1)]


@pytest.mark.parametrize(("release", "watermark"), [((3, 6), 1), ((3, 7), 0)])
@pytest.mark.requirement("DP-LOG-07", "DP-LOG-08")
def test_the_watermark_needs_min_isr_since_3_7(release: tuple[int, int], watermark: int) -> None:
    cluster = simulated_cluster(2, topics=["foo=1,2"], release=release)
    cluster.config_changes.alter_incrementally([(2, "foo", [("min.insync.replicas", 0, "2")])])
    Operations(cluster).leave_isr(FOO, 2)
    append(cluster, b"a")
    assert offsets(cluster) == (0, watermark, 1)


@pytest.mark.requirement("DP-LOG-14")
def test_the_oldest_records_go_when_the_limit_is_reached() -> None:
    cluster = simulated_cluster(1, topics=["foo=1/1"], log_bytes=10_000)
    append(cluster, b"kept", tp=("foo", 1))
    for index in range(200):
        append(cluster, b"%06d" % index * 20)
        assert cluster.logs.bytes <= 10_000
    start, watermark, end = offsets(cluster)
    assert (watermark, end) == (200, 200)
    assert start > 100
    moves = [each.change for each in cluster.log if isinstance(each.change, LogStartMoved)]
    assert moves[-1].after == start
    assert values(cluster.logs.log(FOO), start)[0] == b"%06d" % start * 20
    assert offsets(cluster, ("foo", 1)) == (0, 1, 1)


@pytest.mark.requirement("DP-LOG-14")
def test_logs_of_one_size_lose_alike_and_keep_their_newest_batch() -> None:
    cluster = simulated_cluster(1, topics=["foo:20:1"], log_bytes=20_000)
    for number in range(400):
        tp = ("foo", number % 20)
        append(cluster, b"%06d" % number * 5, tp=tp)
        assert values(cluster.logs.log(tp), number // 20) == [b"%06d" % number * 5]
    assert cluster.logs.bytes <= 20_000
    starts = [cluster.logs.log(("foo", index)).start_offset for index in range(20)]
    assert min(starts) > 0
    assert max(starts) - min(starts) <= 1
    assert all(offsets(cluster, ("foo", index))[1:] == (20, 20) for index in range(20))


@pytest.mark.requirement("DP-LOG-14")
def test_a_log_keeps_a_batch_that_alone_exceeds_the_limit() -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], log_bytes=1_000)
    append(cluster, b"a" * 2_000)
    assert offsets(cluster) == (0, 1, 1)
    append(cluster, b"b" * 3_000)
    assert offsets(cluster) == (1, 2, 2)
    append(cluster, b"c")
    assert offsets(cluster) == (2, 3, 3)


@pytest.mark.parametrize(
    ("sizes", "excess", "size"),
    [
        ([100], 30, 70),
        ([100, 10], 30, 70),
        ([100, 100], 30, 85),
        ([100, 90, 5], 30, 80),
        ([100, 90, 5], 195, 0),
        ([100, 90, 5], 500, 0),
        ([10, 10, 10], 1, 9),
    ],
)
def test_larger_logs_are_cut_to_a_common_size(sizes: list[int], excess: int, size: int) -> None:
    found = _common_size(sizes, excess)
    assert found == size
    assert sum(max(each - found, 0) for each in sizes) >= min(excess, sum(sizes))


def test_a_deleted_topic_releases_its_bytes() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    append(cluster, b"a")
    assert cluster.logs.bytes > 0
    told: list[bool] = []
    cluster.logs.log(FOO).watch("test", lambda: told.append(True))
    cluster.topics.delete([("foo", uuid.UUID(int=0))])
    assert (cluster.logs.bytes, told) == (0, [True])
    cluster.topics.add("foo=1")
    assert append(cluster, b"b") == 0


def test_coordinators_append_records_of_their_own() -> None:
    cluster = simulated_cluster(3, topics=["__consumer_offsets=1,2,3"], now_ms=77)
    offsets_0 = ("__consumer_offsets", 0)
    outcome = cluster.appender.append_internal(1, offsets_0, [Record(key=b"k", value=b"v")])
    assert (outcome.error, outcome.base_offset, outcome.end_offset) == (0, 0, 1)
    assert cluster.appender.wait([outcome]).is_over
    data = b"".join(cluster.logs.log(offsets_0).read(0, 1, 1 << 20, at_least_one=True))
    (batch,) = RecordBatches(data)
    assert batch.records() == [Record(0, 77, b"k", b"v")]
    refused = cluster.appender.append_internal(2, offsets_0, [Record(value=b"v")])
    assert refused.error == 6
    cluster.config_changes.alter_incrementally(
        [(2, "__consumer_offsets", [("min.insync.replicas", 0, "3")])]
    )
    Operations(cluster).stop_broker(3)
    refused = cluster.appender.append_internal(1, offsets_0, [Record(value=b"v")])
    assert refused.error == 19
    refused = cluster.appender.append_internal(1, ("gone", 0), [Record(value=b"v")])
    assert refused.error == 3


@pytest.mark.requirement("DP-LOG-06", "DP-LOG-11")
def test_a_replica_that_was_kept_and_joins_loses_no_record() -> None:
    """It was added by a reassignment that another one replaced, so it is not being added."""
    cluster = simulated_cluster(4, topics=["foo=2,3"], release=(3, 0))
    Operations(cluster).leave_isr(("foo", 0), 3)
    Operations(cluster).append("foo-0", "x")
    cluster.reassignments.alter([("foo", [(0, [3])])])
    Operations(cluster).join_isr(("foo", 0), 3)
    partition, log = cluster.topics.partition("foo", 0), cluster.logs.log(("foo", 0))
    assert (partition.leader, partition.replicas) == (3, (3,))
    assert (log.high_watermark, log.end_offset) == (1, 1)


@pytest.mark.requirement("DP-LOG-06", "DP-LOG-11")
@pytest.mark.parametrize("reassignment", ["kraft", "zookeeper-2.4", "zookeeper"])
def test_a_reassignment_loses_no_record(reassignment: str) -> None:
    """KRaft removes the old leader in the very change by which the new one joins the ISR."""
    cluster = simulated_cluster(3, topics=["foo=2"], reassignment=reassignment)
    Operations(cluster).append("foo-0", "x")
    cluster.reassignments.alter([("foo", [(0, [1])])])
    Operations(cluster).join_isr(("foo", 0), 1)
    partition, log = cluster.topics.partition("foo", 0), cluster.logs.log(("foo", 0))
    assert (partition.leader, partition.replicas) == (1, (1,))
    assert (log.high_watermark, log.end_offset) == (1, 1)
    assert not [each for each in cluster.log if isinstance(each.change, RecordsLost)]


@pytest.mark.requirement("DP-LOG-13")
def test_a_log_that_begins_behind_all_its_batches_takes_new_ones() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    for _ in range(2):
        Operations(cluster).append("foo-0", "x")
        Operations(cluster).append("foo-0", "x")
        Operations(cluster).truncate("foo-0", cluster.logs.log(("foo", 0)).end_offset - 1)
        Operations(cluster).jump_log_start("foo-0", cluster.logs.log(("foo", 0)).end_offset)
    Operations(cluster).append("foo-0", "x")
    log = cluster.logs.log(("foo", 0))
    assert (log.start_offset, log.end_offset, len(log.storage)) == (2, 3, 1)
