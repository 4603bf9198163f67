"""ConsumerGroupHeartbeat as rows, in the order in which Kafka checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import Group as ClassicGroup
from mockbroker.simulation.groups.consumer.consumer_group import (
    ConsumerGroup,
    HeartbeatRequest,
    Member,
)
from mockbroker.simulation.groups.consumer.regexes import regex_problem
from mockbroker.simulation.groups.modern.heartbeat_rules import (
    HeartbeatRow,
    StaticHeartbeatEvent,
    epoch_read_rows,
    epoch_rows,
    group_rows,
    has_no_place,
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
from mockbroker.simulation.groups.modern.heartbeats import LEAVING
from mockbroker.simulation.releases.fixes import KAFKA_20601
from mockbroker.simulation.releases.rows import Row

__all__ = ["ON_CONSUMER_EPOCH", "ON_CONSUMER_GROUP", "ON_CONSUMER_MEMBER", "ON_CONSUMER_READ",
           "ConsumerHeartbeat", "UpgradeRefusedError"]  # fmt: skip


class UpgradeRefusedError(Exception):
    """A classic group cannot become a consumer group; its text is Kafka's."""


class ConsumerHeartbeat(StaticHeartbeatEvent[ConsumerGroup], eq=False, kw_only=True):
    """A heartbeat. ``classic`` is the classic group of the id, which ``convert`` makes a consumer
    group."""

    kind = "consumer"
    new_group = ConsumerGroup
    new_member = Member

    request: HeartbeatRequest
    classic: ClassicGroup | None
    convert: Callable[[], ConsumerGroup]
    new_member_id: Callable[[], str]
    converts: bool = False

    def make(self, epoch: int) -> None:
        StaticHeartbeatEvent.make(self, epoch)
        self.converts = self.classic is not None

    def _holds(self, owned: Any) -> bool:
        return bool(owned <= self.member.assigned.keys())

    def words(self) -> dict[str, object]:
        regex = self.request.topic_regex
        return {
            **StaticHeartbeatEvent.words(self),
            "assignor": self.request.assignor,
            "assignors": ", ".join(self.settings.assignors),
            "regex": regex,
            "problem": regex_problem(regex) if regex else None,
        }


# ---- the request itself --------------------------------------------------------------------------


def _lacks_member_id(event: ConsumerHeartbeat) -> bool:
    request = event.request
    requested = request.needs_member_id or request.member_epoch > 0
    return not request.member_id.strip() and (requested or request.member_epoch == LEAVING)


def _joins_with_partitions(event: ConsumerHeartbeat) -> bool:
    """Kafka counts the rows, not the partitions that they have."""
    request = event.request
    return request.joins and (request.owned != frozenset() or request.has_empty_rows)


def _joins_without_subscription(event: ConsumerHeartbeat) -> bool:
    request = event.request
    return request.joins and request.topic_names is None and request.topic_regex is None


def _unknown_assignor(event: ConsumerHeartbeat) -> bool:
    name = event.request.assignor
    return name is not None and name not in event.settings.assignors


def _has_no_member_id(event: ConsumerHeartbeat) -> bool:
    return not event.member_id and not event.request.leaves


def _make_member_id(event: ConsumerHeartbeat) -> None:
    event.member_id = event.new_member_id()


ON_CONSUMER_READ: Final[tuple[HeartbeatRow, ...]] = (
    invalid("DP-CGH-03", _lacks_member_id, "MemberId can't be empty."),
    *static_read_rows("DP-CGH-04", "DP-CGH-05"),
    invalid(
        "DP-CGH-06", _joins_with_partitions, "TopicPartitions must be empty when (re-)joining."
    ),
    invalid(
        "DP-CGH-07",
        _joins_without_subscription,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    ),
    *epoch_read_rows("DP-CGH-08", "MemberEpoch is invalid."),
    Row(
        "DP-CGH-09",
        _unknown_assignor,
        (
            reject(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                "ServerAssignor {assignor} is not supported. Supported assignors: {assignors}.",
            ),
        ),
    ),
    Row("DP-CGH-19", _has_no_member_id, (_make_member_id,)),
)
"""Before the group is looked up."""

# ---- the group -----------------------------------------------------------------------------------


def _joins_classic(event: ConsumerHeartbeat) -> bool:
    return event.request.joins and event.classic is not None


def _joins_empty_classic(event: ConsumerHeartbeat) -> bool:
    return event.classic is not None and event.request.joins and not event.classic.members


def _not_of_consumers(event: ConsumerHeartbeat) -> bool:
    classic = event.classic
    return event.request.joins and classic is not None and not classic.is_consumer_group


def _too_large(event: ConsumerHeartbeat) -> bool:
    classic = event.classic
    return _joins_classic(event) and len(classic.members if classic else ()) > (
        event.settings.max_size
    )


def _convert(event: ConsumerHeartbeat) -> None:
    try:
        event.group = event.convert()
    except UpgradeRefusedError as refusal:
        event.reject(ErrorCode.GROUP_ID_NOT_FOUND, str(refusal))
    else:
        event.converts = True


def _cannot(reason: str) -> Callable[[ConsumerHeartbeat], None]:
    text = "Cannot upgrade classic group {group} to consumer group because "
    return reject(ErrorCode.GROUP_ID_NOT_FOUND, text + reason)


ON_CONSUMER_GROUP: Final[tuple[HeartbeatRow, ...]] = (
    *group_rows("DP-CGH-11", "DP-CGH-10"),
    *making_rows("DP-CGH-29", is_missing),
    *making_rows("DP-MIGRATE-05", _joins_empty_classic),
    Row(
        "DP-MIGRATE-01 DP-MIGRATE-02",
        lambda event: _joins_classic(event) and not event.settings.upgrades,
        (_cannot("online upgrade is disabled."),),
    ),
    Row(
        "DP-MIGRATE-02",
        _not_of_consumers,
        (_cannot("the group does not use the consumer embedded protocol."),),
    ),
    Row(
        "DP-MIGRATE-02",
        _too_large,
        (_cannot("the group size exceeds the consumer group maximum size."),),
    ),
    Row("DP-MIGRATE-02", _joins_classic, (_convert,)),
    taken_row("DP-CGH-11"),
)
"""The group of the heartbeat. A group that exists already needs no row."""

# ---- the member ----------------------------------------------------------------------------------

ON_CONSUMER_MEMBER: Final[tuple[HeartbeatRow, ...]] = (
    Row("DP-CGH-12", is_full, (reject_full,), until=KAFKA_20601),
    Row("DP-CGH-12", has_no_place, (reject_full,), since=KAFKA_20601),
    *static_member_rows("DP-CGH-14", "DP-CGH-18"),
    *member_rows("DP-CGH-13", "DP-CGH-13 DP-CGH-17 DP-CGH-18"),
)
"""The member that sends a heartbeat, or leaves."""


def _bad_regex(event: ConsumerHeartbeat) -> bool:
    """Only an expression that no member has is checked."""
    regex = event.request.topic_regex
    if event.replaces is not None or not regex:
        return False
    return not event.known.regexes[regex] and regex_problem(regex) is not None


ON_CONSUMER_EPOCH: Final[tuple[HeartbeatRow, ...]] = (
    *epoch_rows("DP-CGH-15", "DP-CGH-16"),
    Row(
        "DP-CGH-20",
        _bad_regex,
        (
            reject(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                "SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}.",
            ),
        ),
    ),
)
"""The epoch and the subscription of a member that stays."""
