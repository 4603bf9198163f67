"""Sockets, with or without TLS: one listener per broker, one protocol object per connection.

The requests that one read delivers are answered in one write. As in Kafka, a connection is muted
while an answer is pending: later requests wait until it is sent. Unlike in Kafka the socket is
still read, up to a limit, so that the broker notices a client that disconnects.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Final, cast

from kproto.connection import ServerConnection
from kproto.errors import RemoteProtocolError
from kproto.journal import CLOSED_BY_BROKER, CLOSED_BY_CLIENT
from mockbroker.apis import Session
from mockbroker.faults.delivery import End, Hold, LateAnswers, Plan, Sleep, Step, Write
from mockbroker.faults.rule import CloseWith
from mockbroker.security.policy import certificate_principal
from mockbroker.security.sasl import SaslSession
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.exchange import Close
from mockbroker.serving.limits import MAX_BEFORE_SASL, BufferBudget

__all__ = ["TLS_HANDSHAKE_SECONDS", "BrokerListener", "BrokerProtocol"]

TLS_HANDSHAKE_SECONDS = 10.0

_READ_AHEAD: Final = 64 * 1024
"""Bytes to buffer behind a pending answer; the last read may exceed it."""
_FLUSH_AT: Final = 256 * 1024
"""Bytes of answers to collect before they are written, within a burst."""
_BACKLOG: Final = 1024
"""Connections that may wait to be accepted. Beyond it the system drops a client's SYN, and the
client retries after a second; asyncio's default of 100 is too low for a connection storm."""
_IDLE_CHECKS: Final = 4
"""Idle checks per time-out."""


class BrokerProtocol(asyncio.Protocol):
    """One client's connection to one broker."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        broker_id: int,
        open_connections: set[BrokerProtocol],
        budget: BufferBudget | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._budget = BufferBudget() if budget is None else budget
        users = dispatcher.security.sasl
        self._connection = ServerConnection(
            codec=dispatcher.codec,
            served=dispatcher.accepted_by(broker_id),
            sasl_required=users is not None,
            max_size=self._budget.limits.max_frame_bytes,
            max_size_before_sasl=MAX_BEFORE_SASL,
        )
        self._session = Session(
            dispatcher.next_connection_id(),
            broker_id,
            peer="",
            sasl=None if users is None else SaslSession(users),
        )
        self._open_connections = open_connections
        self._transport: asyncio.Transport | None = None
        self._pending: asyncio.Future[bytes | Close | Plan] | None = None
        self._late: LateAnswers | None = None
        self._writing_paused = False
        self._closing = False
        self._held = 0
        self._quiet = 0
        self._closed_by = CLOSED_BY_BROKER

    # ---- called by asyncio -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._session.peer = f"{peer[0]}:{peer[1]}"
        certificate = transport.get_extra_info("peercert")
        if certificate:
            self._session.principal = certificate_principal(certificate["subject"])
        self._dispatcher.delivery.note_event(self._session, "connected")
        self._open_connections.add(self)
        most = self._budget.limits.max_connections
        if len(self._open_connections) > most:
            self.refuse("over-limit", f"the broker has {most} connections, its limit")

    def data_received(self, data: bytes) -> None:
        self._quiet = 0
        sasl = self._session.sasl
        may_send_known = (
            self._dispatcher.uses_cache
            and self._connection.idle
            and not self._late
            and (sasl is None or not sasl.ends_ms)
        )
        if may_send_known:
            data = self._serve_known(data)
        if data and not self._closing:
            self._connection.receive_data(data)
            self._serve()
            if self._pending is not None:
                self._update_reading()
            if self._held or self._connection.buffered:
                self._hold()

    def eof_received(self) -> bool:
        """A client that half-closes gets no more answers, as from a broker."""
        self._connection.receive_eof()
        if not self._closing:
            self._closed_by = CLOSED_BY_CLIENT
        if self._pending is None:
            self._serve()
        if self._late is not None and not self._closing:
            self._write(self._late.release())
        return False

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._update_reading()
        self._hold()

    def resume_writing(self) -> None:
        self._quiet = 0
        self._writing_paused = False
        self._update_reading()
        self._serve()
        self._hold()

    def connection_lost(self, error: Exception | None) -> None:
        if self._pending is not None:
            self._pending.cancel()
        self._open_connections.discard(self)
        self._budget.hold(self, 0)
        self._closing = True
        self._transport = None
        self._dispatcher.delivery.note_event(
            self._session, "disconnected", str(error) if error else self._closed_by
        )

    # ---- requests ----------------------------------------------------------------------------

    def _serve(self) -> None:
        """Answer the requests received so far, in order, until an answer is pending."""
        answers: list[bytes] = []
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
            if isinstance(answer, bytes):
                if self._late and answer:
                    answers += self._late.overtaken_by(answer)
                else:
                    answers.append(answer)
                if self._session.ended:
                    return self._close_after(answers)
                size += len(answer)
                if size >= _FLUSH_AT:
                    self._write(answers)
                    answers, size = [], 0
            elif isinstance(answer, Close):
                return self._close_after(answers)
            else:
                self._wait_for(answer)
        self._write(answers)
        return None

    def _serve_known(self, data: bytes) -> bytes:
        """Answer the requests that the response cache knows; return the bytes behind them."""
        delivery = self._dispatcher.delivery
        while data and not (self._closing or self._writing_paused):
            answers, used = delivery.send_known(self._session, data, _FLUSH_AT)
            if not used:
                break
            self._write(answers)
            data = data[used:]
        return data

    def _wait_for(self, answer: Awaitable[bytes | Close | Plan]) -> None:
        # The coroutine itself becomes the task. If it were awaited by another one, cancelling that
        # before its first step would leave it never awaited, which Python warns about.
        self._pending = asyncio.ensure_future(answer)
        self._pending.add_done_callback(self._answered_late)
        self._update_reading()

    def _answered_late(self, task: asyncio.Future[bytes | Close | Plan]) -> None:
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
            late = self._late.overtaken_by(answer) if self._late and answer else [answer]
            if self._session.ended:
                return self._close_after(late)
            self._write(late)
        self._update_reading()
        self._serve()
        return None

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
        self._connection.close()
        if how == "half-close":
            transport.write_eof()
            return None
        _reset_on_close(transport)
        return transport.abort()

    def _update_reading(self) -> None:
        """Stop reading while requests cannot be worked on, to bound the memory of a connection."""
        if self._transport is None or self._closing:
            return
        muted = self._pending is not None and self._connection.buffered > _READ_AHEAD
        if muted or self._writing_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _write(self, answers: list[bytes]) -> None:
        if answers and self._transport is not None:
            self._transport.write(answers[0] if len(answers) == 1 else b"".join(answers))

    def _close_after(self, answers: list[bytes]) -> None:
        """Write these answers, and answer nothing more."""
        self._write(answers)
        self._closing = True
        self._connection.close()
        if self._transport is not None:
            self._transport.close()

    # ---- limits ------------------------------------------------------------------------------

    def _hold(self) -> None:
        """Report the bytes buffered here; close the fullest connection if all exceed the budget."""
        size = 0 if self._closing else self._connection.buffered
        if self._writing_paused and self._transport is not None:
            size += self._transport.get_write_buffer_size()
        if size == self._held:
            return
        self._held = size
        fullest = self._budget.hold(self, size)
        if isinstance(fullest, BrokerProtocol):
            most = self._budget.limits.max_buffered_bytes
            note = f"buffers {fullest._held} bytes; all connections together may buffer {most}"
            fullest.refuse("over-limit", note)

    def check_idle(self) -> None:
        """Called ``_IDLE_CHECKS`` times per time-out. A connection is not idle while an answer is
        pending: then the broker is slow, not the client."""
        if self._pending is not None and not self._closing:
            return
        self._quiet += 1
        if self._quiet > _IDLE_CHECKS:
            idle = self._budget.limits.idle_timeout_ms
            self.refuse("idle", f"no bytes were received or sent for {idle} ms")

    def refuse(self, event: str, note: str) -> None:
        """Close at once, dropping unsent answers, and journal the reason."""
        if self._transport is None:
            return
        self._dispatcher.delivery.note_event(self._session, event, note)
        self._closing = True
        self._held = 0
        self._budget.hold(self, 0)
        self._connection.close()
        self._transport.abort()

    def abort(self) -> None:
        """Drop the connection at once, like a broker that dies."""
        if self._transport is not None:
            self._transport.abort()


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


class BrokerListener:
    """One broker's listening socket and the connections it accepted.

    It keeps its port when it is closed and opened again, so that clients find a restarted broker.
    Connections idle for ``idle_timeout_ms``, or up to a quarter longer, are closed; None disables
    that. With ``tls`` a client whose handshake exceeds ``TLS_HANDSHAKE_SECONDS`` is dropped.
    """

    def __init__(
        self,
        broker_id: int,
        host: str,
        port: int,
        make_protocol: Callable[[int, set[BrokerProtocol]], BrokerProtocol],
        tls: ssl.SSLContext | None = None,
        idle_timeout_ms: int | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.connections: set[BrokerProtocol] = set()
        self._make_protocol = make_protocol
        self._tls = tls
        self._idle_timeout_ms = idle_timeout_ms
        self._server: asyncio.Server | None = None
        self._next_check: asyncio.TimerHandle | None = None

    @property
    def listening(self) -> bool:
        return self._server is not None

    async def open(self) -> None:
        """Raises OSError if the address cannot be bound."""
        if self._server is not None:
            return
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: self._make_protocol(self.broker_id, self.connections),
                self.host,
                self.port,
                ssl=self._tls,
                backlog=_BACKLOG,
                ssl_handshake_timeout=None if self._tls is None else TLS_HANDSHAKE_SECONDS,
            )
        except socket.gaierror as error:
            raise OSError(f"cannot listen on {self.host!r}: {error.strerror}") from None
        if not self._server.sockets:  # asyncio's result if the process has no descriptors left
            raise OSError(f"cannot listen on {self.host!r}: out of file descriptors (ulimit -n?)")
        self.port = self._server.sockets[0].getsockname()[1]
        self._schedule_check()

    def _schedule_check(self) -> None:
        if self._idle_timeout_ms is not None:
            seconds = self._idle_timeout_ms / 1000 / _IDLE_CHECKS
            self._next_check = asyncio.get_running_loop().call_later(seconds, self._check_idle)

    def _check_idle(self) -> None:
        for connection in list(self.connections):
            connection.check_idle()
        self._schedule_check()

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        server, self._server = self._server, None
        if server is None:
            return
        if self._next_check is not None:
            self._next_check.cancel()
        server.close()
        for connection in list(self.connections):
            connection.abort()
        if self._tls is None:
            await server.wait_closed()
        # With TLS it would wait for clients whose handshake is under way.
