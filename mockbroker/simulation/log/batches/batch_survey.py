"""The records of a batch, whatever its header says of them.

A broker reads every record of a batch before it stores the batch. Most batches are not compressed,
and the C extension surveys those without making an object.
"""

from __future__ import annotations

from kproto.errors import DecodeError
from kproto.records import Record, RecordBatches
from kproto.records.batch import Batch
from kproto.records.native import record_codec
from kproto.records.record import RecordSurvey, Section, read_records, survey_records
from kproto.records.record_batch import RecordBatch
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE, BatchHeader

__all__ = ["CompressionError", "records_of", "survey_batch"]


class CompressionError(Exception):
    """The content of a batch cannot be decompressed."""


def survey_batch(data: bytes, header: BatchHeader) -> RecordSurvey:
    """Read the records of a batch of magic 2. Raises DecodeError where they are not those that the
    header declares, CompressionError, and MissingExtraError for a codec that is not installed."""
    codec = record_codec()
    if codec is not None and not header.codec:
        found = codec.survey(
            data,
            HEADER_SIZE,
            len(data),
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if header.has_append_time else None,
        )
        if found is not None:
            return RecordSurvey._make(found)
    (batch,) = RecordBatches(data, check_crc=False)
    assert isinstance(batch, RecordBatch), "the caller has read a header of magic 2"
    return survey_records(_section_of(batch))


def records_of(batch: Batch) -> list[Record]:
    """Read the records of a batch of any magic. Raises what ``survey_batch`` raises."""
    return read_records(*_section_of(batch)) if isinstance(batch, RecordBatch) else batch.records()


def _section_of(batch: RecordBatch) -> Section:
    try:
        return batch.section()
    except DecodeError as error:
        if error.path.endswith(".records"):  # a wrong count has another path
            raise CompressionError(str(error)) from None
        raise
