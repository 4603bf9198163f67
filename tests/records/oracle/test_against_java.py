"""Held to Kafka's own classes, of 3.9.2 and 4.4.0, both ways: what they build we read, and so on.

``KPROTO_ORACLE_BATCHES`` says how many random batches each release is asked about.
"""

import os
import struct
import zlib

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from kproto import DecodeError, EncodeError
from kproto.messages import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kproto.records import (
    BatchSettings,
    Compression,
    ControlRecordType,
    Record,
    RecordBatches,
    TimestampType,
    build_batch,
    build_control_batch,
    end_transaction_marker,
    read_control_record,
)
from kproto.records.record_batch import HEADER_SIZE
from tests.records.mutations import batch_of, with_right_checksums, wrapper
from tests.records.oracle.java_records import Refused, told
from tests.records.strategies import batches
from tests.support import seeds

pytestmark = [pytest.mark.java, pytest.mark.oracle]

BATCHES = int(os.environ.get("KPROTO_ORACLE_BATCHES", "300"))
_many = settings(max_examples=BATCHES, database=None)


def read(data: bytes) -> str:
    return told(list(RecordBatches(data)))


def test_what_either_builds_both_read_alike(java):
    compared = dict.fromkeys(Compression, 0)

    @seed(seeds.seed())
    @_many
    @given(batches())
    def compare(batch):
        records, arguments = batch
        chosen = BatchSettings(**arguments)
        ours, theirs = build_batch(records, **arguments), java.build(records, chosen)
        if chosen.compression is Compression.NONE:
            assert ours == theirs
        assert read(theirs) == java.read(theirs)
        assert read(ours) == java.read(ours)
        compared[chosen.compression] += 1

    compare()
    assert all(compared.values()), compared


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(magic, codec) for magic in (0, 1) for codec in list(Compression)[1:4]]
    + [(2, codec) for codec in list(Compression)[1:]],
)
def test_large_batches_of_every_codec(java, codec, magic):
    """Several blocks of snappy's and lz4's frames, of either's making."""
    records = [Record(n, n if magic else -1, b"%d" % n, (b"%d " % n) * 400) for n in range(150)]
    arguments = {"magic": magic, "compression": codec}
    theirs = java.build(records, BatchSettings(**arguments))
    assert [r for batch in RecordBatches(theirs) for r in batch] == records
    ours = build_batch(records, **arguments)
    assert java.read(ours) == read(ours)


def test_java_and_we_refuse_the_same_settings(java):
    one = [Record(0, 5, None, b"a")]
    bad = [
        {"is_transactional": True},
        {"producer_id": 1},
        {"producer_id": 1, "producer_epoch": 0},
        {"timestamp_type": TimestampType.NO_TIMESTAMP_TYPE},
        {"magic": 1, "is_transactional": True, "producer_id": 1, "producer_epoch": 0,
         "base_sequence": 0},
        {"magic": 0, "compression": Compression.ZSTD},
        {"magic": 1, "delete_horizon": 5},
    ]  # fmt: skip
    for arguments in bad:
        with pytest.raises(EncodeError):
            build_batch(one, **arguments)
        with pytest.raises(Refused):
            java.build(one, BatchSettings(**arguments))
    for records, arguments in [
        ([Record(0, -2)], {}),
        ([Record(3, 0), Record(3, 0)], {}),
        ([Record(0, 0, headers=(("h", b""),))], {"magic": 1}),
    ]:
        with pytest.raises(EncodeError):
            build_batch(records, **arguments)
        with pytest.raises(Refused):
            java.build(records, BatchSettings(**arguments))


@pytest.mark.parametrize("commit", [True, False])
def test_end_of_a_transaction(java, commit):
    question = struct.pack(">hqqiqhi", commit, 40, 5000, 3, 77, 2, 9)
    theirs = java.control(question)
    ours = end_transaction_marker(
        commit=commit,
        producer_id=77,
        producer_epoch=2,
        coordinator_epoch=9,
        timestamp=5000,
        base_offset=40,
        partition_leader_epoch=3,
    )
    assert ours == theirs
    (batch,) = RecordBatches(theirs)
    assert batch.is_control
    assert batch.is_transactional
    (record,) = batch
    assert read_control_record(record) == (int(commit), EndTxnMarker(coordinator_epoch=9))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            ControlRecordType.LEADER_CHANGE,
            LeaderChangeMessage(
                leader_id=2, voters=[LeaderChangeMessage.STRUCTS["Voter"](voter_id=2)]
            ),
        ),
        (ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=9)),
        (ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord()),
        (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=1)),
        (ControlRecordType.KRAFT_VOTERS, VotersRecord()),
    ],
)
def test_markers_of_kraft(java, kind, message):
    question = struct.pack(">hqqi", kind, 40, 5000, 3) + message.encode(0)
    theirs = java.control(question)
    ours = build_control_batch(
        kind, message, timestamp=5000, base_offset=40, partition_leader_epoch=3
    )
    assert ours == theirs
    (record,) = next(iter(RecordBatches(theirs)))
    assert read_control_record(record) == (kind, message)


def mutated(data: st.DataObject, whole: bytes) -> bytes:
    out = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        out[data.draw(st.integers(0, len(out) - 1))] = data.draw(st.integers(0, 255))
    return bytes(out)


def hidden(data: st.DataObject, magic: int, records: list[Record]) -> bytes:
    """Mutated records or messages within a compressed batch that is itself in order."""
    plain = build_batch(records, magic=magic)
    if magic == 2:
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(mutated(data, plain[HEADER_SIZE:])) + packer.flush()
        return batch_of(body, count=len(records), attributes=1)
    inner = with_right_checksums(mutated(data, plain))
    return wrapper(inner, magic=magic, offset=records[-1].offset)


@pytest.mark.parametrize("compressed", [False, True])
def test_what_we_take_of_bad_bytes_java_takes_alike(java, compressed):
    """Mutated batches under right checksums: we may refuse more than Java, never read otherwise."""
    seen = {"read": 0, "refused": 0}

    @seed(seeds.seed())
    @_many
    @given(batches(), st.data())
    def compare(batch, data):
        records, arguments = batch
        if compressed:
            bad = hidden(data, arguments["magic"], records)
        else:
            whole = build_batch(records, **{**arguments, "compression": Compression.NONE})
            bad = with_right_checksums(mutated(data, whole))
        try:
            ours = read(bad)
        except DecodeError:
            seen["refused"] += 1
            return
        assert java.read(bad) == ours
        seen["read"] += 1

    compare()
    assert all(seen.values()), seen
