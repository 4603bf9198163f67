"""What Java accepts and we refuse: each row of the table in docs/reference/records.md."""

import zlib

import pytest

from kproto import DecodeError
from kproto.records import Compression, Record, RecordBatches, build_batch
from kproto.records.compression import MEMBERS
from tests.records.mutations import (
    PLAIN,
    batch_of,
    message,
    record_of,
    with_right_checksums,
    wrapper,
)
from tests.records.oracle.java_records import JavaRecords, told

pytestmark = [pytest.mark.java, pytest.mark.oracle]


def gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def longer(data: bytes) -> bytes:
    """A message with a byte more after its value."""
    return with_right_checksums(data[:11] + bytes((data[11] + 1,)) + data[12:] + b"?")


ONE = record_of(PLAIN)

REFUSED = {
    "a count of 0 and bytes after": (batch_of(ONE, count=0), "batches[0].records"),
    "a key's length below -1": (
        batch_of(record_of(b"\x00\x00\x00\x03\x01\x00")),
        "batches[0].records[0].key",
    ),
    "a message's key's length below -1": (
        with_right_checksums(message(b"a")[:26] + b"\xff\xff\xff\xfe" + message(b"a")[30:]),
        "batches[0].key",
    ),
    "a header's key that is not UTF-8": (
        batch_of(record_of(b"\x00\x00\x00\x01\x01\x02\x02\xff\x01")),
        "batches[0].records[0].headers[0].key",
    ),
    "a varint of more than 32 bits": (
        batch_of(record_of(b"\x00\x00\x80\x80\x80\x80\x10\x01\x01\x00")),
        "batches[0].records[0].offset_delta",
    ),
    "an offset beyond an int64": (
        batch_of(record_of(b"\x00\x00\x02\x01\x01\x00"), base_offset=(1 << 63) - 1),
        "batches[0].records[0].offset_delta",
    ),
    "a last offset beyond an int64": (
        batch_of(ONE, base_offset=(1 << 63) - 1, last_offset_delta=1),
        "batches[0].last_offset_delta",
    ),
    "a last offset below the base offset": (
        batch_of(ONE, last_offset_delta=-1),
        "batches[0].last_offset_delta",
    ),
    "bytes after a message's value": (longer(message(b"a")), "batches[0]"),
    "a wrapper's last message cut off": (
        wrapper(message(b"a") + message(b"b", offset=1)[:-1], offset=1),
        "batches[0].records[1].message_size",
    ),
    "another magic in a wrapper": (wrapper(message(b"a", magic=0)), "batches[0].records[0].magic"),
    "no member after a gzip member": (
        batch_of(gzip(ONE) + b"??", attributes=1),
        "batches[0].records",
    ),
    "many gzip members": (
        batch_of(gzip(ONE) + gzip(b"") * MEMBERS, attributes=1),
        "batches[0].records",
    ),
}


@pytest.mark.parametrize(("data", "path"), REFUSED.values(), ids=REFUSED)
def test_java_reads_what_we_refuse(java: JavaRecords, data, path):
    assert java.read(data).startswith("batch ")
    with pytest.raises(DecodeError) as caught:
        told(list(RecordBatches(data)))
    assert caught.value.path == path


TAKEN = {
    "longer varints": batch_of(record_of(b"\x00\x80\x00\x80\x80\x00\x81\x00\x01\x80\x00")),
    "bits of attributes without a meaning": batch_of(ONE, attributes=0x7F80),
    "offsets that do not ascend": batch_of(record_of(b"\x00\x00\x02\x01\x01\x00") + ONE, count=2),
    "timestamps that overflow": build_batch(
        [Record(0, -1), Record(1, (1 << 63) - 1)], compression=Compression.NONE
    ),
}


@pytest.mark.parametrize("data", TAKEN.values(), ids=TAKEN)
def test_both_read_what_no_correct_writer_sends(java: JavaRecords, data):
    assert java.read(data) == told(list(RecordBatches(data)))
