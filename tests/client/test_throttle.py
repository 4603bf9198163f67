"""A broker that throttles is left alone for as long (KIP-219), and no caller is kept for longer
than he has time."""

import asyncio
from typing import Any

import pytest

from kproto.client import Connection, ConnectionClosedError, RequestTimeoutError
from kproto.connection import RequestReceived
from kproto.connection.throttling import pause_ms
from kproto.dialects import dialect
from kproto.messages import HeartbeatRequest, HeartbeatResponse
from tests.client.broker import Broker, api_versions, serving

ROWS = {12: (0, 4), 18: (0, 4)}
SOON = 20.0
HOUR_MS = 3_600_000


def throttling(milliseconds: int, *, close: bool = False) -> Any:
    """Answers each Heartbeat with this throttle time, and perhaps closes then."""

    def answer(broker: Broker, event: Any) -> None:
        match event:
            case RequestReceived(api=api) if api.api_key == 18:
                broker.respond(event, api_versions(ROWS))
            case RequestReceived():
                broker.respond(event, HeartbeatResponse(throttle_time_ms=milliseconds))
                if close:
                    broker.transport.close()

    return answer


def heartbeats(seen: list[Any]) -> int:
    return sum(isinstance(each.body, HeartbeatRequest) for each in seen)


async def test_the_next_request_waits() -> None:
    async with serving(throttling(80)) as (port, seen):
        async with await Connection.open("127.0.0.1", port, timeout=SOON) as conn:
            loop = asyncio.get_running_loop()
            await conn.request(HeartbeatRequest())
            answered = loop.time()
            several = [conn.request(HeartbeatRequest()) for _ in range(3)]
            await asyncio.gather(*several)
            assert loop.time() - answered >= 0.08
        assert heartbeats(seen) == 4


async def test_who_has_less_time_than_the_broker_asks_for_is_told_at_once() -> None:
    async with serving(throttling(HOUR_MS)) as (port, seen):
        async with await Connection.open("127.0.0.1", port, timeout=SOON) as conn:
            await conn.request(HeartbeatRequest())
            with pytest.raises(RequestTimeoutError, match=r"throttles for 3[56]\d\d\.\d s more"):
                await conn.request(HeartbeatRequest())
        assert heartbeats(seen) == 1


async def test_in_older_versions_the_broker_has_waited_already() -> None:
    async with serving(throttling(HOUR_MS)) as (port, seen):
        async with await Connection.open("127.0.0.1", port, timeout=SOON) as conn:
            await conn.request(HeartbeatRequest(), 1)
            await conn.request(HeartbeatRequest(), 1)
        assert heartbeats(seen) == 2


async def test_the_end_of_the_connection_ends_the_pause() -> None:
    async with (
        serving(throttling(HOUR_MS, close=True)) as (port, _),
        await Connection.open("127.0.0.1", port, timeout=None) as conn,
        asyncio.timeout(SOON),
    ):
        await conn.request(HeartbeatRequest())
        with pytest.raises(ConnectionClosedError):
            await conn.request(HeartbeatRequest())


def test_a_pause_is_never_negative_and_every_version_knows_its_own() -> None:
    """Once a version is answered before it is throttled, all later ones are."""
    for key, api in dialect("kafka").apis.items():
        response: Any = api.response()
        if not hasattr(response, "throttle_time_ms"):
            assert pause_ms(key, api.response.VALID_VERSIONS.highest, response) == 0
            continue
        response.throttle_time_ms = 700
        pauses = [pause_ms(key, version, response) for version in api.response.VALID_VERSIONS]
        assert set(pauses) <= {0, 700}
        assert pauses == sorted(pauses)
        assert pauses[-1] == 700, api.name
        response.throttle_time_ms = -1
        assert pause_ms(key, api.response.VALID_VERSIONS.highest, response) == 0
