"""ListOffsets: what each timestamp stands for, at which broker and in which release."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import Compression, Record, RecordBatches, TimestampType, build_batch
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.timestamps import first_at_or_after, first_of_newest
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.log.records import append_batch, append_times
from tests.mockbroker.simulation.security.enforced import ENFORCED
from tests.support.requests import request_of

FOO = ("foo", 0)
NOTHING = (0, -1, -1, -1)


def request(*timestamps: int, **fields: Any) -> Any:
    """A request for foo-0, foo-1, ... with one timestamp each."""
    epoch = fields.pop("current_leader_epoch", -1)
    most = fields.pop("max_num_offsets", 1)
    partitions = [
        {
            "partition_index": index,
            "timestamp": timestamp,
            "current_leader_epoch": epoch,
            "max_num_offsets": most,
        }
        for index, timestamp in enumerate(timestamps)
    ]
    fields.setdefault("replica_id", -1)
    return request_of("ListOffsets", name="foo", partitions=partitions, **fields)


def ask(
    cluster: Cluster,
    timestamp: int,
    version: int = 11,
    *,
    profile_name: str = "kafka-4.4",
    broker_id: int = 1,
    **fields: Any,
) -> tuple[int, int, int, int]:
    """Return error code, timestamp, offset and leader epoch for foo-0."""
    broker = DirectBroker(cluster, profile_name=profile_name)
    response = broker.ask(request(timestamp, **fields), version, broker_id=broker_id)
    (found,) = response.topics[0].partitions
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


def filled() -> Cluster:
    """Offsets 0 to 5 with times 10, 30, 20, 40, 40, 25; the log begins at 1, the end of what
    replicas have is 5."""
    cluster = Cluster(2, topics=["foo=1,2"])
    append_times(cluster, 10, 30, 20)
    append_times(cluster, 40, 40)
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 25)
    cluster.logs.advance_start("test", FOO, 1)
    return cluster


@pytest.mark.requirement(
    "DP-LISTOFF-02",
    "DP-LISTOFF-03",
    "DP-LISTOFF-04",
    "DP-LISTOFF-05",
    "DP-LISTOFF-06",
    "DP-LISTOFF-07",
    "DP-LISTOFF-08",
)
@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (-1, (0, -1, 5, 0)),
        (-2, (0, -1, 1, 0)),
        (-3, (0, 40, 3, 0)),
        (-4, (0, -1, 1, 0)),
        (-5, NOTHING),
        (-6, NOTHING),
        (0, (0, 30, 1, 0)),
        (30, (0, 30, 1, 0)),
        (31, (0, 40, 3, 0)),
        (41, NOTHING),
    ],
)
def test_what_timestamps_stand_for(timestamp: int, answer: tuple[int, ...]) -> None:
    assert ask(filled(), timestamp) == answer


@pytest.mark.requirement("DP-LISTOFF-04", "DP-LISTOFF-08", "DP-LISTOFF-03")
def test_an_empty_log_has_no_records() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    assert [ask(cluster, each) for each in (0, -3)] == [NOTHING] * 2
    assert [ask(cluster, each) for each in (-1, -2)] == [(0, -1, 0, 0)] * 2


@pytest.mark.requirement("DP-LISTOFF-08", "DP-LISTOFF-04")
def test_what_is_not_replicated_is_not_found() -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 10, 20)
    assert [ask(cluster, each) for each in (5, -3)] == [NOTHING] * 2
    assert ask(cluster, 5, replica_id=-2) == (0, 10, 0, 0)
    assert ask(cluster, -3, replica_id=-2) == (0, 20, 1, 0)
    cluster.logs.replicate(FOO, 2, 1)
    assert ask(cluster, 5) == (0, 10, 0, 0)
    assert ask(cluster, -3) == NOTHING


@pytest.mark.requirement("DP-LISTOFF-03")
@pytest.mark.parametrize(
    ("replica_id", "isolation_level", "offset"), [(-1, 0, 2), (-1, 1, 1), (-2, 0, 3), (2, 1, 3)]
)
def test_the_end_depends_on_who_asks(replica_id, isolation_level, offset, monkeypatch):
    cluster = Cluster(2, topics=["foo=1,2"])
    append_times(cluster, 1, 2)
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 3)
    kind = type(cluster.logs.log(FOO))
    monkeypatch.setattr(kind, "last_stable_offset", property(lambda log: 1))
    found = ask(cluster, -1, replica_id=replica_id, isolation_level=isolation_level)
    assert found == (0, -1, offset, 0)


def test_an_unknown_isolation_level_is_an_error_of_the_broker() -> None:
    assert ask(filled(), -1, isolation_level=2) == (-1, -1, -1, -1)


@pytest.mark.requirement("DP-LISTOFF-09", "DP-LISTOFF-13")
@pytest.mark.parametrize(
    ("timestamp", "version", "code"),
    [
        (-7, 11, 35),
        (-6, 11, 0),
        (-6, 10, 35),
        (-5, 9, 0),
        (-5, 8, 35),
        (-4, 8, 0),
        (-4, 7, 35),
        (-3, 7, 0),
        (-3, 6, 35),
        (-2, 1, 0),
        (-1, 3, 0),
    ],
)
def test_timestamps_belong_to_versions(timestamp: int, version: int, code: int) -> None:
    found = ask(filled(), timestamp, version)
    assert found[0] == code
    if code:
        assert found == (code, -1, -1, -1)


@pytest.mark.requirement("DP-LISTOFF-04", "DP-LISTOFF-05", "DP-LISTOFF-09")
@pytest.mark.parametrize(
    ("profile_name", "release", "timestamp", "version", "offset"),
    [
        ("kafka-2.8", (2, 8), -3, 6, 1),
        ("kafka-3.0", (3, 0), -3, 7, 3),
        ("kafka-3.0", (3, 0), -3, 6, 3),
        ("kafka-3.4", (3, 4), -4, 7, 1),
        ("kafka-3.5", (3, 5), -4, 8, 1),
        ("kafka-3.8", (3, 8), -4, 7, 1),
        ("kafka-3.8", (3, 8), -9, 8, 1),
    ],
)
def test_releases_that_do_not_check_take_a_negative_timestamp_for_a_time(
    profile_name: str, release: tuple[int, int], timestamp: int, version: int, offset: int
) -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    append_times(cluster, 10, 30, 20)
    append_times(cluster, 40, 40)
    cluster.logs.advance_start("test", FOO, 1)
    found = ask(cluster, timestamp, version, profile_name=profile_name)
    assert (found[0], found[2]) == (0, offset)


@pytest.mark.requirement("DP-LISTOFF-04", "DP-LISTOFF-11")
@pytest.mark.parametrize(
    ("release", "found"),
    [
        ((3, 7), [(0, -1, -1, 0), (0, 9, 1, 0), (0, 10, 4, 0), (0, 10, 4, 1), (78, -1, -1, -1)]),
        ((3, 8), [NOTHING, (0, 9, 1, 0), (0, 10, 3, 0), (0, 10, 3, 0), (78, -1, -1, -1)]),
    ],
)
def test_the_largest_timestamp_until_3_7_is_that_of_a_batch(release, found):
    cluster = simulated_cluster(3, topics=["foo=1,2,3"], release=release)

    def newest(broker_id: int) -> tuple[int, ...]:
        profile_name = f"kafka-{release[0]}.{release[1]}"
        return ask(cluster, -3, 7, profile_name=profile_name, broker_id=broker_id)

    seen = [newest(1)]
    append_times(cluster, 1, 9)
    seen.append(newest(1))
    append_times(cluster, 1, 10, 10, compression=Compression.GZIP)
    seen.append(newest(1))
    Operations(cluster).stop_broker(1)
    seen.append(newest(2))
    cluster.logs.hold_replication(FOO, 3)
    append_times(cluster, 11)
    Operations(cluster).start_broker(1)
    Operations(cluster).join_isr(FOO, 1)
    cluster.elections.elect(0, [("foo", [0])])
    seen.append(newest(1))
    assert seen == found


@pytest.mark.requirement("DP-LISTOFF-10", "DP-LISTOFF-13", "DP-LISTOFF-14")
@pytest.mark.parametrize(
    ("release", "answers"), [((3, 9), [[0, 42], [42], []]), ((4, 0), [[0, 42]])]
)
def test_a_partition_must_be_named_once(release: tuple[int, int], answers: list[list[int]]) -> None:
    cluster = simulated_cluster(1, topics=["foo=1/1", "bar=1"], release=release)
    twice = request(-1, -1)
    more = {"name": "foo", "partitions": twice.topics[0].partitions[1:]}
    topics = [*twice.topics, more, {"name": "bar", "partitions": []}]
    response = DirectBroker(cluster).ask("ListOffsets", 9, replica_id=-1, topics=topics)
    codes = [[each.error_code for each in topic.partitions] for topic in response.topics]
    assert codes == answers


@pytest.mark.requirement("DP-LISTOFF-09")
@pytest.mark.parametrize(("release", "code"), [((3, 8), 0), ((3, 9), 35)])
def test_version_0_has_two_special_timestamps(release: tuple[int, int], code: int) -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    broker = DirectBroker(cluster, profile_name="kafka-3.9")
    codes = [
        broker.ask(request(each, max_num_offsets=1), 0).topics[0].partitions[0].error_code
        for each in (-1, -2, -3)
    ]
    assert codes == [0, 0, code]


@pytest.mark.requirement("DP-LISTOFF-09")
@pytest.mark.parametrize(("release", "offsets"), [((3, 4), []), ((3, 5), [0])])
def test_version_0_knows_the_local_start(release: tuple[int, int], offsets: list[int]) -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    broker = DirectBroker(cluster, profile_name=f"kafka-3.{release[1]}")
    (topic,) = broker.ask(request(-4, max_num_offsets=1), 0).topics
    assert topic.partitions[0].old_style_offsets == offsets


@pytest.mark.requirement("DP-LISTOFF-12", "DP-LISTOFF-13")
@pytest.mark.parametrize(
    ("broker_id", "fields", "code"),
    [
        (1, {"current_leader_epoch": 1}, 0),
        (1, {"current_leader_epoch": 0}, 74),
        (1, {"current_leader_epoch": 2}, 75),
        (2, {}, 6),
        (2, {"current_leader_epoch": 0}, 74),
        (2, {"replica_id": -2}, 0),
        (3, {}, 6),
        (3, {"replica_id": -2}, 6),
    ],
)
def test_who_may_answer(broker_id: int, fields: dict[str, int], code: int) -> None:
    cluster = Cluster(3, topics=["foo=2,1"])
    Operations(cluster).stop_broker(2)
    Operations(cluster).start_broker(2)
    found = ask(cluster, -1, broker_id=broker_id, **fields)
    assert found[0] == code
    assert code == 0 or found[1:] == (-1, -1, -1)


@pytest.mark.requirement("DP-LISTOFF-12")
def test_any_replica_answers_a_debugger_up_to_the_end_of_its_own_log() -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    append_times(cluster, 10)
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 20)
    assert ask(cluster, -1, broker_id=2, replica_id=-2) == (0, -1, 1, 0)
    assert ask(cluster, -3, broker_id=2, replica_id=-2) == (0, 10, 0, 0)
    assert ask(cluster, 15, broker_id=2, replica_id=-2) == NOTHING


@pytest.mark.requirement("DP-LISTOFF-13")
def test_an_unknown_partition() -> None:
    cluster = Cluster(1, topics=["bar=1"])
    assert ask(cluster, -1) == (3, -1, -1, -1)


def test_a_topic_needs_permission_to_describe() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    broker = DirectBroker(cluster, security=ENFORCED, principal="User:a")
    (found,) = broker.ask(request(-1), 11).topics[0].partitions
    assert (found.error_code, found.offset) == (29, -1)
    describe = 8
    cluster.acls.create([AclBinding(2, "foo", 3, "User:a", "*", describe, 3)])
    (found,) = broker.ask(request(-1), 11).topics[0].partitions
    assert (found.error_code, found.offset) == (0, 0)


@pytest.mark.requirement("DP-LISTOFF-11")
@pytest.mark.parametrize(
    ("timestamp", "version", "answer"),
    [
        (-1, 5, (78, -1, -1, -1)),
        (-1, 4, (5, -1, -1, -1)),
        (-2, 5, (0, -1, 0, 0)),
        (10, 5, (0, 10, 0, 0)),
        (20, 5, (78, -1, -1, -1)),
        (20, 4, (5, -1, -1, -1)),
        (99, 5, (78, -1, -1, -1)),
        (-3, 7, (78, -1, -1, -1)),
    ],
)
def test_a_new_leader_behind_its_own_epoch(timestamp, version, answer):
    cluster = Cluster(3, topics=["foo=1,2,3"])
    append_times(cluster, 10)
    cluster.logs.hold_replication(FOO, 3)
    append_times(cluster, 20)
    Operations(cluster).stop_broker(1)  # broker 2 has the second record, broker 3 still lacks it
    assert ask(cluster, timestamp, version, broker_id=2) == answer
    cluster.logs.release_replication(FOO, 3)
    assert ask(cluster, -1, version, broker_id=2) == (0, -1, 2, 1)


@pytest.mark.requirement("DP-LISTOFF-11")
@pytest.mark.parametrize(("release", "epoch"), [((3, 7), 1), ((3, 8), 0)])
def test_a_new_leader_behind_its_own_epoch_knows_the_newest_of_what_is_replicated(release, epoch):
    cluster = simulated_cluster(3, topics=["foo=1,2,3"], release=release)
    append_times(cluster, 30)
    cluster.logs.hold_replication(FOO, 3)
    append_times(cluster, 20)
    Operations(cluster).stop_broker(1)
    profile_name = f"kafka-{release[0]}.{release[1]}"
    assert ask(cluster, -3, 7, profile_name=profile_name, broker_id=2) == (0, 30, 0, epoch)


@pytest.mark.requirement("DP-LISTOFF-11")
def test_older_releases_answer_behind_their_own_epoch() -> None:
    cluster = simulated_cluster(3, topics=["foo=1,2,3"], release=(2, 1))
    append_times(cluster, 10)
    cluster.logs.hold_replication(FOO, 3)
    append_times(cluster, 20)
    Operations(cluster).stop_broker(1)
    assert ask(cluster, -1, 4, broker_id=2, profile_name="kafka-2.1") == (0, -1, 1, 1)


def segmented() -> Cluster:
    """Segments that begin at 0, 2 and 4, last modified at 100, 200 and 300; now it is 400."""
    cluster = simulated_cluster(2, topics=["foo=1,2"], now_ms=100, release=(2, 4))
    for now_ms in (200, 300, 400):
        append_times(cluster, 1, 1)
        cluster.turns.advance(100)
        if now_ms < 400:
            cluster.logs.log(FOO).roll(now_ms)
    return cluster


@pytest.mark.requirement("DP-LISTOFF-01", "DP-LOG-13")
@pytest.mark.parametrize(
    ("timestamp", "most", "offsets"),
    [
        (-1, 1, [6]),
        (-1, 9, [6, 4, 2, 0]),
        (-1, 0, []),
        (-2, 9, [0]),
        (99, 9, []),
        (100, 9, [0]),
        (299, 9, [2, 0]),
        (300, 2, [4, 2]),
        (400, 9, [6, 4, 2, 0]),
        (-3, 9, []),
    ],
)
def test_version_0_lists_segments(timestamp: int, most: int, offsets: list[int]) -> None:
    broker = DirectBroker(segmented(), profile_name="kafka-2.4")
    (found,) = broker.ask(request(timestamp, max_num_offsets=most), 0).topics[0].partitions
    assert (found.error_code, found.old_style_offsets) == (0, offsets)


@pytest.mark.requirement("DP-LISTOFF-01")
def test_version_0_shows_consumers_the_high_watermark() -> None:
    cluster = segmented()
    cluster.logs.hold_replication(FOO, 2)
    append_times(cluster, 1, 1)
    cluster.logs.log(FOO).roll(400)
    append_times(cluster, 1)
    broker = DirectBroker(cluster, profile_name="kafka-2.4")
    cases = {-1: [6, 4, 2, 0], -2: [9, 8, 4, 2, 0]}
    for replica_id, offsets in cases.items():
        body = request(-1, max_num_offsets=9, replica_id=replica_id)
        assert broker.ask(body, 0).topics[0].partitions[0].old_style_offsets == offsets
    found = broker.ask(request(-1), 0, broker_id=2).topics[0].partitions[0]
    assert (found.error_code, found.old_style_offsets) == (6, [])
    found = broker.ask(request(-1, max_num_offsets=-1), 0).topics[0].partitions[0]
    assert (found.error_code, found.old_style_offsets) == (-1, [])


@pytest.mark.requirement("DP-LISTOFF-01")
def test_version_0_of_an_empty_log() -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=(2, 4))
    broker = DirectBroker(cluster, profile_name="kafka-2.4")
    assert broker.ask(request(-1), 0).topics[0].partitions[0].old_style_offsets == [0]


def test_a_batch_that_cannot_be_decoded() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    append_times(cluster, 10, 20, compression=Compression.GZIP)
    append_times(cluster, 30)
    cluster.logs.log(FOO).storage.write(0, 61, bytes(8))
    assert ask(cluster, 15) == (2, -1, -1, -1)
    assert ask(cluster, 25) == (0, 30, 2, 0), "other batches are not decoded"


# ---- the same as a scan of all records -----------------------------------------------------------

BATCHES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 30), min_size=1, max_size=5),
        st.sampled_from([Compression.NONE, Compression.GZIP]),
        st.one_of(st.none(), st.integers(0, 30)),
        st.integers(0, 3),
    ),
    max_size=12,
)


def random_log(batches: Any) -> Cluster:
    """Batches of (timestamps, codec, log append time or None, offsets that compaction removed)."""
    cluster = Cluster(1, topics=["foo=1"])
    for timestamps, codec, append_time, gap in batches:
        kind = TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
        records = [
            Record(offset=gap * (index + 1), timestamp=timestamp, value=b"v" * 700)
            for index, timestamp in enumerate(timestamps)
        ]
        if not gap:
            records = [Record(timestamp=each.timestamp, value=each.value) for each in records]
        data = build_batch(
            records,
            compression=codec,
            timestamp_type=kind,
            log_append_time=-1 if append_time is None else append_time,
            base_offset=0,
        )
        append_batch(cluster, data)
    return cluster


@pytest.mark.requirement("DP-LISTOFF-08", "DP-LISTOFF-04")
@given(BATCHES, st.integers(0, 31), st.integers(0, 70), st.integers(0, 70), st.integers(0, 70))
def test_lookups_by_time_equal_a_scan(batches, timestamp, start, end, cut):
    cluster = random_log(batches)
    log = cluster.logs.log(FOO)
    first_of_newest(log, log.end_offset)
    cluster.logs.truncate("test", FOO, cut)
    append_times(cluster, 3, 30, 30)
    cluster.logs.advance_start("test", FOO, start)
    data = b"".join(log.read(0, log.end_offset, 1 << 30, at_least_one=True))
    records = [
        record
        for batch in RecordBatches(data)
        for record in batch
        if log.start_offset <= record.offset
    ]
    later = [each for each in records if each.timestamp >= timestamp]
    expected = later[0] if later and later[0].offset < end else None
    found = first_at_or_after(log, timestamp, end)
    assert (found and found[:2]) == (expected and (expected.timestamp, expected.offset))

    expected = max(records, key=lambda each: each.timestamp) if records else None
    found = first_of_newest(log, log.end_offset)
    assert (found and found[:2]) == (expected and (expected.timestamp, expected.offset))
