"""How much of their quotas clients use: rates over sampled windows, as Kafka measures them.

A client that exceeds a quota is throttled for as long as its rate would need to fall to the quota,
if it sent nothing more. Times are those of the cluster's clock. Kafka counts a whole response
towards the consumers' quota, this module the records in it; and where Kafka measures the time of
its threads, each request here takes ``REQUEST_MS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mockbroker.simulation.clients.quotas.client_quotas import ClientQuotas
from mockbroker.simulation.clients.quotas.connections import CONNECTION_ROWS, Arrival
from mockbroker.simulation.clients.quotas.mutations import (
    MUTATION_ROWS,
    MutationQuota,
    MutationRequest,
    TokenBucket,
)
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release

__all__ = ["REQUEST_MS", "QuotaMeters", "SampledRate"]

REQUEST_MS: Final = 1
"""The thread time that the mock counts for a request."""
_MEASURED: Final = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
)  # fmt: skip
_SAMPLES: Final = 11
_WINDOW_MS: Final = 1_000
_MOST_METERS: Final = 10_000
"""Rates that are kept; beyond it all begin anew."""


class SampledRate:
    """A rate per second over ``_SAMPLES`` windows; the last one is not complete."""

    def __init__(self) -> None:
        self._samples: list[list[float]] = []
        """[start, time of the last event, sum], oldest first."""

    def record(self, value: float, now_ms: int) -> None:
        if not self._samples or now_ms - self._samples[-1][0] >= _WINDOW_MS:
            self._samples.append([now_ms, now_ms, 0.0])
        self._samples[-1][1] = now_ms
        self._samples[-1][2] += value

    def measure(self, now_ms: int) -> float:
        window_ms = self.window_ms(now_ms)
        return sum(each[2] for each in self._samples) * 1000 / window_ms

    def window_ms(self, now_ms: int) -> float:
        """Return the time that the rate is about: since the oldest sample, with all complete
        windows that are missing."""
        expired = now_ms - _SAMPLES * _WINDOW_MS
        self._samples = [each for each in self._samples if each[1] > expired]
        elapsed = now_ms - self._samples[0][0] if self._samples else 0.0
        missing = _SAMPLES - 1 - elapsed // _WINDOW_MS
        return max(elapsed + max(missing, 0) * _WINDOW_MS, 1)

    def excess_ms(self, quota: float, now_ms: int) -> int:
        """Return the time in which the rate falls to the quota, 0 if it does not exceed it."""
        observed = self.measure(now_ms)
        if observed <= quota:
            return 0
        return round((observed - quota) / quota * self.window_ms(now_ms))


class QuotaMeters:
    """The meters of one cluster's clients. ``clock`` gives milliseconds."""

    def __init__(
        self,
        quotas: ClientQuotas,
        clock: Callable[[], int],
        release: Release,
        *,
        kraft: Callable[[], bool],
    ) -> None:
        self._quotas = quotas
        self._clock = clock
        self._kraft = kraft
        release.follow(self._use_release)
        self._rates: dict[tuple[str, str, str], SampledRate] = {}
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def _use_release(self, release: Release) -> None:
        self._mutation_rows = rows_of_release(MUTATION_ROWS, release)
        self._connection_rows = rows_of_release(CONNECTION_ROWS, release)

    def concern(self, user: str, client_id: str) -> bool:
        """Whether the client has a quota that is measured here."""
        return any(self._quotas.limit(key, user, client_id) for key in _MEASURED)

    def produce(self, user: str, client_id: str, size: int) -> int:
        """Count the bytes of a produce request; return the throttle time."""
        return self._record("producer_byte_rate", user, client_id, size)

    def fetch(self, user: str, client_id: str, size: int) -> int:
        """Count a fetch, and its bytes unless it is throttled; return the throttle time."""
        key = "consumer_byte_rate"
        throttle_ms = max(self._record(key, user, client_id, size), self.request(user, client_id))
        if throttle_ms:
            self._record(key, user, client_id, -size)
        return throttle_ms

    def request(self, user: str, client_id: str) -> int:
        """Count a request; return the throttle time, at most a window."""
        percent = REQUEST_MS / 10
        return min(self._record("request_percentage", user, client_id, percent), _WINDOW_MS)

    def mutations(
        self, user: str, client_id: str, api_key: int, version: int, *, validate_only: bool = False
    ) -> MutationQuota:
        """Return the quota of a request that changes topics."""
        request = MutationRequest(api_key, version, validate_only, self._kraft())
        apply_first(self._mutation_rows, request, request)
        limit = self._quotas.limit("controller_mutation_rate", user, client_id)
        bucket = None
        if limit is not None and request.counts:
            if len(self._buckets) >= _MOST_METERS:
                self._buckets.clear()
            new = TokenBucket(limit.value, self._clock())
            bucket = self._buckets.setdefault((limit.user, limit.client_id), new)
            bucket.tokens(self._clock())
            bucket.rate = limit.value
        return MutationQuota(bucket, self._clock, strict=request.strict)

    def connection(self, broker_id: int, address: str) -> int:
        """Count a connection of a client to a broker. Returns for how long the broker holds it
        before it closes it, 0 if the connection is accepted."""
        limit = self._quotas.connection_limit(address)
        if limit is None:
            return 0
        if len(self._rates) >= _MOST_METERS:
            self._rates.clear()
        key = ("connection_creation_rate", str(broker_id), address)
        rate = self._rates.setdefault(key, SampledRate())
        now_ms = self._clock()
        rate.record(1, now_ms)
        arrival = Arrival(rate.excess_ms(limit, now_ms))
        apply_first(self._connection_rows, arrival, arrival)
        if arrival.held_ms:
            rate.record(-1, now_ms)
        return arrival.held_ms

    def _record(self, key: str, user: str, client_id: str, value: float) -> int:
        limit = self._quotas.limit(key, user, client_id)
        if limit is None:
            return 0
        if len(self._rates) >= _MOST_METERS:
            self._rates.clear()
        rate = self._rates.setdefault((key, limit.user, limit.client_id), SampledRate())
        now_ms = self._clock()
        rate.record(value, now_ms)
        return rate.excess_ms(limit.value, now_ms)
