"""Connect a socket to ``kproto.connection``: feed bytes, complete futures, and observe throttle
times.

Time is the event loop's.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from kproto.client.errors import ConnectionClosedError, broker_error
from kproto.connection import (
    ClientConnection,
    ClientEvent,
    ClientState,
    MalformedResponse,
    Negotiated,
    NegotiationFailed,
    NegotiationRetry,
    ResponseReceived,
    SaslTokenReceived,
)
from kproto.connection.throttling import pause_ms
from kproto.errors import LocalProtocolError, RemoteProtocolError
from kproto.messages.api_versions_response import ApiVersionsResponse

__all__ = ["Protocol"]


class Protocol(asyncio.Protocol):
    """Moves bytes between a transport and a ``ClientConnection``, and results to futures."""

    def __init__(self, wire: ClientConnection, peer: str) -> None:
        self.wire = wire
        self.api_versions: ApiVersionsResponse | None = None
        self.reason: str | None = None
        self._peer = peer
        self._cause: BaseException | None = None
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._quiet_until = 0.0
        # Waits for something other than the response to a request: a negotiation, a raw token.
        self._turn: asyncio.Future[Any] | None = None

    # ---- what Connection calls ---------------------------------------------------------------

    @property
    def pause(self) -> float:
        """Seconds until the broker reads from this connection again."""
        return max(0.0, self._quiet_until - self._loop.time())

    async def request(self, body: Any, version: int | None) -> Any:
        await self._keep_quiet()
        self._check_open()
        future: asyncio.Future[Any] = self._loop.create_future()
        before = len(self.wire.pending)
        data = self.wire.send_request(body, version, context=future)
        awaited = len(self.wire.pending) > before
        # Written before any await, so that frames leave in the order of their correlation ids.
        self._write(data)
        try:
            await self._writable.wait()
            if not awaited:
                self._check_open()
                return None
            return await future
        finally:
            # A caller that gave up needs neither the late response nor a late error.
            future.cancel()

    async def negotiate(self, max_version: int | None) -> None:
        self._check_open()
        data = self.wire.begin_negotiation(max_version)
        await self._take_turn(data)

    async def sasl_token(self, token: bytes) -> bytes:
        self._check_open()
        received: bytes = await self._take_turn(self.wire.send_sasl_token(token))
        return received

    async def _take_turn(self, data: bytes) -> Any:
        if self._turn is not None:
            raise LocalProtocolError("another negotiation or SASL token has no response yet")
        self._turn = self._loop.create_future()
        self._write(data)
        try:
            return await self._turn
        finally:
            self._turn = None

    def close(self, reason: str) -> None:
        self._fail(reason)
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: str, cause: BaseException | None = None) -> None:
        self._fail(reason, cause)
        if self._transport is not None:
            self._transport.abort()

    def detach(self) -> asyncio.Transport:
        """Give the transport to another protocol; this one is closed. Raises LocalProtocolError
        while a response is awaited, or if bytes have arrived that were not asked for."""
        self._check_open()
        transport = self._transport
        assert transport is not None
        if self.wire.pending or self.wire.buffered or self._turn is not None:
            raise LocalProtocolError("a response is still awaited")
        self._transport = None
        self.reason = "it was handed over"
        if not self._lost.done():
            self._lost.set_result(None)
        return transport

    def leave_a_stalled_frame(self) -> None:
        """Close the connection if part of a response has arrived that no caller awaits any more:
        the peer may have stalled in the middle of that frame, and later responses are behind it."""
        pending = self.wire.pending
        awaited = pending[0].context if pending else None
        if self.wire.buffered and awaited is not None and awaited.done():
            self.abort("it stopped in the middle of a response")

    async def wait_closed(self) -> None:
        # Shielded: a cancelled caller must not cancel what others wait for.
        await asyncio.shield(self._lost)

    # ---- what asyncio calls ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not checked: uvloop's transports implement the class without deriving from it.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.wire.receive_data(data)
        self._report()

    def eof_received(self) -> None:
        self.wire.receive_eof()
        self._report()
        self._fail("the peer closed it")

    def connection_lost(self, error: Exception | None) -> None:
        self._fail("the connection was lost" if error else "the peer closed it", error)
        self._writable.set()
        if not self._lost.done():
            self._lost.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # ---- inside --------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def _check_open(self) -> None:
        if self.reason is not None:
            raise self._closed_error()

    def _report(self) -> None:
        if self.reason is not None:
            return
        try:
            while (event := self.wire.next_event()) is not None:
                self._handle(event)
        except RemoteProtocolError as error:
            self.abort(f"the peer broke the protocol: {error}", error)

    def _handle(self, event: ClientEvent) -> None:
        match event:
            case ResponseReceived(request=sent, body=body):
                self._apply_throttle(pause_ms(sent.api.api_key, sent.api_version, body))
                _resolve(sent.context, body)
            case MalformedResponse(request=sent, error=error):
                _refuse(sent.context, error)
            case NegotiationRetry(data=data):
                self._write(data)
            case Negotiated(body=body, api_version=version):
                self._apply_throttle(pause_ms(body.API_KEY, version, body))
                self.api_versions = body
                _resolve(self._turn, None)
            case NegotiationFailed(error_code=code):
                _refuse(self._turn, broker_error(code))
            case SaslTokenReceived(token=token):
                _resolve(self._turn, token)

    def _apply_throttle(self, milliseconds: int) -> None:
        self._quiet_until = max(self._quiet_until, self._loop.time() + milliseconds / 1000)

    async def _keep_quiet(self) -> None:
        """Return once the broker reads again or the connection is closed."""
        while self.pause and self.reason is None:
            await asyncio.wait({self._lost}, timeout=self.pause)

    def _fail(self, reason: str, cause: BaseException | None = None) -> None:
        """Fail every waiting caller. The first reason is kept."""
        if self.reason is not None:
            return
        self.reason, self._cause = reason, cause
        pending = self.wire.pending
        for sent in pending:
            _refuse(sent.context, self._closed_error(f" before responding to {sent}"))
        _refuse(
            self._turn,
            self._closed_error(f" before responding to {pending[-1]}" if pending else ""),
        )
        if self.wire.state is not ClientState.CLOSED:
            self.wire.close()

    def _closed_error(self, detail: str = "") -> ConnectionClosedError:
        error = ConnectionClosedError(
            f"the connection to {self._peer} ended{detail}: {self.reason}"
        )
        error.__cause__ = self._cause
        return error


def _resolve(future: asyncio.Future[Any] | None, value: Any) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def _refuse(future: asyncio.Future[Any] | None, error: Exception) -> None:
    if future is not None and not future.done():
        future.set_exception(error)
