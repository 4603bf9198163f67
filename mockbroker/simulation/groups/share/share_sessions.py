"""Share sessions: which partitions a member fetches at one broker, and at which epoch."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition
from mockbroker.simulation.releases.rows import Refusable, Row, refuse

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "AnswerEvent",
    "SessionEvent",
    "SessionRules",
    "ShareSession",
    "begins_with_repetition",
]

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1


class ShareSession(msgspec.Struct, eq=False):
    """``epoch`` is that of the next request. Of ``partitions``, those that are True come in the
    next answer even if they have no records."""

    group_id: str
    member_id: str
    connection_id: int
    partitions: dict[TopicIdPartition, bool] = msgspec.field(default_factory=dict)
    epoch: int = 1
    names: dict[uuid.UUID, str] = msgspec.field(default_factory=dict)
    """The topics by ids, also those that were deleted since."""

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1

    def update(
        self, added: Sequence[TopicIdPartition], forgotten: Sequence[TopicIdPartition]
    ) -> None:
        for key in added:
            self.partitions.setdefault(key, True)
        for key in forgotten:
            self.partitions.pop(key, None)


class SessionEvent(Refusable, msgspec.Struct, eq=False):
    """A request of a session. ``session`` is None if there is none, ``is_full`` says whether the
    broker has no room for another, ``repeats`` whether it adds a partition twice."""

    epoch: int
    session: ShareSession | None
    acknowledges: bool
    is_full: bool
    repeats: bool = False
    code: ErrorCode = ErrorCode.NONE

    @property
    def begins(self) -> bool:
        return self.epoch == INITIAL_EPOCH


SessionRow: TypeAlias = Row[SessionEvent, SessionEvent]


def _is_unknown(event: SessionEvent) -> bool:
    return event.session is None and not event.begins


def _has_other_epoch(event: SessionEvent) -> bool:
    session = event.session
    differs = session is not None and session.epoch != event.epoch
    return differs and event.epoch not in (INITIAL_EPOCH, FINAL_EPOCH)


def begins_with_repetition(event: SessionEvent) -> bool:
    return event.begins and event.repeats


_UNKNOWN: Final[SessionRow] = Row(
    "DP-SHARE-03", _is_unknown, (refuse(ErrorCode.SHARE_SESSION_NOT_FOUND),)
)
_OTHER_EPOCH: Final[SessionRow] = Row(
    "DP-SHARE-03", _has_other_epoch, (refuse(ErrorCode.INVALID_SHARE_SESSION_EPOCH),)
)

ON_SHARE_FETCH: Final[tuple[SessionRow, ...]] = (
    _UNKNOWN,
    Row(
        "DP-SHARE-03",
        lambda event: event.begins and event.acknowledges,
        (refuse(ErrorCode.INVALID_REQUEST),),
    ),
    Row("DP-SHARE-46", begins_with_repetition, (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),)),
    Row(
        "DP-SHARE-34",
        lambda event: event.begins and event.session is None and event.is_full,
        (refuse(ErrorCode.SHARE_SESSION_LIMIT_REACHED),),
    ),
    _OTHER_EPOCH,
)
ON_SHARE_ACKNOWLEDGE: Final[tuple[SessionRow, ...]] = (
    Row(
        "DP-SHARE-03", lambda event: event.begins, (refuse(ErrorCode.INVALID_SHARE_SESSION_EPOCH),)
    ),
    _UNKNOWN,
    _OTHER_EPOCH,
)


class AnswerEvent(Refusable, msgspec.Struct, eq=False):
    """A ShareFetch is about to be answered. ``names_unknown_topic``: with a partition of a topic
    that the broker does not know, or no more."""

    names_unknown_topic: bool
    code: ErrorCode = ErrorCode.NONE


ON_SHARE_FETCH_ANSWER: Final[tuple[Row[AnswerEvent, AnswerEvent], ...]] = (
    Row(
        "DP-SHARE-37",
        lambda event: event.names_unknown_topic,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
        until=(4, 4),
    ),
)


class SessionRules(msgspec.Struct, frozen=True):
    """The rows by request."""

    fetch: tuple[SessionRow, ...] = ON_SHARE_FETCH
    acknowledge: tuple[SessionRow, ...] = ON_SHARE_ACKNOWLEDGE
    answer: tuple[Row[AnswerEvent, AnswerEvent], ...] = ON_SHARE_FETCH_ANSWER
