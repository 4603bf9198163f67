"""Members of consumer groups without sockets: heartbeats to the coordinator, and their answers."""

import uuid
from collections.abc import Iterable
from typing import Any

from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup, HeartbeatRequest
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.partitions import Assignment
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.simulation.groups.modern_members import ModernMembers

__all__ = ["Consumers"]


class Consumers(ModernMembers[ConsumerGroup, HeartbeatResult]):
    """Members of consumer groups. Partitions are written ``foo-0``."""

    group_type = "consumer"
    request = HeartbeatRequest

    def __init__(
        self,
        release: tuple[int, int] = (4, 2),
        topics: Iterable[str] = ("foo:6:1",),
        brokers: int | Iterable[Broker] = 1,
        **configs: object,
    ) -> None:
        super().__init__(release, topics, brokers, **configs)

    def ids(self, partitions: Iterable[str]) -> Assignment:
        found = set()
        for each in partitions:
            name, _, index = each.rpartition("-")
            topic_id = self.groups.topics.id_of(name)
            assert topic_id is not None
            found.add((topic_id, int(index)))
        return frozenset(found)

    def names(self, partitions: Iterable[tuple[uuid.UUID, int]]) -> list[str]:
        by_name = self.groups.topics.by_name(partitions)
        return [f"{name}-{index}" for name, indexes in by_name for index in indexes]

    def assigned(self, member: str) -> list[str]:
        return self.names(self.group.members[member].assigned)

    def revoking(self, member: str) -> list[str]:
        return self.names(self.group.members[member].revoking)

    def target(self, member: str) -> list[str]:
        return self.names(self.group.target[member])

    def _fields(self, member: str, fields: dict[str, Any]) -> dict[str, Any]:
        owned = fields.pop("owned", None)
        if owned is not None and not isinstance(owned, frozenset):
            owned = self.ids(owned)
        return {**super()._fields(member, fields), "owned": owned}

    def join(self, member: str = "a", **fields: Any) -> HeartbeatResult:
        """Join, subscribed to foo unless a regular expression is given."""
        topics = None if "topic_regex" in fields else ["foo"]
        given = {"topics": topics, "rebalance_timeout_ms": 60_000, "owned": []}
        return self.beat(member, 0, **{**given, **fields})

    def settle(self, *members: str) -> None:
        """Let members send heartbeats with what they have, until all of them are at the target."""
        for _ in range(10):
            for each in members or tuple(self.group.members):
                self.beat(each, owned=self.assigned(each))
            if self.state == "Stable":
                return
        raise AssertionError(f"the group is {self.state}")
