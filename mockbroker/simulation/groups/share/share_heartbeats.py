"""What happens to share groups: the contexts of the rows of the coordinator."""

from __future__ import annotations

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareHeartbeat, ShareMember
from mockbroker.simulation.groups.share.share_settings import ShareSettings

__all__ = ["ShareGroupEvent", "ShareHeartbeatEvent"]


class ShareHeartbeatEvent(msgspec.Struct, eq=False):
    """A heartbeat before it changes anything. ``group`` is None if there is none of this kind,
    ``foreign`` says whether another kind has the id. The rows decide on ``result``, which ends the
    heartbeat, or on ``former``: the member that sends it, as it was."""

    request: ShareHeartbeat
    coordinator_error: ErrorCode
    settings: ShareSettings
    group: ShareGroup | None
    foreign: bool
    former: ShareMember | None = None
    result: HeartbeatResult | None = None

    @property
    def known(self) -> ShareGroup:
        assert self.group is not None, "rows above refuse or make the group"
        return self.group

    @property
    def member(self) -> ShareMember:
        """The member that sends the heartbeat. Only for rows below those that find it."""
        assert self.former is not None, "rows above refuse or make the member"
        return self.former

    def reject(self, code: ErrorCode, text: str | None) -> None:
        self.result = HeartbeatResult(code, text)

    def words(self) -> dict[str, object]:
        """What texts of errors may name."""
        former = self.former
        return {
            "group": self.request.group_id,
            "member": self.request.member_id,
            "received": self.request.member_epoch,
            "epoch": None if former is None else former.epoch,
            "previous": None if former is None else former.previous_epoch,
            "size": self.settings.max_size,
        }


class ShareGroupEvent(msgspec.Struct, eq=False):
    """Something happens to a group. ``unassigned``: share partitions exist that no target has."""

    group: ShareGroup
    now_ms: int
    assignment_interval_ms: int = 0
    subscription_changed: bool = False
    topics_changed: bool = False
    unassigned: bool = False
    bumps: bool = False
    """Whether the epoch rises."""
    makes_target: bool = False
    settles: bool = False
    """Whether the group, which lost its last member, needs no other target."""
