"""The rules of streams groups: what follows from heartbeats, commits and timers, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeat_rules import HeartbeatRow
from mockbroker.simulation.groups.modern.member_commits import CommitRow, commit_rows, fetch_rows
from mockbroker.simulation.groups.modern.target_rules import (
    ChangeEvent,
    MembersGone,
    TargetEvent,
    TargetRow,
    bump,
    gone_rows,
    interval_row,
    make_target_row,
    up_to_date_row,
)
from mockbroker.simulation.groups.streams.streams_group import (
    HeartbeatRequest,
    Member,
    Status,
    StatusCode,
    StreamsGroup,
)
from mockbroker.simulation.groups.streams.streams_heartbeats import (
    ON_STREAMS_EPOCH,
    ON_STREAMS_GROUP,
    ON_STREAMS_MEMBER,
    ON_STREAMS_READ,
    ON_STREAMS_SHUTDOWN,
    ON_TASKS,
    ON_TOPOLOGY,
    STATIC_SINCE,
)
from mockbroker.simulation.groups.streams.task_reconciliation import (
    ON_DIFFERENCE,
    ON_RECONCILE,
    ReconciliationRow,
)
from mockbroker.simulation.groups.streams.topology import ConfiguredTopology
from mockbroker.simulation.releases.rows import Refusable, Row, always, refuse, with_arguments

__all__ = [
    "EndpointEvent",
    "PartitionsEvent",
    "StatusEvent",
    "StreamsChange",
    "StreamsRules",
    "UnreadyEvent",
    "UpdateEvent",
]

# ---- what a heartbeat changes --------------------------------------------------------------------


class UpdateEvent(msgspec.Struct, eq=False):
    """A member has taken over what a heartbeat says."""

    member: Member
    request: HeartbeatRequest


UpdateRow: TypeAlias = Row[UpdateEvent, UpdateEvent]


def _take_endpoint(event: UpdateEvent) -> None:
    event.member = replace(event.member, endpoint=event.request.endpoint)


ON_UPDATE: Final[tuple[UpdateRow, ...]] = (
    Row("DP-STREAMS-06", lambda event: event.request.joins, (_take_endpoint,), since=STATIC_SINCE),
)
"""A member that joins without an endpoint loses its former one."""


class StreamsChange(ChangeEvent, eq=False, kw_only=True):
    """A heartbeat has changed something."""

    is_static: bool
    metadata_changed: bool
    placement_changed: bool
    facts_changed: bool
    configs_changed: bool


ChangeRow: TypeAlias = Row[StreamsChange, StreamsChange]

ON_CHANGE: Final[tuple[ChangeRow, ...]] = (
    Row("DP-STREAMS-12", lambda event: event.metadata_changed and not event.is_static, (bump,)),
    Row("DP-STREAMS-16", lambda event: event.placement_changed, (bump,), since=STATIC_SINCE),
    Row("DP-STREAMS-12", lambda event: event.facts_changed, (bump,)),
    Row("DP-STREAMS-12", lambda event: event.configs_changed, (bump,)),
)
"""Changes that require another target."""


@with_arguments
def _delay(event: TargetEvent, reason: str) -> None:
    event.delays.append(f"Assignment delayed due to the configured {reason}.")


ON_TARGET: Final[tuple[TargetRow, ...]] = (
    Row(
        "DP-STREAMS-05 DP-STREAMS-02",
        lambda event: event.group.is_delayed,
        (_delay("initial rebalance delay"),),
    ),
    up_to_date_row("DP-STREAMS-12"),
    interval_row("DP-STREAMS-12 DP-STREAMS-02", _delay("assignment interval")),
    make_target_row("DP-STREAMS-12"),
)
"""Conditions under which the target is made."""

ON_MEMBERS_GONE: Final[tuple[Row[MembersGone, MembersGone], ...]] = gone_rows(
    "DP-STREAMS-12", "DP-STREAMS-12"
)

# ---- statuses ------------------------------------------------------------------------------------


class StatusEvent(msgspec.Struct, eq=False):
    """A heartbeat is answered: the statuses besides the tasks."""

    group: StreamsGroup
    member: Member
    version: int
    tags: Sequence[str]
    configured: ConfiguredTopology
    statuses: list[Status] = msgspec.field(default_factory=list)

    def add(self, code: StatusCode, detail: str) -> None:
        self.statuses.append(Status(code, detail))

    @property
    def missing_tags(self) -> list[str]:
        known = dict(self.member.tags)
        return [tag for tag in self.tags if tag not in known]


StatusRow: TypeAlias = Row[StatusEvent, StatusEvent]


def _is_stale(event: StatusEvent) -> bool:
    known = event.group.topology
    return known is not None and event.member.topology_epoch < known.epoch


def _report_stale(event: StatusEvent) -> None:
    assert event.group.topology is not None, "the condition looks"
    event.add(
        StatusCode.STALE_TOPOLOGY,
        f"The member's topology epoch {event.member.topology_epoch} is behind the group's topology "
        f"epoch {event.group.topology.epoch}.",
    )


def _report_problem(event: StatusEvent) -> None:
    assert event.configured.problem is not None, "the condition looks"
    problem = event.configured.problem
    event.add(StatusCode(problem.status), problem.detail)


def _report_shutdown(event: StatusEvent) -> None:
    event.add(
        StatusCode.SHUTDOWN_APPLICATION,
        f"Streams group member {event.group.shutdown_member} encountered a fatal error and "
        "requested a shutdown for the entire application.",
    )


def _report_tags(event: StatusEvent) -> None:
    event.add(
        StatusCode.MISSING_CLIENT_TAGS,
        f"Missing required client tags for rack-aware standby assignment: "
        f"[{', '.join(event.missing_tags)}]. Configure them via 'client.tag.<tagKey>' in your "
        "Streams config.",
    )


ON_STALE_TOPOLOGY: Final[tuple[StatusRow, ...]] = (
    Row("DP-STREAMS-02", _is_stale, (_report_stale,)),
)
ON_MISSING_TOPICS: Final[tuple[StatusRow, ...]] = (
    Row("DP-STREAMS-02", lambda event: not event.configured.is_ready, (_report_problem,)),
)
ON_SHUTDOWN: Final[tuple[StatusRow, ...]] = (
    Row(
        "DP-STREAMS-02", lambda event: event.group.shutdown_member is not None, (_report_shutdown,)
    ),
)
ON_MISSING_TAGS: Final[tuple[StatusRow, ...]] = (
    Row(
        "DP-STREAMS-02",
        lambda event: event.version >= 1 and bool(event.missing_tags),
        (_report_tags,),
        since=STATIC_SINCE,
    ),
)

# ---- endpoints -----------------------------------------------------------------------------------


class EndpointEvent(msgspec.Struct, eq=False):
    """A member is answered: did its endpoint change, or what is behind it?"""

    before: Member
    after: Member
    joins: bool
    raises: bool = False
    """Whether the epoch of the endpoints rises."""

    @property
    def moved(self) -> bool:
        return self.before.assigned != self.after.assigned


EndpointRow: TypeAlias = Row[EndpointEvent, EndpointEvent]


def _raise_endpoint(event: EndpointEvent) -> None:
    event.raises = True


ON_ENDPOINT: Final[tuple[EndpointRow, ...]] = (
    Row(
        "DP-STREAMS-06",
        lambda event: event.after.endpoint is not None and (event.joins or event.moved),
        (_raise_endpoint,),
        until=STATIC_SINCE,
    ),
    Row(
        "DP-STREAMS-06",
        lambda event: event.before.endpoint != event.after.endpoint,
        (_raise_endpoint,),
        since=STATIC_SINCE,
    ),
    Row(
        "DP-STREAMS-06",
        lambda event: event.after.endpoint is not None and event.moved,
        (_raise_endpoint,),
        since=STATIC_SINCE,
    ),
)
"""Changes after which members are sent the endpoints again."""


class UnreadyEvent(Refusable, msgspec.Struct, eq=False):
    """A member is to be sent the endpoints, and the group's source topics are missing or differ.
    ``is_behind`` says whether it knows another epoch of the endpoints than the group has."""

    has_endpoints: bool
    is_behind: bool
    code: ErrorCode = ErrorCode.NONE


UnreadyRow: TypeAlias = Row[UnreadyEvent, UnreadyEvent]


ON_UNREADY_ENDPOINTS: Final[tuple[UnreadyRow, ...]] = (
    Row(
        "DP-STREAMS-06",
        lambda event: event.has_endpoints and event.is_behind,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
    ),
)
"""Kafka looks for the subtopologies behind each endpoint, and fails where there are none."""


class PartitionsEvent(msgspec.Struct, eq=False):
    """The partitions of one topic that tasks read."""

    partitions: frozenset[int]
    count: int
    shown: tuple[int, ...] = ()
    is_shown: bool = True


PartitionsRow: TypeAlias = Row[PartitionsEvent, PartitionsEvent]


def _cut(event: PartitionsEvent) -> None:
    event.shown = tuple(sorted(event.partitions))[: event.count]


def _leave_out(event: PartitionsEvent) -> None:
    event.shown = tuple(sorted(each for each in event.partitions if each < event.count))
    event.is_shown = bool(event.shown)


ON_ENDPOINT_PARTITIONS: Final[tuple[PartitionsRow, ...]] = (
    Row("DP-STREAMS-06", always, (_cut,), until=STATIC_SINCE),
    Row("DP-STREAMS-06", always, (_leave_out,), since=STATIC_SINCE),
)
"""The partitions of tasks whose topic has fewer partitions than there are tasks."""

# ---- offsets -------------------------------------------------------------------------------------

ON_COMMIT: Final[tuple[CommitRow, ...]] = commit_rows("DP-STREAMS-17")
ON_FETCH: Final[tuple[CommitRow, ...]] = fetch_rows("DP-STREAMS-17")

# ---- by release ----------------------------------------------------------------------------------


_LEAVING: Final = (ON_STREAMS_READ, ON_STREAMS_GROUP, ON_STREAMS_SHUTDOWN, ON_STREAMS_MEMBER)


class StreamsRules(msgspec.Struct, frozen=True):
    """The rows by what happens. ``leaving`` and ``staying`` are the tables of
    heartbeats, in their order. ``stale`` and ``statuses`` are in the order of
    statuses, with that of a delayed target between them."""

    leaving: tuple[tuple[HeartbeatRow, ...], ...] = _LEAVING
    staying: tuple[tuple[HeartbeatRow, ...], ...] = (
        *_LEAVING,
        ON_STREAMS_EPOCH,
        ON_TOPOLOGY,
        ON_TASKS,
    )
    update: tuple[UpdateRow, ...] = ON_UPDATE
    change: tuple[ChangeRow, ...] = ON_CHANGE
    target: tuple[TargetRow, ...] = ON_TARGET
    gone: tuple[Row[MembersGone, MembersGone], ...] = ON_MEMBERS_GONE
    stale: tuple[StatusRow, ...] = ON_STALE_TOPOLOGY
    statuses: tuple[tuple[StatusRow, ...], ...] = (ON_MISSING_TOPICS, ON_SHUTDOWN, ON_MISSING_TAGS)
    endpoint: tuple[EndpointRow, ...] = ON_ENDPOINT
    unready: tuple[UnreadyRow, ...] = ON_UNREADY_ENDPOINTS
    partitions: tuple[PartitionsRow, ...] = ON_ENDPOINT_PARTITIONS
    commit: tuple[CommitRow, ...] = ON_COMMIT
    fetch: tuple[CommitRow, ...] = ON_FETCH
    reconcile: tuple[ReconciliationRow, ...] = ON_RECONCILE
    difference: tuple[ReconciliationRow, ...] = ON_DIFFERENCE
