"""An asyncio connection to one broker: send any request, return its response.

This module contains time-outs and SASL; ``transport`` contains the socket and ``kproto.connection``
every rule of the protocol. Retries, finding the controller and interpreting error codes in bodies
are left to others: a response is returned as received.
"""

from __future__ import annotations

import asyncio
import socket as socket_module
import ssl as ssl_module
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from kproto.client.errors import (
    ConnectionClosedError,
    RequestTimeoutError,
    SaslExchangeError,
    broker_error,
    raise_for_code,
)
from kproto.client.transport import Protocol
from kproto.codec.message import Message, RequestMessage
from kproto.connection import ClientConnection
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.messages.api_versions_response import ApiVersionsResponse
from kproto.schema.versions import Versions

if TYPE_CHECKING:
    from kproto.messages.produce_request import ProduceRequest
    from kproto.messages.produce_response import ProduceResponse

__all__ = ["Connection"]

M = TypeVar("M", bound=Message)
T = TypeVar("T")

_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_SESSION_USED: Final = 0.85
"""The fraction of a session after which it is re-authenticated, the least that Kafka's own clients
use."""


class Connection:
    """Made by ``Connection.open``. Close it, or use it in ``async with``.

    Any number of tasks may call ``request`` at once: requests are pipelined and each caller gets
    its own response. A caller that is cancelled or times out does not affect others; its late
    response is discarded.
    """

    def __init__(self, protocol: Protocol, peer: str, timeout: float | None) -> None:
        self._protocol = protocol
        self._peer = peer
        self._timeout = timeout
        self._authenticating: asyncio.Future[None] | None = None
        self._session_due: float | None = None

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
        sock: socket_module.socket | None = None,
    ) -> Connection:
        """Connect and, unless disabled, negotiate versions. ``sock`` is a socket that is connected
        already.

        ``timeout`` (seconds, None: no limit) bounds connecting and negotiating together, and each
        request without a time-out of its own. Raises OSError if nothing listens,
        RequestTimeoutError, ConnectionClosedError, or a BrokerError if the broker refuses
        ApiVersions.
        """
        peer = f"{host}:{port}"
        wire = ClientConnection(
            codec=dialect,
            client_id=client_id,
            software_name=software_name,
            software_version=software_version,
        )
        protocol: Protocol | None = None
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                loop = asyncio.get_running_loop()
                place: dict[str, Any] = {"host": host, "port": port}
                if sock is not None:
                    place = {"sock": sock, "server_hostname": host if ssl else None}
                _, protocol = await loop.create_connection(
                    lambda: Protocol(wire, peer), ssl=ssl, **place
                )
                if negotiate:
                    await protocol.negotiate(max_api_versions)
        except BaseException as error:
            if protocol is not None:
                protocol.abort("it was not fully opened")
            if isinstance(error, TimeoutError) and limit.expired():
                raise RequestTimeoutError(f"{peer}: not connected within {timeout} s") from None
            if isinstance(error, ValueError) and not isinstance(error, OSError):
                raise OSError(f"{host!r} is not the name of a host") from None
            raise
        return cls(protocol, peer, timeout)

    @property
    def peer_versions(self) -> Mapping[int, Versions] | None:
        """The versions that the broker serves, by api key; None without a negotiation."""
        return self._protocol.wire.peer_versions

    @property
    def api_versions(self) -> ApiVersionsResponse | None:
        """The whole ApiVersionsResponse; None without a negotiation."""
        return self._protocol.api_versions

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self._protocol.reason is not None

    def version_for(self, api_key: int, allowed: Versions | None = None) -> int:
        """Return the highest common version; see ``ClientConnection.version_for``."""
        return self._protocol.wire.version_for(api_key, allowed)

    @overload
    async def request(  # type: ignore[overload-overlap]  # only Produce has a None
        self, body: ProduceRequest, version: int | None = None, *, timeout: float | None = None
    ) -> ProduceResponse | None: ...
    @overload
    async def request(
        self, body: RequestMessage[M], version: int | None = None, *, timeout: float | None = None
    ) -> M: ...
    async def request(
        self,
        body: RequestMessage[Message],
        version: int | None = None,
        *,
        timeout: float | None = None,
    ) -> Message | None:
        """Send a request and return the body of its response; None for Produce with acks=0.

        ``version`` None is the highest common one. Raises UnsupportedVersionError or EncodeError
        before anything is sent, DecodeError for a response that does not match its schema,
        RequestTimeoutError, or ConnectionClosedError. Error codes in the body are left to the
        caller. If the broker throttles, the request waits until the throttle time has passed
        (KIP-219); it is not sent if that would take longer than ``timeout``.
        """
        seconds = self._timeout if timeout is None else timeout
        pause = self._protocol.pause
        if seconds is not None and pause > seconds:
            raise RequestTimeoutError(
                f"{self._peer}: the broker throttles for {pause:.1f} s more, which is longer than "
                f"the {seconds:.1f} s allowed"
            )
        waiting = self._in_turn(body, version)
        return await self._within(seconds, waiting, f"response to {type(body).__name__}")

    async def _in_turn(self, body: Any, version: int | None) -> Any:
        """Wait while the connection re-authenticates, since nothing else may be sent then."""
        while self._authenticating is not None:
            await asyncio.shield(self._authenticating)
        return await self._protocol.request(body, version)

    async def _sasl_request(self, body: Any, version: int | None) -> Any:
        """Send one of SASL's own requests."""
        waiting = self._protocol.request(body, version)
        return await self._within(self._timeout, waiting, f"response to {type(body).__name__}")

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
        """Run a SASL mechanism. ``exchange`` gets each token of the broker (first b"") and returns
        our next token, or None once it is satisfied.

        Raw tokens follow SaslHandshake v0, and SaslAuthenticate requests follow v1; None uses the
        best that the broker supports. Raises a BrokerError with the broker's code, or
        SaslExchangeError if the broker closed the connection instead, as it does on wrong
        credentials in raw tokens. The caller then closes the connection.

        On an authenticated connection, this re-authenticates (KIP-368); other requests wait
        meanwhile.
        """
        self._authenticating = asyncio.get_running_loop().create_future()
        try:
            await self._authenticate(mechanism, exchange, handshake_version)
        finally:
            self._authenticating.set_result(None)
            self._authenticating = None

    @property
    def session_due(self) -> bool:
        """Whether to re-authenticate: the session granted by the broker ends soon, after which the
        broker closes the connection on any other request."""
        if self._session_due is None:
            return False
        return asyncio.get_running_loop().time() >= self._session_due

    async def _authenticate(
        self,
        mechanism: str,
        exchange: Callable[[bytes], bytes | None],
        handshake_version: int | None,
    ) -> None:
        protocol, message = self._protocol, self._protocol.wire.dialect.message
        version = handshake_version
        if version is None:
            version = self._best_handshake()
        handshake: Any = message("SaslHandshakeRequest")
        answer = await self._sasl_request(handshake(mechanism=mechanism), version)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            raise broker_error(
                answer.error_code, f"{mechanism} is not enabled; the broker offers: {offered}"
            )
        # A listener without SASL responds with ILLEGAL_SASL_STATE (34).
        raise_for_code(answer.error_code)
        received = b""
        while (token := exchange(received)) is not None:
            try:
                if version == 0:
                    waiting = protocol.sasl_token(token)
                    received = await self._within(
                        self._timeout, waiting, "response to a SASL token"
                    )
                else:
                    received = await self._framed_token(token)
            except ConnectionClosedError as error:
                raise SaslExchangeError(
                    f"{mechanism}: the broker closed the connection instead of responding to a "
                    "token; the credentials may be wrong"
                ) from error
        protocol.wire.complete_sasl()

    def _best_handshake(self) -> int:
        """Return the version of SaslHandshake. Version 1 is useless with a broker that lacks
        SaslAuthenticate (before Kafka 1.0)."""
        framed = _SASL_AUTHENTICATE in (self.peer_versions or ())
        return self.version_for(_SASL_HANDSHAKE, None if framed else Versions(0, 0))

    async def _framed_token(self, token: bytes) -> bytes:
        wire = self._protocol.wire
        # Without a negotiation v0, which every broker that supports v1 serves.
        version = 0 if wire.peer_versions is None else wire.version_for(_SASL_AUTHENTICATE)
        authenticate: Any = wire.dialect.message("SaslAuthenticateRequest")
        answer = await self._sasl_request(authenticate(auth_bytes=token), version)
        raise_for_code(answer.error_code, answer.error_message)
        lifetime = answer.session_lifetime_ms / 1000
        now = asyncio.get_running_loop().time()
        self._session_due = now + _SESSION_USED * lifetime if lifetime > 0 else None
        received: bytes = answer.auth_bytes
        return received

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Let another protocol use the socket from now on, for example after ``authenticate``; this
        object is closed. The protocol's ``connection_made`` is called. Raises LocalProtocolError
        while a response is awaited."""
        transport = self._protocol.detach()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    async def close(self, *, flush: float = 1.0) -> None:
        """Close the connection; pending requests fail with ConnectionClosedError. Never raises.

        Bytes that are not sent yet have ``flush`` seconds to leave, so that a peer that stopped
        reading cannot block the caller.
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
