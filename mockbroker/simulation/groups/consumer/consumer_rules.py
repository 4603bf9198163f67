"""ConsumerGroupHeartbeat and what follows from it as rows, in the order in which Kafka checks."""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.consumer.consumer_group import (
    LEAVING_FOR_A_WHILE,
    NO_EPOCH,
    ConsumerGroup,
    Member,
)
from mockbroker.simulation.groups.consumer.consumer_heartbeats import (
    CommitEvent,
    DescribeEvent,
    GroupEvent,
    HeartbeatEvent,
    MembersGone,
    RegexEvent,
)
from mockbroker.simulation.groups.consumer.partition_reconciliation import (
    ON_RECONCILE,
    ON_TARGET_READ,
    ReconciliationRow,
)
from mockbroker.simulation.groups.modern.heartbeats import (
    LEAVING,
    HeartbeatResult,
    Reject,
    is_blank,
)
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, refuse, rows_of_release

__all__ = ["ConsumerRules", "HeartbeatRow", "consumer_rules"]

HeartbeatRow: TypeAlias = Row[HeartbeatEvent, HeartbeatEvent]

_INVALID: Final = ErrorCode.INVALID_REQUEST
_NO_GROUP: Final = ErrorCode.GROUP_ID_NOT_FOUND
_STALE: Final = ErrorCode.FENCED_MEMBER_EPOCH

# ---- the request itself --------------------------------------------------------------------------


def _lacks_member_id(event: HeartbeatEvent) -> bool:
    request = event.request
    requested = request.needs_member_id or request.member_epoch > 0
    return not request.member_id.strip() and (requested or request.member_epoch == LEAVING)


def _joins_without_subscription(event: HeartbeatEvent) -> bool:
    request = event.request
    return request.joins and request.topic_names is None and request.topic_regex is None


def _unknown_assignor(event: HeartbeatEvent) -> bool:
    name = event.request.assignor
    return name is not None and name not in event.settings.assignors


def _has_no_member_id(event: HeartbeatEvent) -> bool:
    return not event.member_id and not event.request.leaves


def _make_member_id(event: HeartbeatEvent) -> None:
    event.member_id = event.new_member_id()


ON_HEARTBEAT_READ: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-CGH-03", _lacks_member_id, (Reject(_INVALID, "MemberId can't be empty."),)),
    Row(
        "DP-CGH-04",
        lambda event: is_blank(event.request.group_id),
        (Reject(_INVALID, "GroupId can't be empty."),),
    ),
    Row(
        "DP-CGH-04",
        lambda event: is_blank(event.request.instance_id),
        (Reject(_INVALID, "InstanceId can't be empty."),),
    ),
    Row(
        "DP-CGH-04",
        lambda event: is_blank(event.request.rack_id),
        (Reject(_INVALID, "RackId can't be empty."),),
    ),
    Row(
        "DP-CGH-05",
        lambda event: event.request.joins and event.request.rebalance_timeout_ms == -1,
        (Reject(_INVALID, "RebalanceTimeoutMs must be provided in first request."),),
    ),
    Row(
        "DP-CGH-06",
        lambda event: event.request.joins and event.request.owned != frozenset(),
        (Reject(_INVALID, "TopicPartitions must be empty when (re-)joining."),),
    ),
    Row(
        "DP-CGH-07",
        _joins_without_subscription,
        (
            Reject(
                _INVALID,
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining.",
            ),
        ),
    ),
    Row(
        "DP-CGH-08",
        lambda event: (
            event.request.member_epoch == LEAVING_FOR_A_WHILE and event.request.instance_id is None
        ),
        (Reject(_INVALID, "InstanceId can't be null."),),
    ),
    Row(
        "DP-CGH-08",
        lambda event: event.request.member_epoch < LEAVING_FOR_A_WHILE,
        (Reject(_INVALID, "MemberEpoch is invalid."),),
    ),
    Row(
        "DP-CGH-09",
        _unknown_assignor,
        (
            Reject(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                "ServerAssignor {assignor} is not supported. Supported assignors: {assignors}.",
            ),
        ),
    ),
    Row("DP-CGH-19", _has_no_member_id, (_make_member_id,)),
)
"""Before the coordinator is asked."""

# ---- the group -----------------------------------------------------------------------------------


def _elsewhere(event: HeartbeatEvent) -> bool:
    return event.coordinator_error is not ErrorCode.NONE


def _refuse_elsewhere(event: HeartbeatEvent) -> None:
    event.result = HeartbeatResult(event.coordinator_error)


def _missing(event: HeartbeatEvent) -> bool:
    return event.group is None and event.classic is None and not event.is_taken


def _missing_for_leaver(event: HeartbeatEvent) -> bool:
    return _missing(event) and event.request.leaves


def _missing_for_member(event: HeartbeatEvent) -> bool:
    return _missing(event) and not event.request.joins


def _joins_classic(event: HeartbeatEvent) -> bool:
    return event.request.joins and event.classic is not None


def _joins_empty_classic(event: HeartbeatEvent) -> bool:
    return event.classic is not None and event.request.joins and not event.classic.members


def _is_of_another_kind(event: HeartbeatEvent) -> bool:
    return event.classic is not None or event.is_taken


def _upgrades_forbidden(event: HeartbeatEvent) -> bool:
    return _joins_classic(event) and not event.settings.upgrades


def _not_of_consumers(event: HeartbeatEvent) -> bool:
    classic = event.classic
    return event.request.joins and classic is not None and not classic.is_consumer_group


def _too_large(event: HeartbeatEvent) -> bool:
    classic = event.classic
    return _joins_classic(event) and len(classic.members if classic else ()) > (
        event.settings.max_size
    )


class MakeGroup(msgspec.Struct, frozen=True):
    """Make a group whose first target is the one after this epoch."""

    epoch: int

    def __call__(self, subject: HeartbeatEvent, /) -> None:
        group_id = subject.request.group_id
        subject.converts = subject.classic is not None
        subject.group = ConsumerGroup(group_id, epoch=self.epoch, target_epoch=self.epoch)


def _convert(event: HeartbeatEvent) -> None:
    """``convert`` says why it cannot by a result of its own."""
    event.converts = True
    event.group = event.convert()


_EPOCH_1: Final = (4, 3)
"""Epoch 0 means that a member joins: from here on no group is at it."""
_CANNOT: Final = "Cannot upgrade classic group {group} to consumer group because "

ON_GROUP: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-CGH-10", _elsewhere, (_refuse_elsewhere,)),
    Row("DP-CGH-11", _missing_for_leaver, (Reject(_NO_GROUP, "Group {group} not found."),)),
    Row(
        "DP-CGH-11",
        _missing_for_member,
        (Reject(_NO_GROUP, "Consumer group {group} not found."),),
    ),
    Row("DP-CGH-29", _missing, (MakeGroup(0),), until=_EPOCH_1),
    Row("DP-CGH-29", _missing, (MakeGroup(1),), since=_EPOCH_1),
    Row("DP-MIGRATE-05", _joins_empty_classic, (MakeGroup(0),), until=_EPOCH_1),
    Row("DP-MIGRATE-05", _joins_empty_classic, (MakeGroup(1),), since=_EPOCH_1),
    Row(
        "DP-MIGRATE-01 DP-MIGRATE-02",
        _upgrades_forbidden,
        (Reject(_NO_GROUP, _CANNOT + "online upgrade is disabled."),),
    ),
    Row(
        "DP-MIGRATE-02",
        _not_of_consumers,
        (Reject(_NO_GROUP, _CANNOT + "the group does not use the consumer embedded protocol."),),
    ),
    Row(
        "DP-MIGRATE-02",
        _too_large,
        (
            Reject(
                _NO_GROUP,
                _CANNOT + "the group size exceeds the consumer group maximum size.",
            ),
        ),
    ),
    Row("DP-MIGRATE-02", _joins_classic, (_convert,)),
    Row(
        "DP-CGH-11",
        _is_of_another_kind,
        (Reject(_NO_GROUP, "Group {group} is not a consumer group."),),
    ),
)
"""Which group the heartbeat concerns. A group that exists already needs no row."""

# ---- the member ----------------------------------------------------------------------------------


def _is_full(event: HeartbeatEvent) -> bool:
    group = event.known
    full = len(group.members) >= event.settings.max_size
    return full and event.member_id not in group.members


def _is_static(event: HeartbeatEvent) -> bool:
    return event.request.instance_id is not None


def _instance_in_use(event: HeartbeatEvent) -> bool:
    """Another member has the instance id, and did not say that it would be away."""
    holder = event.holder
    return (
        event.request.joins
        and holder is not None
        and holder.classic is None
        and holder.epoch != LEAVING_FOR_A_WHILE
    )


def _instance_returns(event: HeartbeatEvent) -> bool:
    return event.request.joins and event.holder is not None


def _unknown_instance(event: HeartbeatEvent) -> bool:
    return _is_static(event) and not event.request.joins and event.holder is None


def _fenced_instance(event: HeartbeatEvent) -> bool:
    holder = event.holder
    return not event.request.joins and holder is not None and holder.member_id != event.member_id


def _unknown_member(event: HeartbeatEvent) -> bool:
    known = event.member_id in event.known.members
    return not _is_static(event) and not event.request.joins and not known


def _find_member(event: HeartbeatEvent) -> None:
    """The member of the request, or a new one."""
    holder = None if event.request.joins else event.holder
    known = event.known.members.get(event.member_id)
    event.former = holder or known or Member(event.member_id)


def _take_place(event: HeartbeatEvent) -> None:
    event.replaces = event.holder


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
    Row(
        "DP-CGH-12",
        _is_full,
        (
            Reject(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                "The consumer group has reached its maximum capacity of {size} members.",
            ),
        ),
    ),
    Row("DP-CGH-14", _instance_in_use, (_IN_USE,)),
    Row("DP-CGH-18", _instance_returns, (_take_place,)),
    Row("DP-CGH-14", _unknown_instance, (_UNKNOWN_INSTANCE,)),
    Row("DP-CGH-14", _fenced_instance, (_FENCED_INSTANCE,)),
    Row("DP-CGH-13", _unknown_member, (_UNKNOWN_MEMBER,)),
    Row("DP-CGH-13", always, (_find_member,)),
)
"""Who sends a heartbeat."""

ON_LEAVER: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-CGH-14", _unknown_instance, (_UNKNOWN_INSTANCE,)),
    Row("DP-CGH-14", _fenced_instance, (_FENCED_INSTANCE,)),
    Row("DP-CGH-13", _unknown_member, (_UNKNOWN_MEMBER,)),
    Row("DP-CGH-17 DP-CGH-18", always, (_find_member,)),
)
"""Who leaves. The epoch does not matter."""


def _is_ahead(event: HeartbeatEvent) -> bool:
    return not event.request.joins and event.request.member_epoch > event.member.epoch


def _lost_an_answer(event: HeartbeatEvent) -> bool:
    """The member comes with its former epoch, and has nothing that it should not have."""
    owned, member = event.request.owned, event.member
    behind = event.request.member_epoch == member.previous_epoch
    return behind and owned is not None and owned <= member.assigned.keys()


def _is_behind(event: HeartbeatEvent) -> bool:
    behind = event.request.member_epoch < event.member.epoch
    return not event.request.joins and behind and not _lost_an_answer(event)


def _bad_regex(event: HeartbeatEvent) -> bool:
    """Only an expression that nobody in the group has is looked at."""
    regex = event.request.topic_regex
    return bool(regex) and not event.known.regexes[regex or ""] and (
        event.regex_problem(regex or "") is not None
    )  # fmt: skip


ON_EPOCH: Final[tuple[HeartbeatRow, ...]] = (
    Row(
        "DP-CGH-15",
        _is_ahead,
        (
            Reject(
                _STALE,
                "The consumer group member has a greater member epoch ({received}) than the one "
                "known by the group coordinator ({epoch}). The member must abandon all its "
                "partitions and rejoin.",
            ),
        ),
    ),
    Row(
        "DP-CGH-16",
        _is_behind,
        (
            Reject(
                _STALE,
                "The consumer group member has a smaller member epoch ({received}) than the one "
                "known by the group coordinator ({epoch}). The member must abandon all its "
                "partitions and rejoin.",
            ),
        ),
    ),
    Row(
        "DP-CGH-20",
        _bad_regex,
        (
            Reject(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                "SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}.",
            ),
        ),
    ),
)
"""Whether its epoch and its subscription will do."""

# ---- what a heartbeat changes --------------------------------------------------------------------

GroupRow: TypeAlias = Row[GroupEvent, GroupEvent]


def _bump(event: GroupEvent) -> None:
    event.bumps = True


ON_CHANGE: Final[tuple[GroupRow, ...]] = (
    Row("DP-CGH-29", lambda event: event.group.epoch == 0, (_bump,), until=_EPOCH_1),
    Row("DP-CGH-21", lambda event: event.subscription_changed, (_bump,)),
    Row("DP-CGH-20 DP-CGH-21", lambda event: event.resolved_changed, (_bump,)),
    Row("DP-CGH-21", lambda event: event.assignor_changed, (_bump,), since=(4, 4)),
    Row("DP-CGH-21", lambda event: event.topics_changed, (_bump,)),
    Row("DP-CGH-21", lambda event: event.racks_changed, (_bump,), since=(4, 1)),
)
"""Does the group need a new target?"""


def _up_to_date(event: GroupEvent) -> bool:
    return event.group.target_epoch >= event.group.epoch


def _too_early(event: GroupEvent) -> bool:
    made_ms = event.group.target_ms
    due_ms = made_ms + event.assignment_interval_ms
    return made_ms != 0 and event.assignment_interval_ms != 0 and event.now_ms < due_ms


def _make_target(event: GroupEvent) -> None:
    event.makes_target = True


ON_TARGET: Final[tuple[GroupRow, ...]] = (
    Row("DP-CGH-22", _up_to_date, ()),
    Row("DP-CGH-22", _too_early, (), since=(4, 3)),
    Row("DP-CGH-22", always, (_make_target,)),
)
"""Is it time to make it?"""

# ---- members that go -----------------------------------------------------------------------------

GoneRow: TypeAlias = Row[MembersGone, MembersGone]


def _only_classic_members_stay(event: MembersGone) -> bool:
    staying = event.staying
    fits = len(staying) <= event.classic_max_size
    classic = all(each.classic is not None for each in staying)
    return bool(staying) and classic and event.settings.downgrades and fits


def _nobody_stays(event: MembersGone) -> bool:
    return not event.staying


def _remove(event: MembersGone) -> None:
    event.remove(event.group, event.gone)


def _settle(event: MembersGone) -> None:
    event.settle(event.group)


ON_MEMBERS_GONE: Final[tuple[GoneRow, ...]] = (
    Row(
        "DP-MIGRATE-04",
        _only_classic_members_stay,
        (lambda event: event.downgrade(event.group, event.gone),),
    ),
    Row("DP-CGH-17", _nobody_stays, (_remove, _settle), since=(4, 4)),
    Row("DP-CGH-17", always, (_remove,)),
)

# ---- regular expressions -------------------------------------------------------------------------

RegexRow: TypeAlias = Row[RegexEvent, RegexEvent]

_LEAST_INTERVAL_MS: Final = 10_000


def _just_resolved(event: RegexEvent) -> bool:
    last_ms = event.last_ms
    return last_ms is not None and event.now_ms <= last_ms + _LEAST_INTERVAL_MS


def _has_unresolved(event: RegexEvent) -> bool:
    return event.group.regexes.keys() != event.group.resolved.keys()


def _long_ago(event: RegexEvent) -> bool:
    return event.last_ms is not None and event.now_ms > event.last_ms + event.interval_ms


def _resolve(event: RegexEvent) -> None:
    event.resolves = True


ON_REGEX: Final[tuple[RegexRow, ...]] = (
    Row("DP-CGH-20", _just_resolved, ()),
    Row("DP-CGH-20", _has_unresolved, (_resolve,)),
    Row("DP-CGH-20", lambda event: event.created > event.version, (_resolve,)),
    Row("DP-CGH-20", _long_ago, (_resolve,)),
)
"""After a heartbeat: are regular expressions to be resolved?"""

# ---- offsets -------------------------------------------------------------------------------------

CommitRow: TypeAlias = Row[CommitEvent, CommitEvent]


def _empty_and_unnamed(event: CommitEvent) -> bool:
    return event.epoch < 0 and not event.group.members


def _transaction_without_member(event: CommitEvent) -> bool:
    unnamed = event.member_id == "" and event.instance_id is None
    return event.transactional and event.epoch == NO_EPOCH and unnamed


def _unknown(event: CommitEvent) -> bool:
    return event.member_id not in event.group.members


def _old_version(event: CommitEvent) -> bool:
    return not event.transactional and event.member.classic is None and event.version < 9


def _is_current(event: CommitEvent) -> bool:
    return event.epoch == event.member.epoch


def _has_all_since(event: CommitEvent) -> bool:
    """The member has had each partition since this epoch or longer."""
    held = {**event.member.revoking, **event.member.assigned}
    return event.epoch < event.member.epoch and all(
        tp is not None and tp in held and held[tp] <= event.epoch for tp in event.partitions
    )


def _is_transactional(event: CommitEvent) -> bool:
    return event.transactional


def _speaks_classic(event: CommitEvent) -> bool:
    return event.member.classic is not None


ON_COMMIT: Final[tuple[CommitRow, ...]] = (
    Row("DP-MIGRATE-06", _empty_and_unnamed, ()),
    Row("DP-MIGRATE-06", _transaction_without_member, ()),
    Row("DP-MIGRATE-06", _unknown, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-MIGRATE-06", _old_version, (refuse(ErrorCode.UNSUPPORTED_VERSION),)),
    Row("DP-MIGRATE-06", _is_current, ()),
    Row("DP-MIGRATE-06", _has_all_since, (), since=(4, 3)),
    Row("DP-MIGRATE-06", _speaks_classic, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
    # TxnOffsetCommit has no error for epochs.
    Row("DP-MIGRATE-06", _is_transactional, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-MIGRATE-06", always, (refuse(ErrorCode.STALE_MEMBER_EPOCH),)),
)


def _names_nobody(event: CommitEvent) -> bool:
    return event.member_id is None


def _administrator(event: CommitEvent) -> bool:
    return event.member_id is None and event.epoch < 0


ON_FETCH: Final[tuple[CommitRow, ...]] = (
    Row("DP-MIGRATE-07", _administrator, ()),
    # Kafka looks a member up whose id is null, and fails.
    Row("DP-MIGRATE-07", _names_nobody, (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),)),
    Row("DP-MIGRATE-07", _unknown, (refuse(ErrorCode.UNKNOWN_MEMBER_ID),)),
    Row("DP-MIGRATE-07", _is_current, ()),
    Row("DP-MIGRATE-07", _speaks_classic, (refuse(ErrorCode.ILLEGAL_GENERATION),)),
    Row("DP-MIGRATE-07", always, (refuse(ErrorCode.STALE_MEMBER_EPOCH),)),
)
"""OffsetFetch. A member id that the request leaves out is None."""

# ---- ConsumerGroupDescribe -----------------------------------------------------------------------


def _show_assigned(event: DescribeEvent) -> None:
    event.shown = frozenset(event.member.assigned)


def _show_held(event: DescribeEvent) -> None:
    event.shown = event.member.held


ON_DESCRIBE: Final[tuple[Row[DescribeEvent, DescribeEvent], ...]] = (
    Row("DP-MIGRATE-08", always, (_show_assigned,), until=(4, 3)),
    Row("DP-MIGRATE-08", always, (_show_held,), since=(4, 3)),
)
"""Which partitions a member is shown with: those that it gives up count from 4.3 on."""

# ---- by release ----------------------------------------------------------------------------------


class ConsumerRules(msgspec.Struct, frozen=True):
    """The rows of one release, by what happens."""

    read: tuple[HeartbeatRow, ...]
    group: tuple[HeartbeatRow, ...]
    member: tuple[HeartbeatRow, ...]
    leaver: tuple[HeartbeatRow, ...]
    epoch: tuple[HeartbeatRow, ...]
    change: tuple[GroupRow, ...]
    target: tuple[GroupRow, ...]
    gone: tuple[GoneRow, ...]
    regex: tuple[RegexRow, ...]
    commit: tuple[CommitRow, ...]
    fetch: tuple[CommitRow, ...]
    describe: tuple[Row[DescribeEvent, DescribeEvent], ...]
    target_read: tuple[ReconciliationRow, ...]
    reconcile: tuple[ReconciliationRow, ...]


@cache
def consumer_rules(release: Release) -> ConsumerRules:
    """Return the rules of a release."""
    return ConsumerRules(
        read=rows_of_release(ON_HEARTBEAT_READ, release),
        group=rows_of_release(ON_GROUP, release),
        member=rows_of_release(ON_MEMBER, release),
        leaver=rows_of_release(ON_LEAVER, release),
        epoch=rows_of_release(ON_EPOCH, release),
        change=rows_of_release(ON_CHANGE, release),
        target=rows_of_release(ON_TARGET, release),
        gone=rows_of_release(ON_MEMBERS_GONE, release),
        regex=rows_of_release(ON_REGEX, release),
        commit=rows_of_release(ON_COMMIT, release),
        fetch=rows_of_release(ON_FETCH, release),
        describe=rows_of_release(ON_DESCRIBE, release),
        target_read=rows_of_release(ON_TARGET_READ, release),
        reconcile=rows_of_release(ON_RECONCILE, release),
    )
