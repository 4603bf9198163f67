"""What clients of versions 0 to 9 get of batches that they do not know."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.records import (
    Compression,
    Record,
    RecordBatches,
    TimestampType,
    build_batch,
    end_transaction_marker,
)
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.batch_header import read_header
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching.fetching import FOO, append, ask, request, row

MAGIC = {0: 0, 1: 0, 2: 1, 3: 1}


def old_cluster(release: tuple[int, int] = (3, 9), **configs: str) -> Cluster:
    cluster = simulated_cluster(2, topics=["foo=1,2"], release=release)
    for name, value in configs.items():
        cluster.config_changes.alter_incrementally(
            [(2, "foo", [(name.replace("_", "."), 0, value)])]
        )
    return cluster


def fetch(cluster: Cluster, version: int, offset: int = 0, **fields: Any) -> Any:
    broker = DirectBroker(cluster, profile_name="kafka-3.9")
    return row(ask(broker, {FOO: offset}, version, **fields))


def stored(cluster: Cluster, data: bytes) -> None:
    cluster.logs.append(FOO, data, read_header(data))


@pytest.mark.requirement("DP-FORMAT-03")
@pytest.mark.parametrize("version", MAGIC)
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_records_become_older_messages(version: int, codec: Compression) -> None:
    cluster = old_cluster()
    append(cluster, b"before")
    records = [
        Record(timestamp=5, key=b"k", value=b"v", headers=(("lost", b""),)),
        Record(timestamp=7, value=b"w"),
    ]
    stored(cluster, build_batch(records, compression=codec))
    batches = list(RecordBatches(fetch(cluster, version, 1).records, allow_partial=True))
    assert {batch.magic for batch in batches} == {MAGIC[version]}
    assert {batch.compression for batch in batches} == {codec}
    timestamps = (5, 7) if version >= 2 else (-1, -1)
    assert [record for batch in batches for record in batch] == [
        Record(1, timestamps[0], b"k", b"v"),
        Record(2, timestamps[1], None, b"w"),
    ]


@pytest.mark.requirement("DP-FORMAT-03")
def test_messages_before_the_offset_are_left_out_unless_they_are_compressed() -> None:
    cluster = old_cluster()
    append(cluster, b"a", b"b", b"c")
    append(cluster, b"d", b"e", compression=Compression.GZIP)

    def offsets(start: int) -> list[int]:
        data = fetch(cluster, 3, start).records
        return [
            record.offset for batch in RecordBatches(data, allow_partial=True) for record in batch
        ]

    assert offsets(1) == [1, 2, 3, 4]
    assert offsets(4) == [3, 4]


@pytest.mark.requirement("DP-FORMAT-03")
def test_the_time_of_the_broker_is_kept() -> None:
    cluster = old_cluster()
    stored(
        cluster,
        build_batch(
            [Record(timestamp=5, value=b"v")],
            timestamp_type=TimestampType.LOG_APPEND_TIME,
            log_append_time=99,
        ),
    )
    (batch,) = RecordBatches(fetch(cluster, 2).records, allow_partial=True)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in batch] == [99]
    assert [
        record.timestamp
        for each in RecordBatches(fetch(cluster, 1).records, allow_partial=True)
        for record in each
    ] == [-1]


@pytest.mark.requirement("REL-28")
@pytest.mark.parametrize(("release", "filled"), [((1, 1), False), ((2, 0), True)])
def test_nothing_filled_the_rest_before_2_0(release: tuple[int, int], filled: bool) -> None:
    cluster = old_cluster(release)
    stored(
        cluster, build_batch([Record(timestamp=5, value=b"v" * 9)], compression=Compression.GZIP)
    )
    found = RecordBatches(fetch(cluster, 2).records, allow_partial=True)
    (batch,) = found
    assert (batch.magic, [record.value for record in batch]) == (1, [b"v" * 9])
    assert (found.incomplete is not None) is filled


@pytest.mark.requirement("DP-FORMAT-03")
def test_control_batches_are_left_out() -> None:
    cluster = old_cluster()
    marker = end_transaction_marker(
        commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=1
    )
    stored(cluster, marker)
    append(cluster, b"a")
    (batch,) = RecordBatches(fetch(cluster, 3).records, allow_partial=True)
    assert [record.offset for record in batch] == [1]


@pytest.mark.requirement("DP-FORMAT-03", "DP-FETCH-08")
@pytest.mark.parametrize("version", [0, 2])
def test_up_to_version_2_limits_hold_for_the_first_batch(version: int) -> None:
    cluster = old_cluster()
    append(cluster, b"x" * 1000)
    assert fetch(cluster, version, partition_max_bytes=100).records == b""
    data = fetch(cluster, 3, partition_max_bytes=100).records
    assert [
        len(each.value or b"")
        for batch in RecordBatches(data, allow_partial=True)
        for each in batch
    ] == [1000]


@pytest.mark.requirement("REL-110")
@pytest.mark.parametrize(("release", "size"), [((1, 1), 100), ((2, 8), 100), ((3, 0), 0)])
def test_incomplete_batches_stay_as_they_are_until_3_0(release: tuple[int, int], size: int) -> None:
    cluster = old_cluster(release)
    append(cluster, b"x" * 1000)
    for version in (0, 2):
        assert len(fetch(cluster, version, partition_max_bytes=100).records) == size
    (batch,) = RecordBatches(
        fetch(cluster, 2, partition_max_bytes=2000).records, allow_partial=True
    )
    assert batch.magic == 1


@pytest.mark.requirement("DP-FORMAT-03")
def test_as_many_bytes_go_out_as_were_read() -> None:
    """What is left is the beginning of a message that is too large, which clients leave alone."""
    cluster = old_cluster()
    append(cluster, b"a")
    found = RecordBatches(fetch(cluster, 3).records, allow_partial=True)
    size = cluster.logs.log(FOO).storage.size
    assert found.incomplete is not None
    assert found.incomplete.offset + found.incomplete.available == size
    assert found.incomplete.size is not None
    assert found.incomplete.size > size


@pytest.mark.requirement("DP-FORMAT-04")
@pytest.mark.parametrize(("version", "code"), [(0, 35), (3, 35), (4, 0)])
def test_a_topic_may_forbid_conversion(version: int, code: int) -> None:
    cluster = old_cluster(message_downconversion_enable="false")
    append(cluster, b"a")
    found = fetch(cluster, version)
    assert found.error_code == code
    assert (found.records is None, found.high_watermark) == ((True, -1) if code else (False, 1))
    assert fetch(cluster, version, replica_id=2).error_code == 0, "replicas are not asked"


@pytest.mark.requirement("DP-FORMAT-05")
@pytest.mark.parametrize(
    ("release", "version", "code"),
    [((3, 9), 9, 76), ((3, 9), 3, 76), ((3, 9), 10, 0), ((2, 0), 9, 0), ((4, 0), 9, 0)],
)
def test_topics_of_zstd_are_for_newer_clients(release, version, code):
    cluster = old_cluster(release)
    if release != (2, 0):
        cluster.config_changes.alter_incrementally([(2, "foo", [("compression.type", 0, "zstd")])])
    assert fetch(cluster, version).error_code == code


@pytest.mark.requirement("DP-FORMAT-05", "DP-FETCH-01")
def test_only_a_broker_with_a_replica_looks_at_the_codec_of_a_topic() -> None:
    cluster = simulated_cluster(2, topics=["foo=1"], release=(3, 9))
    cluster.config_changes.alter_incrementally([(2, "foo", [("compression.type", 0, "zstd")])])
    broker = DirectBroker(cluster, profile_name="kafka-3.9")
    codes = [row(broker.ask(request({FOO: 0}), 9, broker_id=each)).error_code for each in (1, 2)]
    assert codes == [76, 6]


@pytest.mark.requirement("DP-FORMAT-05")
@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (4, 0)])
def test_batches_of_zstd_cannot_be_converted(version: int, code: int) -> None:
    cluster = old_cluster()
    append(cluster, b"a", compression=Compression.ZSTD)
    assert fetch(cluster, version).error_code == code


@pytest.mark.requirement("DP-FORMAT-05")
def test_batches_before_one_of_zstd_can_be_read() -> None:
    cluster = old_cluster()
    append(cluster, b"a")
    append(cluster, b"b", compression=Compression.ZSTD)
    (batch,) = RecordBatches(fetch(cluster, 3).records, allow_partial=True)
    assert [record.offset for record in batch] == [0]


@pytest.mark.requirement("DP-FORMAT-03")
@pytest.mark.parametrize(
    ("release", "format_version", "version", "magic"),
    [
        ((2, 8), "0.10.2", 12, 1),
        ((2, 8), "0.10.2", 1, 0),
        ((2, 8), "0.9.0", 4, 0),
        ((2, 8), None, 4, 2),
        ((3, 9), "0.10.2", 4, 2),
        ((0, 10), None, 3, 1),
    ],
)
def test_a_log_of_an_older_format_has_older_messages(release, format_version, version, magic):
    cluster = old_cluster(release)
    if format_version is not None:
        change = ("message.format.version", 0, format_version)
        cluster.config_changes.alter_incrementally([(2, "foo", [change])])
    append(cluster, b"a")
    (batch,) = RecordBatches(fetch(cluster, version).records, allow_partial=True)
    assert batch.magic == magic
