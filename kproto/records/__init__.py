"""Read and build record batches, the content of produce requests and fetch responses, magic 0 to 2.

::

    from kproto.records import Compression, Record, RecordBatches, build_batch

    data = build_batch([Record(timestamp=0, value=b"hello")], compression=Compression.GZIP)
    for batch in RecordBatches(data):
        for record in batch:
            print(record.offset, record.value)

``RecordBatches`` reads a field of type ``records``, ``build_batch`` and ``RecordBatchBuilder``
write one, ``control`` handles the markers of control batches, and ``kproto.records.columns`` makes
columns of many fields. No I/O. ``docs/reference/records.md`` has the rules. Snappy, lz4 and zstd
need the extra ``records``.
"""

from kproto.records.batch import Batch
from kproto.records.batches import Incomplete, RecordBatches
from kproto.records.build import RecordBatchBuilder, build_batch
from kproto.records.control import (
    ControlRecord,
    ControlRecordType,
    build_control_batch,
    end_transaction_marker,
    read_control_record,
)
from kproto.records.message_set import MessageBatch
from kproto.records.model import MAX_DECOMPRESSED, Compression, Header, Record, TimestampType
from kproto.records.record_batch import RecordBatch
from kproto.records.settings import BatchArguments, BatchSettings

__all__ = [
    "MAX_DECOMPRESSED",
    "Batch",
    "BatchArguments",
    "BatchSettings",
    "Compression",
    "ControlRecord",
    "ControlRecordType",
    "Header",
    "Incomplete",
    "MessageBatch",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordBatches",
    "TimestampType",
    "build_batch",
    "build_control_batch",
    "end_transaction_marker",
    "read_control_record",
]
