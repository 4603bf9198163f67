"""Listening sockets, and what every connection that they accept can do. No opinion on requests.

A ``PlannedConnection`` carries out the plans of fault rules: pauses, held answers, the ways in
which a connection ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from kproto.codec.message import Buffer
from mockbroker.faults.delivery import End, Hold, LateAnswers, Plan, Sleep, Step, Write
from mockbroker.faults.rule import CloseWith
from mockbroker.serving.acceptor import BACKLOG, SPARE_FOR_CLIENTS, Acceptor, bound_sockets
from mockbroker.serving.limits import BufferBudget
from mockbroker.serving.loop_turns import Turn, turns_of_loop
from mockbroker.serving.pacing import PacedWriter, Pacing

__all__ = ["IDLE_CHECKS", "TLS_HANDSHAKE_SECONDS", "BrokerListener", "PlannedConnection"]

TLS_HANDSHAKE_SECONDS = 10.0

IDLE_CHECKS: Final = 4
"""Idle checks per time-out."""
_MOST_JOINED: Final = 64 * 1024
"""Answers of more bytes together are handed to the transport one by one, without a copy."""


class PlannedConnection(asyncio.Protocol):
    """A connection that a listener accepted, as fault rules and the listener use it.

    What it has received is worked on in turns (``loop_turns``), also once the client is gone. As in
    Kafka, that ends with the first request whose answer cannot be sent.
    """

    def __init__(self, budget: BufferBudget, pacing: Pacing) -> None:
        self._budget = budget
        self._pacing = pacing
        self._writer = PacedWriter(pacing, self.update_reading)
        self._turn = Turn(turns_of_loop(), self._continue)
        self._transport: asyncio.Transport | None = None
        self._lost = False
        self._lost_because: Exception | None = None
        self._gone = False
        """Whether the client gets no more answers, although its requests are still worked on."""
        self._late: LateAnswers | None = None
        self._writing_paused = False
        self._closing = False
        self._held = 0
        self._quiet = 0

    @abstractmethod
    def _work(self) -> None:
        """Take a turn at what was received."""

    @abstractmethod
    def update_reading(self) -> None:
        """Read only while what comes of it can be worked on."""

    @abstractmethod
    def _finish(self, error: Exception | None) -> None:
        """The connection is lost, and nothing that it sent is worked on any more."""

    @abstractmethod
    def _stop(self) -> None:
        """Nothing more is answered: forget what was received."""

    @abstractmethod
    def _note_event(self, event: str, note: str) -> None:
        """Write an event of the connection to the journal."""

    @property
    @abstractmethod
    def _working(self) -> bool:
        """Whether an answer is pending, so that the client may be silent."""

    @property
    @abstractmethod
    def _buffered(self) -> int:
        """The bytes received and held here."""

    # ---- turns -------------------------------------------------------------------------------

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = self._writer.transport = None
        self._writer.lost()
        self._lost, self._lost_because, self._gone = True, error, True
        if self._closing or not self._turn.waiting:
            self._finish(error)

    def _continue(self) -> None:
        """Take a turn that was waited for."""
        if not self._closing:
            self._work()
        if self._lost and (self._closing or not self._turn.waiting):
            self._finish(self._lost_because)

    # ---- limits ------------------------------------------------------------------------------

    def _hold(self) -> None:
        """Report the bytes buffered here; close the fullest connection if all exceed the budget."""
        size = 0 if self._closing else self._buffered
        if self._writing_paused and self._transport is not None:
            size += self._transport.get_write_buffer_size()
        if size == self._held:
            return
        self._held = size
        fullest = self._budget.hold(self, size)
        if isinstance(fullest, PlannedConnection):
            most = self._budget.limits.max_buffered_bytes
            note = f"buffers {fullest._held} bytes; all connections together may buffer {most}"
            fullest.refuse("over-limit", note)

    def check_idle(self, timeout_ms: int) -> None:
        """Called ``IDLE_CHECKS`` times per time-out. A connection is not idle while an answer is
        pending: then the broker is slow, not the client."""
        if self._working and not self._closing:
            return
        self._quiet += 1
        if self._quiet > IDLE_CHECKS:
            self.refuse("idle", f"no bytes were received or sent for {timeout_ms} ms")

    def refuse(self, event: str, note: str) -> None:
        """Close at once, dropping unsent answers, and journal the reason."""
        if self._transport is None and not self._turn.waiting:
            return
        self._note_event(event, note)
        self._closing = True
        self._held = 0
        self._budget.hold(self, 0)
        self._stop()
        if self._transport is not None:
            self._transport.abort()

    def abort(self) -> None:
        """Drop the connection at once, like a broker that dies."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _write(self, answers: Sequence[Buffer]) -> None:
        if not answers or self._transport is None or self._gone:
            return
        if self._pacing.active or self._writer.pace.queued:
            self._writer.add(b"".join(answers))
        elif len(answers) == 1:
            self._transport.write(answers[0])
        elif sum(map(len, answers)) > _MOST_JOINED:
            self._transport.writelines(answers)
        else:
            self._transport.write(b"".join(answers))

    def _close_after(self, answers: Sequence[Buffer]) -> None:
        """Write these answers, and answer nothing more."""
        self._write(answers)
        self._closing = True
        self._stop()
        self._close()

    def _close(self) -> None:
        """Close the transport once everything is written."""
        self._writer.close()

    # ---- plans of fault rules ----------------------------------------------------------------

    def _perform(self, plan: Plan) -> Awaitable[Plan] | None:
        """Perform the steps up to the first pause; return the rest, to be performed after it."""
        for place, step in enumerate(plan.steps):
            if self._closing:
                return None
            if isinstance(step, Sleep):
                return _later(step.milliseconds, Plan(plan.steps[place + 1 :], plan.answers))
            self._do(step)
        if plan.answers and self._late and not any(isinstance(s, Hold) for s in plan.steps):
            self._write(self._late.overtaken_by(b""))
        return None

    def _do(self, step: Step) -> None:
        if isinstance(step, Write):
            self._write([step.data])
        elif isinstance(step, Hold):
            if self._late is None:
                self._late = LateAnswers()
            self._late.hold(step)
            if step.milliseconds is not None:
                loop = asyncio.get_running_loop()
                loop.call_later(step.milliseconds / 1000, self._release, step)
        elif isinstance(step, End):
            self._end(step.how)

    def _release(self, held: Hold) -> None:
        """Write a held answer whose time has come, if it is still held."""
        if not self._closing and self._late is not None:
            self._write(self._late.release(held))

    def _end(self, how: CloseWith) -> None:
        transport = self._transport
        if how == "fin" or transport is None or (how == "half-close" and _is_tls(transport)):
            return self._close_after([])
        self._closing = True
        self._stop()
        if how == "half-close":
            self._writer.flush()
            transport.write_eof()
            return None
        _reset_on_close(transport)
        return transport.abort()


async def _later(milliseconds: int, rest: Plan) -> Plan:
    await asyncio.sleep(milliseconds / 1000)
    return rest


def _is_tls(transport: asyncio.BaseTransport) -> bool:
    return transport.get_extra_info("sslcontext") is not None


def _reset_on_close(transport: asyncio.BaseTransport) -> None:
    """Let the close drop unsent bytes and send RST."""
    open_socket = transport.get_extra_info("socket")
    if open_socket is not None:
        open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


ConnectionT = TypeVar("ConnectionT", bound=PlannedConnection)


class BrokerListener(Generic[ConnectionT]):
    """One broker's listening socket and the connections it accepted.

    It keeps its port when it is closed and opened again, so that clients find a restarted broker.
    Connections idle for ``idle_timeout_ms``, or up to a quarter longer, are closed; None disables
    that. With ``tls`` a client whose handshake exceeds ``TLS_HANDSHAKE_SECONDS`` is dropped.
    ``refuse`` is called with the broker, the peer, the event and the reason when the process has
    too few descriptors for a connection, which leaves ``spare()`` of them, and when the handshake
    fails.
    """

    def __init__(
        self,
        broker_id: int,
        host: str,
        port: int,
        make_protocol: Callable[[int, set[ConnectionT]], ConnectionT],
        tls: ssl.SSLContext | None = None,
        idle_timeout_ms: int | None = None,
        refuse: Callable[[int, str, str, str], None] = lambda *_: None,
        spare: Callable[[], int] = lambda: SPARE_FOR_CLIENTS,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.connections: set[ConnectionT] = set()
        self._make_protocol = make_protocol
        self._tls = tls
        self._idle_timeout_ms = idle_timeout_ms
        self._refuse = refuse
        self._spare = spare
        self._acceptor: Acceptor | None = None
        self._reserved: socket.socket | None = None
        self._next_check: asyncio.TimerHandle | None = None

    @property
    def listening(self) -> bool:
        return self._acceptor is not None

    def reserve(self) -> None:
        """Take the port at once; connections wait until ``open``. Raises OSError."""
        if self._acceptor is not None or self._reserved is not None:
            return
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        reserved = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind(address)
            reserved.listen(BACKLOG)
        except OSError:
            reserved.close()
            raise
        reserved.setblocking(False)
        self._reserved = reserved
        self.port = reserved.getsockname()[1]

    async def open(self) -> None:
        """Raises OSError if the address cannot be bound."""
        if self._acceptor is not None:
            return
        reserved, self._reserved = self._reserved, None
        sockets = await bound_sockets(self.host, self.port) if reserved is None else [reserved]
        acceptor = Acceptor(
            sockets,
            lambda: self._make_protocol(self.broker_id, self.connections),
            refuse=lambda peer, event, note: self._refuse(self.broker_id, peer, event, note),
            spare=self._spare,
            tls=self._tls,
            handshake_seconds=TLS_HANDSHAKE_SECONDS,
        )
        try:
            acceptor.start()
        except OSError:
            await acceptor.close()
            raise
        self._acceptor = acceptor
        self.port = acceptor.port
        self._schedule_check()

    def _schedule_check(self) -> None:
        if self._idle_timeout_ms is not None:
            seconds = self._idle_timeout_ms / 1000 / IDLE_CHECKS
            self._next_check = asyncio.get_running_loop().call_later(seconds, self._check_idle)

    def _check_idle(self) -> None:
        assert self._idle_timeout_ms is not None, "checks are scheduled with a time-out"
        for connection in list(self.connections):
            connection.check_idle(self._idle_timeout_ms)
        self._schedule_check()

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        acceptor, self._acceptor = self._acceptor, None
        if acceptor is None:
            return
        if self._next_check is not None:
            self._next_check.cancel()
        await acceptor.close()
        for connection in list(self.connections):
            connection.abort()
