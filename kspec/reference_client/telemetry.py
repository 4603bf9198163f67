"""The telemetry of the reference client (KIP-714), each rule in a method.

A producer and a consumer each are a client instance. One asks a broker which metrics it wants and
how often, pushes them as OpenTelemetry metrics, and pushes once more when it is closed. It runs
beside the calls, on a connection that they have opened, and no error of it is the application's.
"""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from kproto.errors import DecodeError, RemoteProtocolError
from kproto.records import Compression
from kproto.records.compression import available, compress
from kproto.schema.model import ZERO_UUID
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import message

__all__ = ["Telemetry"]

_GET_TELEMETRY_SUBSCRIPTIONS: Final = 71
_UNSUPPORTED_COMPRESSION_TYPE: Final = 76
_INVALID_RECORD: Final = 87
_UNKNOWN_SUBSCRIPTION_ID: Final = 117
_LOOK_SECONDS: Final = 0.02
_PAUSE_SECONDS: Final = 1.0
_ALL: Final = "*"
_DELTA: Final = 1
_CUMULATIVE: Final = 2


class Telemetry:
    """The telemetry of one client instance, a ``producer`` or a ``consumer``."""

    def __init__(self, client: ClientRules, role: str) -> None:
        self.client = client
        self.role = role
        self.instance_id = ZERO_UUID
        self.subscription: Any = None
        self.counted: dict[str, int] = {}
        """The values of the counters at the last push."""
        self.task: asyncio.Task[None] | None = None

    # ---- life cycle ------------------------------------------------------------------------------

    def start(self) -> None:
        self.task = asyncio.create_task(self.run())

    async def close(self) -> None:
        """Push for the last time, without waiting for the interval."""
        if self.task is None:
            return
        task, self.task = self.task, None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        link = self.find_link()
        if link is not None and self.subscription is not None and self.wanted():
            with suppress(
                LinkClosedError, TimedOutError, BrokerError, DecodeError, RemoteProtocolError
            ):
                await self.push_last(link)

    async def push_last(self, link: Link) -> None:
        await self.push(link, terminating=True)

    async def run(self) -> None:
        while True:
            link = self.find_link()
            if link is None:
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            try:
                await self.subscribe(link)
                if not await self.push_while_subscribed():
                    return
            except (LinkClosedError, TimedOutError, DecodeError, RemoteProtocolError):
                await asyncio.sleep(_PAUSE_SECONDS)
            except BrokerError:
                await self.wait_after_refusal()

    def find_link(self) -> Link | None:
        """Return a connection to a broker that takes metrics, if there is one."""
        links = [each for each in self.client.links.values() if each.closed is None]
        return next((each for each in links if self.is_offered(each)), None)

    def is_offered(self, link: Link) -> bool:
        return _GET_TELEMETRY_SUBSCRIPTIONS in link.versions

    # ---- subscriptions ---------------------------------------------------------------------------

    async def subscribe(self, link: Link) -> None:
        """Learn which metrics are wanted. Raises BrokerError, or what a connection does."""
        request = message("GetTelemetrySubscriptionsRequest")
        answer = await link.ask(
            request(client_instance_id=self.own_id()), self.version_of(link, 71)
        )
        if answer.error_code:
            raise BrokerError(answer.error_code)
        self.subscription = answer
        if self.instance_id == ZERO_UUID:
            self.instance_id = self.given_id(answer.client_instance_id)

    def version_of(self, link: Link, api_key: int) -> int:
        return link.choose_version(api_key)

    def own_id(self) -> UUID:
        """Zero asks for an id; the id is kept ever after, whichever broker is asked."""
        return self.instance_id

    def given_id(self, instance_id: UUID) -> UUID:
        return instance_id

    def wanted(self) -> Sequence[str]:
        """Return the prefixes of the metrics that are wanted, none of them if there is none."""
        return list(self.subscription.requested_metrics)

    @property
    def interval(self) -> float:
        """Seconds between pushes."""
        milliseconds = 0 if self.subscription is None else self.subscription.push_interval_ms
        return milliseconds / 1000 if milliseconds > 0 else 300.0

    async def wait_after_refusal(self) -> None:
        """Do not ask at once what was refused."""
        await asyncio.sleep(min(self.interval, _PAUSE_SECONDS))

    # ---- pushes ----------------------------------------------------------------------------------

    async def push_while_subscribed(self) -> bool:
        """Push until the subscription has to be learned anew; return False to stop for good."""
        if not self.wanted():
            await asyncio.sleep(self.interval)
            return True
        await asyncio.sleep(self.first_delay())
        while True:
            link = self.find_link()
            if link is None:
                return True
            code = await self.push(link, terminating=False)
            if code in (_UNKNOWN_SUBSCRIPTION_ID, _UNSUPPORTED_COMPRESSION_TYPE):
                if self.subscribes_anew():
                    return True
            elif code == _INVALID_RECORD and self.stops_when_unreadable():
                return False
            await asyncio.sleep(self.delay(code))

    def first_delay(self) -> float:
        """Clients must not all push at the same moment."""
        return self.interval * random.uniform(0.5, 1.5)

    def delay(self, code: int) -> float:
        """Return the seconds until the next push, which an error does not shorten."""
        return self.interval

    def subscribes_anew(self) -> bool:
        """The broker wants something else by now."""
        return True

    def stops_when_unreadable(self) -> bool:
        """Metrics that the broker cannot read are not mended by sending them again."""
        return True

    async def push(self, link: Link, *, terminating: bool) -> int:
        """Push; return the broker's error code. Raises what a connection does."""
        codec = self.codec(list(self.subscription.accepted_compression_types))
        request = message("PushTelemetryRequest")(
            client_instance_id=self.instance_id,
            subscription_id=self.subscription.subscription_id,
            terminating=terminating,
            compression_type=codec.value,
            metrics=compress(codec, self.metrics()),
        )
        answer = await link.ask(request, self.version_of(link, 72))
        return int(answer.error_code)

    def codec(self, accepted: Sequence[int]) -> Compression:
        """The broker's first choice that this client has."""
        for number in accepted:
            if number in range(1, 5) and available(Compression(number)):
                return Compression(number)
        return Compression.NONE

    # ---- metrics ---------------------------------------------------------------------------------

    def metrics(self) -> bytes:
        found = b""
        for name, value in self.counters().items():
            if self.is_wanted(name):
                before, self.counted[name] = self.counted.get(name, 0), value
                is_delta = self.is_delta()
                found += _field(
                    2, self.metric(name, value - before if is_delta else value, is_delta)
                )
        return _field(1, _field(2, found))

    def metric(self, name: str, value: int, is_delta: bool) -> bytes:
        """A metric with its point."""
        return _sum(name, value, is_delta)

    def counters(self) -> dict[str, int]:
        """Return the counters of this instance, whatever is wanted."""
        prefix = f"org.apache.kafka.{self.role}"
        links = len(self.client.links)
        return {
            f"{prefix}.connection.creation.total": links,
            f"{prefix}.request.total": sum(each.sent for each in self.client.links.values()),
        }

    def is_wanted(self, name: str) -> bool:
        return any(prefix == _ALL or name.startswith(prefix) for prefix in self.wanted())

    def is_delta(self) -> bool:
        return bool(self.subscription.delta_temporality)


# ---- OpenTelemetry's protobuf --------------------------------------------------------------------


def _sum(name: str, value: int, is_delta: bool) -> bytes:
    """A monotonic sum with one point."""
    point = _fixed(3, time.time_ns()) + _fixed(6, value)
    kind = _number(2, _DELTA if is_delta else _CUMULATIVE) + _number(3, 1)
    return _field(1, name.encode()) + _field(7, _field(1, point) + kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(place: int, value: int) -> bytes:
    return _varint(place << 3) + _varint(value)


def _fixed(place: int, value: int) -> bytes:
    return _varint(place << 3 | 1) + struct.pack("<q", value)
