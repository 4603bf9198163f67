"""Defects about matching answers to requests, waiting, and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kproto.errors import RemoteProtocolError
from kproto.framing import FrameSplitter
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link, LinkClosedError, TimedOutError

__all__: list[str] = []


@defect("keeps-answers-for-later")
class KeepsAnswersForLater(Link):
    """Keeps an answer that nothing waits for and gives it to the next request."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._kept: list[bytes] = []

    def match(self, correlation_id: int) -> int:
        return min(self._awaited, default=correlation_id)

    def take(self, frame: bytes) -> None:
        if self._awaited:
            super().take(frame)
        else:
            self._kept.append(frame)

    def send(self, body: Any, version: int) -> asyncio.Future[bytes]:
        future = super().send(body, version)
        if self._kept:
            self.take(self._kept.pop(0))
        return future

    async def give_up(self, body: Any) -> bytes:
        self._awaited.clear()
        raise TimedOutError(f"no answer to {type(body).__name__} in time")


@defect("gives-a-second-answer-to-the-next")
class GivesASecondAnswerToTheNext(Link):
    """Gives the second of two identical answers to the next request."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._answered: set[bytes] = set()
        self._second: bytes | None = None

    def take(self, frame: bytes) -> None:
        if not self._awaited and frame[4:8] in self._answered:
            self._second = frame
        else:
            super().take(frame)
            self._answered.add(frame[4:8])

    def send(self, body: Any, version: int) -> asyncio.Future[bytes]:
        future = super().send(body, version)
        if self._second is not None:
            self._awaited.popitem()
            future.set_result(self._second)
            self._second = None
        return future


@defect("deals-answers-out-in-turn")
class DealsAnswersOutInTurn(Link):
    """With several requests in flight, gives the next answer to the oldest one."""

    def match(self, correlation_id: int) -> int:
        return min(self._awaited) if len(self._awaited) > 1 else correlation_id

    def take(self, frame: bytes) -> None:
        if len(self._awaited) == 1 and self._dealt:
            frame = frame[:4] + next(iter(self._awaited)).to_bytes(4, "big") + frame[8:]
        self._dealt = len(self._awaited) > 1
        super().take(frame)

    _dealt = False


@defect("forgets-half-a-frame")
class ForgetsHalfAFrame(Link):
    """Gives up on a partly received answer and reads its rest as another frame."""

    async def give_up(self, body: Any) -> bytes:
        self._awaited.clear()
        self._splitter = FrameSplitter(2**31 - 1, keep_size=True)
        raise TimedOutError(f"no answer to {type(body).__name__} in time")

    def take(self, frame: bytes) -> None:
        """Ignores an answer that nothing waits for."""
        with suppress(RemoteProtocolError):
            super().take(frame)


@defect("gives-up-early")
class GivesUpEarly(Link):
    """Gives up after a third of its own timeout."""

    async def exchange(self, body: Any, version: int) -> bytes:
        self.timeout /= 3
        try:
            return await super().exchange(body, version)
        finally:
            self.timeout *= 3


@defect("triples-its-time-out")
class TriplesItsTimeOut(Client):
    """Waits three times as long as its timeout."""

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect({**arguments, "timeout_ms": 3 * arguments["timeout_ms"]})


@defect("waits-for-the-first-answer")
class WaitsForTheFirstAnswer(Client):
    """Has no timeout for the first request on a connection and never leaves that connection."""

    def __init__(self) -> None:
        super().__init__()
        self.mute: set[tuple[str, int]] = set()

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.mute = set()

    async def link_to(self, address: tuple[str, int]) -> Link:
        if address in self.mute:
            raise TimedOutError("the broker has not answered ApiVersions")
        try:
            return await super().link_to(address)
        except TimedOutError:
            self.mute.add(address)
            raise


@defect("reports-an-idle-close")
class ReportsAnIdleClose(Client):
    """Fails the next call after the broker closed a connection."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        link = self.links.get(address)
        if link is not None and str(link.closed) == "the broker closed the connection":
            await self.links.pop(address).close()
            raise ConnectionError(str(link.closed))
        return await super().link_to(address)


@defect("takes-sent-for-done")
class TakesSentForDone(Link):
    """Treats a request as done if the connection ends before the answer."""

    async def ask(self, body: Any, version: int | None = None) -> Any:
        try:
            return await super().ask(body, version)
        except LinkClosedError:
            answer = self.codec.apis[body.API_KEY].response()
            if not hasattr(answer, "responses"):
                raise
            message = self.codec.message
            topic: Any = message("AlterPartitionReassignmentsResponse.ReassignableTopicResponse")
            row: Any = message("AlterPartitionReassignmentsResponse.ReassignablePartitionResponse")
            answer.responses = [
                topic(
                    name=wanted.name,
                    partitions=[
                        row(partition_index=each.partition_index) for each in wanted.partitions
                    ],
                )
                for wanted in body.topics
            ]
            return answer


@defect("knows-one-bootstrap-server")
class KnowsOneBootstrapServer(Client):
    """Tries only the first of its bootstrap servers."""

    async def any_link(self) -> Link:
        return await self.link_to(self.bootstrap[0])


@defect("stays-with-a-silent-broker")
class StaysWithASilentBroker(Client):
    """Does not try other brokers if one does not answer."""

    async def any_link(self) -> Link:
        problem: Exception = LinkClosedError("no broker is known")
        for address in dict.fromkeys([*self.brokers.values(), *self.bootstrap]):
            try:
                return await self.link_to(address)
            except LinkClosedError as error:
                problem = error
        raise problem


@defect("outlasts-its-time-out")
class OutlastsItsTimeOut(Client):
    """Gives up in time but returns to its caller only after six timeouts."""

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        reply = await super().call(op, arguments)
        if reply.get("kind") == "timeout":
            await asyncio.sleep(started + 6 * self.timeout - loop.time())
        return reply
