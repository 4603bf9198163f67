"""Damaged requests at a broker: at the mock, and at listeners that misbehave on purpose. Beside
real Kafka: ``tests/real/test_malformed.py``."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from click.testing import CliRunner

import kproto
from kspec.clientfuzz.bases import bases, bases_of
from kspec.clientfuzz.brokers import exchange
from kspec.clientfuzz.brokers.address import Address, AimError, parse_address
from kspec.clientfuzz.brokers.exchange import ask, healthy
from kspec.clientfuzz.brokers.run import EXCLUDED_APIS, play
from kspec.clientfuzz.cli import fuzz
from mockbroker import MockCluster
from mockbroker.running.threaded import ThreadedCluster

KAFKA = kproto.dialect("kafka")
FRAME = bases(KAFKA, 18, "request", 0)[0].frame

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listener(serve: Serve) -> AsyncIterator[Address]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


def address_of(mock: MockCluster) -> Address:
    return parse_address(mock.addresses[1])


# ---- where --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["127.0.0.1:9092", "localhost:1", "[::1]:9092", "127.8.9.1:65535"])
def test_this_machine_may_be_aimed_at(text: str) -> None:
    assert parse_address(text).port == int(text.rpartition(":")[2])


@pytest.mark.parametrize("text", ["192.0.2.1:9092", "[2001:db8::1]:9092", "0.0.0.0:9092"])
def test_another_machine_may_not_unless_told_so(text: str) -> None:
    with pytest.raises(AimError, match=r"not this machine.*--not-loopback"):
        parse_address(text)
    assert parse_address(text, anywhere=True).port == 9092


@pytest.mark.parametrize("text", ["", "localhost", ":9092", "localhost:", "a:0", "a:65536", "a:b"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(AimError, match="is not of the form HOST:PORT"):
        parse_address(text)


# ---- what becomes of one -------------------------------------------------------------------------


@pytest.mark.slow
async def test_what_a_broker_does_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(exchange, "ANSWER_SECONDS", 0.3)

    async def closes(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with listener(closes) as address:
        assert (await ask(address, 18, 0, FRAME)).outcome == "closed"
        assert not await healthy(address)
    async with listener(silent) as address:
        assert (await ask(address, 18, 0, FRAME)).outcome == "hung"
        assert (await ask(address, 18, 0, FRAME[:-1])).outcome == "waits"
    assert (await ask(address, 18, 0, FRAME)).outcome == "unreachable"
    async with MockCluster(brokers=1) as mock:
        reply = await ask(address_of(mock), 18, 0, FRAME)
        assert (reply.outcome, reply.code) == ("answered", 0)
        # Nobody answers a Produce of acks 0, and the request behind it is answered.
        produce = kproto.messages.ProduceRequest(acks=0)
        frame = kproto.encode_request(produce, api_version=3, correlation_id=1, client_id="c")
        assert (await ask(address_of(mock), 0, 3, bytes(frame))).outcome == "no answer"
        assert await healthy(address_of(mock))


# ---- a seed -------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_the_mock_stays_up_and_does_the_same_twice() -> None:
    chosen = [each for each in bases_of(KAFKA, [], "request") if each.api_key not in EXCLUDED_APIS]
    async with MockCluster(brokers=1) as one, MockCluster(brokers=1) as two:
        targets = {"one": address_of(one), "two": address_of(two)}
        aimed = await play(KAFKA, chosen, targets, seed=1, cases=150)
    assert aimed.down is None
    assert aimed.cases == 150
    assert aimed.causes == {}
    assert aimed.outcomes["one"] == aimed.outcomes["two"]
    assert set(aimed.outcomes["one"]) == {"answered", "closed", "waits"}


async def test_a_broker_that_goes_down_is_told_with_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange, "ANSWER_SECONDS", 0.5)
    seen = 0

    async def dies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        await reader.read(1)
        writer.close()

    async with listener(dies) as address:
        aimed = await play(KAFKA, bases(KAFKA, 18, "request"), {"it": address}, seed=1, cases=200)
    assert aimed.down == ("it", range(50))
    assert aimed.cases == 50
    assert seen == 51


@contextmanager
def running() -> Iterator[str]:
    """A mock on a thread of its own: the command has an event loop to itself."""
    with ThreadedCluster(brokers=1) as mock:
        yield mock.bootstrap


def test_the_command() -> None:
    with running() as bootstrap:
        arguments = ["broker", bootstrap, "--seed", "2", "--cases", "60", "--api", "46"]
        done = CliRunner().invoke(fuzz, arguments)
        assert done.exit_code == 0, done.output
        assert "stays up" in done.output
        told = json.loads(CliRunner().invoke(fuzz, [*arguments, "--json"]).output)
        assert told["cases"] == 60
        assert sum(told["became"]["broker"].values()) == 60
    assert threading.active_count() < 50
    refused = CliRunner().invoke(fuzz, ["broker", "192.0.2.1:9092"])
    assert refused.exit_code == 2
    assert "not this machine" in refused.output
    nobody = CliRunner().invoke(fuzz, ["broker", bootstrap])
    assert nobody.exit_code == 1
    assert "does not answer" in nobody.output
