"""Defects about the metrics that clients push (KIP-714)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID, uuid4

from kproto.records import Compression
from kproto.schema.model import ZERO_UUID
from kspec.defects.declaration import defect
from kspec.reference_client.link import Link
from kspec.reference_client.telemetry import Telemetry

__all__: list[str] = []

_HURRY_SECONDS: Final = 0.01


@defect("asks-as-a-new-instance")
class AsksAsANewInstance(Telemetry):
    """Asks for an id with each GetTelemetrySubscriptions, and pushes under the latest."""

    def own_id(self) -> UUID:
        self.instance_id = ZERO_UUID
        return ZERO_UUID


@defect("makes-its-own-instance-id")
class MakesItsOwnInstanceId(Telemetry):
    """Pushes under an id that it made itself."""

    def given_id(self, instance_id: UUID) -> UUID:
        return uuid4()


@defect("pushes-without-pause")
class PushesWithoutPause(Telemetry):
    """Pushes metrics all the time, whatever interval the broker gave."""

    def first_delay(self) -> float:
        return 0

    def delay(self, code: int) -> float:
        return _HURRY_SECONDS


@defect("pushes-every-metric")
class PushesEveryMetric(Telemetry):
    """Pushes all of its metrics to a broker that wants some."""

    def is_wanted(self, name: str) -> bool:
        return True


@defect("pushes-though-nothing-is-wanted")
class PushesThoughNothingIsWanted(Telemetry):
    """Takes an empty list of metrics for a subscription to all."""

    def wanted(self) -> Sequence[str]:
        return super().wanted() or ["*"]


@defect("keeps-its-subscription")
class KeepsItsSubscription(Telemetry):
    """Goes on with the first subscription when the broker does not know it any more."""

    def subscribes_anew(self) -> bool:
        return False


@defect("compresses-as-it-likes")
class CompressesAsItLikes(Telemetry):
    """Compresses metrics by lz4, whatever the broker accepts."""

    def codec(self, accepted: Sequence[int]) -> Compression:
        return Compression.LZ4


@defect("repeats-a-refused-push")
class RepeatsARefusedPush(Telemetry):
    """Pushes again at once when a push was refused."""

    def delay(self, code: int) -> float:
        return _HURRY_SECONDS if code else super().delay(code)

    def stops_when_unreadable(self) -> bool:
        return False


@defect("pushes-after-the-last-push")
class PushesAfterTheLastPush(Telemetry):
    """Says with each push that it is the last one."""

    async def push(self, link: Link, *, terminating: bool) -> int:
        return await super().push(link, terminating=True)


@defect("ends-without-a-last-push")
class EndsWithoutALastPush(Telemetry):
    """Drops the metrics since the last push when it is closed."""

    async def push_last(self, link: Link) -> None:
        """Nothing is sent."""


@defect("pushes-to-any-broker")
class PushesToAnyBroker(Telemetry):
    """Asks for subscriptions once, and pushes to brokers that do not list these requests."""

    def is_offered(self, link: Link) -> bool:
        return bool(link.versions) and (super().is_offered(link) or self.instance_id != ZERO_UUID)

    def version_of(self, link: Link, api_key: int) -> int:
        return 0


@defect("ignores-the-temporality")
class IgnoresTheTemporality(Telemetry):
    """Pushes the other values of counters than the broker wants: totals for changes."""

    def is_delta(self) -> bool:
        return not super().is_delta()


@defect("asks-for-subscriptions-without-pause")
class AsksForSubscriptionsWithoutPause(Telemetry):
    """Repeats GetTelemetrySubscriptions at once when it is refused."""

    async def wait_after_refusal(self) -> None:
        """No time at all."""


@defect("takes-an-asterisk-for-a-prefix")
class TakesAnAsteriskForAPrefix(Telemetry):
    """Looks for metrics whose names begin with an asterisk when a broker wants all of them."""

    def is_wanted(self, name: str) -> bool:
        return any(name.startswith(prefix) for prefix in self.wanted())


@defect("finds-prefixes-anywhere")
class FindsPrefixesAnywhere(Telemetry):
    """Pushes metrics whose names have the wanted prefix somewhere within them."""

    def is_wanted(self, name: str) -> bool:
        return any(prefix == "*" or prefix in name for prefix in self.wanted())


@defect("chokes-on-an-unknown-compression")
class ChokesOnAnUnknownCompression(Telemetry):
    """Stops when a broker lists a compression that it does not know."""

    def codec(self, accepted: Sequence[int]) -> Compression:
        return Compression(accepted[0]) if accepted else Compression.NONE


@defect("begins-its-counters-anew")
class BeginsItsCountersAnew(Telemetry):
    """Takes a new subscription for a new start, and pushes totals as changes."""

    async def subscribe(self, link: Link) -> None:
        await super().subscribe(link)
        self.counted = {}


@defect("pushes-metrics-without-values")
class PushesMetricsWithoutValues(Telemetry):
    """Pushes the names of its metrics alone."""

    def metric(self, name: str, value: int, is_delta: bool) -> bytes:
        return b"\x0a" + bytes([len(name)]) + name.encode()
