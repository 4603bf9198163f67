"""Mistakes that members of consumer groups (KIP-848) and of streams groups (KIP-1071) share.

Each changes one rule of ``HeartbeatingMember``, and is a base class of a defect of either.
"""

from __future__ import annotations

from typing import ClassVar, Final

from kspec.reference_client.heartbeating_member import HeartbeatingMember
from kspec.reference_client.link import BrokerError
from kspec.reference_client.membership import GroupCoordinators
from kspec.reference_client.topics import TopicPartition

__all__ = [
    "EndsIfUnknown",
    "EndsWithAnyError",
    "HidesFatalErrors",
    "KeepsItsCoordinator",
    "KeepsRevokedPartitions",
    "RepeatsAFencedHeartbeat",
    "StaysSilentAtClose",
]

_COORDINATOR_NOT_AVAILABLE: Final = 15
_UNKNOWN_MEMBER_ID: Final = 25
_NEVER: Final = 3600.0
"""Seconds: longer than any case."""


class RepeatsAFencedHeartbeat(HeartbeatingMember):
    def on_fenced(self) -> float:
        return self.next_try()


class EndsIfUnknown(HeartbeatingMember):
    def on_unknown_member(self) -> float:
        self.end(BrokerError(_UNKNOWN_MEMBER_ID))
        return 0


class EndsWithAnyError(HeartbeatingMember):
    def pass_or_end(self, error: BrokerError) -> float:
        # The broker is still creating the internal topic.
        if error.code == _COORDINATOR_NOT_AVAILABLE and not self.reported:
            return super().pass_or_end(error)
        self.end(error)
        return 0


class HidesFatalErrors(HeartbeatingMember):
    def end(self, error: Exception) -> None:
        self.owned = frozenset()

    def pass_or_end(self, error: BrokerError) -> float:
        return super().pass_or_end(error) or _NEVER


class KeepsRevokedPartitions(HeartbeatingMember):
    def adopted(self, wanted: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        return wanted | self.owned


class StaysSilentAtClose(HeartbeatingMember):
    def leaves_at_close(self) -> bool:
        return False


class KeepsItsCoordinator(HeartbeatingMember):
    class Faithful(GroupCoordinators):
        def forget(self, kind: int, key: str) -> None:
            """Ignored."""

    coordinators_type: ClassVar[type[GroupCoordinators]] = Faithful
