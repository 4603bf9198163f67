"""Members of streams groups without sockets: heartbeats to the coordinator, and their answers."""

from collections.abc import Iterable
from typing import Any, Final

from mockbroker.simulation.groups.streams.streams_group import (
    HeartbeatRequest,
    Member,
    StreamsGroup,
    StreamsResult,
    Task,
    Tasks,
)
from mockbroker.simulation.groups.streams.topology import InternalTopic, Subtopology, Topology
from tests.mockbroker.simulation.groups.modern_members import ModernMembers

__all__ = ["COUNTING", "PLAIN", "Streams", "tasks"]

NOTHING: Final[frozenset[Task]] = frozenset()
PLAIN: Final = Topology(0, (Subtopology("0", ("foo",)),))
"""Two tasks without state for each partition pair of foo."""
COUNTING: Final = Topology(
    0,
    (
        Subtopology("0", ("foo",), sinks=("by-key",)),
        Subtopology(
            "1", changelogs=(InternalTopic("counts"),), repartitions=(InternalTopic("by-key"),)
        ),
    ),
)
"""Reads foo, repartitions it, and keeps counts in a changelog."""


def tasks(*names: str) -> frozenset[Task]:
    """Tasks by names such as ``0_2``."""
    pairs = (each.split("_") for each in names)
    return frozenset((subtopology, int(partition)) for subtopology, partition in pairs)


def named(found: Iterable[Task]) -> list[str]:
    return [f"{name}_{index}" for name, index in sorted(found)]


class Streams(ModernMembers[StreamsGroup, StreamsResult]):
    """Members of streams groups. Tasks are written ``0_2``."""

    group_type = "streams"
    request = HeartbeatRequest

    def __init__(
        self,
        release: tuple[int, int] = (4, 4),
        topics: Iterable[str] = ("foo:4:1",),
        topology: Topology = PLAIN,
        *,
        fixes: tuple[tuple[str, bool], ...] = (),
        **configs: object,
    ) -> None:
        super().__init__(release, topics, fixes=fixes, **configs)
        self.topology = topology

    def member(self, name: str) -> Member:
        return self.group.members[name]

    def active(self, name: str) -> list[str]:
        return named(self.member(name).assigned.active)

    def standby(self, name: str) -> list[str]:
        return named(self.member(name).assigned.standby)

    def target(self, name: str) -> list[str]:
        return named(self.group.target[name].active)

    # ---- requests ----------------------------------------------------------------------------

    def _fields(self, member: str, fields: dict[str, Any]) -> dict[str, Any]:
        """``owned`` are all of its tasks, ``True`` those that it should have."""
        owned = fields.pop("owned", None)
        if owned is True:
            owned = self.member(member).assigned
        if owned is None:
            return fields
        kinds = {"active": owned.active, "standby": owned.standby, "warmup": owned.warmup}
        return {**kinds, **fields}

    def join(self, member: str = "a", **fields: Any) -> StreamsResult:
        given = {"rebalance_timeout_ms": 60_000, "topology": self.topology, "owned": Tasks()}
        return self.beat(member, 0, **{**given, "process_id": f"process-{member}", **fields})

    def create(self, result: StreamsResult) -> None:
        """Create the internal topics that are missing, as a broker does."""
        assert all(not each.error_code for each in self.cluster.topics.create(result.missing))

    def settle(self) -> None:
        """Let members send heartbeats with what they have, until all of them are at the target."""
        for _ in range(10):
            for each in tuple(self.group.members):
                self.beat(each, owned=True)
            if self.state == "Stable":
                return
        raise AssertionError(f"the group is {self.state}")
