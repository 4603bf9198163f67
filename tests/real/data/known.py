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

_HEADER: Final = (
    "Kafka computes the newest timestamp from the records; the mock believes the header"
)
_DELETED: Final = "Kafka looks at the records of a segment, those below the log start included"

_ALL: Final = (
    Known("produce-wrong-counts-*", "*", _UNREAD),
    Known("produce-unknown-attributes-*", "*", _UNREAD),
    Known("produce-a-wrong-max-timestamp-*", "*maxTimestamp", _HEADER),
    Known("produce-a-partition-twice-*", "*", _TWICE),
    Known("produce-timestamps-by-default-*", "*records*", _SEGMENTS),
    Known("list-offsets-twice-*", "*", f"{_TWICE}; {_EMPTY}"),
    Known("list-offsets-after-delete-records-*", "*", _DELETED),
    Known("delete-records-twice-in-a-request-*", "answer.topics*", _TWICE),
    Known("delete-records-out-of-range-* #6", "answer.topics*", _EMPTY),
    Known("commit-unknown-* #3", "answer.topics*", _EMPTY),
)

_OLD: Final = (
    Known("fetch-offsets-of-nothing-*", "*topics*", _EMPTY),
    Known("list-special-offsets-*v0 *", "*errorCode", "version 0 refuses times below -2"),
    Known("list-offsets-of-unknown-v0 #4", "*errorCode", "version 0 refuses times below -2"),
    Known("delete-offsets-v0 #8", "*", "a group ends with its last offset that is deleted"),
)

KNOWN: Final[dict[str, tuple[Known, ...]]] = {
    "kafka-4.4": _ALL,
    "kafka-3.9": (*_ALL, *_OLD),
}
"""By profile."""
