"""Sockets, with or without TLS: one protocol object per connection to a broker.

The requests that one turn has time for are answered in one write; a read that delivers more of
them takes further turns, and nothing is read meanwhile (``loop_turns``). As in Kafka, a connection
is muted while an answer is pending: later requests wait until it is sent. Unlike in Kafka the
socket is still read, up to a limit, so that the broker notices a client that disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, cast

from kproto.codec.message import Buffer
from kproto.connection import ServerConnection
from kproto.errors import RemoteProtocolError
from kproto.journal import CLOSED_BY_BROKER, CLOSED_BY_CLIENT
from mockbroker.apis import Session
from mockbroker.faults.delivery import Plan
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.exchange import Close, Frames
from mockbroker.serving.limits import MAX_BEFORE_SASL, Admission, BufferBudget, max_frame_bytes
from mockbroker.serving.listeners import PlannedConnection
from mockbroker.serving.loop_turns import LARGE_READ
from mockbroker.serving.pacing import PacedBytes, Pacing
from mockbroker.simulation.security.policy import certificate_principal
from mockbroker.simulation.security.sasl import SaslSession, SaslUsers

__all__ = ["BrokerProtocol", "Listener"]

_READ_AHEAD: Final = 64 * 1024
"""Bytes to buffer behind a pending answer; the last read may exceed it."""
_FLUSH_AT: Final = 256 * 1024
"""Bytes of answers to collect before they are written, within a burst."""


class Listener(NamedTuple):
    """The name of a listener, and the users that may authenticate there; None needs no
    authentication. ``controller`` is the id of the controller that has it, None for a broker's."""

    name: str
    users: SaslUsers | None
    controller: int | None = None


class BrokerProtocol(PlannedConnection):
    """One client's connection to one broker. ``listener`` is None for the only listener of a broker
    whose configs name none. ``count`` returns the connections of all listeners of the broker."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        broker_id: int,
        open_connections: set[BrokerProtocol],
        budget: BufferBudget | None = None,
        admission: Admission | None = None,
        listener: Listener | None = None,
        count: Callable[[], int] | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        pacing = Pacing() if pacing is None else pacing
        super().__init__(BufferBudget() if budget is None else budget, pacing)
        self._delivering = False
        self._incoming = PacedBytes(pacing, self._receive, self.update_reading)
        self._dispatcher = dispatcher
        self._admission = admission
        self._count = count or open_connections.__len__
        self._waits = False
        """Whether the connection waits for another one to end."""
        if listener is None:
            listener = Listener("", dispatcher.security.sasl)
        users = listener.users
        self._connection = ServerConnection(
            codec=dispatcher.codec,
            served=dispatcher.accepted_by(broker_id),
            sasl_required=users is not None,
            max_size=max_frame_bytes(dispatcher.cluster.configs, broker_id, self._budget.limits),
            max_size_before_sasl=MAX_BEFORE_SASL,
        )
        self._session = Session(
            dispatcher.next_connection_id(),
            broker_id,
            peer="",
            sasl=None if users is None else SaslSession(users),
            listener=listener.name,
            controller=listener.controller,
        )
        self._open_connections = open_connections
        self._pending: asyncio.Future[Frames | Close | Plan] | None = None
        self._unread = b""
        """Received requests that the response cache may know. While there are any, ``_connection``
        has received nothing that it has not returned."""
        self._closed_by = CLOSED_BY_BROKER

    # ---- called by asyncio -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._writer.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._session.peer = f"{peer[0]}:{peer[1]}"
        certificate = transport.get_extra_info("peercert")
        if certificate:
            self._session.principal = certificate_principal(certificate["subject"])
        self._dispatcher.delivery.note_event(self._session, "connected")
        self._open_connections.add(self)
        most = self._budget.limits.max_connections
        if self._count() > most:
            return self.refuse("over-limit", f"the broker has {most} connections, its limit")
        meters = self._dispatcher.cluster.meters
        held_ms = meters.connection(self._session.broker_id, self._session.host)
        if held_ms:
            return self._hold_throttled(held_ms)
        if self._admission is not None and self._admission.enter(self):
            self._waits = True
            self._transport.pause_reading()
        return None

    @property
    def pending(self) -> asyncio.Future[Any] | None:
        """The request that waits for its answer."""
        return self._pending

    @property
    def address(self) -> str:
        return self._session.host

    def admitted(self, refusal: str | None) -> None:
        waited, self._waits = self._waits, False
        if refusal is not None:
            self.refuse("over-limit", refusal)
        elif waited and self._transport is not None:
            self._transport.resume_reading()

    def _hold_throttled(self, milliseconds: int) -> None:
        """Read nothing of the connection, and close it after this time."""
        assert self._transport is not None
        self._closing = True
        self._transport.pause_reading()
        note = f"exceeds connection_creation_rate; it is closed after {milliseconds} ms"
        self._note_event("throttled", note)
        asyncio.get_running_loop().call_later(milliseconds / 1000, self._close)

    def data_received(self, data: bytes) -> None:
        if (self._pacing.active or self._incoming.pace.queued) and not self._delivering:
            self._delay(data)
            return
        self._quiet = 0
        if self._closing:
            return
        turn = self._turn
        if self._unread:
            self._unread += data
        elif (
            self._dispatcher.delivery.may_know(data)
            and self._connection.idle
            and self._pending is None
        ):
            self._unread = data
        else:
            self._connection.receive_data(data)
        if not turn.waiting:
            turn.begin(len(data))
            self._serve_received()
            if len(data) >= LARGE_READ:
                turn.ends()
        if self._pending is not None or turn.waiting:
            self.update_reading()
        if self._held or self._unread or self._connection.buffered:
            self._hold()

    def _delay(self, data: bytes) -> None:
        self._incoming.add(data)
        if self._incoming.full:
            self.update_reading()
        self._hold()

    def _receive(self, data: bytes) -> None:
        """What was delayed is due."""
        self._delivering = True
        self.data_received(data)
        self._delivering = False

    def eof_received(self) -> bool:
        """A client that half-closes gets no more answers, as from a broker."""
        self._incoming.flush()
        self._connection.receive_eof()
        if not self._closing:
            self._closed_by = CLOSED_BY_CLIENT
        if self._turn.waiting:  # with TLS, which reads on to the end
            self._gone = True
        elif self._pending is None:
            self._work()
        if self._late is not None and not self._closing:
            self._write(self._late.release())
        return False

    def pause_writing(self) -> None:
        self._writing_paused = True
        self.update_reading()
        self._hold()

    def resume_writing(self) -> None:
        self._quiet = 0
        self._writing_paused = False
        self._go_on()
        self._hold()

    def connection_lost(self, error: Exception | None) -> None:
        self._gone = True
        self._incoming.flush()
        super().connection_lost(error)

    def _finish(self, error: Exception | None) -> None:
        if self._pending is not None:
            self._pending.cancel()
        self._open_connections.discard(self)
        if self._admission is not None:
            self._admission.leave(self)
        self._budget.hold(self, 0)
        self._closing = True
        self._session.closed()
        self._dispatcher.delivery.note_event(
            self._session, "disconnected", str(error) if error else self._closed_by
        )

    # ---- requests ----------------------------------------------------------------------------

    def _work(self) -> None:
        self._turn.begin()
        self._serve_received()

    def _serve_received(self) -> None:
        """Answer the requests received so far, in order, until an answer is pending or the turn is
        over."""
        if not self._unread or self._serve_known():
            self._serve()

    def _go_on(self) -> None:
        """Take a turn, unless one is waited for, and read again if that leaves nothing to do."""
        if not self._turn.waiting:
            self._work()
        self.update_reading()

    def _continue(self) -> None:
        super()._continue()
        self.update_reading()
        if self._held:
            self._hold()

    def _serve(self) -> None:
        answers: list[Buffer] = []
        size = 0
        while not (self._closing or self._writing_paused or self._pending is not None):
            try:
                event = self._connection.next_event()
            except RemoteProtocolError as error:
                self._dispatcher.delivery.note_event(self._session, "malformed", str(error))
                return self._close_after(answers)
            if event is None:
                break
            answer = self._dispatcher.answer(self._connection, self._session, event)
            if isinstance(answer, (bytes, list)):
                if answer and self._gone:
                    return self._close_after([])
                if isinstance(answer, bytes) and not self._late:
                    answers.append(answer)
                else:
                    answers += self._in_turn(answer)
                if self._session.ended:
                    return self._close_after(answers)
                size += len(answer) if isinstance(answer, bytes) else sum(map(len, answer))
                if size >= _FLUSH_AT:
                    self._write(answers)
                    answers, size = [], 0
                if not self._connection.buffered or self._turn.ends():
                    break
            elif isinstance(answer, Close):
                return self._close_after(answers)
            else:
                self._wait_for(answer)
        self._write(answers)
        return None

    def _in_turn(self, answer: Frames) -> list[Buffer]:
        """Return what goes out now: the answer, and held ones that it overtakes."""
        if self._late and answer:
            frames = answer if isinstance(answer, bytes) else b"".join(answer)
            return [*self._late.overtaken_by(frames)]
        return [answer] if isinstance(answer, bytes) else answer

    def _serve_known(self) -> bool:
        """Answer the requests that the response cache knows, until the turn is over, and give those
        behind them to ``_connection``. Returns whether there are any for this turn."""
        dispatcher, sasl, data = self._dispatcher, self._session.sasl, self._unread
        knows = dispatcher.uses_cache and not self._late and (sasl is None or not sasl.ends_ms)
        while knows and not (self._closing or self._writing_paused or self._gone):
            answers, used = dispatcher.delivery.send_known(
                self._session, data, _FLUSH_AT, self._turn.requests_left
            )
            if not answers:
                break
            self._write(answers)
            self._unread = data = data[used:]
            if not data:
                return False
            self._turn.count(len(answers) - 1)
            if self._turn.ends():
                return False
        if self._closing or self._writing_paused:
            return False
        self._connection.receive_data(data)
        self._unread = b""
        return True

    def _wait_for(self, answer: Awaitable[Frames | Close | Plan]) -> None:
        # The coroutine itself becomes the task. If it were awaited by another one, cancelling that
        # before its first step would leave it never awaited, which Python warns about.
        self._pending = asyncio.ensure_future(answer)
        self._pending.add_done_callback(self._answered_late)
        self.update_reading()

    def _answered_late(self, task: asyncio.Future[Frames | Close | Plan]) -> None:
        self._pending = None
        if self._closing or task.cancelled():
            return
        answer = task.result()
        if isinstance(answer, Close):
            return self._close_after([])
        if isinstance(answer, Plan):
            rest = self._perform(answer)
            if rest is not None:
                return self._wait_for(rest)
        else:
            late = self._in_turn(answer)
            if self._session.ended:
                return self._close_after(late)
            self._write(late)
        self._go_on()
        return None

    def update_reading(self) -> None:
        """Stop reading while requests cannot be worked on, to bound the memory of a connection."""
        if self._transport is None or self._closing:
            return
        muted = self._pending is not None and self._connection.buffered > _READ_AHEAD
        full = self._incoming.full or self._writer.full
        if muted or full or self._writing_paused or self._turn.waiting:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _stop(self) -> None:
        self._connection.close()

    # ---- limits ------------------------------------------------------------------------------

    def _note_event(self, event: str, note: str) -> None:
        self._dispatcher.delivery.note_event(self._session, event, note)

    @property
    def _working(self) -> bool:
        paced = self._incoming.pace.queued or self._writer.pace.queued
        return self._pending is not None or self._turn.waiting or self._waits or bool(paced)

    @property
    def _buffered(self) -> int:
        paced = self._incoming.pace.queued + self._writer.pace.queued
        return len(self._unread) + self._connection.buffered + paced
