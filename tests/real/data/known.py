"""Answers of real Kafka in which the mock differs, each with its reason.

Patterns are as in ``tests.real.known_differences``. ``docs/explanation/fidelity.md`` has the
reasons for readers.
"""

from __future__ import annotations

from typing import Final

from tests.real.known_differences import Known

__all__ = ["KNOWN"]

_UNREAD: Final = "the mock does not read the records of a batch whose header passes every check"
_HEADER: Final = (
    "Kafka computes the newest timestamp from the records; the mock believes the header"
)
_DELETED: Final = "Kafka looks at the records of a segment, those below the log start included"

_ALL: Final = (
    Known("produce-wrong-counts-*", "*", _UNREAD),
    Known("produce-unknown-attributes-*", "*", _UNREAD),
    Known("produce-a-wrong-max-timestamp-*", "*maxTimestamp", _HEADER),
    Known("list-offsets-after-delete-records-*", "*", _DELETED),
)

_GROUP_CONFIGS: Final = (
    "3.9 knows configs of groups, and refuses to describe them with another text"
)

_OLD: Final = (Known("configs-of-groups-v*", "answer.results*.errorMessage", _GROUP_CONFIGS),)

KNOWN: Final[dict[str, tuple[Known, ...]]] = {
    "kafka-4.4": _ALL,
    "kafka-3.9": (*_ALL, *_OLD),
}
"""By profile."""
