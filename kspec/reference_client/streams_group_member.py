"""The membership of the reference client in a streams group (KIP-1071): what StreamsGroupHeartbeat
says, and the tasks that it assigns.

The topology is one subtopology, which reads the topics and has no state. Its task of a number reads
the partition of that number of each topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from kspec.reference_client.heartbeating_member import HeartbeatingMember
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import TopicPartition, message

__all__ = ["StreamsGroupMember"]

_SUBTOPOLOGY: Final = "0"
_NO_ENDPOINTS: Final = -1


class StreamsGroupMember(HeartbeatingMember):
    """A member of a streams group."""

    def __init__(self, client: ClientRules, options: Mapping[str, Any]) -> None:
        super().__init__(client, options)
        self.process_id = str(uuid4())
        self.target: frozenset[int] | None = None

    def forget_membership(self) -> None:
        super().forget_membership()
        self.target = None

    # ---- heartbeats ------------------------------------------------------------------------------

    def leaving_body(self, epoch: int) -> Any:
        return message("StreamsGroupHeartbeatRequest")(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            endpoint_information_epoch=_NO_ENDPOINTS,
        )

    def heartbeat_body(self, link: Link) -> Any:
        """The topology is in the heartbeat that joins, and in no other."""
        joining = {"topology": self.topology()} if self.joins else {}
        return message("StreamsGroupHeartbeatRequest")(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self.instance_id,
            endpoint_information_epoch=_NO_ENDPOINTS,
            **joining,
            **self.news(self.description()),
        )

    def topology(self) -> Any:
        subtopology = message("StreamsGroupHeartbeatRequest.Subtopology")(
            subtopology_id=_SUBTOPOLOGY, source_topics=sorted(self.names)
        )
        return message("StreamsGroupHeartbeatRequest.Topology")(subtopologies=[subtopology])

    def description(self) -> dict[str, Any]:
        return {
            "rack_id": self.rack,
            "rebalance_timeout_ms": self.max_poll_ms,
            "process_id": self.process_id,
            "active_tasks": self.task_rows(),
        }

    def news(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """The three kinds of tasks come together."""
        found = super().news(wanted)
        if "active_tasks" in found:
            found |= {"standby_tasks": [], "warmup_tasks": []}
        return found

    def task_rows(self) -> list[Any]:
        """Return the tasks that the member has."""
        row = message("StreamsGroupHeartbeatRequest.TaskIds")
        numbers = sorted({index for _, index in self.owned})
        return [row(subtopology_id=_SUBTOPOLOGY, partitions=numbers)] if numbers else []

    # ---- the assignment --------------------------------------------------------------------------

    async def take_target(self, answer: Any) -> bool:
        if answer.active_tasks is not None:
            self.target = frozenset(
                index for each in answer.active_tasks for index in each.partitions
            )
        if self.target is None:
            return False
        await self.find_counts()
        before, self.owned = self.owned, self.adopted(self.partitions_of(self.target))
        return before != self.owned

    async def find_counts(self) -> None:
        if not set(self.names) <= set(self.topics.counts):
            with suppress(LinkClosedError, TimedOutError, BrokerError):
                await self.topics.refresh(self.names)

    def partitions_of(self, tasks: frozenset[int]) -> frozenset[TopicPartition]:
        return frozenset(
            (name, index)
            for name in self.names
            for index in tasks
            if index < self.topics.counts.get(name, 0)
        )
