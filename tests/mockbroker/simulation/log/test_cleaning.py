"""Retention, compaction, and what else a tester does to logs."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import DecodeError
from kproto.records import (
    Compression,
    Record,
    RecordBatch,
    RecordBatches,
    build_batch,
    end_transaction_marker,
)
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.log_events import BatchCorrupted, Compacted
from mockbroker.simulation.log.partition_log import AbortedTransaction, PartitionLog
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LogStartMoved
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.log.records import append_batch, append_times

FOO = ("foo", 0)


def new_cluster(brokers: int = 1, release: tuple[int, ...] = (4, 4), **configs: str) -> Cluster:
    replicas = ",".join(map(str, range(1, brokers + 1)))
    cluster = simulated_cluster(brokers, topics=[f"foo={replicas}"], release=release)
    changes = [(name.replace("_", "."), 0, value) for name, value in configs.items()]
    cluster.config_changes.alter_incrementally([(2, "foo", changes)])
    return cluster


def log_of(cluster: Cluster) -> PartitionLog:
    return cluster.logs.log(FOO)


def batches(log: PartitionLog) -> list[Any]:
    data = b"".join(log.read(log.start_offset, log.end_offset, 1 << 30, at_least_one=True))
    return list(RecordBatches(data))


def records(log: PartitionLog) -> list[Record]:
    return [each for batch in batches(log) for each in batch if each.offset >= log.start_offset]


def actions(cluster: Cluster, kind: type) -> list[Any]:
    return [each.change for each in cluster.log if isinstance(each.change, kind)]


# ---- retention -----------------------------------------------------------------------------------


def segmented(**configs: str) -> Cluster:
    """Segments of two records each at the times 100, 200 and 300; now it is 300."""
    cluster = new_cluster(**configs)
    for number in range(3):
        cluster.turns.advance(100)
        if number:
            Operations(cluster).roll_segment(FOO)
        append_times(cluster, cluster.timers.now_ms, cluster.timers.now_ms - 50)
        assert len(log_of(cluster).segments) == number + 1
    return cluster


@pytest.mark.requirement("DP-RETAIN-01", "DP-LOG-13")
@pytest.mark.parametrize(
    ("passed_ms", "start"), [(99, 0), (100, 0), (101, 2), (201, 4), (300, 4), (301, 6)]
)
def test_old_segments_go(passed_ms: int, start: int) -> None:
    cluster = segmented(retention_ms="300")
    cluster.turns.advance(passed_ms)
    assert log_of(cluster).start_offset == 0, "nothing happens by itself"
    Operations(cluster).apply_retention(FOO)
    log = log_of(cluster)
    assert (log.start_offset, log.end_offset) == (start, 6)
    assert [each.after for each in actions(cluster, LogStartMoved)] == ([start] if start else [])
    assert log.segments[0].base_offset == start
    assert len(records(log)) == 6 - start


@pytest.mark.requirement("DP-RETAIN-01")
@pytest.mark.parametrize(("spared", "start"), [(-1, 0), (0, 2), (70, 2), (-200, 0)])
def test_segments_beyond_the_size_go(spared: int, start: int) -> None:
    cluster = segmented()
    size = log_of(cluster).storage.size
    limit = size * 2 // 3 - spared
    cluster.config_changes.alter_incrementally([(2, "foo", [("retention.bytes", 0, str(limit))])])
    Operations(cluster).apply_retention()
    assert log_of(cluster).start_offset == start
    assert cluster.logs.bytes == log_of(cluster).storage.size


@pytest.mark.requirement("DP-RETAIN-01")
def test_retention_spares_what_is_not_replicated() -> None:
    cluster = new_cluster(2, retention_ms="1")
    append_times(cluster, 0)
    Operations(cluster).roll_segment(FOO)
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 0)
    cluster.turns.advance(100)
    Operations(cluster).apply_retention()
    assert log_of(cluster).start_offset == 1


@pytest.mark.requirement("DP-RETAIN-01")
@pytest.mark.parametrize(("policy", "start"), [("compact", 0), ("compact,delete", 6)])
def test_a_topic_that_is_only_compacted_keeps_its_segments(policy: str, start: int) -> None:
    cluster = segmented(retention_ms="1", cleanup_policy=policy)
    cluster.turns.advance(1_000)
    Operations(cluster).apply_retention(FOO)
    assert log_of(cluster).start_offset == start


@pytest.mark.requirement("DP-RETAIN-01")
def test_records_without_a_timestamp_are_as_old_as_their_segment() -> None:
    cluster = new_cluster(retention_ms="100")
    append_times(cluster, -1)
    cluster.turns.advance(50)
    append_times(cluster, -1)
    Operations(cluster).roll_segment(FOO)
    append_times(cluster, -1)
    for passed_ms, start in ((100, 0), (1, 3)):
        cluster.turns.advance(passed_ms)
        Operations(cluster).apply_retention(FOO)
        assert log_of(cluster).start_offset == start


# ---- compaction ----------------------------------------------------------------------------------


def append(cluster: Cluster, *pairs: tuple[bytes | None, bytes | None], **settings: Any) -> int:
    """Append a batch of (key, value) records, whose time is the cluster's."""
    data = build_batch(
        [Record(timestamp=cluster.timers.now_ms, key=key, value=value) for key, value in pairs],
        **settings,
    )
    return append_batch(cluster, data)


@pytest.mark.requirement("DP-RETAIN-02")
def test_the_newest_record_of_each_key_stays_at_its_offset() -> None:
    cluster = new_cluster(cleanup_policy="compact")
    append(cluster, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    append(cluster, (b"a", b"4"), (b"c", b"5"), compression=Compression.GZIP)
    Operations(cluster).roll_segment(FOO)
    append(cluster, (b"c", b"6"), (b"c", b"7"))
    before = cluster.logs.bytes
    Operations(cluster).compact(FOO)
    log = log_of(cluster)
    found = [(each.offset, each.key, each.value) for each in records(log)]
    assert found == [
        (1, b"b", b"2"),
        (3, b"a", b"4"),
        (4, b"c", b"5"),
        (5, b"c", b"6"),
        (6, b"c", b"7"),
    ], "the newest segment is not compacted"
    assert [(each.base_offset, each.last_offset) for each in batches(log)] == [
        (0, 2),
        (3, 4),
        (5, 6),
    ]
    (event,) = [each for each in cluster.logs.events if isinstance(each, Compacted)]
    assert (event.end_offset, event.records) == (5, 2)
    assert cluster.logs.bytes == log.storage.size == before - event.size
    assert append(cluster, (b"d", b"8")) == 7


@pytest.mark.requirement("DP-RETAIN-02")
def test_tombstones_go_when_their_time_has_passed() -> None:
    cluster = new_cluster(cleanup_policy="compact", delete_retention_ms="1000")
    append(cluster, (b"a", b"1"), (b"b", b"2"))
    append(cluster, (b"a", None), (b"c", b"3"))
    append(cluster, (b"d", b"4"))
    Operations(cluster).roll_segment(FOO)
    Operations(cluster).compact()
    kept = [(1, b"2"), (2, None), (3, b"3"), (4, b"4")]
    for _ in range(2):
        assert [(each.offset, each.value) for each in records(log_of(cluster))] == kept
        assert batches(log_of(cluster))[1].delete_horizon == 1_000
        cluster.turns.advance(999)
        Operations(cluster).compact()
    Operations(cluster).compact()
    assert [each.offset for each in records(log_of(cluster))] == [1, 3, 4]


def roll_at(cluster: Cluster, now_ms: int, *pairs: tuple[bytes, bytes | None]) -> None:
    """Append a batch at this time, in a segment of its own."""
    cluster.turns.advance(now_ms - cluster.timers.now_ms)
    append(cluster, *pairs)
    Operations(cluster).roll_segment(FOO)


@pytest.mark.requirement("DP-RETAIN-03")
@pytest.mark.parametrize(
    ("release", "horizon", "offsets"),
    [
        ((2, 3), None, [[0, 1, 2], [0, 1, 2], [0, 1, 2, 3], [0, 1, 3, 4]]),
        ((3, 0, 2), None, [[0, 1, 2], [0, 1, 2], [0, 1, 2, 3], [0, 1, 3, 4]]),
        ((3, 1), 1_000, [[0, 1, 2], [0, 1], [0, 1, 3], [0, 1, 3, 4]]),
    ],
)
def test_before_3_1_tombstones_go_with_the_age_of_their_segment(release, horizon, offsets):
    cluster = new_cluster(
        release=release, cleanup_policy="compact", delete_retention_ms="1000", segment_bytes="200"
    )
    value = b"x" * 150
    append(cluster, (b"a", value), (b"b", b"2"))
    Operations(cluster).roll_segment(FOO)
    roll_at(cluster, 0, (b"gone", None))
    found = []
    for now_ms, key in ((0, None), (1_500, None), (1_500, b"c"), (9_000, b"d")):
        if key is None:
            cluster.turns.advance(now_ms - cluster.timers.now_ms)
        else:
            roll_at(cluster, now_ms, (key, value))
        Operations(cluster).compact()
        found.append([each.offset for each in records(log_of(cluster))])
        if not now_ms:
            assert batches(log_of(cluster))[1].delete_horizon == horizon
    assert found == offsets


@pytest.mark.requirement("DP-RETAIN-03")
def test_segments_that_are_truncated_were_not_compacted() -> None:
    cluster = new_cluster(release=(3, 0), cleanup_policy="compact", delete_retention_ms="0")
    roll_at(cluster, 0, (b"a", b"1"))
    roll_at(cluster, 0, (b"b", None))
    Operations(cluster).compact()
    assert log_of(cluster).compacted_end == 2
    log_of(cluster).truncate(1)
    assert log_of(cluster).compacted_end == 1


@pytest.mark.requirement("DP-RETAIN-02")
def test_a_producers_last_batch_stays_as_a_header() -> None:
    cluster = new_cluster(cleanup_policy="compact")
    append(cluster, (b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)
    append(cluster, (b"a", b"2"), producer_id=7, producer_epoch=0, base_sequence=1)
    append(cluster, (b"a", b"3"), producer_id=8, producer_epoch=2, base_sequence=5)
    append(cluster, (b"a", b"4"), (b"b", b"5"))
    append(cluster, (b"b", b"6"))
    Operations(cluster).roll_segment(FOO)
    Operations(cluster).compact(FOO)
    found = batches(log_of(cluster))
    rows = [(each.base_offset, each.producer_id, each.base_sequence, len(each)) for each in found]
    assert rows == [(1, 7, 1, 0), (2, 8, 5, 0), (3, -1, -1, 1), (5, -1, -1, 1)]
    assert all(isinstance(each, RecordBatch) and each.crc_is_right() for each in found)


@pytest.mark.requirement("DP-RETAIN-02")
@pytest.mark.parametrize(("release", "ranges"), [((3, 8), [(1, 1)]), ((3, 9), [(0, 0), (1, 1)])])
def test_the_end_of_what_was_compacted_stays_as_a_header_since_3_9(release, ranges):
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    cluster.config_changes.alter_incrementally([(2, "foo", [("cleanup.policy", 0, "compact")])])
    append(cluster, (None, b"no key"))
    Operations(cluster).roll_segment(FOO)
    append(cluster, (b"a", b"1"))
    Operations(cluster).compact(FOO)
    assert [(each.base_offset, each.last_offset) for each in batches(log_of(cluster))] == ranges


@pytest.mark.requirement("DP-RETAIN-02", "DP-RETAIN-03")
@pytest.mark.parametrize(
    ("release", "horizon", "left"), [((3, 0), None, [0, 3, 4]), ((3, 1), 10, [0, 4])]
)
def test_aborted_records_go_first_and_their_marker_later(release, horizon, left):
    cluster = new_cluster(release=release, cleanup_policy="compact", delete_retention_ms="10")
    transactional = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    append(cluster, (b"a", b"1"))
    append(cluster, (b"a", b"2"), (b"b", b"3"), base_sequence=0, **transactional)
    marker = end_transaction_marker(
        commit=False, coordinator_epoch=0, producer_id=7, producer_epoch=0, timestamp=0
    )
    append_batch(cluster, marker)
    log = log_of(cluster)
    log.aborted.append(AbortedTransaction(7, 1, 3, 1))
    cluster.logs.log(FOO).producers.forget(None)
    append(cluster, (b"c", b"4"))
    Operations(cluster).roll_segment(FOO)

    Operations(cluster).compact()
    assert [each.offset for each in records(log)] == [0, 3, 4]
    assert log.aborted == [AbortedTransaction(7, 1, 3, 1)]
    Operations(cluster).compact()
    assert [each.offset for each in records(log)] == [0, 3, 4]
    assert batches(log)[-2].delete_horizon == horizon
    assert log.aborted == []
    cluster.turns.advance(10)
    Operations(cluster).compact()
    assert [each.offset for each in records(log)] == left


@pytest.mark.requirement("DP-RETAIN-02")
def test_an_open_transaction_is_not_compacted() -> None:
    cluster = new_cluster(cleanup_policy="compact")
    append(cluster, (b"a", b"1"))
    Operations(cluster).roll_segment(FOO)
    append(
        cluster,
        (b"a", b"2"),
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append(cluster, (b"a", b"3"))
    Operations(cluster).roll_segment(FOO)
    Operations(cluster).compact()
    assert [each.offset for each in records(log_of(cluster))] == [0, 1, 2]


@pytest.mark.requirement("DP-RETAIN-02")
def test_recent_segments_wait_for_the_compaction_lag() -> None:
    cluster = new_cluster(cleanup_policy="compact", min_compaction_lag_ms="100")
    for value in (b"1", b"2"):
        append(cluster, (b"a", value))
        Operations(cluster).roll_segment(FOO)
        cluster.turns.advance(60)
    Operations(cluster).compact()
    assert [each.offset for each in records(log_of(cluster))] == [0, 1]
    cluster.turns.advance(60)
    Operations(cluster).compact()
    assert [each.offset for each in records(log_of(cluster))] == [1]


@pytest.mark.requirement("DP-RETAIN-02")
def test_compacting_other_topics_is_an_error() -> None:
    cluster = new_cluster()
    Operations(cluster).compact()
    with pytest.raises(ClusterError, match="foo-0 cannot be compacted: the cleanup"):
        Operations(cluster).compact(FOO)
    cluster = new_cluster(cleanup_policy="compact")
    append(cluster, (b"a", b"1"))
    Operations(cluster).corrupt_batch(FOO, 0, "count")
    Operations(cluster).roll_segment(FOO)
    with pytest.raises(ClusterError, match="foo-0 cannot be compacted"):
        Operations(cluster).compact(FOO)


@pytest.mark.requirement("DP-RETAIN-02", "DP-LOG-13")
def test_small_segments_become_one() -> None:
    cluster = new_cluster(cleanup_policy="compact", segment_bytes="1048576")
    for value in (b"1", b"2", b"3"):
        append(cluster, (value, value))
        Operations(cluster).roll_segment(FOO)
    Operations(cluster).compact()
    assert [each.base_offset for each in log_of(cluster).segments] == [0, 3]


STEPS = st.lists(
    st.one_of(
        st.lists(
            st.tuples(
                st.sampled_from([b"a", b"b", b"c", None]), st.sampled_from([None, b"1", b"2"])
            ),
            min_size=1,
            max_size=4,
        ),
        st.sampled_from(["roll", "compact", "advance"]),
    ),
    max_size=25,
)


@pytest.mark.requirement("DP-RETAIN-02")
@given(STEPS)
def test_compaction_equals_a_naive_model(steps: list[Any]) -> None:
    """The model is a list of records and of the times at which tombstones were first seen."""
    cluster = new_cluster(cleanup_policy="compact", delete_retention_ms="1000")
    log = log_of(cluster)
    model: list[tuple[int, bytes | None, bytes | None]] = []
    horizons: dict[int, int] = {}
    for step in steps:
        if step == "roll":
            log.roll(cluster.timers.now_ms)
        elif step == "advance":
            cluster.turns.advance(600)
        elif step == "compact":
            end = log.segments[-1].base_offset
            newest = {key: offset for offset, key, _ in model if offset < end and key is not None}
            batch_of = {
                offset: each.base_offset
                for each in batches(log)
                for offset in range(each.base_offset, each.last_offset + 1)
            }
            passed = {base for base in horizons if horizons[base] <= cluster.timers.now_ms}
            model = [
                (offset, key, value)
                for offset, key, value in model
                if offset >= end
                or (
                    key is not None
                    and newest[key] == offset
                    and (value is not None or batch_of[offset] not in passed)
                )
            ]
            for offset, _, value in model:
                if offset < end and value is None:
                    horizons.setdefault(batch_of[offset], cluster.timers.now_ms + 1000)
            Operations(cluster).compact(FOO)
        else:
            base = append(cluster, *step)
            model += [(base + index, *pair) for index, pair in enumerate(step)]
        assert [(each.offset, each.key, each.value) for each in records(log)] == model
        assert cluster.logs.bytes == log.storage.size


# ---- other steps ---------------------------------------------------------------------------------


@pytest.mark.requirement("DP-LOG-13")
def test_segments_begin_by_size_and_time() -> None:
    cluster = new_cluster(segment_ms="100")
    append_times(cluster, 1)
    cluster.turns.advance(101)
    append_times(cluster, 102)
    cluster.config_changes.alter_incrementally([(2, "foo", [("segment.bytes", 0, "1048576")])])
    append_times(cluster, *[102] * 100_000)
    append_times(cluster, *[102] * 100_000)
    assert [each.base_offset for each in log_of(cluster).segments] == [0, 1, 2, 100_002]


@pytest.mark.requirement("DP-LOG-13")
@pytest.mark.parametrize(
    ("first", "later", "bases"),
    [
        ((1, 50), 150, [0]),
        ((1, 50), 151, [0, 2]),
        ((50, 1), 151, [0, 2]),
        ((1, 50), -1, [0]),
        ((-1,), -1, [0, 1]),
        ((-1,), 9000, [0, 1]),
    ],
)
def test_a_segment_ends_by_the_timestamps_of_its_first_batch(first, later, bases):
    """Without timestamps, by the clock."""
    cluster = new_cluster(segment_ms="100")
    append_times(cluster, *first)
    cluster.turns.advance(101)
    append_times(cluster, later)
    assert [each.base_offset for each in log_of(cluster).segments] == bases


@pytest.mark.requirement("DP-LOG-13")
def test_a_log_that_was_cut_counts_from_the_batch_that_is_left() -> None:
    cluster = new_cluster(segment_ms="100")
    for each in (1, 102, 150):
        append_times(cluster, each)
    log = log_of(cluster)
    log.truncate(1)
    append_times(cluster, 90)
    append_times(cluster, 150)
    assert [each.base_offset for each in log.segments] == [0, 1]


@pytest.mark.requirement("DP-CTL-10")
@pytest.mark.parametrize(
    ("how", "crc_is_right", "decodes"),
    [("bit", False, None), ("crc", False, True), ("count", True, False), ("codec", True, False)],
)
def test_a_stored_batch_is_damaged(how: str, crc_is_right: bool, decodes: bool | None) -> None:
    cluster = new_cluster()
    append_times(cluster, 1, compression=Compression.GZIP)
    append_times(cluster, 1, 1, compression=Compression.GZIP)
    Operations(cluster).corrupt_batch(FOO, 2, how)
    (batch,) = RecordBatches(log_of(cluster).storage.batch(1).data, check_crc=False)
    assert isinstance(batch, RecordBatch)
    assert batch.crc_is_right() is crc_is_right
    if decodes is False:
        with pytest.raises(DecodeError):
            batch.records()
    elif decodes:
        assert len(batch.records()) == 2
    (event,) = [each for each in cluster.logs.events if isinstance(each, BatchCorrupted)]
    assert event == BatchCorrupted(0, FOO, 1, how)
    (first,) = RecordBatches(log_of(cluster).storage.batch(0).data)
    assert len(first.records()) == 1, "other batches stay as they are"


@pytest.mark.requirement("DP-CTL-10", "DP-CTL-15")
@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            lambda cluster: Operations(cluster).corrupt_batch(FOO, 0, "bit"),
            "foo-0 has no record at offset 0",
        ),
        (
            lambda cluster: Operations(cluster).corrupt_batch(FOO, 3, "bit"),
            "foo-0 has no record at offset 3",
        ),
        (
            lambda cluster: Operations(cluster).corrupt_batch(FOO, 1, "x"),
            "one of bit, crc, count, codec",
        ),
        (lambda cluster: Operations(cluster).corrupt_batch(FOO, 1, "codec"), "is not compressed"),
        (lambda cluster: Operations(cluster).compact(("bar", 0)), "bar"),
        (lambda cluster: Operations(cluster).apply_retention(("bar", 0)), "bar"),
    ],
)
def test_steps_that_a_log_does_not_allow(step: Callable[[Cluster], object], text: str) -> None:
    cluster = new_cluster(2)
    append_times(cluster, 1, 1)
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 1)
    Operations(cluster).jump_log_start(FOO, 1)
    with pytest.raises(ClusterError, match=text):
        step(cluster)


def test_log_directories_have_the_sizes_of_replicas() -> None:
    cluster = new_cluster(2)
    sizes = []
    append_times(cluster, 1, 1)
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 1)
    for broker_id in (1, 2):
        (directory,) = cluster.log_dirs.describe(broker_id, None)
        ((name, (replica,)),) = directory.topics
        assert (name, replica.offset_lag) == ("foo", 0)
        sizes.append(replica.partition_size)
    storage = log_of(cluster).storage
    assert sizes == [storage.size, storage.header(0).size]
