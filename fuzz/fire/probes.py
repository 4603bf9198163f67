"""Valid requests, sent throughout a trial: each must be answered correctly.

The right answers are recorded before any malformed frame is sent. There are three ways: permanent
connections, short-lived connections, and bursts of raw frames, whose correlation ids must come back
in order followed by the same bytes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import kproto
from fuzz.fire.target import PASSWORD, USER, Target, client_context
from kproto.client import Connection, SaslPlain
from kproto.messages import (
    ApiVersionsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kproto.messages.list_partition_reassignments_request import ListPartitionReassignmentsTopics
from kproto.messages.metadata_request import MetadataRequestTopic

__all__ = ["PROBED", "Probes"]

PROBED: Final = "asked-about-under-fire"
"""A topic whose name no vector uses, so that nothing else changes it."""
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.05
_BURST: Final = 8


class Probes:
    """``sent`` counts requests and ``correct`` correct answers, by way."""

    def __init__(self, target: Target, seed: int, *, tls: bool, sasl: bool) -> None:
        self._addresses = target.addresses
        self._random = random.Random(seed)
        self._tls = client_context() if tls else None
        self._sasl = sasl
        self._expected: dict[tuple[str, int], list[Any]] = {}
        self._frames: list[tuple[int, int, bytes]] = []
        self._raw: dict[tuple[str, int], list[bytes]] = {}
        self._stop = asyncio.Event()
        self.sent: dict[str, int] = {"standing": 0, "fresh": 0, "raw": 0}
        self.correct: dict[str, int] = dict.fromkeys(self.sent, 0)
        self.problems: list[str] = []
        self._questions: list[Any] = []

    async def begin(self) -> None:
        """Record the answers of every broker before the trial starts."""
        for address in self._addresses:
            async with await self._open(address) as broker:
                self._questions = self._questions_for(broker)
                self._expected[address] = [await broker.request(each) for each in self._questions]
                if not self._frames:
                    self._frames = [
                        (body.API_KEY, version, body.encode(version))
                        for body in self._questions
                        for version in (broker.version_for(body.API_KEY),)
                    ]
        for address in self._addresses:
            # The second answer is recorded, as it may come from a cache.
            for _ in range(2):
                self._raw[address] = await self._burst(address, range(len(self._frames)))

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop``, then wait for every outstanding answer."""
        self._stop = stop
        async with asyncio.TaskGroup() as group:
            for address in self._addresses:
                group.create_task(self._standing(address))
                group.create_task(self._fresh(address))
                group.create_task(self._raw_frames(address))

    def _questions_for(self, broker: Connection) -> list[Any]:
        found: list[Any] = [
            ApiVersionsRequest(client_software_name="fire", client_software_version="1"),
            MetadataRequest(topics=[MetadataRequestTopic(name=PROBED)]),
        ]
        if broker.peer_versions is not None and 46 in broker.peer_versions:
            topic = ListPartitionReassignmentsTopics(name=PROBED, partition_indexes=[0])
            found.append(ListPartitionReassignmentsRequest(topics=[topic]))
        return found

    # ---- by kproto's client ----------------------------------------------------------------------

    async def _open(self, address: tuple[str, int]) -> Connection:
        broker = await Connection.open(
            *address, ssl=self._tls, timeout=_PATIENCE, client_id="probe"
        )
        if self._sasl:
            user = SaslPlain(USER, PASSWORD)
            await broker.authenticate(user.mechanism, user.exchange())
        return broker

    async def _standing(self, address: tuple[str, int]) -> None:
        async def ask_all() -> None:
            async with await self._open(address) as broker:
                while not self._stop.is_set():
                    await self._ask_each("standing", address, broker)
                    await asyncio.sleep(_PAUSE)

        await self._watched("standing", address, ask_all)

    async def _fresh(self, address: tuple[str, int]) -> None:
        async def ask_all() -> None:
            while not self._stop.is_set():
                async with await self._open(address) as broker:
                    await self._ask_each("fresh", address, broker)
                await asyncio.sleep(_PAUSE)

        await self._watched("fresh", address, ask_all)

    async def _ask_each(self, way: str, address: tuple[str, int], broker: Connection) -> None:
        for question, expected in zip(self._questions, self._expected[address], strict=True):
            self.sent[way] += 1
            answer = await broker.request(question)
            if answer == expected:
                self.correct[way] += 1
            else:
                self.problems.append(f"{way}, {address}: {answer!r:.300} is not {expected!r:.300}")

    async def _watched(
        self, way: str, address: tuple[str, int], ask_all: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            await ask_all()
        except Exception as error:
            self.problems.append(f"{way}, {address}: {type(error).__name__}: {error}")

    # ---- by bytes --------------------------------------------------------------------------------

    async def _raw_frames(self, address: tuple[str, int]) -> None:
        async def ask_all() -> None:
            while not self._stop.is_set():
                places = [self._random.randrange(len(self._frames)) for _ in range(_BURST)]
                self.sent["raw"] += len(places)
                expected = [self._raw[address][place] for place in places]
                if await self._burst(address, places) == expected:
                    self.correct["raw"] += len(places)
                else:
                    self.problems.append(f"raw, {address}: the bytes differ from before")
                await asyncio.sleep(_PAUSE)

        await self._watched("raw", address, ask_all)

    async def _burst(self, address: tuple[str, int], places: Any) -> list[bytes]:
        """Return the answers' bytes behind their correlation ids. Raises ValueError for one out of
        order."""
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_connection(*address, ssl=self._tls)
            try:
                if self._sasl:
                    await _authenticate(reader, writer)
                ids = [self._random.randrange(2**31) for _ in places]
                for each, place in zip(ids, places, strict=True):
                    writer.write(self._framed(each, place))
                answers = []
                for each in ids:
                    frame = await _frame(reader)
                    if int.from_bytes(frame[:4], "big") != each:
                        raise ValueError(f"correlation id {frame[:4].hex()}, expected {each:08x}")
                    answers.append(frame[4:])
                return answers
            finally:
                writer.close()

    def _framed(self, correlation_id: int, place: int) -> bytes:
        key, version, body = self._frames[place]
        flexible = kproto.dialect("kafka").api(key).request_header_version(version) >= 2
        header = key.to_bytes(2, "big") + version.to_bytes(2, "big")
        header += correlation_id.to_bytes(4, "big") + b"\0\4fire" + b"\0" * flexible
        return (len(header) + len(body)).to_bytes(4, "big") + header + body


async def _frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def _authenticate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    token = f"\0{USER}\0{PASSWORD}".encode()
    for body in (
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslAuthenticateRequest(auth_bytes=token),
    ):
        writer.write(kproto.encode_request(body, api_version=1, correlation_id=1, client_id="fire"))
        await _frame(reader)
