"""Damage to stored batches, as disks and networks do it, so that readers have to find it."""

from __future__ import annotations

from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE, with_header
from mockbroker.simulation.log.batches.batch_storage import StoredBatch
from mockbroker.simulation.log.batches.corruption_names import CORRUPTIONS

__all__ = ["damaged"]

_CRC_AT: Final = 17
_CODEC_BYTES: Final = 4


def damaged(batch: StoredBatch, how: str) -> bytes:
    """Return a damaged copy of a batch, of the same size. Raises ClusterError if ``how`` is none of
    ``CORRUPTIONS``, or if the batch has no such bytes."""
    if how not in CORRUPTIONS:
        raise ClusterError(f"a batch is damaged by one of {', '.join(CORRUPTIONS)}, not by {how!r}")
    header, stored = batch
    data = bytearray(stored)
    if how == "count":
        return with_header(data, header._replace(record_count=header.record_count + 1))
    if how == "crc":
        data[_CRC_AT] ^= 1
        return bytes(data)
    if len(data) == HEADER_SIZE:
        raise ClusterError("the batch has no records to damage")
    if how == "bit":
        data[HEADER_SIZE + (len(data) - HEADER_SIZE) // 2] ^= 1
        return bytes(data)
    if not header.codec:
        raise ClusterError("the batch is not compressed")
    for at in range(HEADER_SIZE, min(HEADER_SIZE + _CODEC_BYTES, len(data))):
        data[at] ^= 0xFF
    return with_header(data, header)
