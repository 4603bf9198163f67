"""The asyncio connection against a broker on a real socket."""

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import kproto
from kproto.client import BrokerError, Connection, ConnectionClosedError, RequestTimeoutError
from kproto.client.errors import SaslAuthenticationError, UnsupportedSaslMechanismError
from kproto.connection import RequestReceived, SaslTokenReceived, UnsupportedRequest, refusal
from kproto.errors import DecodeError, LocalProtocolError, UnsupportedVersionError
from kproto.framing import encode_frame
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from kproto.schema.versions import Versions
from tests.client.broker import Broker, api_versions, serving

ROWS = {0: (0, 9), 12: (0, 3), 17: (0, 1), 18: (0, 4), 36: (0, 2)}
SOON = 20.0
"""Seconds no healthy run comes near: waits are bounded so that a failure does not hang."""


def heartbeat(generation: int = 0) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=generation, member_id="m")


def plain(broker: Broker, event: Any) -> None:
    """Negotiates; answers Heartbeat with its generation as error code, but 13 never."""
    match event:
        case RequestReceived(api=api) if api.api_key == 18:
            broker.respond(event, api_versions(ROWS))
        case RequestReceived(body=HeartbeatRequest(generation_id=generation)):
            if generation != 13:
                broker.respond(event, HeartbeatResponse(error_code=generation))


@asynccontextmanager
async def connected(
    answer: Any = plain, served: Any = None, sasl: bool = False, **options: Any
) -> AsyncIterator[tuple[Connection, list[Any]]]:
    async with serving(answer, served=served, sasl_required=sasl) as (port, seen):
        options.setdefault("timeout", SOON)
        connection = await Connection.open("127.0.0.1", port, **options)
        async with connection:
            yield connection, seen


async def test_a_request_and_its_response() -> None:
    async with connected(client_id="acc", software_name="sw", software_version="2") as (conn, seen):
        assert conn.api_versions is not None
        assert conn.api_versions.error_code == 0
        assert conn.peer_versions is not None
        assert conn.peer_versions[12] == Versions(0, 3)
        assert (await conn.request(heartbeat(27))) == HeartbeatResponse(error_code=27)
    first, second = seen
    assert (first.body.client_software_name, first.body.client_software_version) == ("sw", "2")
    assert (second.header.client_id, second.header.request_api_version) == ("acc", 3)


async def test_many_callers_each_get_their_own() -> None:
    async with connected() as (conn, _):
        answers = await asyncio.gather(*(conn.request(heartbeat(n)) for n in range(20, 120)))
        assert [answer.error_code for answer in answers] == list(range(20, 120))


async def test_produce_without_acks_returns_at_once() -> None:
    async with connected() as (conn, seen):
        assert await conn.request(ProduceRequest(acks=0, timeout_ms=1, topic_data=[])) is None
        assert (await conn.request(heartbeat(1))).error_code == 1
        assert seen[1].expects_response is False


async def test_fallback_of_an_old_broker() -> None:
    def answer(broker: Broker, event: Any) -> None:
        if isinstance(event, UnsupportedRequest):
            broker.respond(event, refusal(broker.wire.dialect, Versions(0, 2)), api_version=0)
        else:
            plain(broker, event)

    async with connected(answer, {18: Versions(0, 2), 12: Versions(0, 1)}) as (conn, seen):
        await conn.request(heartbeat(), 1)
    asked = [getattr(event, "api_version", None) for event in seen]
    assert asked == [kproto.dialect().apis[18].valid_versions.highest, None, None]
    assert seen[1].header.request_api_version == 2


async def test_what_the_broker_lacks_is_refused_before_sending() -> None:
    async with connected() as (conn, seen):
        with pytest.raises(
            UnsupportedVersionError,
            match=r"^The node does not support ALTER_PARTITION_REASSIGNMENTS$",
        ):
            await conn.request(AlterPartitionReassignmentsRequest())
        await conn.request(heartbeat(1))
        assert len(seen) == 2


async def test_a_time_out_and_a_cancelled_caller_disturb_nobody() -> None:
    held: list[tuple[Broker, Any]] = []

    def answer(broker: Broker, event: Any) -> None:
        if isinstance(event, RequestReceived) and event.api.api_key == 12:
            held.append((broker, event))
        else:
            plain(broker, event)

    async with connected(answer) as (conn, _):
        cancelled = asyncio.create_task(conn.request(heartbeat(1)))
        while not held:
            await asyncio.sleep(0)
        with pytest.raises(
            RequestTimeoutError, match=r"no response to HeartbeatRequest within 0\.01 s$"
        ):
            await conn.request(heartbeat(2), timeout=0.01)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        waiting = asyncio.create_task(conn.request(heartbeat(3)))
        while len(held) < 3:
            await asyncio.sleep(0)
        for code, (broker, event) in enumerate(held, 101):
            broker.respond(event, HeartbeatResponse(error_code=code))
        assert (await waiting).error_code == 103
        assert isinstance(RequestTimeoutError("x"), TimeoutError)


@pytest.mark.slow
@pytest.mark.parametrize("given_up", [1, 2], ids=["the one it answers", "the one behind it"])
async def test_a_connection_that_stalls_inside_an_answer_nobody_wants_is_left(given_up):
    def answer(broker: Broker, event: Any) -> None:
        if isinstance(event, RequestReceived) and event.api.api_key == 12:
            if event.body.generation_id == 1:
                frame = broker.wire.send_response(event, HeartbeatResponse())
                broker.transport.write(frame[:-1])
        else:
            plain(broker, event)

    async with connected(answer) as (conn, _):
        first = asyncio.create_task(conn.request(heartbeat(1), timeout=1))
        while not conn._protocol.wire.buffered:
            await asyncio.sleep(0)
        if given_up == 2:
            with pytest.raises(RequestTimeoutError):
                await conn.request(heartbeat(2), timeout=0.05)
            assert not conn.closed  # the answer under way may still end, and somebody waits for it
        with pytest.raises(RequestTimeoutError):
            await first
        assert conn.closed
        with pytest.raises(ConnectionClosedError, match="stopped in the middle of a response"):
            await conn.request(heartbeat(3))


async def test_a_caller_cancelled_while_the_socket_is_full_leaves_nothing_behind() -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    # The loop forgets a transport that does not read, so it is kept here.
    deaf: list[Broker] = []

    def answer(broker: Broker, event: Any) -> None:
        plain(broker, event)
        broker.transport.pause_reading()
        deaf.append(broker)

    async with connected(answer) as (conn, _):
        large = HeartbeatRequest(group_id="g" * 30_000, generation_id=1, member_id="m")
        waiting = [asyncio.create_task(conn.request(large)) for _ in range(500)]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await conn.close(flush=0.01)
        assert conn.closed
    deaf.pop().transport.abort()
    del waiting, task, conn
    await asyncio.sleep(0)
    gc.collect()
    assert complaints == []


async def test_closing_fails_everyone_who_waits() -> None:
    async with connected() as (conn, seen):
        waiting = [asyncio.create_task(conn.request(heartbeat(13))) for _ in range(3)]
        while len(seen) < 4:
            await asyncio.sleep(0)
        await conn.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, ConnectionClosedError) for result in results)
        assert str(results[0]).endswith("ended before responding to HEARTBEAT v3 #1: closed by us")
        assert conn.closed
        with pytest.raises(ConnectionClosedError, match="closed by us"):
            await conn.request(heartbeat())
        await conn.close()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "the peer closed it"),
        (b"\0\0\0\x09part", "the peer closed inside a frame, 8 bytes into it"),
        (b"\xff\xff\xff\xff", "frame size -1 is negative"),
        (
            encode_frame(b"\0\0\0\x09"),
            "a response with correlation id 9 arrived where the response to HEARTBEAT v3",
        ),
    ],
    ids=["close", "inside a frame", "bad size", "wrong correlation id"],
)
async def test_the_peer_ends_it(sent: bytes, reason: str) -> None:
    def answer(broker: Broker, event: Any) -> None:
        if isinstance(event, RequestReceived) and event.api.api_key == 12:
            broker.transport.write(sent)
            broker.transport.close()
        else:
            plain(broker, event)

    async with connected(answer) as (conn, _):
        with pytest.raises(ConnectionClosedError, match=re.escape(reason)) as caught:
            await conn.request(heartbeat())
        assert isinstance(caught.value, ConnectionError)


async def test_a_malformed_response_is_that_callers_alone() -> None:
    def answer(broker: Broker, event: Any) -> None:
        if isinstance(event, RequestReceived) and getattr(event.body, "generation_id", 0) == 66:
            bad = encode_frame(event.header.correlation_id.to_bytes(4, "big") + b"\0")
            broker.transport.write(broker.wire.send_bytes(event, bad))
        else:
            plain(broker, event)

    async with connected(answer) as (conn, _):
        waiting = conn.request(heartbeat(66)), conn.request(heartbeat(1))
        results: Any = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(results[0], DecodeError)
        assert results[1] == HeartbeatResponse(error_code=1)


async def test_opening_fails_clearly() -> None:
    def silent(broker: Broker, event: Any) -> None: ...

    def refusing(broker: Broker, event: Any) -> None:
        broker.respond(event, api_versions({}, 42))

    def closing(broker: Broker, event: Any) -> None:
        broker.transport.close()

    async with serving(silent) as (port, _):
        with pytest.raises(
            RequestTimeoutError, match=rf"127\.0\.0\.1:{port}: not connected within"
        ):
            await Connection.open("127.0.0.1", port, timeout=0.05)
    async with serving(refusing) as (port, _):
        with pytest.raises(BrokerError) as caught:
            await Connection.open("127.0.0.1", port, timeout=SOON)
        assert (caught.value.code, caught.value.name) == (42, "INVALID_REQUEST")
    async with serving(closing) as (port, _):
        with pytest.raises(
            ConnectionClosedError, match=r"API_VERSIONS v\d+ #0: the peer closed it"
        ):
            await Connection.open("127.0.0.1", port, timeout=SOON)
    with pytest.raises(ConnectionRefusedError):
        await Connection.open("127.0.0.1", port, timeout=SOON)


async def test_without_negotiation_versions_are_the_callers() -> None:
    async with connected(negotiate=False) as (conn, seen):
        assert conn.peer_versions is None
        with pytest.raises(LocalProtocolError, match="no version of HEARTBEAT is negotiated"):
            await conn.request(heartbeat())
        assert (await conn.request(heartbeat(5), 0)).error_code == 5
        assert len(seen) == 1


# ---- SASL ------------------------------------------------------------------------------------


def sasl(broker: Broker, event: Any) -> None:
    """One mechanism, TWICE: two tokens, each answered in capitals; "bad" fails."""
    wire = broker.wire
    match event:
        case RequestReceived(api=api, body=body) if api.api_key == 17:
            code = 0 if body.mechanism == "TWICE" else 33
            broker.respond(event, SaslHandshakeResponse(error_code=code, mechanisms=["TWICE"]))
        case SaslTokenReceived(token=token):
            broker.transport.write(wire.send_sasl_token(token.upper()))
            if token == b"two":
                wire.complete_sasl()
        case RequestReceived(api=api, body=body) if api.api_key == 36:
            token = body.auth_bytes
            failed = token == b"bad"
            answer = SaslAuthenticateResponse(
                error_code=58 if failed else 0,
                error_message="no such user" if failed else None,
                auth_bytes=token.upper(),
            )
            broker.respond(event, answer)
            if token == b"two":
                wire.complete_sasl()
        case _:
            plain(broker, event)


@pytest.mark.parametrize("version", [0, 1, None])
async def test_sasl_raw_and_framed(version: int | None) -> None:
    received: list[bytes] = []

    def exchange(challenge: bytes) -> bytes | None:
        received.append(challenge)
        return {b"": b"one", b"ONE": b"two", b"TWO": None}[challenge]

    async with connected(sasl, sasl=True) as (conn, seen):
        await conn.authenticate("TWICE", exchange, handshake_version=version)
        assert received == [b"", b"ONE", b"TWO"]
        assert (await conn.request(heartbeat(4))).error_code == 4
    raw = sum(isinstance(event, SaslTokenReceived) for event in seen)
    assert raw == (2 if version == 0 else 0)


async def test_sasl_refused() -> None:
    async with connected(sasl, sasl=True) as (conn, _):
        with pytest.raises(
            UnsupportedSaslMechanismError, match="PLAIN is not enabled; the broker offers: TWICE"
        ):
            await conn.authenticate("PLAIN", lambda _: b"")
    async with connected(sasl, sasl=True) as (conn, _):
        with pytest.raises(SaslAuthenticationError, match=r"^no such user$"):
            await conn.authenticate("TWICE", lambda _: b"bad")
