"""Members of consumer groups without sockets: heartbeats to the coordinator, and their answers."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup, HeartbeatRequest
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.partitions import Assignment
from mockbroker.simulation.state.model import Broker

__all__ = ["Consumers"]


class Consumers:
    """The consumer groups of a cluster of ``release``, most of all the group "g". Partitions are
    written ``foo-0``. Targets may follow one another at once, unless a config says otherwise."""

    def __init__(
        self,
        release: tuple[int, int] = (4, 2),
        topics: Iterable[str] = ("foo:6:1",),
        brokers: int | Iterable[Broker] = 1,
        **configs: object,
    ) -> None:
        given = {name.replace("_", "."): str(each) for name, each in configs.items()}
        if release >= (4, 3):
            given.setdefault("group.consumer.assignment.interval.ms", "0")
        self.cluster = Cluster(brokers, config_release=release, broker_configs=given, topics=topics)
        self.groups = self.cluster.groups.consumer
        self.written: list[tuple[str, bool]] = []

    # ---- facts -------------------------------------------------------------------------------

    @property
    def group(self) -> ConsumerGroup:
        found = self.groups.group("g")
        assert found is not None
        return found

    @property
    def state(self) -> str:
        found = self.groups.group("g")
        return "none" if found is None else found.state.value

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

    def member_state(self, member: str) -> tuple[int, str]:
        found = self.group.members[member]
        return found.epoch, found.state.name

    # ---- requests ----------------------------------------------------------------------------

    def beat(self, member: str = "a", epoch: int | None = None, **fields: Any) -> HeartbeatResult:
        """A heartbeat; without an epoch, of the one that the member has."""
        group = fields.pop("group", "g")
        error = fields.pop("error", ErrorCode.NONE)
        if epoch is None:
            known = self.groups.group(group)
            epoch = 1 if known is None else known.members[member].epoch
        owned = fields.pop("owned", None)
        topics = fields.pop("topics", None)
        request = HeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topic_names=None if topics is None else tuple(topics),
            owned=owned if owned is None or isinstance(owned, frozenset) else self.ids(owned),
            client_id=fields.pop("client_id", "c"),
            client_host="/127.0.0.1",
            **fields,
        )
        return self.groups.heartbeat(request, error)

    def join(self, member: str = "a", **fields: Any) -> HeartbeatResult:
        """Join, subscribed to foo unless a regular expression is given."""
        if "topic_regex" not in fields:
            fields.setdefault("topics", ["foo"])
        fields.setdefault("rebalance_timeout_ms", 60_000)
        return self.beat(member, 0, **{"owned": [], **fields})

    def leave(self, member: str = "a", epoch: int = -1, **fields: Any) -> HeartbeatResult:
        return self.beat(member, epoch, **fields)

    def settle(self, *members: str) -> None:
        """Let members send heartbeats with what they have, until all of them are at the target."""
        for _ in range(10):
            for each in members or tuple(self.group.members):
                self.beat(each, owned=self.assigned(each))
            if self.state == "Stable":
                return
        raise AssertionError(f"the group is {self.state}")

    def advance(self, milliseconds: int) -> None:
        self.cluster.advance(milliseconds)
