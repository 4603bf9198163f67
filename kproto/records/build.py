"""Build batches of any magic, byte for byte as Kafka's own builder does.

Compressed batches hold the same records, but their bytes differ where the libraries do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from kproto.records.encode_batch import encode_batch
from kproto.records.encode_messages import encode_messages
from kproto.records.model import NO_TIMESTAMP, Header, Record
from kproto.records.settings import BatchArguments, BatchSettings

__all__ = ["RecordBatchBuilder", "build_batch"]


class RecordBatchBuilder:
    """Collects records and builds a batch of them.

    The keyword arguments are the fields of ``BatchSettings``. Raises EncodeError, with the name of
    the setting as path, for settings that no batch can have: a transactional batch without a
    producer id, zstd before magic 2, ...
    """

    def __init__(self, **settings: Unpack[BatchArguments]) -> None:
        self.settings = BatchSettings(**settings)
        self.settings.check()
        self._records: list[Record] = []

    def __len__(self) -> int:
        """Return the number of records appended."""
        return len(self._records)

    def append(
        self,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        timestamp: int = NO_TIMESTAMP,
        headers: Iterable[Header] = (),
        offset: int = -1,
    ) -> None:
        """Add a record. An ``offset`` of -1 means the one after the previous record."""
        self._records.append(Record(offset, timestamp, key, value, tuple(headers)))

    def extend(self, records: Iterable[Record]) -> None:
        """Add records with the offsets they have."""
        self._records.extend(records)

    def build(self) -> bytes:
        """Return the batch; without records, no bytes at all, as in Kafka.

        Raises EncodeError with a path such as ``records[3].timestamp``, and MissingExtraError if
        the codec's library is not installed. The builder keeps its records, and more may be
        appended.
        """
        return _build(self._records, self.settings)


def build_batch(records: Iterable[Record], **settings: Unpack[BatchArguments]) -> bytes:
    """Build one batch of ``records``, as ``RecordBatchBuilder`` does.

    ::

        build_batch([Record(value=b"a", timestamp=0)], compression=Compression.GZIP)
    """
    batch = BatchSettings(**settings)
    batch.check()
    return _build(records if isinstance(records, list | tuple) else list(records), batch)


def _build(records: Sequence[Record], settings: BatchSettings) -> bytes:
    if not records:
        return b""
    return (encode_batch if settings.magic == 2 else encode_messages)(records, settings)
