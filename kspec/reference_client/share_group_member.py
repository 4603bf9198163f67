"""The membership of the reference client in a share group (KIP-932): what ShareGroupHeartbeat says.

Several members may have the same partition, so that nothing has to be given up, nor owned up to.
"""

from __future__ import annotations

from typing import Any

from kspec.reference_client.consumer_group_member import ConsumerGroupMember
from kspec.reference_client.link import Link
from kspec.reference_client.topics import message

__all__ = ["ShareGroupMember"]


class ShareGroupMember(ConsumerGroupMember):
    """A member of a share group."""

    def leaving_body(self, epoch: int) -> Any:
        return message("ShareGroupHeartbeatRequest")(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch
        )

    def heartbeat_body(self, link: Link) -> Any:
        return message("ShareGroupHeartbeatRequest")(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.generation,
            **self.news({"rack_id": self.rack, "subscribed_topic_names": sorted(self.names)}),
        )

    def until_owning_up(self) -> float:
        return self.interval
