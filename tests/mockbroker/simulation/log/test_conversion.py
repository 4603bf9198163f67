"""Batches whose contents the broker changes: times, codecs, message formats."""

import struct
import zlib
from typing import Any

import pytest

from kproto.errors import MissingExtraError
from kproto.records import Compression, Record, RecordBatches, TimestampType, build_batch
from kproto.records.compression import available, compress
from mockbroker.simulation.log.log_events import CodecMissing
from mockbroker.simulation.log.producing import appender as produce_module
from mockbroker.simulation.log.producing.appender import AppendOutcome
from tests.mockbroker.simulation.log.producing import (
    FOO,
    NOW_MS,
    batch,
    changed,
    new_cluster,
    produce,
    stored,
)

RECORDS = [
    Record(timestamp=NOW_MS, key=b"k", value=b"a", headers=(("h", b"1"),)),
    Record(timestamp=NOW_MS - 5, key=None, value=b"b"),
]
OLDER = [Record(timestamp=each.timestamp, key=each.key, value=each.value) for each in RECORDS]
CODECS = [each for each in Compression if available(each)]


def only_batch(data: bytes) -> Any:
    """The one batch, whose checksum is right."""
    (found,) = RecordBatches(data)
    return found


@pytest.mark.requirement("DP-LOG-01")
def test_bytes_stay_as_they_came() -> None:
    cluster = new_cluster()
    produce(cluster, batch(b"x"))
    data = build_batch(RECORDS, compression=Compression.GZIP, producer_id=7, producer_epoch=0,
                       base_sequence=0)  # fmt: skip
    produce(cluster, data)
    assert stored(cluster.logs.log(FOO)).endswith(changed(data, base_offset=1, leader_epoch=0))


@pytest.mark.requirement("DP-LOG-02", "DP-PRODUCE-37")
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_the_broker_sets_the_time(codec: Compression) -> None:
    cluster = new_cluster(configs={"message.timestamp.type": "LogAppendTime"})
    data = build_batch(RECORDS, compression=codec)
    outcome = produce(cluster, data)
    assert outcome.log_append_time_ms == NOW_MS
    cluster.turns.advance(7)
    assert produce(cluster, data).log_append_time_ms == NOW_MS + 7
    found = stored(cluster.logs.log(FOO))[len(data) :]
    assert found == changed(
        data, base_offset=2, leader_epoch=0, attributes=8 | codec, max_timestamp=NOW_MS + 7
    ), "the records' own times stay"
    assert only_batch(found).timestamp_type is TimestampType.LOG_APPEND_TIME


@pytest.mark.requirement("DP-PRODUCE-37", "DP-IDEM-01")
def test_a_producers_time_is_not_told() -> None:
    assert produce(new_cluster(), batch(b"v")).log_append_time_ms == -1


@pytest.mark.requirement("DP-FORMAT-07")
@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_a_topic_has_a_codec_of_its_own(source: Compression, target: str) -> None:
    codec = {"uncompressed": "none", "producer": source.name}.get(target, target).upper()
    if Compression[codec] not in CODECS:
        pytest.skip("needs the codec")
    cluster = new_cluster(configs={"compression.type": target})
    data = build_batch(RECORDS, compression=source, producer_id=7, producer_epoch=2,
                       base_sequence=5)  # fmt: skip
    assert produce(cluster, data).error == 0
    found = only_batch(stored(cluster.logs.log(FOO)))
    assert found.compression is Compression[codec]
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (7, 2, 5)
    assert found.records() == only_batch(data).records()
    assert found.max_timestamp == NOW_MS
    assert produce(cluster, data).base_offset == 0, "a duplicate"


@pytest.mark.requirement("DP-FORMAT-07", "DP-LOG-02")
def test_a_rebuilt_batch_has_the_brokers_time() -> None:
    configs = {"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"}
    cluster = new_cluster(configs=configs)
    produce(cluster, build_batch([Record(timestamp=3, value=b"a")]))
    assert [each.timestamp for each in only_batch(stored(cluster.logs.log(FOO)))] == [NOW_MS]


@pytest.mark.requirement("DP-FORMAT-07")
def test_a_codec_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> bytes:
        raise MissingExtraError("lz4 needs lz4.frame", extra="records")

    monkeypatch.setattr(produce_module, "rebuild", missing)
    cluster = new_cluster(configs={"compression.type": "lz4"})
    outcome = produce(cluster, build_batch(RECORDS))
    assert (outcome.error, outcome.log_start_offset) == (76, 0)
    assert [*cluster.logs.events] == [CodecMissing(NOW_MS, FOO, Compression.LZ4)]


# ---- older formats -------------------------------------------------------------------------------


def old_request(data: bytes, magic: int, release: tuple[int, int] = (2, 8), **configs: str) -> Any:
    cluster = new_cluster(release, configs)
    outcome = produce(cluster, data, version=2 if magic else 1)
    return cluster, outcome


@pytest.mark.requirement("DP-FORMAT-01", "DP-FORMAT-02", "DP-LOG-02")
@pytest.mark.parametrize("release", [(0, 10), (0, 11), (2, 8), (3, 9)])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [each for each in CODECS if each < Compression.ZSTD])
def test_messages_become_one_batch(magic, codec, release):
    cluster, outcome = old_request(
        build_batch(OLDER, magic=magic, compression=codec), magic, release
    )
    assert (outcome.error, outcome.base_offset, outcome.end_offset) == (0, 0, 2)
    found = only_batch(stored(cluster.logs.log(FOO)))
    times = [each.timestamp if magic else -1 for each in OLDER]
    assert [(each.offset, each.timestamp, each.key, each.value) for each in found] == [
        (0, times[0], b"k", b"a"),
        (1, times[1], None, b"b"),
    ]
    assert (found.magic, found.compression, found.producer_id) == (2, codec, -1)
    assert produce(cluster, batch(b"c", magic=0), version=0).base_offset == 2


@pytest.mark.requirement("DP-PRODUCE-28")
def test_offsets_of_messages_are_given_anew() -> None:
    data = build_batch([Record(offset=40, value=b"a"), Record(offset=70, value=b"b")], magic=0)
    cluster, outcome = old_request(data, 0)
    assert outcome.base_offset == 0
    assert [each.offset for each in only_batch(stored(cluster.logs.log(FOO)))] == [0, 1]


@pytest.mark.requirement("DP-PRODUCE-28")
@pytest.mark.parametrize(("release", "code"), [((2, 3), 2), ((2, 4), 87)])
def test_a_wrapper_within_a_wrapper(release: tuple[int, int], code: int) -> None:
    inner = build_batch([Record(value=b"a")], magic=1, compression=Compression.GZIP)
    outer = nested(inner)
    _, outcome = old_request(outer, 1, release)
    assert outcome.error == code


def nested(inner: bytes) -> bytes:
    """A gzip wrapper of magic 1 around messages."""
    value = compress(Compression.GZIP, inner, magic=1)
    body = struct.pack(">bbqii", 1, Compression.GZIP, NOW_MS, -1, len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.requirement("DP-PRODUCE-28")
def test_one_wrapper_only_since_2_4() -> None:
    one = build_batch(OLDER, magic=1, compression=Compression.GZIP)
    codes = {}
    for release in ((2, 3), (2, 4)):
        _, outcome = old_request(one + one, 1, release)
        codes[release] = (outcome.error, outcome.end_offset)
    assert codes == {(2, 3): (0, 4), (2, 4): (87, None)}


@pytest.mark.requirement("DP-PRODUCE-18")
def test_messages_have_a_checksum() -> None:
    data = batch(b"abc", magic=1)
    _, outcome = old_request(data[:-1] + b"x", 1)
    assert outcome.error == 2
    _, outcome = old_request(data + data[:8] + bytes(9), 1)
    assert outcome.error == 2, "a size below that of any message"


def test_no_messages_are_no_error() -> None:
    cluster = new_cluster((2, 8))
    assert produce(cluster, b"", version=2) == AppendOutcome(FOO, log_start_offset=0)


@pytest.mark.requirement("DP-PRODUCE-24", "DP-PRODUCE-27")
def test_messages_are_checked_too() -> None:
    _, outcome = old_request(batch(b"v", magic=0), 0, **{"cleanup.policy": "compact"})
    assert outcome.error == 87
    claimed = batch(
        b"v", magic=1, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=NOW_MS
    )
    _, outcome = old_request(claimed, 1)
    assert outcome.error == 32


@pytest.mark.requirement("DP-FORMAT-01")
@pytest.mark.parametrize(
    ("release", "version", "magic"),
    [
        ((0, 10), None, 1),
        ((0, 11), None, 2),
        ((2, 8), "0.9.0", 0),
        ((2, 8), "0.10.0", 1),
        ((2, 8), "0.11.0", 2),
        ((2, 8), None, 2),
        ((3, 0), "0.10.0", 2),
        ((4, 0), None, 2),
    ],
)
def test_the_format_of_a_topic(release: tuple[int, int], version: str | None, magic: int) -> None:
    configs = {} if version is None else {"message.format.version": version}
    assert new_cluster(release, configs).logs.settings("foo").magic == magic
