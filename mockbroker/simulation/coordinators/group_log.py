"""The records of groups and their offsets in ``__consumer_offsets``, as Kafka writes them.

The state itself is kept as objects (``offsets``, ``mockbroker.simulation.groups``); nothing is read
back from the log. It is there for consumers of the topic, and so that a log that cannot be written
or replicated fails commits.

::

    key    type int16 (1: an offset, 2: a group), then the fields of the message
    value  version int16, then the fields; null deletes what the key names
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from kproto.codec.message import Message
from kproto.messages.group_metadata_key import GroupMetadataKey
from kproto.messages.group_metadata_value import GroupMetadataValue
from kproto.messages.offset_commit_key import OffsetCommitKey
from kproto.messages.offset_commit_value import OffsetCommitValue
from kproto.records import Record
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.offset_rules import CommittedOffset
from mockbroker.simulation.coordinators.offset_store import OffsetUpdates, Stored
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.log.logs import InternalProducer
from mockbroker.simulation.log.producing.appender import Appender
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.cluster_parts import NO_LEADER, TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = ["GroupLog", "group_record", "offset_record"]

_OFFSET_WITH_END: Final = 1
"""The version of OffsetCommitValue for an offset with an end of its own."""


def _key(message: Message) -> bytes:
    assert message.API_KEY is not None
    return message.API_KEY.to_bytes(2, "big") + message.encode(0)


def _value(message: Message, version: int) -> bytes:
    return version.to_bytes(2, "big") + message.encode(version)


def offset_record(
    release: Release,
    group_id: str,
    tp: TopicPartition,
    offset: CommittedOffset | None,
    topic_id: uuid.UUID = ZERO_UUID,
) -> Record:
    """Return the record of a committed offset; None: of its deletion."""
    key = _key(OffsetCommitKey(group=group_id, topic=tp[0], partition=tp[1]))
    if offset is None:
        return Record(key=key, value=None)
    ends = offset.expires_ms is not None
    version = _OFFSET_WITH_END if ends else release.value_of(facts.OFFSET_COMMIT_VERSION)
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_ms,
        expire_timestamp=-1 if offset.expires_ms is None else offset.expires_ms,
        topic_id=topic_id,
    )
    return Record(key=key, value=_value(value, version))


def group_record(release: Release, group_id: str, value: GroupMetadataValue | None) -> Record:
    """Return the record of a group's generation; None: of the group's deletion."""
    key = _key(GroupMetadataKey(group=group_id))
    if value is None:
        return Record(key=key, value=None)
    return Record(key=key, value=_value(value, release.value_of(facts.GROUP_METADATA_VERSION)))


class GroupLog:
    """Writes to the partition of ``__consumer_offsets`` that a group belongs to."""

    def __init__(
        self,
        controller: Controller,
        coordinators: Coordinators,
        appender: Appender,
        release: Release,
    ) -> None:
        self._controller = controller
        self._coordinators = coordinators
        self._appender = appender
        self._release = release

    def store_offsets(
        self, group_id: str, updates: OffsetUpdates, producer: InternalProducer | None
    ) -> Stored:
        """Append updates of a group's offsets as one batch; ``producer`` is that of the transaction
        to which they belong."""
        topics = self._controller.state.topics
        return self._append(
            group_id,
            [
                offset_record(
                    self._release,
                    group_id,
                    tp,
                    offset,
                    topics[tp[0]].topic_id if tp[0] in topics else ZERO_UUID,
                )
                for tp, offset in updates.items()
            ],
            producer,
        )

    def store_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """Append a group's generation, or None: its deletion."""
        self._append(group_id, [group_record(self._release, group_id, value)])

    def store_records(
        self, group_id: str, records: Iterable[tuple[Message, Message | None]]
    ) -> None:
        """Append records of a consumer group as one batch; those without a value are deletions."""
        self._append(
            group_id,
            [
                Record(key=_key(key), value=None if value is None else _value(value, 0))
                for key, value in records
            ],
        )

    def _append(
        self, group_id: str, records: Iterable[Record], producer: InternalProducer | None = None
    ) -> Stored:
        tp = self._coordinators.partition_of(CoordinatorKind.GROUP, group_id)
        leader = self._coordinators.leader(tp)
        if leader == NO_LEADER:
            # Only testers act on groups that have no coordinator.
            return Stored()
        outcome = self._appender.append_internal(leader, tp, records, producer)
        if outcome.error:
            return Stored(outcome.error)
        if outcome.is_replicated:
            return Stored()
        wait = self._appender.wait([outcome])
        return Stored() if wait.is_over else Stored(wait=wait, outcome=outcome)
