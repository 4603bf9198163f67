"""The sockets of one client: its connection to the proxy, and the proxy's to the upstream broker.

``passage`` decides what passes; this module moves the bytes, stops reading from one side while the
other does not take more, and ends both sides together. What either side sends is worked on in turns
(``mockbroker.serving.loop_turns``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, cast

from kproto.codec.message import Buffer
from kproto.connection.negotiation import API_VERSIONS_KEY, refusal
from kproto.errors import DecodeError, KprotoError, RemoteProtocolError
from kproto.journal import CLOSED_BY_BROKER, CLOSED_BY_CLIENT
from mockbroker.apis import Session
from mockbroker.faults.delivery import Plan
from mockbroker.proxy.foreign_bytes import describe_foreign
from mockbroker.proxy.passage import Held, Passage, Passing
from mockbroker.proxy.targets import Target
from mockbroker.serving.endpoints import show
from mockbroker.serving.limits import BufferBudget
from mockbroker.serving.listeners import PlannedConnection
from mockbroker.serving.loop_turns import Turn, turns_of_loop
from mockbroker.serving.pacing import MOST_QUEUED, PacedWriter, Paces, Pacing
from mockbroker.simulation.security.policy import certificate_principal
from mockbroker.simulation.security.sasl import SaslSession, SaslUsers

__all__ = ["CONNECT_SECONDS", "Ends", "ProxiedConnection", "UpstreamSide"]

_log = logging.getLogger("mockbroker.proxy")

CONNECT_SECONDS = 10.0
"""How long an upstream broker may take to accept a connection, TLS and authentication included."""

_FIRST: Final = 8
"""Bytes of a connection's beginning that are kept to say what they look like."""


class UpstreamSide(asyncio.Protocol):
    """The proxy's connection to a broker, for one client."""

    def __init__(self, client: ProxiedConnection, pacing: Pacing) -> None:
        self._client = client
        self.transport: asyncio.Transport | None = None
        self.writer = PacedWriter(pacing, client.update_reading)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(MOST_QUEUED)
        self.writer.transport = self.transport

    def data_received(self, data: bytes) -> None:
        self._client.upstream_sent(data)

    def pause_writing(self) -> None:
        self._client.upstream_paused(paused=True)

    def resume_writing(self) -> None:
        self._client.upstream_paused(paused=False)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = self.writer.transport = None
        self.writer.lost()
        self._client.upstream_lost(error)


class Ends(NamedTuple):
    """The names of both ends of a client's connection, as its socket gives them."""

    client: Any
    listener: Any


class Owner(Protocol):
    """What a connection needs of its proxy."""

    budget: BufferBudget
    paces: Paces

    def passing_of(self, target: Target) -> Passing: ...
    def users_of(self, target: Target) -> SaslUsers | None: ...
    def next_connection_id(self) -> int: ...
    def target_of(self, target: Target, tls: Any) -> Target: ...
    def closed(self, connection_id: int) -> None: ...

    async def connect(self, upstream: UpstreamSide, target: Target, ends: Ends) -> None:
        """Raises OSError or KprotoError, in one line."""

    async def take_over(self, connection: ProxiedConnection, held: Held) -> None:
        """Deal with a request that a rule may take."""


class ProxiedConnection(PlannedConnection):
    """One client's connection to ``target``, through the proxy. Where brokers share a listener, the
    target is known once the TLS handshake is over."""

    def __init__(
        self, owner: Owner, target: Target, open_connections: set[ProxiedConnection]
    ) -> None:
        pacing = owner.paces.of(target.node_id, target.listener)
        super().__init__(owner.budget, pacing)
        self._owner = owner
        self.target = target
        self._open_connections = open_connections
        users = owner.users_of(target)
        self._passing = passing = owner.passing_of(target)
        self.session = Session(
            owner.next_connection_id(), target.node_id, peer="",
            sasl=None if users is None else SaslSession(users), listener=target.listener,
        )  # fmt: skip
        self._upstream_turn = Turn(turns_of_loop(), self._continue_upstream)
        self.passage = Passage(
            passing, self.session, owner.budget.limits.max_frame_bytes,
            self._turn, self._upstream_turn,
        )  # fmt: skip
        self._recorder = passing.recorder
        self._upstream = UpstreamSide(self, pacing)
        self._ends = Ends(None, None)
        self._connected = False
        self._upstream_writing_paused = False
        self._upstream_gone = False
        self._busy = False
        """Whether the held request is being dealt with."""
        self._task: asyncio.Task[None] | None = None
        self._first = b""
        self._first_of_upstream = b""
        self._closed_by = CLOSED_BY_BROKER

    # ---- the client's side, called by asyncio ------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(MOST_QUEUED)
        self._writer.transport = self._transport
        peer = transport.get_extra_info("peername")
        self._ends = Ends(peer, transport.get_extra_info("sockname"))
        self.target = self._owner.target_of(self.target, transport.get_extra_info("ssl_object"))
        self.session.broker_id = self.target.node_id
        if isinstance(peer, tuple):
            self.session.peer = f"{peer[0]}:{peer[1]}"
        certificate = transport.get_extra_info("peercert")
        if certificate:
            self.session.principal = certificate_principal(certificate["subject"])
        self._note_event("connected", "")
        self._open_connections.add(self)
        most = self._budget.limits.max_connections
        if len(self._open_connections) > most:
            self.refuse("over-limit", f"the broker has {most} connections, its limit")
            return
        self._transport.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._connect())

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._quiet = 0
        if len(self._first) < _FIRST:
            self._first += data[: _FIRST - len(self._first)]
        if not self._turn.waiting:
            self._turn.begin(len(data))
        self._pass_requests(data)

    def _work(self) -> None:
        self._turn.begin()
        self._pass_requests(b"")

    def _pass_requests(self, data: bytes) -> None:
        try:
            self.passage.receive_from_client(data)
        except (RemoteProtocolError, DecodeError) as error:
            self._malformed(error)
        self.flush()

    def eof_received(self) -> bool:
        """A client that half-closes gets no more answers, as from a broker."""
        if not self._closing:
            self._closed_by = CLOSED_BY_CLIENT
        return False

    def pause_writing(self) -> None:
        self._writing_paused = True
        self.update_reading()
        self._hold()

    def resume_writing(self) -> None:
        self._quiet = 0
        self._writing_paused = False
        self.update_reading()
        self._hold()

    def _finish(self, error: Exception | None) -> None:
        self._open_connections.discard(self)
        self._budget.hold(self, 0)
        self._closing = True
        if self._task is not None:
            self._task.cancel()
        self._stop()
        self._owner.closed(self.session.connection_id)
        self._note_event("disconnected", str(error) if error else self._closed_by)

    # ---- the upstream's side -----------------------------------------------------------------

    async def _connect(self) -> None:
        where = " or ".join(show(*each) for each in self.target.addresses)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._owner.connect(self._upstream, self.target, self._ends)
        except TimeoutError:
            self._unreachable(f"{where} did not accept a connection within {CONNECT_SECONDS:g} s")
        except (OSError, KprotoError, ValueError) as error:  # ValueError: not a name
            self._unreachable(f"{where}: {error}")
        else:
            self._connected = True
            self.flush()

    def _unreachable(self, note: str) -> None:
        _log.warning("upstream %s: %s", self.target.name, note)
        self.refuse("upstream-unreachable", note)

    def upstream_sent(self, data: bytes) -> None:
        if self._closing:
            return
        self._quiet = 0
        if len(self._first_of_upstream) < _FIRST:
            self._first_of_upstream += data[: _FIRST - len(self._first_of_upstream)]
        if not self._upstream_turn.waiting:
            self._upstream_turn.begin(len(data))
        self._pass_answers(data)

    def _continue_upstream(self) -> None:
        """Take a turn at what the upstream has sent, also once it is gone."""
        if self._closing:
            return
        self._upstream_turn.begin()
        self._pass_answers(b"")
        if self._upstream_gone and not self._upstream_turn.waiting:
            self._close_after([])

    def _pass_answers(self, data: bytes) -> None:
        try:
            self.passage.receive_from_upstream(data)
        except RemoteProtocolError as error:
            kind = describe_foreign(
                self._first_of_upstream, tls="the upstream wants TLS (--upstream-tls)"
            )
            note = f"{error}; {kind}" if kind else str(error)
            _log.warning("upstream %s: %s", self.target.name, note)
            self._note_event("upstream-malformed", note)
            self.flush()
            self._close_after([])
            return
        self.flush()

    def upstream_paused(self, *, paused: bool) -> None:
        self._upstream_writing_paused = paused
        self.update_reading()
        self._hold()

    def upstream_lost(self, error: Exception | None) -> None:
        if self._closing or not self._connected:
            return
        self._note_event("upstream-closed", str(error) if error else "by the upstream")
        self._upstream_gone = True
        if not self._upstream_turn.waiting:
            self.flush()
            self._close_after([])

    @property
    def held_bytes(self) -> int:
        """The bytes received from either side and not written yet, apart from the system's."""
        size = self._buffered
        if self._transport is not None:
            size += self._transport.get_write_buffer_size()
        return size

    def drop(self, note: str) -> None:
        """End both sides at once, as if the upstream broker had died."""
        self.refuse("upstream-dropped", note)

    # ---- both sides --------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what passes, and deal with a request that does not once its turn has come."""
        passage = self.passage
        if passage.to_upstream and self._upstream.transport is not None:
            self._upstream.writer.write(passage.to_upstream)
        if passage.to_client:
            self._answer(passage.to_client)
        if passage.held is not None and passage.idle and self._connected and not self._busy:
            self._take_over(passage.held)
        self.update_reading()
        if self._held or passage.buffered:
            self._hold()

    def _answer(self, answers: list[bytes]) -> None:
        """Write what passes to the client, and the answers of rules that it overtakes."""
        if self._late:
            for answer in answers:
                self._write(self._late.overtaken_by(answer))
            answers.clear()
            self.passage.whole_answers = bool(self._late)
        else:
            self._writer.write(answers)

    def _write(self, answers: Sequence[Buffer]) -> None:
        if answers:
            self._writer.write([bytes(each) for each in answers])

    async def perform_plan(self, plan: Plan) -> None:
        """Write what a rule makes of an answer, with its pauses."""
        rest = self._perform(plan)
        while rest is not None:
            rest = self._perform(await rest)
        self.passage.whole_answers = bool(self._late)

    def end(self) -> None:
        """Close the client's connection once everything is written."""
        self._close_after([])

    def _take_over(self, held: Held) -> None:
        self._busy = True
        if held.reason == "refused":
            self._refuse_request(held)
            return
        if held.reason == "sasl":
            self._authenticate(held)
            return
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run_rules(held))

    async def _run_rules(self, held: Held) -> None:
        try:
            await self._owner.take_over(self, held)
        except Exception as error:  # a rule must not leave the client waiting
            _log.exception("a rule failed")
            self._note_event("failed", f"{type(error).__name__}: {error}")
            self._close_after([])

    def _authenticate(self, held: Held) -> None:
        gate = self.passage.gate
        assert gate is not None
        answer = gate.answer(held.head, held.frame)
        if answer is None or self.session.ended:
            self._close_after([] if answer is None else [answer])
            return
        self._write([answer])
        asyncio.get_running_loop().call_soon(self.go_on)

    def _refuse_request(self, held: Held) -> None:
        """Answer ApiVersions above the clamp with what there is; close on any other request."""
        head, passing = held.head, self._passing
        limit = passing.clamp.limit(head.api_key)
        raw = held.frame if self._recorder.frames else b""
        note = f"versions {limit} pass" if limit else "the API does not pass"
        self._recorder.request(self.session, head, raw, "unsupported", note)
        if head.api_key != API_VERSIONS_KEY or not limit:
            self._close_after([])
            return
        shown = limit if passing.clamp.shows_fallback_row else None
        answer = passing.codec.encode_response(
            refusal(passing.codec, shown), api_version=0, correlation_id=head.correlation_id
        )
        self._recorder.response(self.session, head, 0, answer, "unsupported")
        self._write([answer])
        asyncio.get_running_loop().call_soon(self.go_on)

    def go_on(self) -> None:
        """The held request has been dealt with."""
        self._busy = False
        if self._closing:
            return
        if not self._turn.waiting:
            self._turn.begin()
        try:
            self.passage.go_on()
        except (RemoteProtocolError, DecodeError) as error:
            self._malformed(error)
        self.flush()

    def _malformed(self, error: KprotoError) -> None:
        kind = describe_foreign(
            self._first, tls="the client uses TLS on a port without it (--tls serves TLS)"
        )
        note = f"{error}; {kind}" if kind else str(error)
        _log.warning("client %s: %s", self.session.peer, note)
        self._note_event("malformed", note)
        self._close_after([])

    def update_reading(self) -> None:
        """Read from a side only while what comes of it can be passed on."""
        transport, upstream = self._transport, self._upstream.transport
        if transport is None or self._closing:
            return
        full = self._upstream_writing_paused or self._upstream.writer.full or self.passage.full
        if full or self._turn.waiting or not self._connected:
            transport.pause_reading()
        else:
            transport.resume_reading()
        if upstream is not None:
            if self._writing_paused or self._writer.full or self._upstream_turn.waiting:
                upstream.pause_reading()
            else:
                upstream.resume_reading()

    # ---- for ``PlannedConnection`` -------------------------------------------------------------

    def _stop(self) -> None:
        upstream = self._upstream.transport
        if upstream is not None:
            self._upstream.writer.close()

    def _note_event(self, event: str, note: str) -> None:
        self._recorder.event(self.session, event, note)

    @property
    def _working(self) -> bool:
        passage = self.passage
        waits = self._turn.waiting or self._upstream_turn.waiting
        return waits or not self._connected or passage.unanswered > 0 or passage.held is not None

    @property
    def _buffered(self) -> int:
        size = self.passage.buffered + self._writer.pace.queued + self._upstream.writer.pace.queued
        if self._upstream_writing_paused and self._upstream.transport is not None:
            size += self._upstream.transport.get_write_buffer_size()
        return size
