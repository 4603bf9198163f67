"""StreamsGroupHeartbeat and what follows from it as rows, in the order in which Kafka checks."""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeats import LEAVING, Reject, is_blank
from mockbroker.simulation.groups.streams.streams_group import (
    LEAVING_FOR_A_WHILE,
    HeartbeatResult,
    Member,
    StatusCode,
    StreamsGroup,
)
from mockbroker.simulation.groups.streams.streams_heartbeats import (
    AnswerEvent,
    ChangeEvent,
    CommitEvent,
    EndpointEvent,
    HeartbeatEvent,
    MemberGone,
    PartitionsEvent,
    TargetEvent,
    UpdateEvent,
)
from mockbroker.simulation.groups.streams.task_reconciliation import (
    ON_DIFFERENCE,
    ON_RECONCILE,
    ReconciliationRow,
)
from mockbroker.simulation.groups.streams.topology import BrokenTopologyError, InvalidTopologyError
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, refuse, rows_of_release

__all__ = ["HeartbeatRow", "StreamsRules", "streams_rules"]

HeartbeatRow: TypeAlias = Row[HeartbeatEvent, HeartbeatEvent]

_INVALID: Final = ErrorCode.INVALID_REQUEST
_NO_GROUP: Final = ErrorCode.GROUP_ID_NOT_FOUND
_STALE: Final = ErrorCode.FENCED_MEMBER_EPOCH
_EPOCH_1: Final = (4, 3)
_STATIC: Final = (4, 4)
"""Static members, offsets of tasks and roles that change."""

# ---- the request itself --------------------------------------------------------------------------


def _has_regex(event: HeartbeatEvent) -> bool:
    topology = event.request.topology
    return topology is not None and any(each.source_regexes for each in topology.subtopologies)


def _joins_with(event: HeartbeatEvent, tasks: frozenset[tuple[str, int]] | None) -> bool:
    """A member joins, and does not say that it has no tasks."""
    return event.request.joins and tasks != frozenset()


def _sends_some_tasks(event: HeartbeatEvent) -> bool:
    kinds = (event.request.active, event.request.standby, event.request.warmup)
    return None in kinds and any(each is not None for each in kinds)


ON_HEARTBEAT_READ: Final[tuple[HeartbeatRow, ...]] = (
    Row(
        "DP-STREAMS-08",
        lambda event: event.request.instance_id is not None,
        (Reject(_INVALID, "Static membership is not yet supported."),),
        until=_STATIC,
    ),
    Row(
        "DP-STREAMS-08",
        lambda event: event.request.task_offsets is not None,
        (Reject(_INVALID, "TaskOffsets are not supported yet."),),
        until=_STATIC,
    ),
    Row(
        "DP-STREAMS-08",
        lambda event: event.request.task_end_offsets is not None,
        (Reject(_INVALID, "TaskEndOffsets are not supported yet."),),
        until=_STATIC,
    ),
    Row(
        "DP-STREAMS-08",
        lambda event: bool(event.request.warmup),
        (Reject(_INVALID, "WarmupTasks are not supported yet."),),
        until=_STATIC,
    ),
    Row(
        "DP-STREAMS-08",
        _has_regex,
        (Reject(_INVALID, "Regular expressions for source topics are not supported yet."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: not event.request.member_id.strip(),
        (Reject(_INVALID, "MemberId can't be empty."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: is_blank(event.request.group_id),
        (Reject(_INVALID, "GroupId can't be empty."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: is_blank(event.request.instance_id),
        (Reject(_INVALID, "InstanceId can't be empty."),),
        since=_STATIC,
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: is_blank(event.request.rack_id),
        (Reject(_INVALID, "RackId can't be empty."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: event.request.joins and event.request.rebalance_timeout_ms == -1,
        (Reject(_INVALID, "RebalanceTimeoutMs must be provided in first request."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: _joins_with(event, event.request.active),
        (Reject(_INVALID, "ActiveTasks must be empty when (re-)joining."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: _joins_with(event, event.request.standby),
        (Reject(_INVALID, "StandbyTasks must be empty when (re-)joining."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: _joins_with(event, event.request.warmup),
        (Reject(_INVALID, "WarmupTasks must be empty when (re-)joining."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: event.request.joins and event.request.topology is None,
        (Reject(_INVALID, "Topology must be non-null when (re-)joining."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: event.request.joins and event.sized_changelog is not None,
        (
            Reject(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Changelog topic {changelog} must have an undefined partition count, but it is set "
                "to {partitions}.",
            ),
        ),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: (
            event.request.member_epoch == LEAVING_FOR_A_WHILE and event.request.instance_id is None
        ),
        (Reject(_INVALID, "InstanceId can't be null."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: event.request.member_epoch < LEAVING_FOR_A_WHILE,
        (Reject(_INVALID, "MemberEpoch is {received}, but must be greater than or equal to -2."),),
    ),
    Row(
        "DP-STREAMS-01",
        _sends_some_tasks,
        (Reject(_INVALID, "If one task-type is non-null, all must be non-null."),),
    ),
    Row(
        "DP-STREAMS-01",
        lambda event: not event.request.joins and event.request.topology is not None,
        (Reject(_INVALID, "Topology can only be provided when (re-)joining."),),
    ),
)
"""Before the coordinator is involved."""

# ---- the group -----------------------------------------------------------------------------------


def _elsewhere(event: HeartbeatEvent) -> bool:
    return event.coordinator_error is not ErrorCode.NONE


def _refuse_elsewhere(event: HeartbeatEvent) -> None:
    event.result = HeartbeatResult(event.coordinator_error)


def _missing(event: HeartbeatEvent) -> bool:
    return event.group is None and not event.other


def _takes_the_id(event: HeartbeatEvent) -> bool:
    return event.request.joins and event.replaceable


class MakeGroup(msgspec.Struct, frozen=True):
    """Make a group whose first target is the one after this epoch."""

    epoch: int
    target_epoch: int

    def __call__(self, subject: HeartbeatEvent, /) -> None:
        subject.makes = True
        subject.group = StreamsGroup(
            subject.request.group_id, epoch=self.epoch, target_epoch=self.target_epoch
        )


ON_GROUP: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-STREAMS-09", _elsewhere, (_refuse_elsewhere,)),
    Row(
        "DP-STREAMS-09",
        lambda event: _missing(event) and event.request.leaves,
        (Reject(_NO_GROUP, "Group {group} not found."),),
    ),
    Row(
        "DP-STREAMS-09",
        lambda event: _missing(event) and not event.request.joins,
        (Reject(_NO_GROUP, "Streams group {group} not found."),),
    ),
    Row("DP-STREAMS-09", _missing, (MakeGroup(1, 0),), until=_EPOCH_1),
    Row("DP-STREAMS-09", _missing, (MakeGroup(1, 1),), since=_EPOCH_1),
    Row("DP-STREAMS-09", _takes_the_id, (MakeGroup(1, 0),), until=_EPOCH_1),
    Row("DP-STREAMS-09", _takes_the_id, (MakeGroup(1, 1),), since=_EPOCH_1),
    Row(
        "DP-STREAMS-09",
        lambda event: event.other,
        (Reject(_NO_GROUP, "Group {group} is not a streams group."),),
    ),
)
"""Which group the heartbeat concerns. A group that exists already needs no row."""

# ---- the member ----------------------------------------------------------------------------------


def _joins_full(event: HeartbeatEvent) -> bool:
    return event.request.joins and len(event.known.members) >= event.settings.max_size


def _joins_full_anew(event: HeartbeatEvent) -> bool:
    known = event.request.member_id in event.known.members
    return _joins_full(event) and event.holder is None and not known


def _is_static(event: HeartbeatEvent) -> bool:
    return event.request.instance_id is not None


def _instance_in_use(event: HeartbeatEvent) -> bool:
    holder = event.holder
    return event.request.joins and holder is not None and holder.epoch != LEAVING_FOR_A_WHILE


def _instance_returns(event: HeartbeatEvent) -> bool:
    return event.request.joins and event.holder is not None


def _unknown_instance(event: HeartbeatEvent) -> bool:
    return _is_static(event) and not event.request.joins and event.holder is None


def _fenced_instance(event: HeartbeatEvent) -> bool:
    holder = event.holder
    return (
        not event.request.joins
        and holder is not None
        and holder.member_id != event.request.member_id
    )


def _unknown_member(event: HeartbeatEvent) -> bool:
    known = event.request.member_id in event.known.members
    return not _is_static(event) and not event.request.joins and not known


def _find_member(event: HeartbeatEvent) -> None:
    """The member of the request, or a new one."""
    member_id = event.request.member_id
    event.former = event.known.members.get(member_id) or Member(member_id)


def _take_place(event: HeartbeatEvent) -> None:
    event.replaces = event.former = event.holder


_FULL: Final = Reject(
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    "The streams group has reached its maximum capacity of {size} members.",
)
_IN_USE: Final = Reject(
    ErrorCode.UNRELEASED_INSTANCE_ID,
    "Static member {member} with instance id {instance} cannot join the group because the instance "
    "id is owned by {holder} member.",
)
_UNKNOWN_INSTANCE: Final = Reject(ErrorCode.UNKNOWN_MEMBER_ID, "Instance id {instance} is unknown.")
_FENCED_INSTANCE: Final = Reject(
    ErrorCode.FENCED_INSTANCE_ID,
    "Static member {member} with instance id {instance} was fenced by member {holder}.",
)
_UNKNOWN_MEMBER: Final = Reject(
    ErrorCode.UNKNOWN_MEMBER_ID, "Member {member} is not a member of group {group}."
)

ON_MEMBER: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-STREAMS-10", _joins_full, (_FULL,), until=_STATIC),
    Row("DP-STREAMS-10", _joins_full_anew, (_FULL,), since=_STATIC),
    Row("DP-STREAMS-16", _instance_in_use, (_IN_USE,), since=_STATIC),
    Row("DP-STREAMS-16", _instance_returns, (_take_place,), since=_STATIC),
    Row("DP-STREAMS-16", _unknown_instance, (_UNKNOWN_INSTANCE,), since=_STATIC),
    Row("DP-STREAMS-16", _fenced_instance, (_FENCED_INSTANCE,), since=_STATIC),
    Row("DP-STREAMS-10", _unknown_member, (_UNKNOWN_MEMBER,)),
    Row("DP-STREAMS-10", always, (_find_member,)),
)
"""Who sends a heartbeat, or leaves."""


def _is_ahead(event: HeartbeatEvent) -> bool:
    return not event.request.joins and event.request.member_epoch > event.member.epoch


def _lost_an_answer(event: HeartbeatEvent) -> bool:
    """The member comes with its former epoch, and has nothing that it should not have."""
    owned, member = event.request.owned, event.member
    behind = event.request.member_epoch == member.previous_epoch
    return behind and owned is not None and owned <= member.assigned


def _is_behind(event: HeartbeatEvent) -> bool:
    behind = event.request.member_epoch < event.member.epoch
    return not event.request.joins and behind and not _lost_an_answer(event)


ON_EPOCH: Final[tuple[HeartbeatRow, ...]] = (
    Row(
        "DP-STREAMS-10",
        _is_ahead,
        (
            Reject(
                _STALE,
                "The streams group member has a greater member epoch ({received}) than the one "
                "known by the group coordinator ({epoch}). The member must abandon all its "
                "partitions and rejoin.",
            ),
        ),
    ),
    Row(
        "DP-STREAMS-10",
        _is_behind,
        (
            Reject(
                _STALE,
                "The streams group member has a smaller member epoch ({received}) than the one "
                "known by the group coordinator ({epoch}). The member must abandon all its "
                "partitions and rejoin.",
            ),
        ),
    ),
)
"""Whether its epoch will do."""

# ---- the topology --------------------------------------------------------------------------------


def _is_first(event: HeartbeatEvent) -> bool:
    return event.known.topology is None


def _sends_another(event: HeartbeatEvent) -> bool:
    sent, known = event.request.topology, event.known.topology
    return sent is not None and known is not None and sent.epoch >= known.epoch and sent != known


def _take_over(event: HeartbeatEvent) -> None:
    event.topology = event.request.topology


def _keep(event: HeartbeatEvent) -> None:
    event.topology = event.known.topology


ON_TOPOLOGY: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-STREAMS-11", _is_first, (_take_over,)),
    Row(
        "DP-STREAMS-11",
        _sends_another,
        (Reject(_INVALID, "Topology updates are not supported yet."),),
    ),
    Row("DP-STREAMS-11", always, (_keep,)),
)
"""The topology of the group: that of the member that came first."""


def configure(event: HeartbeatEvent) -> None:
    """Set ``configured``, or refuse a topology that no topics could serve."""
    assert event.topology is not None, "rows above set it"
    try:
        event.configured = event.configure(event.known, event.topology)
    except InvalidTopologyError as error:
        event.reject(ErrorCode.STREAMS_INVALID_TOPOLOGY, str(error))
    except BrokenTopologyError:
        event.reject(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _unknown_subtopology(event: HeartbeatEvent) -> bool:
    return _bad_task(event, known=False)


def _unknown_task(event: HeartbeatEvent) -> bool:
    return _bad_task(event, known=True)


def _bad_task(event: HeartbeatEvent, *, known: bool) -> bool:
    """Whether the member has a task that there is not; sets the words for it."""
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


def _repeats_an_offset(event: HeartbeatEvent) -> bool:
    for offsets in (event.request.task_offsets, event.request.task_end_offsets):
        seen = set()
        for name, index, _ in offsets or ():
            if (name, index) in seen:
                event.bad_task = f"subtopology {name} and partition {index}"
                return True
            seen.add((name, index))
    return False


ON_TASKS: Final[tuple[HeartbeatRow, ...]] = (
    Row(
        "DP-STREAMS-11",
        _unknown_subtopology,
        (Reject(_INVALID, "Subtopology {task} does not exist in the topology."),),
    ),
    Row(
        "DP-STREAMS-11",
        _unknown_task,
        (Reject(_INVALID, "Task {task}"),),
    ),
    Row(
        "DP-STREAMS-08",
        _repeats_an_offset,
        (Reject(_INVALID, "Task offsets contain a duplicate entry for {task}."),),
        since=_STATIC,
    ),
)
"""Whether the tasks of the member exist."""

# ---- what a heartbeat changes --------------------------------------------------------------------

UpdateRow: TypeAlias = Row[UpdateEvent, UpdateEvent]


def _take_endpoint(event: UpdateEvent) -> None:
    event.member = replace(event.member, endpoint=event.request.endpoint)


ON_UPDATE: Final[tuple[UpdateRow, ...]] = (
    Row(
        "DP-STREAMS-06",
        lambda event: event.request.joins,
        (_take_endpoint,),
        since=_STATIC,
    ),
)
"""A member that joins without an endpoint has none any more."""

ChangeRow: TypeAlias = Row[ChangeEvent, ChangeEvent]


def _bump(event: ChangeEvent) -> None:
    event.bumps = True


ON_CHANGE: Final[tuple[ChangeRow, ...]] = (
    Row(
        "DP-STREAMS-12",
        lambda event: event.metadata_changed and not event.is_static,
        (_bump,),
    ),
    Row("DP-STREAMS-16", lambda event: event.placement_changed, (_bump,), since=_STATIC),
    Row("DP-STREAMS-12", lambda event: event.facts_changed, (_bump,)),
    Row("DP-STREAMS-12", lambda event: event.configs_changed, (_bump,)),
)
"""Does the group need a new target?"""

TargetRow: TypeAlias = Row[TargetEvent, TargetEvent]


def _too_early(event: TargetEvent) -> bool:
    made_ms = event.group.target_ms
    due_ms = made_ms + event.assignment_interval_ms
    return made_ms != 0 and event.assignment_interval_ms != 0 and event.now_ms < due_ms


def _make_target(event: TargetEvent) -> None:
    event.makes_target = True


ON_TARGET: Final[tuple[TargetRow, ...]] = (
    Row(
        "DP-STREAMS-05 DP-STREAMS-02",
        lambda event: event.group.is_delayed,
        (
            lambda event: event.delay(
                "Assignment delayed due to the configured initial rebalance delay."
            ),
        ),
    ),
    Row("DP-STREAMS-12", lambda event: event.group.target_epoch >= event.group.epoch, ()),
    Row(
        "DP-STREAMS-12 DP-STREAMS-02",
        _too_early,
        (
            lambda event: event.delay(
                "Assignment delayed due to the configured assignment interval."
            ),
        ),
        since=(4, 3),
    ),
    Row("DP-STREAMS-12", always, (_make_target,)),
)
"""Is it time to make it?"""

# ---- answers -------------------------------------------------------------------------------------

AnswerRow: TypeAlias = Row[AnswerEvent, AnswerEvent]


def _is_stale(event: AnswerEvent) -> bool:
    known = event.group.topology
    return known is not None and event.member.topology_epoch < known.epoch


def _tell_stale(event: AnswerEvent) -> None:
    assert event.group.topology is not None, "the condition looks"
    event.add(
        StatusCode.STALE_TOPOLOGY,
        f"The member's topology epoch {event.member.topology_epoch} is behind the group's topology "
        f"epoch {event.group.topology.epoch}.",
    )


def _tell_problem(event: AnswerEvent) -> None:
    assert event.configured.problem is not None, "the condition looks"
    problem = event.configured.problem
    event.add(StatusCode(problem.status), problem.detail)


def _tell_shutdown(event: AnswerEvent) -> None:
    event.add(
        StatusCode.SHUTDOWN_APPLICATION,
        f"Streams group member {event.group.shutdown_member} encountered a fatal error and "
        "requested a shutdown for the entire application.",
    )


def _tell_tags(event: AnswerEvent) -> None:
    event.add(
        StatusCode.MISSING_CLIENT_TAGS,
        f"Missing required client tags for rack-aware standby assignment: "
        f"[{', '.join(event.missing_tags)}]. Configure them via 'client.tag.<tagKey>' in your "
        "Streams config.",
    )


ON_TOPOLOGY_ANSWER: Final[tuple[AnswerRow, ...]] = (
    Row("DP-STREAMS-02", _is_stale, (_tell_stale,)),
)
ON_TOPICS_ANSWER: Final[tuple[AnswerRow, ...]] = (
    Row("DP-STREAMS-02", lambda event: not event.configured.is_ready, (_tell_problem,)),
)
ON_SHUTDOWN_ANSWER: Final[tuple[AnswerRow, ...]] = (
    Row(
        "DP-STREAMS-02",
        lambda event: event.group.shutdown_member is not None,
        (_tell_shutdown,),
    ),
)
ON_TAGS_ANSWER: Final[tuple[AnswerRow, ...]] = (
    Row(
        "DP-STREAMS-02",
        lambda event: event.version >= 1 and bool(event.missing_tags),
        (_tell_tags,),
        since=_STATIC,
    ),
)

EndpointRow: TypeAlias = Row[EndpointEvent, EndpointEvent]


def _raise_endpoint(event: EndpointEvent) -> None:
    event.raises = True


ON_ENDPOINT: Final[tuple[EndpointRow, ...]] = (
    Row(
        "DP-STREAMS-06",
        lambda event: event.after.endpoint is not None and (event.joins or event.moved),
        (_raise_endpoint,),
        until=_STATIC,
    ),
    Row(
        "DP-STREAMS-06",
        lambda event: event.before.endpoint != event.after.endpoint,
        (_raise_endpoint,),
        since=_STATIC,
    ),
    Row(
        "DP-STREAMS-06",
        lambda event: event.after.endpoint is not None and event.moved,
        (_raise_endpoint,),
        since=_STATIC,
    ),
)
"""Whether members have to learn about endpoints."""

PartitionsRow: TypeAlias = Row[PartitionsEvent, PartitionsEvent]


def _cut(event: PartitionsEvent) -> None:
    event.shown = tuple(sorted(event.partitions))[: event.count]


def _leave_out(event: PartitionsEvent) -> None:
    event.shown = tuple(sorted(each for each in event.partitions if each < event.count))
    event.is_shown = bool(event.shown)


ON_ENDPOINT_PARTITIONS: Final[tuple[PartitionsRow, ...]] = (
    Row("DP-STREAMS-06", always, (_cut,), until=_STATIC),
    Row("DP-STREAMS-06", always, (_leave_out,), since=_STATIC),
)
"""Which partitions of a topic with fewer partitions than tasks belong to tasks."""

# ---- members that go -----------------------------------------------------------------------------

GoneRow: TypeAlias = Row[MemberGone, MemberGone]


def _remove(event: MemberGone) -> None:
    event.remove(event.group, event.member)


def _settle(event: MemberGone) -> None:
    event.settle(event.group)


ON_MEMBER_GONE: Final[tuple[GoneRow, ...]] = (
    Row(
        "DP-STREAMS-12",
        lambda event: len(event.group.members) == 1,
        (_remove, _settle),
        since=_STATIC,
    ),
    Row("DP-STREAMS-12", always, (_remove,)),
)

# ---- offsets -------------------------------------------------------------------------------------

CommitRow: TypeAlias = Row[CommitEvent, CommitEvent]


def _empty_and_unnamed(event: CommitEvent) -> bool:
    return event.epoch < 0 and not event.group.members


def _transaction_without_member(event: CommitEvent) -> bool:
    unnamed = event.member_id == "" and event.instance_id is None
    return event.transactional and event.epoch == LEAVING and unnamed


def _unknown(event: CommitEvent) -> bool:
    return event.member_id not in event.group.members


def _is_current(event: CommitEvent) -> bool:
    return event.epoch == event.member.epoch


def _has_all_since(event: CommitEvent) -> bool:
    """The member has run the task of each partition since this epoch or longer."""
    topology = event.group.topology
    if topology is None or event.epoch > event.member.epoch:
        return False
    for name, index in event.partitions:
        subtopology = topology.subtopology_of(name)
        if subtopology is None or event.epochs.get((subtopology, index), event.epoch + 1) > (
            event.epoch
        ):
            return False
    return True


ON_COMMIT: Final[tuple[CommitRow, ...]] = (
    Row("DP-STREAMS-17", _empty_and_unnamed, ()),
    Row("DP-STREAMS-17", _transaction_without_member, ()),
    Row("DP-STREAMS-17", _unknown, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row(
        "DP-STREAMS-17",
        lambda event: not event.transactional and event.version < 9,
        (refuse(ErrorCode.UNSUPPORTED_VERSION),),
    ),
    Row("DP-STREAMS-17", _is_current, ()),
    Row("DP-STREAMS-17", _has_all_since, ()),
    # TxnOffsetCommit has no error for epochs.
    Row(
        "DP-STREAMS-17",
        lambda event: event.transactional,
        (refuse(ErrorCode.ILLEGAL_GENERATION),),
    ),
    Row("DP-STREAMS-17", always, (refuse(ErrorCode.STALE_MEMBER_EPOCH),)),
)

ON_FETCH: Final[tuple[CommitRow, ...]] = (
    Row("DP-STREAMS-17", lambda event: event.member_id is None and event.epoch < 0, ()),
    # Kafka looks a member up whose id is null, and fails.
    Row(
        "DP-STREAMS-17",
        lambda event: event.member_id is None,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
    ),
    Row("DP-STREAMS-17", _unknown, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-STREAMS-17", _is_current, ()),
    Row("DP-STREAMS-17", always, (refuse(ErrorCode.STALE_MEMBER_EPOCH),)),
)
"""OffsetFetch. A member id that the request leaves out is None."""

# ---- by release ----------------------------------------------------------------------------------


class StreamsRules(msgspec.Struct, frozen=True):
    """The rows of one release, by what happens. ``answers`` are tables in the order of statuses;
    those of topics and what follows come after that of the delay."""

    read: tuple[HeartbeatRow, ...]
    group: tuple[HeartbeatRow, ...]
    member: tuple[HeartbeatRow, ...]
    epoch: tuple[HeartbeatRow, ...]
    topology: tuple[HeartbeatRow, ...]
    tasks: tuple[HeartbeatRow, ...]
    update: tuple[UpdateRow, ...]
    change: tuple[ChangeRow, ...]
    target: tuple[TargetRow, ...]
    stale: tuple[AnswerRow, ...]
    answers: tuple[tuple[AnswerRow, ...], ...]
    endpoint: tuple[EndpointRow, ...]
    partitions: tuple[PartitionsRow, ...]
    gone: tuple[GoneRow, ...]
    commit: tuple[CommitRow, ...]
    fetch: tuple[CommitRow, ...]
    reconcile: tuple[ReconciliationRow, ...]
    difference: tuple[ReconciliationRow, ...]


@cache
def streams_rules(release: Release) -> StreamsRules:
    """Return the rules of a release."""
    return StreamsRules(
        read=rows_of_release(ON_HEARTBEAT_READ, release),
        group=rows_of_release(ON_GROUP, release),
        member=rows_of_release(ON_MEMBER, release),
        epoch=rows_of_release(ON_EPOCH, release),
        topology=rows_of_release(ON_TOPOLOGY, release),
        tasks=rows_of_release(ON_TASKS, release),
        update=rows_of_release(ON_UPDATE, release),
        change=rows_of_release(ON_CHANGE, release),
        target=rows_of_release(ON_TARGET, release),
        stale=rows_of_release(ON_TOPOLOGY_ANSWER, release),
        answers=(
            rows_of_release(ON_TOPICS_ANSWER, release),
            rows_of_release(ON_SHUTDOWN_ANSWER, release),
            rows_of_release(ON_TAGS_ANSWER, release),
        ),
        endpoint=rows_of_release(ON_ENDPOINT, release),
        partitions=rows_of_release(ON_ENDPOINT_PARTITIONS, release),
        gone=rows_of_release(ON_MEMBER_GONE, release),
        commit=rows_of_release(ON_COMMIT, release),
        fetch=rows_of_release(ON_FETCH, release),
        reconcile=rows_of_release(ON_RECONCILE, release),
        difference=rows_of_release(ON_DIFFERENCE, release),
    )
