"""The partitions of OffsetCommit (8), TxnOffsetCommit (28) and OffsetDelete (47): what is wrong
with them as far as a broker knows, and how they are answered.

An answer has a topic once: first the partitions that the broker refuses, then the results of the
group's coordinator. Coordinators before 4.0 have a partition once, by its last row in the request;
since then topics and partitions are repeated as in the request if the broker refuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from mockbroker.apis.calls import Call
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.metadata_views import MetadataView

__all__ = ["OffsetRow", "OffsetRows", "TopicKey"]

TopicKey: TypeAlias = tuple[str, UUID]
"""A topic's name and id as the request has them."""


class OffsetRow(msgspec.Struct):
    """One partition of the request; ``error`` is NONE as long as nothing speaks against it.
    ``place`` is that of its topic in the request."""

    place: int
    key: TopicKey
    topic: str
    partition: Any
    error: ErrorCode = ErrorCode.NONE

    @property
    def tp(self) -> tuple[str, int]:
        return self.topic, self.partition.partition_index


class OffsetRows:
    """The partitions of a request. ``valid`` are those that the coordinator decides about, or, with
    ``in_znodes``, which are stored in ZooKeeper one by one."""

    def __init__(
        self, call: Call, topics: Iterable[Any], *, by_id: bool = False, in_znodes: bool = False
    ) -> None:
        topics = list(topics)
        view = call.cluster.controller.metadata_view(call.broker_id)
        names = [_name(view, topic, by_id=by_id) for topic in topics]
        allowed = authorized_names(
            call, (name for name in names if name is not None), AclOperation.READ
        )
        any_partition = call.release.has(facts.TOPICS_OF_OFFSETS_KNOWN)
        self.valid: list[OffsetRow] = []
        self._refused: dict[TopicKey, list[OffsetRow]] = {}
        for place, (name, topic) in enumerate(zip(names, topics, strict=True)):
            error = _topic_error(name, allowed)
            known = None if name is None else view.topics.get(name)
            key = (topic.name, getattr(topic, "topic_id", ZERO_UUID))
            if error or known is None:
                self._refused.setdefault(key, [])
            for partition in topic.partitions:
                row = OffsetRow(place, key, name or "", partition, error)
                if not error and (
                    known is None or not (any_partition or known.partition(row.tp[1]))
                ):
                    row.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                found = self._refused.setdefault(key, []) if row.error else self.valid
                found.append(row)
        self._is_unique = call.release.has(facts.VALID_OFFSET_ROWS_UNIQUE)
        refused_too = call.release.has(facts.REFUSED_OFFSET_ROWS_UNIQUE)
        if self._is_unique and (refused_too or not in_znodes):
            self.valid = _unique(self.valid)
        if refused_too:
            self._refused = {key: _unique(rows) for key, rows in self._refused.items() if rows}

    def set_codes(self, codes: Iterable[ErrorCode]) -> None:
        """Give the partitions that were valid their results."""
        for row, code in zip(self.valid, codes, strict=True):
            row.error = code

    def by_topic(self) -> list[tuple[TopicKey, list[OffsetRow]]]:
        """The rows of the answer. A topic without partitions is answered only if it is refused,
        since 3.5."""
        if not self._refused and not self._is_unique:
            return [
                (key, list(rows))
                for (_, key), rows in groupby(self.valid, key=lambda row: (row.place, row.key))
            ]
        found = {key: list(rows) for key, rows in self._refused.items()}
        for row in self.valid:
            found.setdefault(row.key, []).append(row)
        return list(found.items())


def _unique(rows: Iterable[OffsetRow]) -> list[OffsetRow]:
    return list({row.tp: row for row in rows}.values())


def _name(view: MetadataView, topic: Any, *, by_id: bool) -> str | None:
    if not by_id:
        name: str = topic.name
        return name
    found = view.topic_by_id(topic.topic_id)
    return None if found is None else found.name


def _topic_error(name: str | None, allowed: frozenset[str]) -> ErrorCode:
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.NONE if name in allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
