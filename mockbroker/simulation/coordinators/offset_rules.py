"""The rules of committed offsets that differ between releases, as rows: how long an offset lasts,
and which error a commit gets that cannot be stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.group_facts import EMPTY, STABLE, GroupStanding
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Row, always, with_arguments

__all__ = [
    "APPEND_ERRORS",
    "COMMIT_TIMES",
    "DELETIONS",
    "EXPIRY",
    "UNKNOWN",
    "Age",
    "AppendError",
    "CommitTimes",
    "CommittedOffset",
    "OffsetToCommit",
]

UNKNOWN: Final = -1
"""An offset, leader epoch or time that is not there."""

_KIP_211: Final = (2, 1)
"""Offsets of a group last as long as the group has members."""
_SUBSCRIPTIONS_KNOWN: Final = (2, 4)
_JAVA_COORDINATOR: Final = (4, 0)


class OffsetToCommit(msgspec.Struct, frozen=True):
    """One partition of an OffsetCommit. ``leader_epoch`` and ``timestamp_ms`` are -1 if the request
    has none."""

    offset: int
    leader_epoch: int = UNKNOWN
    metadata: str = ""
    timestamp_ms: int = UNKNOWN


class CommittedOffset(msgspec.Struct, frozen=True):
    """An offset as it was committed. ``expires_ms`` is the end that the commit itself set, None if
    the group decides. ``sequence`` counts the commits of a cluster: a transaction that ends does
    not overwrite a later one."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expires_ms: int | None
    sequence: int


# ---- the times of a commit -----------------------------------------------------------------------


class CommitTimes(msgspec.Struct):
    """``timestamp_ms`` and ``wanted_ms`` are the request's, -1 if it has none; ``retention_ms`` is
    the broker's. The rows fill in ``commit_ms`` and ``expires_ms``."""

    now_ms: int
    timestamp_ms: int
    wanted_ms: int
    retention_ms: int
    commit_ms: int = 0
    expires_ms: int | None = None


def _int64(number: int) -> int:
    """Wrap around as Java's ``long`` does: a commit that would be kept for ever ends at once."""
    return (number + 2**63) % 2**64 - 2**63


def _end_after_retention(times: CommitTimes) -> None:
    """Every commit sets its own end, counted from its timestamp."""
    lasts_ms = times.retention_ms if times.wanted_ms == UNKNOWN else times.wanted_ms
    begins_ms = times.now_ms if times.timestamp_ms == UNKNOWN else times.timestamp_ms
    times.commit_ms = times.now_ms
    times.expires_ms = _int64(begins_ms + lasts_ms)


def _end_as_requested(times: CommitTimes) -> None:
    """A commit sets an end only if the request has a retention time."""
    stamped = times.timestamp_ms != UNKNOWN
    times.commit_ms = times.timestamp_ms if stamped else times.now_ms
    if times.wanted_ms != UNKNOWN:
        times.expires_ms = _int64(times.now_ms + times.wanted_ms)


COMMIT_TIMES: Final[tuple[Row[CommitTimes, CommitTimes], ...]] = (
    Row("DP-OFFSET-10", always, (_end_after_retention,), until=_KIP_211),
    Row("DP-OFFSET-10", always, (_end_as_requested,), since=_KIP_211),
)


# ---- expiry --------------------------------------------------------------------------------------


class Age(msgspec.Struct):
    """An offset that may have expired. The row that applies sets ``expired``."""

    offset: CommittedOffset
    standing: GroupStanding
    subscribed: bool
    now_ms: int
    retention_ms: int
    expired: bool = False

    def passed(self, begins_ms: int) -> bool:
        """Whether the offset's own end has come, or without one the retention time since then."""
        if self.offset.expires_ms is not None:
            return self.now_ms >= self.offset.expires_ms
        return self.now_ms - begins_ms >= self.retention_ms


def _expire_after_end(age: Age) -> None:
    """The offset goes once its own end has passed."""
    assert age.offset.expires_ms is not None, "each commit of these releases sets one"
    age.expired = age.offset.expires_ms < age.now_ms


def _expire_since_commit(age: Age) -> None:
    """The retention time counts from the commit."""
    age.expired = age.passed(age.offset.commit_ms)


def _expire_since_empty(age: Age) -> None:
    """The retention time counts from the moment at which the group became empty."""
    since_ms = age.standing.empty_since_ms
    age.expired = age.passed(age.offset.commit_ms if since_ms is None else since_ms)


def _is_simple(age: Age) -> bool:
    return not age.standing.protocol_type


def _is_empty(age: Age) -> bool:
    return age.standing.state == EMPTY


def _unused(age: Age) -> bool:
    return age.standing.protocol_type == "consumer" and not age.subscribed


def _unused_in_stable(age: Age) -> bool:
    return _unused(age) and age.standing.state == STABLE


_RETENTION = "DP-OFFSET-21"

EXPIRY: Final[tuple[Row[Age, Age], ...]] = (
    Row(_RETENTION, always, (_expire_after_end,), until=_KIP_211),
    Row(_RETENTION, _is_simple, (_expire_since_commit,), since=_KIP_211),
    Row(_RETENTION, _is_empty, (_expire_since_empty,), since=_KIP_211),
    Row(
        _RETENTION,
        lambda age: _unused(age) and age.standing.state != STABLE,
        (_expire_since_commit,),
        since=_SUBSCRIPTIONS_KNOWN,
        until=fixes.KAFKA_13636,
    ),
    Row(_RETENTION, _unused_in_stable, (_expire_since_commit,), since=_SUBSCRIPTIONS_KNOWN),
)
"""Without a row the offset stays."""


# ---- deletions -----------------------------------------------------------------------------------


def _delete_empty_group(go: Callable[[], None]) -> None:
    """An empty group without offsets is deleted; ``go`` deletes it."""
    go()


DELETIONS: Final[tuple[Row[None, Callable[[], None]], ...]] = (
    Row("DP-OFFSET-26", always, (_delete_empty_group,), until=_JAVA_COORDINATOR),
)
"""Groups whose offsets were deleted by a request, or with a topic."""


# ---- errors of an append -------------------------------------------------------------------------


class AppendError(msgspec.Struct):
    """An error of appending to the internal topic. A row changes ``code``."""

    code: ErrorCode


@with_arguments
def _become(error: AppendError, code: ErrorCode) -> None:
    """The client gets another error."""
    error.code = code


def _not_stored(error: AppendError) -> bool:
    return error.code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    )


def _too_late(error: AppendError) -> bool:
    return error.code == ErrorCode.REQUEST_TIMED_OUT


def _not_led(error: AppendError) -> bool:
    return error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)


def _too_large(error: AppendError) -> bool:
    return error.code in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_FETCH_SIZE,
    )


_APPEND = "DP-COORD-08"
_UNAVAILABLE = _become(ErrorCode.COORDINATOR_NOT_AVAILABLE)
_BAD_SIZE = _become(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
_FAILED = _become(ErrorCode.UNKNOWN_SERVER_ERROR)

APPEND_ERRORS: Final[tuple[Row[AppendError, AppendError], ...]] = (
    Row(_APPEND, _not_stored, (_UNAVAILABLE,)),
    Row(_APPEND, _too_late, (_UNAVAILABLE,), since=_JAVA_COORDINATOR),
    Row(_APPEND, _not_led, (_become(ErrorCode.NOT_COORDINATOR),)),
    Row(_APPEND, _too_large, (_BAD_SIZE,), until=_JAVA_COORDINATOR),
    Row(_APPEND, _too_large, (_FAILED,), since=_JAVA_COORDINATOR),
)
"""Errors without a row reach the client unchanged."""
