"""Writes the generations of classic groups to the log of ``__consumer_offsets``."""

from __future__ import annotations

from kproto.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from mockbroker.simulation.coordinators.group_log import GroupLog
from mockbroker.simulation.groups.classic.classic_group import StoredGroup, StoredMember
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release

__all__ = ["StoredGroups"]


class StoredGroups:
    """Follows the groups, and appends the last stored state of each when it changes."""

    def __init__(self, groups: ClassicGroups, log: GroupLog, release: Release) -> None:
        self._groups = groups
        self._log = log
        release.follow(self._use_release)
        self._written: dict[str, StoredGroup] = {}
        groups.on_changed.append(self._changed)
        groups.on_classic_deleted.append(self._deleted)

    def _use_release(self, release: Release) -> None:
        self._deletes_every_group = release.has(facts.UNWRITTEN_GROUPS_DELETED)

    def _changed(self, group_id: str) -> None:
        group = self._groups.group(group_id)
        stored = None if group is None else group.stored
        if stored is not None and stored is not self._written.get(group_id):
            self._written[group_id] = stored
            self._log.store_group(group_id, _value(stored))

    def _deleted(self, group_id: str) -> None:
        written = self._written.pop(group_id, None)
        if written is not None or self._deletes_every_group:
            self._log.store_group(group_id, None)


def _value(stored: StoredGroup) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=stored.protocol_type or "",
        generation=stored.generation,
        protocol=stored.protocol_name,
        leader=stored.leader,
        current_state_timestamp=stored.since_ms,
        members=[_member(member, stored.protocol_name) for member in stored.members],
    )


def _member(member: StoredMember, protocol_name: str | None) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=next((data for name, data in member.protocols if name == protocol_name), b""),
        assignment=member.assignment,
    )
