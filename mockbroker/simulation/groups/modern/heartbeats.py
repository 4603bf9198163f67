"""Heartbeats of the newer protocols, and their answers."""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.partitions import Assignment

__all__ = [
    "JOINING",
    "LEAVING",
    "LEAVING_FOR_A_WHILE",
    "NO_EPOCH",
    "Heartbeat",
    "HeartbeatResult",
    "StaticHeartbeat",
]

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
"""Member epochs of a heartbeat that mean something else: -2 is a static member that will be
back."""
NO_EPOCH: Final = -1
"""The epoch of a commit without a member."""


class Heartbeat(msgspec.Struct, frozen=True):
    """A heartbeat. What the request leaves out is None."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def joins(self) -> bool:
        return self.member_epoch == JOINING

    @property
    def leaves(self) -> bool:
        return self.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE)

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id."""
        return False


class StaticHeartbeat(Heartbeat, frozen=True):
    """A heartbeat of a protocol with static members. A time-out of -1 is one left out."""

    instance_id: str | None = None
    rebalance_timeout_ms: int = -1

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None


class HeartbeatResult(msgspec.Struct, frozen=True):
    """``assignment`` is None if it is not sent."""

    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    interval_ms: int = 0
    assignment: Assignment | None = None
