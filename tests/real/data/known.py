"""Answers of real Kafka in which the mock differs, each with its reason.

Patterns are as in ``tests.real.known_differences``. ``docs/explanation/fidelity.md`` has the
reasons for readers.
"""

from __future__ import annotations

from typing import Final

from tests.real.known_differences import Known

__all__ = ["KNOWN"]

_TRAILING: Final = (
    "Kafka's readers of gzip, snappy and lz4 ignore bytes behind the compressed content"
)
_NEGATIVE: Final = (
    "Kafka takes every negative length for null; the mock only -1, as the format says"
)
_DELETED: Final = "Kafka looks at the records of a segment, those below the log start included"

_ALL: Final = (
    Known("produce-bytes-behind-content-*", "*", _TRAILING),
    Known("produce-negative-lengths-*", "*", _NEGATIVE),
    Known("list-offsets-after-delete-records-*", "*", _DELETED),
)

KNOWN: Final[dict[str, tuple[Known, ...]]] = {
    "kafka-4.4": _ALL,
    "kafka-3.9": _ALL,
}
"""By profile."""
