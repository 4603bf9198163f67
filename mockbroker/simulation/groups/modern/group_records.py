"""Records of groups on their way to ``__consumer_offsets``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeAlias

from kproto import messages
from kproto.codec.message import Message
from kproto.messages.group_metadata_key import GroupMetadataKey
from mockbroker.simulation.groups.modern.group_topics import TopicFacts
from mockbroker.simulation.groups.modern.modern_group import GroupT
from mockbroker.simulation.releases.release import Fact, Release

__all__ = ["GroupRecords", "RecordWriter", "StoredRecord", "WriteRecords", "metadata_hash"]

StoredRecord: TypeAlias = tuple[Message, Message | None]
"""Key and value; no value deletes what the key names."""

WriteRecords: TypeAlias = Callable[[str, Iterable[StoredRecord]], None]
"""Appends records for a group, which is given by its id."""


class RecordWriter:
    """Keeps what changed until the end of a request or a timer, and writes it as one batch."""

    def __init__(self, write: WriteRecords) -> None:
        self._write = write
        self._unwritten: list[StoredRecord] = []

    def note(self, *records: StoredRecord) -> None:
        """Keep records for the next ``write_noted``."""
        self._unwritten += records

    def write_noted(self, group_id: str) -> bool:
        """Write what was noted for a group. Returns whether there was anything."""
        records, self._unwritten = self._unwritten, []
        if records:
            self._write(group_id, records)
        return bool(records)


class GroupRecords(Generic[GroupT]):
    """The records of one kind of groups in the form of one release; subclasses fill in the values.

    ``kind`` begins the names of their messages: ``ShareGroup`` for ShareGroupMetadataKey.
    """

    target_times: ClassVar[Fact]
    """Whether the record of a target has the time at which it was made."""
    epoch_key: ClassVar[Callable[..., Message]]
    target_epoch_key: ClassVar[Callable[..., Message]]
    target_epoch_value: ClassVar[Callable[..., Message]]
    member_key: ClassVar[Callable[..., Message]]
    target_key: ClassVar[Callable[..., Message]]
    current_key: ClassVar[Callable[..., Message]]

    def __init_subclass__(cls, kind: str) -> None:
        super().__init_subclass__()
        cls.epoch_key = getattr(messages, f"{kind}MetadataKey")
        cls.target_epoch_key = getattr(messages, f"{kind}TargetAssignmentMetadataKey")
        cls.target_epoch_value = getattr(messages, f"{kind}TargetAssignmentMetadataValue")
        cls.member_key = getattr(messages, f"{kind}MemberMetadataKey")
        cls.target_key = getattr(messages, f"{kind}TargetAssignmentMemberKey")
        cls.current_key = getattr(messages, f"{kind}CurrentMemberAssignmentKey")

    def __init__(self, release: Release) -> None:
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._has_target_time = release.has(self.target_times)

    # ---- groups ------------------------------------------------------------------------------

    def epoch(self, group: GroupT) -> StoredRecord:
        """The epoch of a group, with what its target depends on."""
        return self.epoch_key(group_id=group.group_id), self._epoch_value(group)

    def target_epoch(self, group: GroupT) -> StoredRecord:
        """The epoch for which the target was made."""
        value = self.target_epoch_value(
            assignment_epoch=group.target_epoch,
            assignment_timestamp=group.target_ms if self._has_target_time else 0,
        )
        return self.target_epoch_key(group_id=group.group_id), value

    def topics(self, group: GroupT) -> list[StoredRecord]:
        """The topics of a group, where they have a record of their own."""
        return []

    def deletion(self, group: GroupT) -> list[StoredRecord]:
        """The deletion of a group with its members."""
        group_id = group.group_id
        keys = [
            *(
                self.current_key(group_id=group_id, member_id=member_id)
                for member_id in group.members
            ),
            *(
                self.target_key(group_id=group_id, member_id=member_id)
                for member_id in group.members
            ),
            self.target_epoch_key(group_id=group_id),
            *(
                self.member_key(group_id=group_id, member_id=member_id)
                for member_id in group.members
            ),
            *self._group_keys(group),
        ]
        return [(key, None) for key in keys]

    @staticmethod
    def classic_deletion(group_id: str) -> StoredRecord:
        """The deletion of the classic group of this id."""
        return GroupMetadataKey(group=group_id), None

    # ---- members -----------------------------------------------------------------------------

    def member(self, group_id: str, member: Any) -> StoredRecord:
        """The metadata of a member: all but its assignment."""
        key = self.member_key(group_id=group_id, member_id=member.member_id)
        return key, self._member_value(member)

    def target(self, group_id: str, member_id: str, target: Any) -> StoredRecord:
        """The target of a member."""
        key = self.target_key(group_id=group_id, member_id=member_id)
        return key, self._target_value(target)

    def current(self, group_id: str, member: Any) -> StoredRecord:
        """The assignment of a member, and its epochs."""
        key = self.current_key(group_id=group_id, member_id=member.member_id)
        return key, self._current_value(member)

    def member_deletion(self, group_id: str, member_id: str) -> list[StoredRecord]:
        """The deletion of a member."""
        keys = self.current_key, self.target_key, self.member_key
        return [(key(group_id=group_id, member_id=member_id), None) for key in keys]

    # ---- what differs by kind ----------------------------------------------------------------

    def _epoch_value(self, group: GroupT) -> Message:
        raise NotImplementedError

    def _group_keys(self, group: GroupT) -> list[Message]:
        """The keys of a group that its deletion deletes last."""
        raise NotImplementedError

    def _member_value(self, member: Any) -> Message:
        raise NotImplementedError

    def _target_value(self, target: Any) -> Message:
        raise NotImplementedError

    def _current_value(self, member: Any) -> Message:
        raise NotImplementedError


def metadata_hash(facts: tuple[TopicFacts, ...]) -> int:
    """A signed number of 64 bits, 0 for no topics.

    It is not Kafka's: it only ever is compared with others of the same coordinator.
    """
    if not facts:
        return 0
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
