"""Members of share groups without sockets: heartbeats, fetches and acknowledgements."""

from collections.abc import Iterable
from typing import Any

from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.share.share_fetches import (
    ShareAnswer,
    ShareQuery,
    StartedShareFetch,
)
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareHeartbeat
from mockbroker.simulation.groups.share.share_partition import AckBatch, SharePartition
from tests.mockbroker.simulation.fetching.fetching import append
from tests.mockbroker.simulation.groups.modern_members import ModernMembers

__all__ = ["Sharers"]


class Sharers(ModernMembers[ShareGroup, HeartbeatResult]):
    """Members of share groups, with fetches and acknowledgements. Groups begin at the start of
    their partitions, unless a config differs."""

    group_type = "share"
    request = ShareHeartbeat

    def __init__(
        self,
        release: tuple[int, int] = (4, 4),
        topics: Iterable[str] = ("foo:2:1",),
        brokers: int = 1,
        *,
        group: tuple[tuple[str, str], ...] = (("share.auto.offset.reset", "earliest"),),
        **configs: object,
    ) -> None:
        super().__init__(release, topics, brokers, **configs)
        self.fetches = self.cluster.share_fetches
        for name, value in group:
            self.configure(name, value)

    def configure(self, name: str, value: str) -> None:
        (result,) = self.cluster.config_changes.alter_incrementally([(32, "g", [(name, 0, value)])])
        assert result.error_code == 0, result

    # ---- facts -------------------------------------------------------------------------------

    def key(self, index: int = 0, topic: str = "foo") -> tuple[Any, int]:
        return self.cluster.topics[topic].topic_id, index

    def share(self, index: int = 0) -> SharePartition:
        found = self.fetches.partition("g", self.key(index))
        assert found is not None
        return found

    def states(self, index: int = 0) -> list[tuple[int, int, str, int]]:
        """First and last offset, state and delivery count of what is in flight."""
        return [
            (first, last, str(each.state), each.count)
            for first, last, each in self.share(index).deliveries()
        ]

    def assigned(self, member: str) -> list[str]:
        by_name = self.groups.topics.by_name(self.group.members[member].assigned)
        return [f"{name}-{index}" for name, indexes in by_name for index in indexes]

    # ---- the coordinator ---------------------------------------------------------------------

    def settle(self, *members: str) -> None:
        """Let members join and have their share of the partitions."""
        for each in members:
            self.join(each)
        for each in members * 2:
            self.beat(each)

    # ---- the leaders -------------------------------------------------------------------------

    def append(self, count: int, index: int = 0) -> None:
        """Append a batch of so many records."""
        append(self.cluster, *(b"%d" % each for each in range(count)), tp=("foo", index))

    def start(self, member: str = "a", **fields: Any) -> StartedShareFetch:
        indexes = fields.pop("indexes", [0])
        given: dict[str, Any] = {
            "broker_id": 1,
            "group_id": "g",
            "member_id": member,
            "session_epoch": 0,
            "partitions": [("foo", self.key(each)) for each in indexes],
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1_000_000,
            "max_records": 500,
            "batch_size": 500,
        }
        return self.fetches.start(ShareQuery(**{**given, **fields}))

    def answer(self, member: str = "a", **fields: Any) -> ShareAnswer:
        (answer,) = self.start(member, **fields).answer()
        return answer

    def fetch(self, member: str = "a", **fields: Any) -> list[tuple[int, int, int]]:
        """What is acquired of foo-0."""
        answers = self.start(member, **fields).answer()
        assert not any(each.error_code for each in answers)
        return [(first, last, times) for each in answers for first, last, times in each.acquired]

    def ack(self, member: str, *batches: tuple[int, int, list[int]], index: int = 0) -> Any:
        """Acknowledge; returns the error and its text."""
        started = self.fetches.acknowledge(
            1,
            "g",
            member,
            self.key(index),
            [AckBatch(first, last, tuple(types)) for first, last, types in batches],
        )
        started.complete()
        return started.code, started.text
