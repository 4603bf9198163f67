"""A fetch request as plain values, and what it gets."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.log.partition_log import AbortedTransaction
from mockbroker.simulation.log.replicas.leader_epochs import EpochEnd
from mockbroker.simulation.releases.rows import Row, always

__all__ = [
    "CONSUMER",
    "FINAL_EPOCH",
    "FULL_EPOCH",
    "NO_SESSION",
    "REQUEST_FAILURES",
    "UNKNOWN",
    "FetchQuery",
    "FetchResult",
    "PartitionAnswer",
    "PartitionKey",
    "PartitionPosition",
]

CONSUMER: Final = -1
"""The replica id of a consumer."""

NO_SESSION: Final = 0
FULL_EPOCH: Final = 0
"""A request with this epoch asks for a new session."""
FINAL_EPOCH: Final = -1
"""A request with this epoch ends its session, or never had one."""

UNKNOWN: Final = -1
"""An offset or an epoch that is not known."""

PartitionKey: TypeAlias = tuple[str | uuid.UUID, int]
"""What identifies a partition in a request: the topic's name, from version 13 on its id; index."""


class PartitionPosition(msgspec.Struct, frozen=True):
    """From where a client reads one partition, and how much.

    ``topic`` is None if there is no topic of that id; ``topic_id`` is zero in a request by name.
    Epochs are -1 where the client has none to check.
    """

    topic: str | None
    topic_id: uuid.UUID
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = UNKNOWN
    last_fetched_epoch: int = UNKNOWN

    @property
    def key(self) -> PartitionKey:
        topic_id = self.topic_id
        if self.topic is None or (topic_id is not ZERO_UUID and topic_id != ZERO_UUID):
            return topic_id, self.partition
        return self.topic, self.partition


class FetchQuery(msgspec.Struct, eq=False):
    """A fetch request to one broker.

    ``positions`` and ``forgotten`` are those of the request, in its order. ``rack`` is the client's
    (version 11 on), None if only leaders may serve it. ``cuts_batches`` (up to version 2): limits
    hold for the first batch too, and the last one may be cut in the middle. ``may_read`` says
    whether the client may read a topic; ``refused``: it may not fetch as a replica at all.
    ``version`` is the request's, for clients that do not know the records of today.
    """

    broker_id: int
    positions: Sequence[PartitionPosition]
    max_bytes: int
    min_bytes: int = 1
    max_wait_ms: int = 0
    replica_id: int = CONSUMER
    read_committed: bool = False
    session_id: int = NO_SESSION
    session_epoch: int = FINAL_EPOCH
    forgotten: Sequence[PartitionKey] = ()
    by_id: bool = False
    rack: str | None = None
    cuts_batches: bool = False
    refused: bool = False
    version: int = 18
    may_read: Callable[[str], bool] = lambda topic: True

    @property
    def from_replica(self) -> bool:
        return self.replica_id >= 0


class PartitionAnswer(msgspec.Struct):
    """What a fetch gets of one partition. Offsets are -1 with an error.

    ``records`` are slices of the log of ``size`` bytes together; None stands for null. ``aborted``
    is None unless only committed records were asked for.
    """

    position: PartitionPosition
    error_code: int = 0
    high_watermark: int = UNKNOWN
    last_stable_offset: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    records: Sequence[memoryview] | None = ()
    size: int = 0
    aborted: list[AbortedTransaction] | None = None
    diverging: EpochEnd | None = None
    preferred_replica: int = -1
    fails_request: bool = False
    """Whether the broker fails on the whole request because of this partition."""
    redirects_late: bool = False
    """Whether the client learns of the preferred replica only when its time is up."""

    @property
    def urgent(self) -> bool:
        """Whether the fetch is answered at once because of this partition."""
        redirects = self.preferred_replica >= 0 and not self.redirects_late
        return bool(self.error_code) or self.diverging is not None or redirects

    def refuse(self, code: ErrorCode) -> None:
        self.error_code = code

    def fail(self, error_code: int) -> None:
        """Answer with an error alone, whatever was read."""
        self.error_code = error_code
        self.high_watermark = self.last_stable_offset = self.log_start_offset = UNKNOWN
        self.records, self.size, self.aborted = (), 0, None


def _list_no_aborted(subject: PartitionAnswer) -> None:
    """Aborted transactions are an empty list, the default of Kafka's generated classes."""
    subject.aborted = []


def _return_null_records(subject: PartitionAnswer) -> None:
    """Records are null, by default too."""
    subject.records = None


REQUEST_FAILURES: Final[tuple[Row[PartitionAnswer, PartitionAnswer], ...]] = (
    Row(
        "DP-FETCH-03", always, (_list_no_aborted, _return_null_records), since=(3, 0), until=(4, 0)
    ),
    Row("DP-FETCH-03", always, (_list_no_aborted,), since=(4, 0)),
)
"""How the failure of a whole request differs from other errors in each of its partitions."""


class FetchResult(msgspec.Struct):
    """The answer to a fetch: an error of the session, or the partitions to list."""

    error_code: int = 0
    session_id: int = NO_SESSION
    partitions: Sequence[PartitionAnswer] = ()
