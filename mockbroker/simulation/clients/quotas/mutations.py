"""The quota of topic changes (KIP-599): a bucket of tokens, of which each partition takes one.

A bucket fills by ``controller_mutation_rate`` tokens a second, up to as many as eleven seconds
bring, and may go below zero. Versions that know the error refuse what comes while it is below zero;
older ones carry it out and are throttled. The rows decide which applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Row, always, with_arguments

__all__ = ["MUTATION_APIS", "MUTATION_ROWS", "MutationQuota", "MutationRequest", "TokenBucket"]

_SECONDS: Final = 11
"""How long a bucket takes to fill: the samples of Kafka's quotas, of a second each."""
_STRICT_SINCE: Final = {19: 6, 20: 5, 37: 3}
"""The versions of CreateTopics, DeleteTopics and CreatePartitions that know the error."""
MUTATION_APIS: Final = frozenset(_STRICT_SINCE)


class TokenBucket:
    """Tokens of clients that share a quota. It is full at first."""

    def __init__(self, rate: float, now_ms: int) -> None:
        self.rate = rate
        self._tokens = rate * _SECONDS
        self._at_ms = now_ms

    def tokens(self, now_ms: int) -> float:
        """Return the tokens at a time, which is not before the times of earlier calls."""
        gained = self.rate * (now_ms - self._at_ms) / 1000
        self._tokens, self._at_ms = min(self.rate * _SECONDS, self._tokens + gained), now_ms
        return self._tokens

    def take(self, count: int, now_ms: int) -> None:
        self._tokens = self.tokens(now_ms) - count

    def recovery_ms(self, now_ms: int) -> int:
        """Return when the bucket is not below zero any more, 0 if it is not."""
        return max(0, int(-self.tokens(now_ms) / self.rate * 1000 + 0.5))


class MutationRequest(msgspec.Struct):
    """A request that changes topics, and what a release makes of its quota: nothing, or it refuses
    what exceeds it (``strict``), or carries it out."""

    api_key: int
    version: int
    validate_only: bool
    kraft: bool
    counts: bool = False
    strict: bool = False

    @property
    def knows_error(self) -> bool:
        return self.version >= _STRICT_SINCE[self.api_key]


@with_arguments
def count_mutations(subject: MutationRequest, *, strict: bool) -> None:
    """The request counts towards the quota."""
    subject.counts, subject.strict = True, strict


MUTATION_ROWS: Final[Sequence[Row[MutationRequest, MutationRequest]]] = (
    Row("QUOTA-20", lambda request: request.kraft, (), until=fixes.KAFKA_14351),
    Row("QUOTA-20", lambda request: request.validate_only and not request.kraft, ()),
    Row(
        "QUOTA-18",
        lambda request: request.knows_error,
        (count_mutations(strict=True),),
        since=(2, 7),
    ),
    Row("QUOTA-19", always, (count_mutations(strict=False),), since=(2, 7)),
)


class MutationQuota:
    """The quota during one request. ``bucket`` is None if it has none, or does not count."""

    def __init__(
        self, bucket: TokenBucket | None, clock: Callable[[], int], *, strict: bool
    ) -> None:
        self.throttle_ms = 0
        self._bucket = bucket
        self._clock = clock
        self._strict = strict

    def take(self, partitions: int) -> None:
        """Count the partitions of one topic. Raises Refusal, after which nothing was counted."""
        if self._bucket is None:
            return
        now_ms = self._clock()
        if not self._strict:
            self._bucket.take(partitions, now_ms)
        late_ms = self._bucket.recovery_ms(now_ms)
        self.throttle_ms = late_ms or self.throttle_ms
        if self._strict:
            if late_ms:
                raise Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
            self._bucket.take(partitions, now_ms)
