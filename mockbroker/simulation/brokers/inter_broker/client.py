"""The controller as a client of its brokers: sends the requests that the action log records.

As in Kafka's controllers, each broker has one connection with one request in flight, in the order
of the log. The client id is the controller's broker id, and versions are not negotiated. A broker
that cannot be reached is retried until it can, or until it stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from kproto.connection import ClientConnection, MalformedResponse, ResponseReceived
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.error_codes import name as error_name
from kproto.errors import KprotoError, RemoteProtocolError
from kproto.framing import DEFAULT_MAX_SIZE
from kproto.journal import Journal
from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.inter_broker.requests import Ended, Outgoing, RequestWriter
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.cluster_state import ActionLog

__all__ = ["InterBroker"]

_log = logging.getLogger("mockbroker")

_MAX_WAITING: Final = 10_000
"""The number of requests kept for a broker that accepts none; beyond it the oldest are dropped."""
_ANSWER_WITHIN: Final = 30.0
"""Seconds, as in ``controller.socket.timeout.ms``. After that the connection is replaced."""
_PAUSES: Final = (0.01, 0.05, 0.2, 1.0)
"""Seconds between attempts to reach a broker; the last one repeats."""
_BREAKS: Final = 3
"""How often a broker may close the connection on a request before the request is dropped."""


class InterBroker:
    """Sends the requests in ``log`` from its start; call ``collect`` after each step.

    ``address`` returns the host and port at which a broker accepts these requests. Requests to the
    brokers in ``journalled`` are written to ``journal`` here; other brokers have a listener that
    does so.
    """

    def __init__(
        self,
        *,
        log: ActionLog,
        codec: Dialect,
        address: Callable[[int], tuple[str, int]],
        registered: Callable[[int], Broker],
        journal: Journal,
        journalled: Collection[int] = (),
        next_connection_id: Callable[[], int],
    ) -> None:
        self._log = log
        self._codec = codec
        self._writer = RequestWriter(codec, registered)
        self._address = address
        self._journal = journal
        self._journalled = journalled
        self._next_connection_id = next_connection_id
        self._channels: dict[int, _Channel] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = False

    def start(self) -> None:
        """Start sending. Needs a running event loop."""
        self._running = True
        self.collect()

    def collect(self) -> None:
        """Enqueue the requests that were logged since the last call, without waiting."""
        if not self._running:
            return
        for each in self._writer.write(self._log.since(self._writer.offset)):
            if isinstance(each, Ended):
                self._end(each.broker_id)
            else:
                self._channel(each.to).put(each)

    async def settled(self, timeout: float = 10.0) -> None:
        """Wait until every request recorded so far is answered.

        Raises ClusterError after ``timeout`` seconds, naming the brokers that have not answered.
        """
        self.collect()
        try:
            async with asyncio.timeout(timeout):
                for channel in list(self._channels.values()):
                    await channel.idle.wait()
        except TimeoutError:
            pending = [key for key, each in self._channels.items() if not each.idle.is_set()]
            brokers = ", ".join(map(str, pending))
            raise ClusterError(
                f"these brokers did not answer the controller within {timeout:g} s: {brokers}"
            ) from None

    async def stop(self) -> None:
        """Close all connections and drop pending requests."""
        self._running = False
        for broker_id in list(self._channels):
            self._end(broker_id)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _channel(self, broker_id: int) -> _Channel:
        channel = self._channels.get(broker_id)
        if channel is None:
            journal = self._journal if broker_id in self._journalled else None
            channel = _Channel(
                broker_id, self._codec, self._address, journal, self._next_connection_id
            )
            self._channels[broker_id] = channel
            task = asyncio.get_running_loop().create_task(channel.run())
            channel.task = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return channel

    def _end(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.idle.set()
            if channel.task is not None:
                channel.task.cancel()


class _Channel:
    """The queue of requests to one broker and the connection to it, until the broker stops."""

    def __init__(
        self,
        broker_id: int,
        codec: Dialect,
        address: Callable[[int], tuple[str, int]],
        journal: Journal | None,
        next_connection_id: Callable[[], int],
    ) -> None:
        self.broker_id = broker_id
        self.idle = asyncio.Event()
        self.idle.set()
        self.task: asyncio.Task[None] | None = None
        self._codec = codec
        self._address = address
        self._journal = journal
        self._next_connection_id = next_connection_id
        self._waiting: deque[Outgoing] = deque(maxlen=_MAX_WAITING)
        self._filled = asyncio.Event()
        self._connection: _Connection | None = None
        self._failures = self._dropped = self._given_up = 0

    def put(self, outgoing: Outgoing) -> None:
        if len(self._waiting) == _MAX_WAITING:
            if not self._dropped:
                _log.warning(
                    "broker %d accepts no requests: %d are queued, "
                    "and the oldest are dropped from now on",
                    self.broker_id, _MAX_WAITING,
                )  # fmt: skip
            self._dropped += 1
        self._waiting.append(outgoing)
        self.idle.clear()
        self._filled.set()

    async def run(self) -> None:
        try:
            while True:
                await self._filled.wait()
                while self._waiting:
                    outgoing = self._waiting.popleft()
                    await self._deliver(outgoing)
                self._filled.clear()
                self.idle.set()
        finally:
            self._hang_up()

    async def _deliver(self, outgoing: Outgoing) -> None:
        """Send one request until it is answered or has failed for good."""
        breaks = 0
        while True:
            await self._pause()
            try:
                connection = await self._connect(outgoing.controller_id)
            except OSError:
                self._failures += 1
                continue
            try:
                async with asyncio.timeout(_ANSWER_WITHIN):
                    self._check(outgoing, await connection.request(outgoing))
                return self._recovered()
            except (OSError, TimeoutError, RemoteProtocolError) as error:
                self._hang_up()
                self._failures += 1
                breaks += 1
                if breaks >= _BREAKS:
                    return self._give_up(outgoing, error)
            except KprotoError as error:  # the user's dialect cannot encode it
                return self._give_up(outgoing, error)

    async def _pause(self) -> None:
        """Wait, longer after each consecutive failure."""
        if self._failures:
            await asyncio.sleep(_PAUSES[min(self._failures, len(_PAUSES)) - 1])

    def _recovered(self) -> None:
        """Reset the failure counts, logging what the broker missed."""
        if self._dropped or self._given_up > 1:
            _log.warning(
                "broker %d accepts requests again: %d were dropped, %d failed",
                self.broker_id, self._dropped, self._given_up,
            )  # fmt: skip
        self._failures = self._dropped = self._given_up = 0

    def _give_up(self, outgoing: Outgoing, error: Exception) -> None:
        """Drop a request, logging only the first of several in a row."""
        if not self._given_up:
            _log.warning(
                "%s to broker %d: %s", _name(outgoing), self.broker_id, str(error) or "no answer"
            )
        self._given_up += 1

    def _check(self, outgoing: Outgoing, answer: Any) -> None:
        """Log an error response. Errors of single partitions are normal: brokers refuse partitions
        whose leader epoch they know already."""
        if answer.error_code != ErrorCode.NONE:
            _log.warning(
                "%s to broker %d: error %s",
                _name(outgoing), self.broker_id, error_name(answer.error_code),
            )  # fmt: skip

    async def _connect(self, controller_id: int) -> _Connection:
        """Return the connection of this controller; a new controller replaces it."""
        connection = self._connection
        if connection is not None and connection.controller_id == controller_id:
            return connection
        self._hang_up()
        host, port = self._address(self.broker_id)
        reader, writer = await asyncio.open_connection(host, port)
        self._connection = _Connection(
            self.broker_id, controller_id, self._codec, reader, writer,
            self._journal, self._next_connection_id,
        )  # fmt: skip
        return self._connection

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class _Connection:
    """Moves bytes between a socket and a ``ClientConnection``."""

    def __init__(
        self,
        broker_id: int,
        controller_id: int,
        codec: Dialect,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        journal: Journal | None,
        next_connection_id: Callable[[], int],
    ) -> None:
        self.controller_id = controller_id
        self._broker_id = broker_id
        self._reader = reader
        self._writer = writer
        self._wire = ClientConnection(
            codec=codec, client_id=str(controller_id), max_size=DEFAULT_MAX_SIZE
        )
        self._journal = journal
        self._number = next_connection_id() if journal is not None else 0

    async def request(self, outgoing: Outgoing) -> Any:
        """Send a request and return the body of the response.

        Raises OSError if the broker closes the connection, RemoteProtocolError for a malformed
        response.
        """
        data = self._wire.send_request(outgoing.body, outgoing.version)
        correlation_id = self._wire.pending[-1].correlation_id
        self._note("request", outgoing, correlation_id, data)
        self._writer.write(data)
        await self._writer.drain()
        while True:
            event = self._wire.next_event()
            if isinstance(event, ResponseReceived):
                self._note("response", outgoing, correlation_id, event.frame)
                return event.body
            if isinstance(event, MalformedResponse):
                self._note("response", outgoing, correlation_id, event.frame, "malformed")
                raise RemoteProtocolError(str(event.error))
            received = await self._reader.read(64 * 1024)
            if not received:
                raise ConnectionResetError("the broker closed the connection")
            self._wire.receive_data(received)

    def _note(
        self, direction: Any, outgoing: Outgoing, correlation_id: int, raw: bytes, event: str = ""
    ) -> None:
        if self._journal is None:
            return
        peer = f"controller {self.controller_id}"
        self._journal.record(
            time.time_ns(), self._broker_id, self._number, direction, peer, outgoing.api_key,
            outgoing.version, correlation_id, str(self.controller_id),
            dialect=self._wire.dialect.name, raw=raw, event=event,
        )  # fmt: skip

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop may be closed already
            self._writer.close()


def _name(outgoing: Outgoing) -> str:
    return f"{type(outgoing.body).__name__} v{outgoing.version}"
