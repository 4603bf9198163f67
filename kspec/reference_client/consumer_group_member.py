"""The membership of the reference consumer in a group of KIP-848: what ConsumerGroupHeartbeat says,
and the partitions that it assigns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from kspec.reference_client.heartbeating_member import HeartbeatingMember
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import message

__all__ = ["ConsumerGroupMember"]

_HEARTBEAT: Final = 68
_OWN_ID_SINCE: Final = 1


class ConsumerGroupMember(HeartbeatingMember):
    """A member of a consumer group."""

    def __init__(self, client: ClientRules, options: Mapping[str, Any]) -> None:
        super().__init__(client, options)
        self.assignor: str | None = options.get("remote_assignor")
        self.target: dict[UUID, list[int]] | None = None

    def forget_membership(self) -> None:
        super().forget_membership()
        self.target = None

    # ---- heartbeats ------------------------------------------------------------------------------

    def leaving_body(self, epoch: int) -> Any:
        return message("ConsumerGroupHeartbeatRequest")(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
        )

    def heartbeat_body(self, link: Link) -> Any:
        known = link.choose_version(_HEARTBEAT) >= _OWN_ID_SINCE
        return message("ConsumerGroupHeartbeatRequest")(
            group_id=self.group,
            member_id=self.member_id if known or self.generation else "",
            member_epoch=self.generation,
            instance_id=self.instance_id,
            **self.news(self.everything(known)),
        )

    def everything(self, with_regex: bool) -> dict[str, Any]:
        return {
            "rack_id": self.rack,
            "rebalance_timeout_ms": self.max_poll_ms,
            "subscribed_topic_names": None if self.pattern else sorted(self.names),
            "subscribed_topic_regex": self.pattern if with_regex else None,
            "server_assignor": self.assignor,
            "topic_partitions": self.owned_rows(),
        }

    def owned_rows(self) -> list[Any]:
        row = message("ConsumerGroupHeartbeatRequest.TopicPartitions")
        rows: dict[str, list[int]] = {}
        for name, index in sorted(self.owned):
            rows.setdefault(name, []).append(index)
        return [row(topic_id=self.topics.ids[name], partitions=each) for name, each in rows.items()]

    # ---- the assignment --------------------------------------------------------------------------

    async def take_target(self, answer: Any) -> bool:
        if answer.assignment is not None:
            self.target = {
                each.topic_id: list(each.partitions) for each in answer.assignment.topic_partitions
            }
        return self.target is not None and await self.reconcile()

    async def reconcile(self) -> bool:
        """Own what is assigned; return whether that is a change.

        A topic whose id is not known yet is left for the next time.
        """
        assert self.target is not None
        names = {topic_id: name for name, topic_id in self.topics.ids.items()}
        if any(topic_id not in names for topic_id in self.target):
            with suppress(LinkClosedError, TimedOutError, BrokerError):
                await self.find_topics()
            names = {topic_id: name for name, topic_id in self.topics.ids.items()}
        wanted = frozenset(
            (names[topic_id], index)
            for topic_id, indexes in self.target.items()
            if topic_id in names
            for index in indexes
        )
        before, self.owned = self.owned, self.adopted(wanted)
        return before != self.owned

    async def find_topics(self) -> None:
        if self.pattern is not None:
            await self.topics.refresh_all()
        else:
            await self.topics.refresh(self.names)
