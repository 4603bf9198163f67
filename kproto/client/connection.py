"""One connection to one broker, on asyncio: any request out, its response back.

The socket, the clock and the waiting live here; every rule of the protocol is in
``kproto.connection``. Retries, finding the controller and error codes in bodies are not this
file's business: a response is returned as it came.
"""

from __future__ import annotations

import asyncio
import ssl as ssl_module
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, TypeVar, cast

from kproto.client.errors import (
    ConnectionClosedError,
    RequestTimeoutError,
    SaslExchangeError,
    broker_error,
    raise_for_code,
)
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
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.errors import LocalProtocolError, RemoteProtocolError
from kproto.schema.versions import Versions

__all__ = ["Connection"]

T = TypeVar("T")

_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36


class Connection:
    """Made by ``Connection.open``; close it, or use it in ``async with``.

    ``request`` may be called from any number of tasks at once: requests are pipelined and each
    caller gets its own response. A caller that is cancelled or times out disturbs no other; its
    late answer is dropped.
    """

    def __init__(self, protocol: _Protocol, peer: str, timeout: float | None) -> None:
        self._protocol = protocol
        self._peer = peer
        self._timeout = timeout

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None = "kproto",
        timeout: float | None = 30.0,
        dialect: Dialect | None = None,
        negotiate: bool = True,
        max_api_versions: int | None = None,
        software_name: str = "kproto",
        software_version: str = "0",
        ssl: ssl_module.SSLContext | bool | None = None,
    ) -> Connection:
        """Connect, and negotiate versions unless told not to.

        ``timeout`` (seconds, None: no limit) bounds connecting and negotiating together, and each
        request that gives none of its own. Raises OSError where nobody listens,
        RequestTimeoutError, ConnectionClosedError, or a BrokerError if ApiVersions is refused.
        """
        peer = f"{host}:{port}"
        wire = ClientConnection(
            codec=dialect,
            client_id=client_id,
            software_name=software_name,
            software_version=software_version,
        )
        protocol: _Protocol | None = None
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                loop = asyncio.get_running_loop()
                _, protocol = await loop.create_connection(
                    lambda: _Protocol(wire, peer), host, port, ssl=ssl
                )
                if negotiate:
                    await protocol.negotiate(max_api_versions)
        except BaseException as error:
            if protocol is not None:
                protocol.abort("it was not opened to the end")
            if isinstance(error, TimeoutError) and limit.expired():
                raise RequestTimeoutError(f"{peer}: not connected within {timeout} s") from None
            raise
        return cls(protocol, peer, timeout)

    @property
    def peer_versions(self) -> Mapping[int, Versions] | None:
        """What the broker said it serves, by api key; None without a negotiation."""
        return self._protocol.wire.peer_versions

    @property
    def api_versions(self) -> Any:
        """The whole ApiVersionsResponse; None without a negotiation."""
        return self._protocol.api_versions

    @property
    def closed(self) -> bool:
        return self._protocol.reason is not None

    def version_for(self, api_key: int, allowed: Versions | None = None) -> int:
        """The highest common version; see ``ClientConnection.version_for``."""
        return self._protocol.wire.version_for(api_key, allowed)

    async def request(
        self, body: Any, version: int | None = None, *, timeout: float | None = None
    ) -> Any:
        """Send a request and return the body of its response; None for Produce with acks=0.

        ``version`` None is the highest common one. Raises UnsupportedVersionError or EncodeError
        before anything is sent, DecodeError for a response that does not follow its schema,
        RequestTimeoutError, or ConnectionClosedError. Error codes in the body are the caller's.
        """
        seconds = self._timeout if timeout is None else timeout
        waiting = self._protocol.request(body, version)
        return await self._within(seconds, waiting, f"response to {type(body).__name__}")

    async def _within(self, seconds: float | None, waiting: Awaitable[T], what: str) -> T:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await waiting
        except TimeoutError:
            if not limit.expired():
                raise
            self._protocol.leave_a_stalled_frame()
            raise RequestTimeoutError(f"{self._peer}: no {what} within {seconds} s") from None

    async def authenticate(
        self,
        mechanism: str,
        exchange: Callable[[bytes], bytes | None],
        *,
        handshake_version: int | None = None,
    ) -> None:
        """Run a SASL mechanism. ``exchange`` gets each token of the broker's (first b"") and gives
        the next of ours, or None when it is satisfied.

        SaslHandshake v0 is followed by raw tokens, v1 by SaslAuthenticate; None takes the best
        that the broker has. Raises a BrokerError with what the broker answered, or
        SaslExchangeError where it closed instead, as it does on wrong credentials in raw tokens;
        the caller closes the connection then.
        """
        protocol, message = self._protocol, self._protocol.wire.dialect.message
        version = handshake_version
        if version is None:
            version = self._best_handshake()
        handshake: Any = message("SaslHandshakeRequest")
        answer = await self.request(handshake(mechanism=mechanism), version)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            raise broker_error(
                answer.error_code, f"{mechanism} is not enabled; the broker offers: {offered}"
            )
        # A listener without SASL answers ILLEGAL_SASL_STATE(34).
        raise_for_code(answer.error_code)
        received = b""
        while (token := exchange(received)) is not None:
            try:
                if version == 0:
                    waiting = protocol.sasl_token(token)
                    received = await self._within(self._timeout, waiting, "answer to a SASL token")
                else:
                    received = await self._framed_token(token)
            except ConnectionClosedError as error:
                raise SaslExchangeError(
                    f"{mechanism}: the broker closed the connection instead of answering a token; "
                    "the credentials may be wrong"
                ) from error
        protocol.wire.complete_sasl()

    def _best_handshake(self) -> int:
        """Version 1 is of no use with a broker that lacks SaslAuthenticate (before Kafka 1.0)."""
        framed = _SASL_AUTHENTICATE in (self.peer_versions or ())
        return self.version_for(_SASL_HANDSHAKE, None if framed else Versions(0, 0))

    async def _framed_token(self, token: bytes) -> bytes:
        wire = self._protocol.wire
        # Without a negotiation v0, which every broker that knows the handshake's v1 serves.
        version = 0 if wire.peer_versions is None else wire.version_for(_SASL_AUTHENTICATE)
        authenticate: Any = wire.dialect.message("SaslAuthenticateRequest")
        answer = await self.request(authenticate(auth_bytes=token), version)
        raise_for_code(answer.error_code, answer.error_message)
        received: bytes = answer.auth_bytes
        return received

    async def close(self, *, flush: float = 1.0) -> None:
        """Close; every request still waiting fails with ConnectionClosedError. Never raises.

        What is written but not sent yet gets ``flush`` seconds to leave: a peer that has stopped
        reading must not hold us.
        """
        self._protocol.close("closed by us")
        try:
            async with asyncio.timeout(flush):
                await self._protocol.wait_closed()
        except TimeoutError:
            self._protocol.abort("closed by us")
            await self._protocol.wait_closed()

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Connection to {self._peer}{', closed' if self.closed else ''}>"


class _Protocol(asyncio.Protocol):
    """Moves bytes between a transport and a ``ClientConnection``, and results to futures."""

    def __init__(self, wire: ClientConnection, peer: str) -> None:
        self.wire = wire
        self.api_versions: Any = None
        self.reason: str | None = None
        self._peer = peer
        self._cause: BaseException | None = None
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        # Waits for something other than the response to a request: a negotiation, a raw token.
        self._turn: asyncio.Future[Any] | None = None

    # ---- what Connection calls ---------------------------------------------------------------

    async def request(self, body: Any, version: int | None) -> Any:
        self._check_open()
        future: asyncio.Future[Any] = self._loop.create_future()
        before = len(self.wire.pending)
        data = self.wire.send_request(body, version, context=future)
        awaited = len(self.wire.pending) > before
        # Written before anything is awaited: frames leave in the order of their correlation ids.
        self._write(data)
        try:
            await self._writable.wait()
            if not awaited:
                self._check_open()
                return None
            return await future
        finally:
            # Whoever gave up waiting wants neither the late answer nor a late error.
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
            raise LocalProtocolError("another negotiation or SASL token is not answered yet")
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

    def leave_a_stalled_frame(self) -> None:
        """Close, where a part has come of an answer that nobody waits for any more: whatever is
        asked next on this connection would be answered into that frame."""
        pending = self.wire.pending
        awaited = pending[0].context if pending else None
        if self.wire.buffered and awaited is not None and awaited.done():
            self.abort("it stopped in the middle of an answer")

    async def wait_closed(self) -> None:
        # Shielded: a cancelled caller must not cancel what others wait for.
        await asyncio.shield(self._lost)

    # ---- what asyncio calls ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not checked: uvloop's transports are such without deriving from the class.
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
                _resolve(sent.context, body)
            case MalformedResponse(request=sent, error=error):
                _refuse(sent.context, error)
            case NegotiationRetry(data=data):
                self._write(data)
            case Negotiated(body=body):
                self.api_versions = body
                _resolve(self._turn, None)
            case NegotiationFailed(error_code=code):
                _refuse(self._turn, broker_error(code))
            case SaslTokenReceived(token=token):
                _resolve(self._turn, token)

    def _fail(self, reason: str, cause: BaseException | None = None) -> None:
        """The first reason is kept, and every waiting caller gets it."""
        if self.reason is not None:
            return
        self.reason, self._cause = reason, cause
        pending = self.wire.pending
        for sent in pending:
            _refuse(sent.context, self._closed_error(f" before it answered {sent}"))
        _refuse(
            self._turn,
            self._closed_error(f" before it answered {pending[-1]}" if pending else ""),
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
