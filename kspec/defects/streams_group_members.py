"""Defects of members of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from kspec.defects import heartbeat_defects
from kspec.defects.declaration import defect
from kspec.reference_client.link import Link
from kspec.reference_client.streams_group_member import StreamsGroupMember
from kspec.reference_client.topics import TopicPartition

__all__: list[str] = []


@defect("hides-its-process")
class HidesItsProcess(StreamsGroupMember):
    """Joins a streams group without the id of its process."""

    def description(self) -> dict[str, Any]:
        return {**super().description(), "process_id": None}


@defect("stays-fenced-with-its-tasks")
class StaysFencedWithItsTasks(heartbeat_defects.RepeatsAFencedHeartbeat, StreamsGroupMember):
    """Repeats its heartbeat, and keeps its tasks, when a streams group refuses its epoch."""


@defect("ends-when-its-tasks-are-gone")
class EndsWhenItsTasksAreGone(heartbeat_defects.EndsIfUnknown, StreamsGroupMember):
    """Processes no more when the coordinator of its streams group does not know it."""


@defect("is-another-member-each-time")
class IsAnotherMemberEachTime(StreamsGroupMember):
    """Joins a streams group with another member id after each failure."""

    def next_try(self) -> float:
        self.forget_membership()
        self.member_id = str(uuid4())
        return super().next_try()


@defect("repeats-its-topology")
class RepeatsItsTopology(StreamsGroupMember):
    """Has its topology in every heartbeat."""

    beats = 0

    def heartbeat_body(self, link: Link) -> Any:
        self.beats += 1
        body = super().heartbeat_body(link)
        body.topology = self.topology()
        return body

    def adopted(self, wanted: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """It has tasks only after the second heartbeat, which is refused: whether it reads anything
        before that does not depend on the machine."""
        return wanted if self.beats > 1 else frozenset()


@defect("hides-its-tasks")
class HidesItsTasks(StreamsGroupMember):
    """Does not tell the coordinator which tasks it has."""

    def task_rows(self) -> list[Any]:
        return []


@defect("keeps-tasks-that-are-taken-away")
class KeepsTasksThatAreTakenAway(heartbeat_defects.KeepsRevokedPartitions, StreamsGroupMember):
    """Goes on with tasks that it has to give up."""


@defect("leaves-its-tasks-behind")
class LeavesItsTasksBehind(heartbeat_defects.StaysSilentAtClose, StreamsGroupMember):
    """Does not tell the coordinator that it leaves its streams group."""


@defect("waits-for-streams-groups")
class WaitsForStreamsGroups(StreamsGroupMember):
    """Tries to join again and again although the brokers have no streams groups."""

    async def beat_once(self) -> float:
        seconds = await super().beat_once()
        if self.fatal is None:
            return seconds
        self.fatal = None
        return self.next_try()


@defect("hides-that-it-was-refused")
class HidesThatItWasRefused(heartbeat_defects.HidesFatalErrors, StreamsGroupMember):
    """Stops when a streams group refuses it for good, and does not report it."""


@defect("keeps-the-coordinator-of-its-tasks")
class KeepsTheCoordinatorOfItsTasks(heartbeat_defects.KeepsItsCoordinator, StreamsGroupMember):
    """Never looks for another coordinator of its streams group."""


@defect("gives-up-on-its-tasks")
class GivesUpOnItsTasks(heartbeat_defects.EndsWithAnyError, StreamsGroupMember):
    """Ends with the first error of a streams group's coordinator, whatever it is."""
