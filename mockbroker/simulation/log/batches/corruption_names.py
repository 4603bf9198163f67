"""The names of the ways in which ``corruption`` damages batches: command lines need no more."""

from __future__ import annotations

from typing import Final

__all__ = ["CORRUPTIONS"]

CORRUPTIONS: Final = ("bit", "crc", "count", "codec")
"""What can be damaged: a bit of the records, the checksum, the count of records, or the bytes of
the codec. The checksum fits a wrong count and wrong bytes of a codec."""
