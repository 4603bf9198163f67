"""Answers of real Kafka in which the mock differs, each with its reason.

Patterns are as in ``tests.real.known_differences``. ``docs/explanation/fidelity.md`` has the
reasons for readers.
"""

from __future__ import annotations

from typing import Final

from tests.real.known_differences import Known

__all__ = ["KNOWN"]

_TWICE: Final = "Kafka answers a partition once that a request names twice; the mock as often"
_UNREAD: Final = "the mock does not read the records of a batch whose header passes every check"
_EMPTY: Final = "Kafka leaves topics without partitions out of its answer"
_SEGMENTS: Final = "a fetch of Kafka's ends with the segment, which timestamps may end"

_ALL: Final = (
    Known("produce-wrong-counts-*", "*", _UNREAD),
    Known("produce-unknown-attributes-*", "*", _UNREAD),
    Known("produce-a-partition-twice-*", "*", _TWICE),
    Known("list-offsets-twice-*", "*", f"{_TWICE}; {_EMPTY}"),
    Known("produce-timestamps-by-default-*", "*records*", _SEGMENTS),
    Known("commit-unknown-*", "answer.topics*", _EMPTY),
)

KNOWN: Final[dict[str, tuple[Known, ...]]] = {
    "kafka-4.4": _ALL,
    "kafka-3.9": _ALL,
}
"""By profile."""
