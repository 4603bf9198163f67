"""The states of a record that is in flight, and what moves it between them, as rows.

Available -> Acquired by a fetch, which counts the delivery and locks the record for a member. An
acknowledgement, or the end of the lock, leads from there to one of the others: Acknowledged and
Archived records are never delivered again.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Row, always, with_arguments
from mockbroker.simulation.state.timers import Timer

__all__ = [
    "AckType",
    "Acknowledgement",
    "BatchCheck",
    "Delivery",
    "DeliveryRules",
    "RecordState",
    "StoreError",
    "StoreEvent",
    "Throttle",
]

NO_MEMBER: Final = ""


class RecordState(StrEnum):
    AVAILABLE = "Available"
    ACQUIRED = "Acquired"
    ACKNOWLEDGED = "Acknowledged"
    ARCHIVED = "Archived"

    @property
    def is_final(self) -> bool:
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class AckType(IntEnum):
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Delivery(msgspec.Struct, eq=False):
    """The state of one record, or of a batch of them. ``lock`` ends an acquisition."""

    state: RecordState
    count: int
    member_id: str = NO_MEMBER
    lock: Timer | None = None

    def leave(self, state: RecordState) -> None:
        """End the acquisition, with its lock."""
        self.state, self.member_id = state, NO_MEMBER
        if self.lock is not None:
            self.lock.set(None)
            self.lock = None


# ---- acknowledgements ----------------------------------------------------------------------------


class Acknowledgement(msgspec.Struct, eq=False):
    """A member acknowledges a delivery, or the lock of it ends (``member_id`` is None). ``whole``:
    it is that of a batch; ``in_progress``: the same request has acknowledged it already.

    The rows decide on ``error``, or on ``state``; neither: the lock begins anew."""

    delivery: Delivery
    member_id: str | None
    ack_type: int
    limit: int
    whole: bool = False
    before_start: bool = False
    in_progress: bool = False
    renews: bool = True
    error: tuple[ErrorCode, str] | None = None
    state: RecordState | None = None

    @property
    def is_acquired(self) -> bool:
        return self.delivery.state is RecordState.ACQUIRED and not self.in_progress


@with_arguments
def _move(event: Acknowledgement, state: RecordState) -> None:
    event.state = state


@with_arguments
def _invalid(event: Acknowledgement, text: str) -> None:
    """INVALID_RECORD_STATE (121), with Kafka's text."""
    event.error = (ErrorCode.INVALID_RECORD_STATE, text)


AckRow: TypeAlias = Row[Acknowledgement, Acknowledgement]


def _not_acquired(event: Acknowledgement) -> bool:
    return not event.is_acquired


def _of_another(event: Acknowledgement) -> bool:
    return event.delivery.member_id != event.member_id


def _delivered_too_often(event: Acknowledgement) -> bool:
    return event.delivery.count >= event.limit


ON_ACKNOWLEDGE: Final[tuple[AckRow, ...]] = (
    Row(
        "DP-SHARE-30",
        lambda event: event.whole and not event.is_acquired,
        (_invalid("The batch cannot be acknowledged. The batch is not in the acquired state."),),
    ),
    Row(
        "DP-SHARE-30",
        lambda event: event.whole and _of_another(event),
        (_invalid("Member is not the owner of batch record"),),
    ),
    Row(
        "DP-SHARE-30",
        _not_acquired,
        (_invalid("The offset cannot be acknowledged. The offset is not acquired."),),
    ),
    Row("DP-SHARE-30", _of_another, (_invalid("Member is not the owner of offset"),)),
    Row(
        "DP-SHARE-31",
        lambda event: event.ack_type == AckType.RENEW and not event.renews,
        (_invalid("Renewing acquisition locks is not enabled for the group."),),
        since=(4, 3),
    ),
    Row("DP-SHARE-31", lambda event: event.ack_type == AckType.RENEW, (), since=(4, 2)),
    Row(
        "DP-SHARE-05",
        lambda event: event.ack_type == AckType.ACCEPT,
        (_move(RecordState.ACKNOWLEDGED),),
    ),
    Row(
        "DP-SHARE-06",
        lambda event: event.ack_type == AckType.RELEASE and _delivered_too_often(event),
        (_move(RecordState.ARCHIVED),),
    ),
    Row(
        "DP-SHARE-05",
        lambda event: event.ack_type == AckType.RELEASE,
        (_move(RecordState.AVAILABLE),),
    ),
    Row("DP-SHARE-05", always, (_move(RecordState.ARCHIVED),)),
)
"""A member acknowledges. What remains for the last row is rejected, or a gap."""

ON_LOCK_END: Final[tuple[AckRow, ...]] = (
    Row("DP-SHARE-32", _not_acquired, ()),
    Row("DP-SHARE-32", lambda event: event.member_id is not None and _of_another(event), ()),
    Row("DP-SHARE-32", lambda event: event.before_start, (_move(RecordState.ARCHIVED),)),
    Row("DP-SHARE-06", _delivered_too_often, (_move(RecordState.ARCHIVED),)),
    Row("DP-SHARE-06", always, (_move(RecordState.AVAILABLE),)),
)
"""A lock ends, or the session of the member that holds it."""

# ---- batches of acknowledgements -----------------------------------------------------------------


class BatchCheck(msgspec.Struct, eq=False):
    """A batch of acknowledgements in a request, which is checked before any state.
    ``previous_last`` is the last offset of the batch before it in the request."""

    first: int
    last: int
    types: tuple[int, ...]
    previous_last: int
    is_renewal: bool
    version: int
    refused: bool = False

    @property
    def highest_type(self) -> int:
        return AckType.RENEW if self.version >= 2 else AckType.REJECT


def _refuse(event: BatchCheck) -> None:
    event.refused = True


def _wrong_count(event: BatchCheck) -> bool:
    return len(event.types) > 1 and event.last - event.first != len(event.types) - 1


ON_ACK_BATCH: Final[tuple[Row[BatchCheck, BatchCheck], ...]] = (
    Row("DP-SHARE-08", lambda event: event.first > event.last, (_refuse,)),
    Row("DP-SHARE-08", lambda event: event.first < event.previous_last, (_refuse,)),
    Row("DP-SHARE-08", lambda event: not event.types, (_refuse,)),
    Row("DP-SHARE-08", _wrong_count, (_refuse,)),
    Row(
        "DP-SHARE-08",
        lambda event: any(not 0 <= each <= event.highest_type for each in event.types),
        (_refuse,),
    ),
    Row(
        "DP-SHARE-31",
        lambda event: AckType.RENEW in event.types and not event.is_renewal,
        (_refuse,),
    ),
)

# ---- records that are delivered again ------------------------------------------------------------


class Throttle(msgspec.Struct, eq=False):
    """Records that are available again, the most often ``count`` times delivered. ``alone``: they
    are delivered without others, so that one bad record does not spoil them all."""

    count: int
    limit: int
    alone: bool = False

    @property
    def threshold(self) -> int:
        return max(2, -(-self.limit // 2))


def _deliver_alone(event: Throttle) -> None:
    event.alone = True


ON_REDELIVERY: Final[tuple[Row[Throttle, Throttle], ...]] = (
    Row(
        "DP-SHARE-33", lambda event: event.count >= event.threshold, (_deliver_alone,), since=(4, 2)
    ),
)


# ---- what leaders store --------------------------------------------------------------------------


class StoreError(NamedTuple):
    """Why the share coordinator did not store a change."""

    code: ErrorCode
    text: str


class StoreEvent(msgspec.Struct, eq=False):
    """A leader stores a change of a state that was altered or deleted after it had loaded it: at
    another epoch of the group, or at the same one."""

    is_deleted: bool
    is_older: bool
    error: StoreError | None = None


@with_arguments
def _fail_to_store(event: StoreEvent, code: ErrorCode, text: str) -> None:
    event.error = StoreError(code, f"Error in write state RPC. {text}")


ON_STORE: Final[tuple[Row[StoreEvent, StoreEvent], ...]] = (
    Row(
        "DP-SHARE-36",
        lambda event: event.is_deleted,
        (
            _fail_to_store(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "Write operation on uninitialized share partition not allowed.",
            ),
        ),
    ),
    Row(
        "DP-SHARE-36",
        lambda event: event.is_older,
        (
            _fail_to_store(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                "The share coordinator rejected the request because the share-group state epoch "
                "did not match.",
            ),
        ),
        until=(4, 4),
    ),
    Row(
        "DP-SHARE-36",
        lambda event: event.is_older,
        (
            _fail_to_store(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                "The coordinator rejected the request because the state epoch did not match.",
            ),
        ),
        since=(4, 4),
    ),
)


class DeliveryRules(msgspec.Struct, frozen=True):
    """The rows by what happens."""

    acknowledge: tuple[AckRow, ...] = ON_ACKNOWLEDGE
    lock_end: tuple[AckRow, ...] = ON_LOCK_END
    batch: tuple[Row[BatchCheck, BatchCheck], ...] = ON_ACK_BATCH
    redelivery: tuple[Row[Throttle, Throttle], ...] = ON_REDELIVERY
    store: tuple[Row[StoreEvent, StoreEvent], ...] = ON_STORE
