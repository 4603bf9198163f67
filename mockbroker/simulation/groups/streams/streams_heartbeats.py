"""StreamsGroupHeartbeat as rows, in the order in which Kafka checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeat_rules import (
    HeartbeatRow,
    StaticHeartbeatEvent,
    epoch_read_rows,
    epoch_rows,
    group_rows,
    invalid,
    is_full,
    is_missing,
    making_rows,
    member_rows,
    reject,
    reject_full,
    static_member_rows,
    static_read_rows,
    taken_row,
)
from mockbroker.simulation.groups.streams.streams_group import (
    HeartbeatRequest,
    Member,
    StreamsGroup,
    StreamsResult,
)
from mockbroker.simulation.groups.streams.topology import (
    BrokenTopologyError,
    ConfiguredTopology,
    InvalidTopologyError,
    Topology,
    repeats,
)
from mockbroker.simulation.releases.rows import Row, always

__all__ = [
    "ON_STREAMS_EPOCH",
    "ON_STREAMS_GROUP",
    "ON_STREAMS_MEMBER",
    "ON_STREAMS_READ",
    "ON_STREAMS_SHUTDOWN",
    "ON_TASKS",
    "ON_TOPOLOGY",
    "STATIC_SINCE",
    "StreamsHeartbeat",
]

STATIC_SINCE: Final = (4, 4)
"""Static members, offsets of tasks and roles that change."""


class StreamsHeartbeat(StaticHeartbeatEvent[StreamsGroup], eq=False, kw_only=True):
    """A heartbeat. ``is_replaceable`` says whether the group of another kind that has the id is an
    empty classic one. The rows decide on ``topology`` and ``configured``, too."""

    kind = "streams"
    new_group = StreamsGroup
    new_member = Member
    new_result = StreamsResult

    request: HeartbeatRequest
    is_replaceable: bool
    configure: Callable[[StreamsGroup, Topology], ConfiguredTopology]
    makes: bool = False
    topology: Topology | None = None
    configured: ConfiguredTopology | None = None
    bad_task: str = ""

    def make(self, epoch: int) -> None:
        """The first epoch is 1, and from 4.3 on the one of the first target, too."""
        self.makes = True
        self.group = StreamsGroup(self.request.group_id, epoch=1, target_epoch=epoch)

    def _holds(self, owned: Any) -> bool:
        return bool(owned <= self.member.assigned)

    def words(self) -> dict[str, object]:
        name, partitions = self.sized_changelog or (None, None)
        return {
            **StaticHeartbeatEvent.words(self),
            "changelog": name,
            "partitions": partitions,
            "task": self.bad_task,
        }

    @property
    def sized_changelog(self) -> tuple[str, int] | None:
        """A changelog topic of the request for which it sets the number of partitions."""
        topology = self.request.topology
        if topology is None:
            return None
        sized = (
            (topic.name, topic.partitions)
            for subtopology in topology.subtopologies
            for topic in subtopology.changelogs
            if topic.partitions
        )
        return next(sized, None)


# ---- the request itself --------------------------------------------------------------------------


def _has_regex(event: StreamsHeartbeat) -> bool:
    topology = event.request.topology
    return topology is not None and any(
        subtopology.source_regexes for subtopology in topology.subtopologies
    )


def _sends(name: str) -> Callable[[StreamsHeartbeat], bool]:
    return lambda event: getattr(event.request, name) is not None


def _joins_with(kind: str) -> Callable[[StreamsHeartbeat], bool]:
    """A member joins, and does not send an empty list of these tasks. A row without partitions
    counts."""
    return lambda event: (
        event.request.joins
        and (getattr(event.request, kind) != frozenset() or kind in event.request.empty_rows)
    )


def _sends_warmup(event: StreamsHeartbeat) -> bool:
    return bool(event.request.warmup) or "warmup" in event.request.empty_rows


def _sends_some_tasks(event: StreamsHeartbeat) -> bool:
    kinds = (event.request.active, event.request.standby, event.request.warmup)
    return None in kinds and any(each is not None for each in kinds)


ON_STREAMS_READ: Final[tuple[HeartbeatRow, ...]] = (
    *(
        invalid("DP-STREAMS-08", when, f"{subject} not {yet}.", until=STATIC_SINCE)
        for when, subject, yet in (
            (_sends("instance_id"), "Static membership is", "yet supported"),
            (_sends("task_offsets"), "TaskOffsets are", "supported yet"),
            (_sends("task_end_offsets"), "TaskEndOffsets are", "supported yet"),
            (_sends_warmup, "WarmupTasks are", "supported yet"),
        )
    ),
    invalid(
        "DP-STREAMS-08", _has_regex, "Regular expressions for source topics are not supported yet."
    ),
    invalid(
        "DP-STREAMS-01",
        lambda event: not event.request.member_id.strip(),
        "MemberId can't be empty.",
    ),
    *static_read_rows("DP-STREAMS-01", "DP-STREAMS-01", instances_since=STATIC_SINCE),
    *(
        invalid(
            "DP-STREAMS-01",
            _joins_with(kind),
            f"{kind.capitalize()}Tasks must be empty when (re-)joining.",
        )
        for kind in ("active", "standby", "warmup")
    ),
    invalid(
        "DP-STREAMS-01",
        lambda event: event.request.joins and event.request.topology is None,
        "Topology must be non-null when (re-)joining.",
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: event.request.joins and event.sized_changelog is not None,
        (
            reject(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Changelog topic {changelog} must have an undefined partition count, but it is set "
                "to {partitions}.",
            ),
        ),
    ),
    *epoch_read_rows(
        "DP-STREAMS-01", "MemberEpoch is {received}, but must be greater than or equal to -2."
    ),
    invalid(
        "DP-STREAMS-01", _sends_some_tasks, "If one task-type is non-null, all must be non-null."
    ),
    invalid(
        "DP-STREAMS-01",
        lambda event: not event.request.joins and event.request.topology is not None,
        "Topology can only be provided when (re-)joining.",
    ),
)
"""Before the group is looked up."""

# ---- the group -----------------------------------------------------------------------------------


ON_STREAMS_GROUP: Final[tuple[HeartbeatRow, ...]] = (
    *group_rows("DP-STREAMS-09", "DP-STREAMS-09"),
    *making_rows("DP-STREAMS-09", is_missing),
    *making_rows("DP-STREAMS-09", lambda event: event.request.joins and event.is_replaceable),
    taken_row("DP-STREAMS-09"),
)
"""The group of the heartbeat. A group that exists already needs no row."""

# ---- the member ----------------------------------------------------------------------------------


def _leaves_with_shutdown(event: StreamsHeartbeat) -> bool:
    return event.request.leaves and event.request.shutdown


def _request_shutdown(event: StreamsHeartbeat) -> None:
    event.known.request_shutdown(event.member_id)


ON_STREAMS_SHUTDOWN: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-STREAMS-02", _leaves_with_shutdown, (_request_shutdown,)),
)
"""A shutdown is requested before Kafka checks that the leaver is a member."""


def _joins_full(event: StreamsHeartbeat) -> bool:
    """Before 4.4, a member of a full group cannot join again."""
    return event.request.joins and len(event.known.members) >= event.settings.max_size


def _joins_full_anew(event: StreamsHeartbeat) -> bool:
    return event.request.joins and is_full(event) and event.holder is None


ON_STREAMS_MEMBER: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-STREAMS-10", _joins_full, (reject_full,), until=STATIC_SINCE),
    Row("DP-STREAMS-10", _joins_full_anew, (reject_full,), since=STATIC_SINCE),
    *static_member_rows("DP-STREAMS-16", "DP-STREAMS-16", since=STATIC_SINCE),
    *member_rows("DP-STREAMS-10", "DP-STREAMS-10"),
)
"""The member that sends a heartbeat, or leaves."""


def _repeats_a_tag(event: StreamsHeartbeat) -> bool:
    return repeats(key for key, _ in event.request.tags or ())


ON_STREAMS_EPOCH: Final[tuple[HeartbeatRow, ...]] = (
    *epoch_rows("DP-STREAMS-10", "DP-STREAMS-10"),
    Row("DP-STREAMS-11", _repeats_a_tag, (reject(ErrorCode.UNKNOWN_SERVER_ERROR),)),
)
"""The epoch and the client tags of a member that stays."""

# ---- the topology --------------------------------------------------------------------------------


def _sends_unreadable(event: StreamsHeartbeat) -> bool:
    sent = event.request.topology
    return sent is not None and not sent.is_readable


def _sends_another(event: StreamsHeartbeat) -> bool:
    sent, known = event.request.topology, event.known.topology
    return sent is not None and known is not None and sent.epoch >= known.epoch and sent != known


def _take_over(event: StreamsHeartbeat) -> None:
    event.topology = event.request.topology


def _keep(event: StreamsHeartbeat) -> None:
    event.topology = event.known.topology


def _configure(event: StreamsHeartbeat) -> None:
    """Set ``configured``, or refuse a topology that no topics could serve."""
    assert event.topology is not None, "rows above set it"
    try:
        event.configured = event.configure(event.known, event.topology)
    except InvalidTopologyError as error:
        event.reject(ErrorCode.STREAMS_INVALID_TOPOLOGY, str(error))
    except BrokenTopologyError:
        event.reject(ErrorCode.UNKNOWN_SERVER_ERROR, None)


ON_TOPOLOGY: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-STREAMS-11", _sends_unreadable, (reject(ErrorCode.UNKNOWN_SERVER_ERROR),)),
    Row("DP-STREAMS-11", lambda event: event.known.topology is None, (_take_over, _configure)),
    invalid("DP-STREAMS-11", _sends_another, "Topology updates are not supported yet."),
    Row("DP-STREAMS-11", always, (_keep, _configure)),
)
"""The topology of the group: that of the member that came first."""


def _bad_task(event: StreamsHeartbeat, *, known: bool) -> bool:
    """Whether the member sends a task that does not exist; sets the words for it."""
    configured, request = event.configured, event.request
    if configured is None or not configured.is_ready:
        return False
    for tasks in (request.active, request.standby, request.warmup):
        for name, index in sorted(tasks or ()):
            size = configured.tasks.get(name)
            if size is None:
                event.bad_task = name
                return not known
            if not 0 <= index < size:
                event.bad_task = (
                    f"{index} for subtopology {name} is invalid. Number of tasks for this "
                    f"subtopology: {size}"
                )
                return known
    return False


def _repeats_an_offset(event: StreamsHeartbeat) -> bool:
    for offsets in (event.request.task_offsets, event.request.task_end_offsets):
        seen = set()
        for name, index, _ in offsets or ():
            if (name, index) in seen:
                event.bad_task = f"subtopology {name} and partition {index}"
                return True
            seen.add((name, index))
    return False


ON_TASKS: Final[tuple[HeartbeatRow, ...]] = (
    invalid(
        "DP-STREAMS-11",
        lambda event: _bad_task(event, known=False),
        "Subtopology {task} does not exist in the topology.",
    ),
    invalid("DP-STREAMS-11", lambda event: _bad_task(event, known=True), "Task {task}"),
    invalid(
        "DP-STREAMS-08",
        _repeats_an_offset,
        "Task offsets contain a duplicate entry for {task}.",
        since=STATIC_SINCE,
    ),
)
"""The tasks of the member must exist."""
