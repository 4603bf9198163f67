"""Defects about authentication with SASL."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from kproto.client.sasl import Exchange, SaslMechanism
from kproto.error_codes import ErrorCode
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import BrokerError, Link

__all__: list[str] = []

_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_FAR_TOO_LONG: Final = 12.0
_INSISTENT: Final = 60
"""Number of attempts that shows that there would be no end."""


@defect("does-not-authenticate")
class DoesNotAuthenticate(Link):
    """Sends requests without authenticating."""

    async def authenticate(self, sasl: SaslMechanism) -> None:
        """Does not authenticate."""


class _Scram(Link):
    """Sees the broker's tokens before the mechanism does."""

    def on_token(self, token: bytes, sent: bytes) -> bytes | None:
        """Return the token for the mechanism, or None to accept and stop."""
        return token

    def own_token(self, token: bytes) -> bytes:
        """Return what is sent instead of the mechanism's own token."""
        return token

    async def authenticate(self, sasl: SaslMechanism) -> None:
        outer = self

        class Meddled:
            mechanism = sasl.mechanism

            def exchange(self) -> Exchange:
                inner, sent = sasl.exchange(), b""

                def step(received: bytes) -> bytes | None:
                    nonlocal sent
                    on_token = outer.on_token(received, sent)
                    if on_token is None:
                        return None
                    sent = outer.own_token(inner(on_token) or b"")
                    return sent or None

                return step

        await super().authenticate(Meddled())


@defect("trusts-the-broker")
class TrustsTheBroker(_Scram):
    """Accepts any final SCRAM message as proof that the broker knows the password."""

    def on_token(self, token: bytes, sent: bytes) -> bytes | None:
        return None if sent.startswith(b"c=") else token


@defect("takes-any-nonce")
class TakesAnyNonce(_Scram):
    """Continues SCRAM although the broker's nonce does not begin with its own."""

    def on_token(self, token: bytes, sent: bytes) -> bytes | None:
        ours = sent.rpartition(b"r=")[2]
        if not token.startswith(b"r=") or token.startswith(b"r=" + ours):
            return token
        return b"r=" + ours + b"x," + token.partition(b",")[2]


@defect("believes-in-its-mechanism")
class BelievesInItsMechanism(Link):
    """Continues with a mechanism that the broker refused."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        body = super().decode(frame, api_key, version)
        if api_key == _SASL_HANDSHAKE:
            body.error_code = 0
        return body


@defect("accepts-one-iteration")
class AcceptsOneIteration(_Scram):
    """Accepts any number of SCRAM iterations, however small."""

    def on_token(self, token: bytes, sent: bytes) -> bytes | None:
        # The proof uses another number then, but it only matters that one is sent.
        return re.sub(rb",i=\d{1,3}$", b",i=4097", token)


@defect("accepts-endless-iterations")
class AcceptsEndlessIterations(Client):
    """Accepts any number of SCRAM iterations, however large, and blocks its caller."""

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        reply = await super().call(op, arguments)
        if reply.get("kind") == "authentication" and "must not be >" in reply["message"]:
            await asyncio.sleep(_FAR_TOO_LONG)  # as if it were still computing
        return reply


@defect("outlives-its-session")
class OutlivesItsSession(Client):
    """Does not reauthenticate and fails its caller when the broker closes the connection."""

    class Forgetful(Link):
        def set_session_end(self, milliseconds: int) -> None:
            """Ignored."""

    link: type[Link] = Forgetful

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        if self.sasl is not None and str(problem) == "the broker closed the connection":
            return False
        return super().may_ask_again(problem, attempt)


@defect("insists-on-its-session")
class InsistsOnItsSession(Client):
    """Retries without a pause, on a new connection each time, if it may not reauthenticate."""

    async def renew(self, link: Link, sasl: SaslMechanism) -> None:
        address = next(where for where, each in self.links.items() if each is link)
        refused: BrokerError | None = None
        for _ in range(_INSISTENT):
            try:
                if refused is None:
                    return await link.authenticate(sasl)
                link = self.link(client_id=self.client_id, timeout=self.timeout, sasl=sasl)
                self.links[address] = link
                return await link.open(*address, self.tls)
            except BrokerError as problem:
                await link.close()
                refused = problem
        raise refused or AssertionError


@defect("frames-its-tokens")
class FramesItsTokens(Link):
    """Sends SaslAuthenticate after a version 0 handshake, which requires raw tokens."""

    async def exchange_raw_token(self, token: bytes) -> bytes:
        authenticate: Any = self.codec.message("SaslAuthenticateRequest")
        frame = await self.exchange(authenticate(auth_bytes=token), 1)
        return bytes(self.decode(frame, _SASL_AUTHENTICATE, 1).auth_bytes)


@defect("accepts-an-empty-signature")
class AcceptsAnEmptySignature(_Scram):
    """Compares only as many bytes of the broker's signature as were sent, so an empty one
    passes."""

    def on_token(self, token: bytes, sent: bytes) -> bytes | None:
        return None if sent.startswith(b"c=") and token == b"v=" else token


@defect("does-not-escape-its-name")
class DoesNotEscapeItsName(_Scram):
    """Does not escape commas and equals signs of the user name in SCRAM."""

    def own_token(self, token: bytes) -> bytes:
        return token.replace(b"=2C", b",").replace(b"=3D", b"=") if b"n=" in token else token


@defect("writes-passwords-in-latin-1")
class WritesPasswordsInLatin1(_Scram):
    """Encodes PLAIN's message as Latin-1 instead of UTF-8."""

    def own_token(self, token: bytes) -> bytes:
        return token.decode().encode("latin-1") if token.startswith(b"\0") else token


@defect("goes-on-unauthenticated")
class GoesOnUnauthenticated(Link):
    """Sends its requests although the broker refused the handshake."""

    async def authenticate(self, sasl: SaslMechanism) -> None:
        try:
            await super().authenticate(sasl)
        except BrokerError as refused:
            if refused.code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                raise
