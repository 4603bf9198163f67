"""One connection to one broker by the rules, each rule in a method that a defect may break.

``kproto.framing`` splits frames, the released dialect decodes messages, and
``kproto.connection.negotiation`` chooses versions. Retries are in ``client``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from struct import Struct
from typing import Any, Final

from kproto.client.sasl import SaslMechanism
from kproto.connection import choose_version
from kproto.connection.negotiation import advertised, next_attempt
from kproto.dialects import dialect
from kproto.errors import DecodeError, RemoteProtocolError
from kproto.framing import DEFAULT_MAX_SIZE, FrameSplitter, encode_frame
from kproto.schema.versions import Versions

__all__ = ["API_VERSIONS", "BrokerError", "Link", "LinkClosedError", "TimedOutError"]

API_VERSIONS: Final = 18
_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_UNSUPPORTED_VERSION: Final = 35
_read_int32: Final = Struct(">i").unpack_from
_read_code: Final = Struct(">h").unpack_from


class LinkClosedError(ConnectionError):
    """The connection is over, because the broker closed it or broke the protocol."""


class TimedOutError(TimeoutError):
    """No answer arrived in time."""


class BrokerError(Exception):
    """An error code in an answer."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message or "")
        self.code = code
        self.message = message


class Link:
    """Opens a connection, negotiates, optionally authenticates, and sends requests. Any protocol
    error closes it for good."""

    max_size: int = DEFAULT_MAX_SIZE

    def __init__(self, *, client_id: str, timeout: float, sasl: SaslMechanism | None) -> None:
        self.codec = dialect("kafka")
        self.client_id = client_id
        self.timeout = timeout
        self.sasl = sasl
        self.versions: Mapping[int, Versions] = {}
        self.features: Mapping[str, int] = {}
        self.quiet_until = 0.0
        self.session_ends = float("inf")
        self.closed: Exception | None = None
        self._splitter = FrameSplitter(self.max_size, keep_size=True)
        self._awaited: dict[int, asyncio.Future[bytes]] = {}
        self._token: asyncio.Future[bytes] | None = None
        self._correlation_id = 0
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    # ---- life cycle ------------------------------------------------------------------------------

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Open the connection. Raises LinkClosedError, TimedOutError, DecodeError or
        BrokerError."""
        try:
            async with asyncio.timeout(self.timeout):
                self._reader, self._writer = await asyncio.open_connection(
                    host, port, ssl=tls, server_hostname=None if tls is None else host
                )
        except TimeoutError:
            self.closed = TimedOutError(f"no connection to {host}:{port} in time")
            raise self.closed from None
        except OSError as error:
            self.closed = LinkClosedError(f"cannot connect to {host}:{port}: {error}")
            raise self.closed from None
        self._task = asyncio.get_running_loop().create_task(self._read())
        try:
            await self.negotiate()
            if self.sasl is not None:
                await self.authenticate(self.sasl)
        except BaseException:
            await self.close()
            raise

    async def close(self, reason: Exception | None = None) -> None:
        self._end(reason or LinkClosedError("closed by us"))
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def sent(self) -> int:
        """The number of requests that were sent."""
        return self._correlation_id

    @property
    def peer_certificate(self) -> Mapping[str, Any]:
        """The broker's certificate; empty without TLS."""
        writer = self._writer
        return (None if writer is None else writer.get_extra_info("peercert")) or {}

    def _open_writer(self) -> asyncio.StreamWriter:
        if self.closed is not None:
            raise self.closed
        assert self._writer is not None
        return self._writer

    def _end(self, reason: Exception) -> None:
        if self.closed is None:
            self.closed = reason
            if self._writer is not None:  # otherwise the caller gave up while it was being opened
                self._writer.close()
        tokens = [] if self._token is None else [self._token]
        for future in [*self._awaited.values(), *tokens]:
            if not future.done():
                future.set_exception(reason)
                future.exception()
        self._awaited.clear()
        self._token = None

    # ---- incoming frames -------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(65536):
                self._splitter.feed(data)
                while (frame := self.next_frame()) is not None:
                    self.take(frame)
            self._end(LinkClosedError("the broker closed the connection"))
        except OSError as error:
            self._end(LinkClosedError(f"the connection broke: {error}"))
        except (RemoteProtocolError, DecodeError) as error:
            self._end(error)

    def next_frame(self) -> bytes | None:
        """Check a frame's size. Raises RemoteProtocolError on one that no answer has."""
        return self._splitter.next_frame()

    def take(self, frame: bytes) -> None:
        """Give an answer to the request that waits for it.

        Raises RemoteProtocolError if there is none, as later answers could not be matched either.
        """
        if self._token is not None:
            # After SaslHandshake version 0, every frame is a token.
            self._token.set_result(frame[4:])
            self._token = None
            return
        if len(frame) < 8:
            raise RemoteProtocolError(f"an answer of {len(frame) - 4} bytes has no correlation id")
        (correlation_id,) = _read_int32(frame, 4)
        future = self._awaited.pop(self.match(correlation_id), None)
        if future is None:
            raise RemoteProtocolError(
                f"correlation id {correlation_id} answers none of {sorted(self._awaited)}"
            )
        if not future.done():
            future.set_result(frame)

    def match(self, correlation_id: int) -> int:
        """Return the request that an answer belongs to, by its correlation id."""
        return correlation_id

    # ---- outgoing requests -----------------------------------------------------------------------

    async def ask(self, body: Any, version: int | None = None) -> Any:
        """Send a request and return the answer's body.

        Raises UnsupportedVersionError if there is no common version.
        """
        await self.keep_quiet()
        if version is None:
            version = self.choose_version(body.API_KEY)
        frame = await self.exchange(body, version)
        answer = self.decode(frame, body.API_KEY, version)
        self.apply_throttle(getattr(answer, "throttle_time_ms", 0), body.API_KEY, version)
        return answer

    def choose_version(self, api_key: int) -> int:
        return choose_version(self.codec.apis[api_key], self.versions)

    async def exchange(self, body: Any, version: int) -> bytes:
        """Send a request and wait for the frame.

        If it is late, the connection is closed, as the late answer would be in the way of the next.
        """
        future = self.send(body, version)
        try:
            async with asyncio.timeout(self.timeout):
                return await future
        except TimeoutError:
            return await self.give_up(body)

    def send(self, body: Any, version: int) -> asyncio.Future[bytes]:
        writer = self._open_writer()
        correlation_id = self._correlation_id
        self._correlation_id += 1
        data = self.codec.encode_request(
            body, api_version=version, correlation_id=correlation_id, client_id=self.client_id
        )
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._awaited[correlation_id] = future
        writer.write(data)
        return future

    async def send_unanswered(self, body: Any) -> None:
        """Send a request that is not answered: Produce with acks 0."""
        await self.keep_quiet()
        future = self.send(body, self.choose_version(body.API_KEY))
        self._awaited = {
            number: each for number, each in self._awaited.items() if each is not future
        }
        writer = self._open_writer()
        await writer.drain()

    async def give_up(self, body: Any) -> bytes:
        error = TimedOutError(f"no answer to {type(body).__name__} in time")
        await self.close(error)
        raise error

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        """Decode a body. Raises DecodeError."""
        return self.codec.decode_response(frame, api_key=api_key, api_version=version)[1]

    # ---- quotas (KIP-219) ------------------------------------------------------------------------

    def apply_throttle(self, milliseconds: int, api_key: int, version: int) -> None:
        """Pause for as long as the broker asks; meanwhile it does not read."""
        if milliseconds > 0:
            self.quiet_until = asyncio.get_running_loop().time() + milliseconds / 1000

    async def keep_quiet(self) -> None:
        """Wait out a throttle, but never longer than a call may take."""
        left = self.quiet_until - asyncio.get_running_loop().time()
        if left > self.timeout:
            raise TimedOutError("the broker throttles for longer than the call may take")
        if left > 0:
            await asyncio.sleep(left)

    # ---- versions (KIP-35, KIP-511) --------------------------------------------------------------

    async def negotiate(self) -> None:
        """Ask for the broker's versions, at a lower version of ApiVersions if it does not know
        ours."""
        version: int | None = self.first_version()
        attempt = 0
        while version is not None:
            attempt += 1
            frame = await self.exchange(self.api_versions(), version)
            if _read_code(frame, 8)[0] != _UNSUPPORTED_VERSION:
                body = self.decode(frame, API_VERSIONS, version)
                if body.error_code:
                    raise BrokerError(body.error_code)
                self.versions = self.take_versions(body)
                rows = getattr(body, "finalized_features", None) or ()
                self.features = {each.name: each.max_version_level for each in rows}
                self.apply_throttle(getattr(body, "throttle_time_ms", 0), API_VERSIONS, version)
                return
            rows = advertised(self.read_refusal(frame))
            version = self.next_version(version, attempt, rows)
        raise BrokerError(_UNSUPPORTED_VERSION, "the broker refuses every version of ApiVersions")

    def first_version(self) -> int:
        return self.codec.apis[API_VERSIONS].valid_versions.highest

    def next_version(self, refused: int, attempt: int, rows: Mapping[int, Versions]) -> int | None:
        """Return the version to retry with; None gives up. The broker's row is used once, and only
        if it is lower."""
        return next_attempt(refused, attempt, rows)

    def read_refusal(self, frame: bytes) -> Any:
        """Decode error 35 at version 0, whatever version was requested (KIP-511)."""
        return self.decode(frame, API_VERSIONS, 0)

    def take_versions(self, body: Any) -> Mapping[int, Versions]:
        return advertised(body)

    def api_versions(self) -> Any:
        request: Any = self.codec.message("ApiVersionsRequest")
        return request(client_software_name="kspec-reference", client_software_version="1")

    # ---- authentication (KIP-43, KIP-152, KIP-368) -----------------------------------------------

    async def authenticate(self, sasl: SaslMechanism) -> None:
        """Authenticate. On an open session this starts a new one.

        Raises BrokerError with the broker's message, or the mechanism's error.
        """
        handshake: Any = self.codec.message("SaslHandshakeRequest")
        version = self.handshake_version()
        answer = await self.ask(handshake(mechanism=sasl.mechanism), version)
        if answer.error_code:
            offered = ", ".join(answer.mechanisms)
            raise BrokerError(answer.error_code, f"{sasl.mechanism} is none of {offered}")
        exchange = sasl.exchange()
        token = exchange(b"")
        while token is not None:
            token = exchange(await self.exchange_token(token, version))

    def handshake_version(self) -> int:
        """Send a token: raw after version 0 (KIP-43), in SaslAuthenticate after version 1."""
        version = self.choose_version(_SASL_HANDSHAKE)
        return version if _SASL_AUTHENTICATE in self.versions else 0

    async def exchange_token(self, token: bytes, handshake: int) -> bytes:
        """Exchange a token for the broker's."""
        if handshake == 0:
            return await self.exchange_raw_token(token)
        authenticate: Any = self.codec.message("SaslAuthenticateRequest")
        answer = await self.ask(authenticate(auth_bytes=token))
        if answer.error_code:
            raise BrokerError(answer.error_code, answer.error_message)
        self.set_session_end(getattr(answer, "session_lifetime_ms", 0))
        return bytes(answer.auth_bytes)

    async def exchange_raw_token(self, token: bytes) -> bytes:
        writer = self._open_writer()
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._token = future
        writer.write(encode_frame(token))
        try:
            async with asyncio.timeout(self.timeout):
                return await future
        except TimeoutError:
            return await self.give_up(token)

    def set_session_end(self, milliseconds: int) -> None:
        """Return the deadline for reauthentication, well before the broker would close
        (KIP-368)."""
        if milliseconds > 0:
            self.session_ends = asyncio.get_running_loop().time() + 0.85 * milliseconds / 1000

    @property
    def outlived(self) -> bool:
        return asyncio.get_running_loop().time() >= self.session_ends
