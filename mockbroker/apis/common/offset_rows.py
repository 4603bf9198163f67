"""The partitions of OffsetCommit (8) and TxnOffsetCommit (28), and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.apis.calls import Call
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.metadata_views import MetadataView

__all__ = [
    "OffsetRow",
    "OffsetTopic",
    "checked_topics",
    "set_codes",
    "valid_rows",
]


class OffsetRow(msgspec.Struct):
    """One partition of the request; ``error`` is NONE as long as nothing speaks against it."""

    topic: str
    partition: Any
    error: ErrorCode = ErrorCode.NONE

    @property
    def tp(self) -> tuple[str, int]:
        return self.topic, self.partition.partition_index


class OffsetTopic(msgspec.Struct):
    """One topic of the request. ``is_refused``: it is unknown, or not the caller's."""

    is_refused: bool
    rows: list[OffsetRow]

    @property
    def is_answered(self) -> bool:
        """A topic without partitions is answered only if it is refused."""
        return bool(self.rows) or self.is_refused


def checked_topics(call: Call, topics: Iterable[Any], *, by_id: bool) -> list[OffsetTopic]:
    """The topics with their partitions, and what is wrong with them as far as this broker knows."""
    topics = list(topics)
    view = call.cluster.controller.metadata_view(call.broker_id)
    names = [_name(view, topic, by_id=by_id) for topic in topics]
    allowed = authorized_names(
        call, (name for name in names if name is not None), AclOperation.READ
    )
    checked = []
    for name, topic in zip(names, topics, strict=True):
        known = None if name is None else view.topics.get(name)
        error = ErrorCode.NONE
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif name not in allowed:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = [OffsetRow(name or "", partition, error) for partition in topic.partitions]
        for row in found:
            if not error and (known is None or known.partition(row.tp[1]) is None):
                row.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        checked.append(OffsetTopic(bool(error) or known is None, found))
    return checked


def _name(view: MetadataView, topic: Any, *, by_id: bool) -> str | None:
    if not by_id:
        name: str = topic.name
        return name
    found = view.topic_by_id(topic.topic_id)
    return None if found is None else found.name


def valid_rows(topics: Iterable[OffsetTopic]) -> list[OffsetRow]:
    """Those without an error."""
    return [row for topic in topics for row in topic.rows if not row.error]


def set_codes(topics: Iterable[OffsetTopic], codes: Iterable[ErrorCode]) -> None:
    """Give the partitions that were valid their results."""
    for row, code in zip(valid_rows(topics), codes, strict=True):
        row.error = code
