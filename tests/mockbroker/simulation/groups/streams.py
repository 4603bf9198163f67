"""Members of streams groups without sockets: heartbeats to the coordinator, and their answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.groups.streams.streams_group import (
    HeartbeatRequest,
    Member,
    StreamsGroup,
    StreamsResult,
    Task,
    Tasks,
)
from mockbroker.simulation.groups.streams.topology import InternalTopic, Subtopology, Topology

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


class Streams:
    """The streams groups of a cluster of ``release``, most of all the group "g". Targets may follow
    one another at once, unless a config says otherwise."""

    def __init__(
        self,
        release: tuple[int, int] = (4, 4),
        topics: Iterable[str] = ("foo:4:1",),
        topology: Topology = PLAIN,
        **configs: object,
    ) -> None:
        given = {name.replace("_", "."): str(each) for name, each in configs.items()}
        if release >= (4, 3):
            given.setdefault("group.streams.assignment.interval.ms", "0")
        self.cluster = Cluster(1, config_release=release, broker_configs=given, topics=topics)
        self.groups = self.cluster.groups.streams
        self.topology = topology

    # ---- facts -------------------------------------------------------------------------------

    @property
    def group(self) -> StreamsGroup:
        found = self.groups.group("g")
        assert found is not None
        return found

    @property
    def state(self) -> str:
        found = self.groups.group("g")
        return "none" if found is None else found.state.value

    def member(self, name: str) -> Member:
        return self.group.members[name]

    def active(self, name: str) -> list[str]:
        return named(self.member(name).assigned.active)

    def standby(self, name: str) -> list[str]:
        return named(self.member(name).assigned.standby)

    def target(self, name: str) -> list[str]:
        return named(self.group.target[name].active)

    def member_state(self, name: str) -> tuple[int, str]:
        return self.member(name).epoch, self.member(name).state.name

    # ---- requests ----------------------------------------------------------------------------

    def beat(self, member: str = "a", epoch: int | None = None, **fields: Any) -> StreamsResult:
        """A heartbeat; without an epoch, of the one that the member has. ``owned`` are all of its
        tasks, ``True`` those that it should have."""
        error = fields.pop("error", ErrorCode.NONE)
        group = fields.pop("group", "g")
        if epoch is None:
            known = self.groups.group(group)
            epoch = 1 if known is None else known.members[member].epoch
        owned = fields.pop("owned", None)
        if owned is True:
            owned = self.member(member).assigned
        if isinstance(owned, Tasks):
            kinds = {"active": owned.active, "standby": owned.standby, "warmup": owned.warmup}
            fields = {**kinds, **fields}
        request = HeartbeatRequest(group, member, epoch, client_id="c", client_host="/127.0.0.1")
        return self.groups.heartbeat(replace(request, **fields), error)

    def join(self, member: str = "a", **fields: Any) -> StreamsResult:
        fields.setdefault("rebalance_timeout_ms", 60_000)
        fields.setdefault("topology", self.topology)
        fields.setdefault("process_id", f"process-{member}")
        return self.beat(member, 0, **{"owned": Tasks(), **fields})

    def leave(self, member: str = "a", epoch: int = -1, **fields: Any) -> StreamsResult:
        return self.beat(member, epoch, **fields)

    def create(self, result: StreamsResult) -> None:
        """Create the internal topics that are missing, as a broker does."""
        assert all(not each.error_code for each in self.cluster.create_topics(result.missing))

    def settle(self) -> None:
        """Let members send heartbeats with what they have, until all of them are at the target."""
        for _ in range(10):
            for each in tuple(self.group.members):
                self.beat(each, owned=True)
            if self.state == "Stable":
                return
        raise AssertionError(f"the group is {self.state}")
