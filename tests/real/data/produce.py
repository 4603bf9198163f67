"""Sessions over Produce (0): what is checked, what is appended, what is answered."""

from __future__ import annotations

import uuid

from kproto.messages import ApiVersionsRequest, DescribeProducersRequest
from kproto.messages.describe_producers_request import TopicRequest
from kproto.records import Compression, TimestampType, end_transaction_marker
from tests.real.data.batches import HOUR_MS, NOW, THEN, batch, changed, record
from tests.real.data.registry import session
from tests.real.data.requests import produce, produce_rows, read_log
from tests.real.data.side import Side

MODERN = 3
"""The first version that carries batches of magic 2."""


@session(0, since=MODERN)
async def produce_and_read_back(k: Side) -> None:
    await k.create([1], [1])
    await k.ask(produce(k, batch(b"a", b"b")))
    await k.ask(produce(k, batch(b"c"), acks=1))
    await k.ask(produce_rows(k, (k.topic, 0, batch(b"d")), (k.topic, 1, batch(b"e", b"f"))))
    await read_log(k)
    await read_log(k, 1)


@session(0, since=MODERN)
async def produce_headers_and_nulls(k: Side) -> None:
    await k.create()
    rows = [
        record(b"x", headers=(("one", b"1"), ("none", None), ("", b""))),
        record(None, b"tombstone"),
        record(b"no key", None),
        record(b"", b""),
        record(b"later", timestamp=THEN + 1000),
        record(b"earlier", timestamp=THEN - 1000),
    ]
    await k.ask(produce(k, batch(*rows)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_every_codec(k: Side) -> None:
    await k.create()
    for codec in Compression:
        values = [codec.name.encode() * 10] * 3
        await k.ask(produce(k, batch(*values, compression=codec)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_into_a_topic_with_a_codec(k: Side) -> None:
    """The broker compresses anew: the codec of the stored batches is the topic's."""
    await k.create(compression_type="gzip")
    await k.ask(produce(k, batch(b"a" * 50, b"b" * 50)))
    await k.ask(produce(k, batch(b"c", compression=Compression.LZ4)))
    await k.ask(produce(k, batch(b"d", compression=Compression.GZIP)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_into_an_uncompressed_topic(k: Side) -> None:
    await k.create(compression_type="uncompressed")
    await k.ask(produce(k, batch(b"a" * 50, compression=Compression.SNAPPY)))
    await k.ask(produce(k, batch(b"b")))
    await read_log(k)


@session(0, since=MODERN)
async def produce_to_unknown(k: Side) -> None:
    await k.create()
    unknown = f"{k.topic}.unknown"
    k.topic_ids[unknown] = uuid.UUID(int=77)
    k.names.text("AAAAAAAAAAAAAAAAAAAATQ", "an unknown id")
    await k.ask(
        produce_rows(
            k, (k.topic, 0, batch(b"a")), (unknown, 0, batch(b"b")), (k.topic, 1, batch(b"c"))
        )
    )
    await k.ask(produce(k, batch(b"d"), partition=-1))
    await read_log(k)


@session(0, since=MODERN)
async def produce_unusual_acks(k: Side) -> None:
    await k.create()
    for acks in (2, -2, 100):
        await k.ask(produce(k, batch(b"a"), acks=acks))
    await read_log(k)


@session(0, since=MODERN)
async def produce_without_acks(k: Side) -> None:
    """No answer; the next request of the connection is answered."""
    await k.create()
    await k.send_only(produce(k, batch(b"a"), acks=0))
    await k.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"),
                version=0, quiet=True)  # fmt: skip
    await read_log(k)


@session(0, since=MODERN)
async def produce_without_acks_in_vain(k: Side) -> None:
    """A partition fails: the others are appended, then the broker closes the connection."""
    await k.create()
    body = produce_rows(k, (k.topic, 0, batch(b"a")), (k.topic, 7, batch(b"b")), acks=0)
    await k.send_only(body, connection="second")
    answer = await k.exchange(ApiVersionsRequest(), 0, 1, "second")
    k.remark("afterwards", answer if isinstance(answer, str) else "answered")
    await read_log(k)


@session(0, since=MODERN)
async def produce_a_rest_behind_the_batch(k: Side) -> None:
    """The rest is a batch that is cut off, until it is long enough to contain a size."""
    await k.create()
    for length in (1, 11, 12, 16, 17, 61):
        await k.ask(produce(k, batch(b"a") + bytes(length)))
        await k.ask(produce(k, batch(b"b") + b"\xff" * length))
    await read_log(k)


@session(0)
async def produce_transactional_batches_without_an_id(k: Side) -> None:
    """A batch that is cut off is none, and one without a producer id is transactional, too."""
    await k.create()
    whole = batch(b"a", is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    bare = changed(batch(b"b"), attributes=0x10)
    for data in (whole, whole[:-1], whole[:61], whole[:30], bare, bare[:-1]):
        await k.ask(produce(k, data))
    if k.version >= MODERN:
        await k.ask(produce(k, bare, transactional_id=k.group))
    await read_log(k)


@session(0, since=MODERN)
async def produce_nothing(k: Side) -> None:
    await k.create()
    await k.ask(produce_rows(k))
    await k.ask(produce(k, b""))
    await read_log(k)


@session(0, since=MODERN)
async def produce_two_batches(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, batch(b"a") + batch(b"b")))
    await k.ask(produce(k, batch(b"a") + batch(b"b", base_offset=1)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_old_formats(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, batch(b"a", magic=0)))
    await k.ask(produce(k, batch(b"a", magic=1)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_a_wrong_checksum(k: Side) -> None:
    await k.create([1], [1])
    bad = bytearray(batch(b"abc"))
    bad[-3] ^= 1
    await k.ask(produce_rows(k, (k.topic, 0, bytes(bad)), (k.topic, 1, batch(b"right"))))
    await k.ask(produce(k, changed(batch(b"abc"), crc_right=False, crc=1)))
    await read_log(k)
    await read_log(k, 1)


@session(0, since=MODERN)
async def produce_cut_batches(k: Side) -> None:
    await k.create()
    whole = batch(b"abcdefgh" * 4)
    await k.ask(produce(k, whole[:40]))
    await k.ask(produce(k, whole[:-5]))
    await k.ask(produce(k, b"\x00" * 8))
    await k.ask(produce(k, whole + b"\x00" * 5))
    await read_log(k)


@session(0, since=MODERN)
async def produce_another_base_offset(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, batch(b"a", base_offset=5)))
    await k.ask(produce(k, changed(batch(b"a"), base_offset=-1)))
    await k.ask(produce(k, changed(batch(b"a"), partition_leader_epoch=9)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_wrong_counts(k: Side) -> None:
    await k.create()
    right = batch(b"a", b"b")
    for fields in (
        {"record_count": 3},
        {"record_count": 1},
        {"record_count": 0},
        {"record_count": -1},
        {"last_offset_delta": 0},
        {"last_offset_delta": 5},
        {"last_offset_delta": -1},
        {"last_offset_delta": 2, "record_count": 3},
        {"last_offset_delta": 0, "record_count": 1},
    ):
        await k.ask(produce(k, changed(right, **fields)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_control_batches(k: Side) -> None:
    await k.create()
    made = end_transaction_marker(
        commit=True, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp=THEN
    )
    await k.ask(produce(k, made))
    await k.ask(produce(k, changed(batch(b"a"), attributes=0x20)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_a_producer_without_sequence(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, changed(batch(b"a"), producer_id=5, producer_epoch=0)))
    await k.ask(produce(k, changed(batch(b"a"), producer_id=5, producer_epoch=-1, base_sequence=0)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_too_large(k: Side) -> None:
    await k.create(max_message_bytes="200")
    await k.ask(produce(k, batch(b"a" * 50)))
    exact = 200 - len(batch(b"")) - 1
    for size in (exact - 2, exact - 1, exact, exact + 1, 500):
        await k.ask(produce(k, batch(b"b" * size)))
    bad = bytearray(batch(b"c" * 500))
    bad[-1] ^= 1
    await k.ask(produce(k, bytes(bad)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_larger_than_a_segment(k: Side) -> None:
    await k.create(segment_bytes="1048576", max_message_bytes="4000000")
    await k.ask(produce(k, batch(b"a" * 1_100_000)))
    await k.ask(produce(k, batch(b"small")))
    await read_log(k)


@session(0, since=MODERN)
async def produce_without_keys_to_a_compacted_topic(k: Side) -> None:
    await k.create(cleanup_policy="compact")
    await k.ask(produce(k, batch(record(b"a"), record(b"b", None), record(b"c"))))
    await k.ask(produce(k, batch(*[record(b"%d" % i, None) for i in range(5)])))
    await k.ask(produce(k, batch(record(b"a", None), record(b"b"), compression=Compression.GZIP)))
    await k.ask(produce(k, batch(record(b"a"), record(b"b"))))
    await read_log(k)


@session(0, since=MODERN)
async def produce_without_keys_to_compact_and_delete(k: Side) -> None:
    await k.create(cleanup_policy="compact,delete")
    await k.ask(produce(k, batch(record(b"b", None))))
    await k.ask(produce(k, batch(record(b"b"))))
    await read_log(k)


@session(0, since=MODERN)
async def produce_timestamps_out_of_range(k: Side) -> None:
    await k.create(
        message_timestamp_before_max_ms=str(10 * HOUR_MS),
        message_timestamp_after_max_ms=str(2 * HOUR_MS),
    )
    early, late = NOW - 12 * HOUR_MS, NOW + 5 * HOUR_MS
    await k.ask(produce(k, batch(b"right")))
    await k.ask(produce(k, batch(record(b"a", timestamp=early))))
    await k.ask(produce(k, batch(record(b"a", timestamp=late))))
    await k.ask(produce(k, batch(record(b"a"), record(b"b", timestamp=early), record(b"c"),
                                 record(b"d", timestamp=late))))  # fmt: skip
    await k.ask(produce(k, batch(*[record(b"%d" % i, timestamp=early) for i in range(5)])))
    await k.ask(produce(k, batch(record(b"a", timestamp=-1))))
    await k.ask(produce(k, batch(record(b"a", timestamp=0))))
    await read_log(k)


@session(0, since=MODERN)
async def produce_timestamps_by_default(k: Side) -> None:
    """Anything in the past, and an hour of the future."""
    await k.create()
    await k.ask(produce(k, batch(record(b"a", timestamp=0))))
    await k.ask(produce(k, batch(record(b"a", timestamp=-1))))
    await k.ask(produce(k, batch(record(b"a", timestamp=NOW + HOUR_MS * 3))))
    await k.ask(produce(k, batch(record(b"a", timestamp=NOW + HOUR_MS // 2))))
    await read_log(k)


@session(0, since=MODERN)
async def produce_keyless_and_out_of_range(k: Side) -> None:
    """Both checks fail: the answer names one."""
    await k.create(cleanup_policy="compact", message_timestamp_before_max_ms="3600000")
    early = NOW - 5 * HOUR_MS
    await k.ask(produce(k, batch(record(b"a", None, early))))
    await k.ask(produce(k, batch(record(b"a", b"k", early), record(b"a", None, NOW))))
    await k.ask(produce(k, batch(record(b"a", None, NOW), record(b"a", b"k", early))))
    await read_log(k)


@session(0, since=MODERN)
async def produce_with_log_append_time(k: Side) -> None:
    await k.create(message_timestamp_type="LogAppendTime")
    await k.ask(produce(k, batch(b"a", record(b"b", timestamp=0))))
    await k.ask(produce(k, batch(b"c", compression=Compression.GZIP)))
    await k.ask(produce(k, batch(record(b"d", timestamp=-1))))
    stamped = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": THEN}
    await k.ask(produce(k, batch(b"e", **stamped)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_stamped_by_the_client(k: Side) -> None:
    """The batch says that a broker set its timestamps, and the topic keeps those of clients."""
    await k.create()
    stamped = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": THEN}
    await k.ask(produce(k, batch(b"a", **stamped)))
    await k.ask(produce(k, batch(b"a", compression=Compression.GZIP, **stamped)))
    await k.ask(produce(k, batch(record(b"a", timestamp=-1), **stamped)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_a_wrong_max_timestamp(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, changed(batch(b"a", b"b"), max_timestamp=THEN + 500)))
    await k.ask(produce(k, changed(batch(b"a", b"b"), max_timestamp=-1)))
    await k.ask(produce(k, changed(batch(b"a", compression=Compression.GZIP),
                                   max_timestamp=THEN + 500)))  # fmt: skip
    await read_log(k)


@session(0, since=MODERN)
async def produce_unknown_attributes(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, changed(batch(b"a"), attributes=0x80)))
    await k.ask(produce(k, changed(batch(b"a"), attributes=0x40)))
    await k.ask(produce(k, changed(batch(b"a"), attributes=5)))
    await k.ask(produce(k, changed(batch(b"a"), attributes=1)))


def codecs_of(k: Side) -> list[Compression]:
    """The codecs that records of this version may have."""
    return [each for each in Compression if each and (k.version >= 7 or each < Compression.ZSTD)]


@session(0, since=MODERN)
async def produce_damaged_content(k: Side) -> None:
    """The checksum of the batch is right, and its content cannot be decompressed."""
    await k.create()
    for codec in codecs_of(k):
        right = batch(b"a" * 200, b"b" * 200, compression=codec)
        for end in (-1, -4, -9):
            await k.ask(produce(k, changed(right[:end], batch_length=len(right) + end - 12)))
        for place in (61, 62, 70, -6, -12):
            await k.ask(produce(k, flipped(right, place)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_bytes_behind_content(k: Side) -> None:
    """The compressed content ends before the batch does."""
    await k.create()
    for codec in codecs_of(k):
        right = batch(b"a" * 200, b"b" * 200, compression=codec)
        await k.ask(produce(k, changed(right + b"\0\0", batch_length=len(right) + 2 - 12)))


@session(0, since=MODERN)
async def produce_other_offsets(k: Side) -> None:
    """Records whose offsets are not consecutive: only those of a compressed batch are looked at."""
    await k.create()
    rows = [record(b"a", offset=0), record(b"b", offset=2)]
    for codec in (Compression.NONE, Compression.GZIP):
        made = batch(*rows, compression=codec)
        await k.ask(produce(k, changed(made, last_offset_delta=1)))
    await read_log(k)


_LENGTHS = (64, 91)
"""Bytes before the lengths of the keys in the batch below."""


def flipped(data: bytes, place: int) -> bytes:
    """The batch with another byte at this place, and the right checksum."""
    bad = bytearray(data)
    bad[place] ^= 0xFF
    return changed(bytes(bad))


@session(0, since=MODERN)
async def produce_damaged_records(k: Side) -> None:
    """Bytes that are no records, in batches with the right checksum."""
    await k.create()
    right = batch(b"a" * 20, b"b" * 20)
    for place in (each for each in range(61, len(right), 3) if each not in _LENGTHS):
        await k.ask(produce(k, flipped(right, place)))
    await read_log(k)


@session(0, since=MODERN)
async def produce_negative_lengths(k: Side) -> None:
    """The flipped byte makes the length of a key less than -1."""
    await k.create()
    for place in _LENGTHS:
        await k.ask(produce(k, flipped(batch(b"a" * 20, b"b" * 20), place)))


@session(0, since=MODERN)
async def produce_elsewhere(k: Side) -> None:
    """At brokers that do not lead the partition, with a replica of it and without."""
    await k.create([1, 2], [1, 2], [2, 1])
    await k.create([2], topic=f"{k.topic}.two")
    rows = [(k.topic, index, batch(b"a")) for index in range(3)]
    await k.ask(produce_rows(k, *rows), broker=2)
    await k.ask(produce_rows(k, *rows), broker=1)
    await k.ask(produce_rows(k, (f"{k.topic}.two", 0, batch(b"a"))), broker=1)


@session(0, since=MODERN)
async def produce_a_partition_twice(k: Side) -> None:
    await k.create([1], [1])
    await k.ask(
        produce_rows(
            k, (k.topic, 0, batch(b"a")), (k.topic, 0, batch(b"b")), (k.topic, 1, batch(b"c"))
        )
    )
    await read_log(k)


@session(0, since=MODERN)
async def produce_to_internal_topics(k: Side) -> None:
    await k.ask(produce_rows(k, ("__consumer_offsets", 0, batch(b"a"))), broker=k.coordinator,
                version=min(k.version, 12))  # fmt: skip


@session(0, since=MODERN)
async def produce_with_a_transactional_id(k: Side) -> None:
    """Without a transaction of that id."""
    await k.create()
    await k.ask(produce(k, batch(b"a"), transactional_id=f"{k.topic}.id"))
    flags = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    await k.ask(produce(k, batch(b"a", **flags)))
    await k.ask(produce(k, batch(b"a"), transactional_id=""))
    await read_log(k)


@session(0, since=MODERN, needs=(61,))
async def produce_duplicates(k: Side) -> None:
    """The last five batches of a producer are known; sending one again appends nothing."""
    await k.create()
    sent = [_of(b"%d" % i, sequence=i) for i in range(7)]
    for each in sent:
        await k.ask(produce(k, each))
    for index in (6, 2, 1, 0, 4):
        await k.ask(produce(k, sent[index]))
    await _producers(k)
    await read_log(k)


@session(0, since=MODERN, needs=(61,))
async def produce_sequence_gaps(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, _of(b"a", b"b", sequence=0)))
    for sequence in (3, 1, 0, 100):
        await k.ask(produce(k, _of(b"c", sequence=sequence)))
    await k.ask(produce(k, _of(b"c", b"d", b"e", sequence=0)))
    await k.ask(produce(k, _of(b"c", sequence=2)))
    await _producers(k)
    await read_log(k)


@session(0, since=MODERN, needs=(61,))
async def produce_with_other_epochs(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, _of(b"a", sequence=0, epoch=3)))
    await k.ask(produce(k, _of(b"a", sequence=1, epoch=2)))
    await k.ask(produce(k, _of(b"a", sequence=0, epoch=2)))
    await k.ask(produce(k, _of(b"a", sequence=1, epoch=4)))
    await k.ask(produce(k, _of(b"a", sequence=0, epoch=4)))
    await k.ask(produce(k, _of(b"a", sequence=1, epoch=3)))
    await k.ask(produce(k, _of(b"b", sequence=1, epoch=4)))
    await _producers(k)
    await read_log(k)


@session(0, since=MODERN, needs=(61,))
async def produce_sequences_that_wrap(k: Side) -> None:
    await k.create()
    top = 2**31 - 1
    await k.ask(produce(k, _of(b"a", sequence=top - 2)))
    await k.ask(produce(k, _of(b"a", b"b", b"c", b"d", sequence=top - 1)))
    await k.ask(produce(k, _of(b"a", b"b", b"c", b"d", sequence=top - 1)))
    await k.ask(produce(k, _of(b"e", sequence=1)))
    await k.ask(produce(k, _of(b"e", sequence=2)))
    await _producers(k)
    await k.ask(produce(k, _of(b"x", sequence=top, producer=8)))
    await k.ask(produce(k, _of(b"y", sequence=0, producer=8)))
    await _producers(k)
    await read_log(k)


@session(0, since=MODERN, needs=(61,))
async def produce_an_unknown_sequence(k: Side) -> None:
    """Nothing is known of the producer, and its first sequence is not 0."""
    await k.create([1], [1])
    await k.ask(produce(k, _of(b"a", sequence=10)))
    await k.ask(produce(k, _of(b"a", sequence=12)))
    await k.ask(produce(k, _of(b"a", sequence=11)))
    await k.ask(produce(k, _of(b"a", sequence=11), partition=1))
    await _producers(k)
    await read_log(k)


@session(0, since=MODERN, needs=(61,))
async def produce_by_two_producers(k: Side) -> None:
    await k.create()
    for i in range(3):
        await k.ask(produce(k, _of(b"a%d" % i, sequence=i)))
        await k.ask(produce(k, _of(b"b%d" % i, sequence=i, producer=8)))
    await k.ask(produce(k, batch(b"plain")))
    await k.ask(produce(k, _of(b"a1", sequence=1)))
    await _producers(k)
    await read_log(k)


def _of(*values: bytes, sequence: int, epoch: int = 0, producer: int = 7) -> bytes:
    return batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


async def _producers(k: Side) -> None:
    for producer in (7, 8):
        k.names.producer(producer, str(producer))
    await k.ask(
        DescribeProducersRequest(topics=[TopicRequest(name=k.topic, partition_indexes=[0])])
    )
