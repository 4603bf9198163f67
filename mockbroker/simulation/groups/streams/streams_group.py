"""A streams group and its members, its heartbeats, and their answers.

State without rules. Members are values: a change makes another member. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult, StaticHeartbeat
from mockbroker.simulation.groups.modern.modern_group import MemberClocks, StaticGroup, StaticMember
from mockbroker.simulation.groups.streams.topology import ConfiguredTopology, Topology
from mockbroker.simulation.state.results import NewTopic
from mockbroker.simulation.state.timers import Timer

__all__ = [
    "NO_TASKS",
    "STREAMS_TYPE",
    "Endpoint",
    "EndpointPartitions",
    "HeartbeatRequest",
    "Member",
    "Status",
    "StatusCode",
    "StreamsGroup",
    "StreamsResult",
    "Task",
    "TaskOffsets",
    "Tasks",
]

STREAMS_TYPE: Final = "streams"
"""The type of these groups in ListGroups, and their protocol type."""

Task: TypeAlias = tuple[str, int]
"""Subtopology and partition."""
Endpoint: TypeAlias = tuple[str, int]
"""Host and port of ``application.server``."""
TaskOffsets: TypeAlias = tuple[tuple[str, int, int], ...]
"""Subtopology, partition and offset."""


class StatusCode(IntEnum):
    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class Status(msgspec.Struct, frozen=True):
    code: int
    detail: str


# ---- tasks ---------------------------------------------------------------------------------------


class Tasks(msgspec.Struct, frozen=True):
    """Tasks by their role. Standby tasks keep a copy of the state, warm-up tasks catch up before
    they become active; no released broker assigns the latter."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    def __iter__(self) -> Iterator[frozenset[Task]]:
        yield from (self.active, self.standby, self.warmup)

    def __bool__(self) -> bool:
        return any(self)

    def __or__(self, other: Tasks) -> Tasks:
        return Tasks(
            self.active | other.active, self.standby | other.standby, self.warmup | other.warmup
        )

    def __le__(self, other: Tasks) -> bool:
        return all(mine <= others for mine, others in zip(self, other, strict=True))

    def overlaps(self, other: Tasks) -> bool:
        """Whether a task has the same role in both."""
        return any(mine & others for mine, others in zip(self, other, strict=True))


NO_TASKS: Final = Tasks()

# ---- requests and answers ------------------------------------------------------------------------


class HeartbeatRequest(StaticHeartbeat, frozen=True):
    """``owned`` is None unless the request has all kinds of tasks. ``empty_rows`` are the kinds for
    which it names subtopologies without tasks, which the sets of tasks do not show."""

    endpoint_epoch: int = 0
    topology: Topology | None = None
    active: frozenset[Task] | None = None
    standby: frozenset[Task] | None = None
    warmup: frozenset[Task] | None = None
    empty_rows: frozenset[str] = frozenset()
    process_id: str | None = None
    endpoint: Endpoint | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    task_offsets: TaskOffsets | None = None
    task_end_offsets: TaskOffsets | None = None
    shutdown: bool = False
    version: int = 0

    @property
    def owned(self) -> Tasks | None:
        if self.active is None or self.standby is None or self.warmup is None:
            return None
        return Tasks(self.active, self.standby, self.warmup)


class EndpointPartitions(msgspec.Struct, frozen=True):
    """The partitions behind an endpoint, for interactive queries: by topic."""

    endpoint: Endpoint
    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]


class StreamsResult(HeartbeatResult, frozen=True):
    """``tasks`` and ``endpoints`` are None if they are not sent. ``missing`` are internal topics
    that the broker is to create."""

    member_id: str = ""
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1
    statuses: tuple[Status, ...] | None = None
    tasks: Tasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    missing: tuple[NewTopic, ...] = ()


# ---- members -------------------------------------------------------------------------------------


class Member(StaticMember, frozen=True):
    """A member. ``epochs`` are the member epochs at which it got its active tasks, those that it
    still has to give up included."""

    previous_epoch: int = 0
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: tuple[tuple[str, str], ...] = ()
    assigned: Tasks = NO_TASKS
    revoking: Tasks = NO_TASKS
    epochs: Mapping[Task, int] = msgspec.field(default_factory=dict)

    @property
    def metadata(self) -> tuple[object, ...]:
        return (
            self.instance_id, self.rack_id, self.rebalance_timeout_ms, self.topology_epoch,
            self.process_id, self.endpoint, self.tags, self.client_id, self.client_host,
        )  # fmt: skip

    @property
    def placement(self) -> tuple[object, ...]:
        """What a target depends on."""
        return self.topology_epoch, self.rack_id, self.tags, self.process_id

    @property
    def progress(self) -> tuple[object, ...]:
        return (
            self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking, self.epochs
        )  # fmt: skip


# ---- groups --------------------------------------------------------------------------------------


class StreamsGroup(StaticGroup[Member, Tasks, MemberClocks], eq=False):
    """``configured`` is the topology with the topics that the cluster has, ``validated_epoch`` that
    of the topology which they suffice for. ``shutdown_member`` requested that all members shut
    down."""

    group_type = STREAMS_TYPE
    epoch: int = 1
    topology: Topology | None = None
    configured: ConfiguredTopology | None = None
    validated_epoch: int = -1
    configs: tuple[tuple[str, str], ...] = ()
    """Those that the last target was to follow."""
    endpoint_epoch: int = 0
    offsets: dict[str, tuple[TaskOffsets, TaskOffsets]] = msgspec.field(default_factory=dict)
    """Offsets and end offsets of its tasks, as each member last sent them."""
    creation_errors: dict[str, str] = msgspec.field(default_factory=dict)
    """Why its internal topics could not be created, by name."""
    shutdown_member: str | None = None
    delay: Timer | None = None
    """Runs until the first target of a group is made."""

    @property
    def is_ready(self) -> bool:
        return self.topology is not None and self.topology.epoch == self.validated_epoch

    @property
    def is_delayed(self) -> bool:
        return self.delay is not None and self.delay.due_ms is not None

    def request_shutdown(self, member_id: str) -> None:
        """Keep who requested first that all members shut down."""
        self.shutdown_member = self.shutdown_member or member_id

    def remove(self, member_id: str) -> None:
        StaticGroup.remove(self, member_id)
        self.offsets.pop(member_id, None)
        if not self.members:
            self.shutdown_member = None

    def stop(self) -> None:
        StaticGroup.stop(self)
        if self.delay is not None:
            self.delay.set(None)
