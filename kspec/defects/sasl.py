"""Defects about authentication with SASL."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from kproto.client.sasl import Exchange, SaslMechanism, SaslPlain
from kproto.error_codes import ErrorCode
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import BrokerError, Link
from kspec.reference_client.scram import Scram, ScramExchange

__all__: list[str] = []

_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_FAR_TOO_LONG: Final = 12.0
_FEW: Final = 4096
_INSISTENT: Final = 60
"""Number of attempts that shows that there would be no end."""


@defect("does-not-authenticate")
class DoesNotAuthenticate(Link):
    """Sends requests without authenticating."""

    async def authenticate(self, sasl: SaslMechanism) -> None:
        """Does not authenticate."""


@defect("trusts-the-broker")
class TrustsTheBroker(ScramExchange):
    """Accepts any final SCRAM message as proof that the broker knows the password."""

    def verify(self, server_final: str) -> None:
        """Nothing."""


@defect("takes-any-nonce")
class TakesAnyNonce(ScramExchange):
    """Continues SCRAM although the broker's nonce does not begin with its own."""

    def check_nonce(self, nonce: str) -> None:
        """Nothing."""


@defect("compares-half-a-signature")
class ComparesHalfASignature(ScramExchange):
    """Compares only the first half of the broker's signature."""

    def is_signature(self, signature: bytes) -> bool:
        half = len(self.server_signature) // 2
        return signature[:half] == self.server_signature[:half]


@defect("takes-the-beginning-of-a-signature")
class TakesTheBeginningOfASignature(ScramExchange):
    """Compares as many bytes of the broker's signature as were sent."""

    def is_signature(self, signature: bytes) -> bool:
        return bool(signature) and self.server_signature.startswith(signature)


@defect("ignores-a-mandatory-extension")
class IgnoresAMandatoryExtension(ScramExchange):
    """Goes on although the broker demands an extension of SCRAM."""

    def attributes(self, text: str, wanted: str) -> Mapping[str, str]:
        return super().attributes(re.sub(r"^m=[^,]*,", "", text), wanted)


@defect("believes-in-its-mechanism")
class BelievesInItsMechanism(Link):
    """Continues with a mechanism that the broker refused."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        body = super().decode(frame, api_key, version)
        if api_key == _SASL_HANDSHAKE:
            body.error_code = 0
        return body


@defect("accepts-one-iteration")
class AcceptsOneIteration(ScramExchange):
    """Accepts any number of SCRAM iterations, however small."""

    def iterations(self, text: str) -> int:
        return int(text) if int(text) < _FEW else super().iterations(text)


@defect("accepts-endless-iterations")
class AcceptsEndlessIterations(Client):
    """Accepts any number of SCRAM iterations, however large, and blocks its caller."""

    async def call(self, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        reply = await super().call(op, arguments)
        if reply.get("kind") == "authentication" and "more than" in reply["message"]:
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
class AcceptsAnEmptySignature(ScramExchange):
    """Compares only as many bytes of the broker's signature as were sent, so an empty one
    passes."""

    def is_signature(self, signature: bytes) -> bool:
        return not signature or super().is_signature(signature)


@defect("does-not-escape-its-name")
class DoesNotEscapeItsName(ScramExchange):
    """Does not escape commas and equals signs of the user name in SCRAM."""

    def escaped(self, name: str) -> str:
        return name


class LatinExchange(ScramExchange):
    """Prepares passwords as Latin-1."""

    def prepared(self, password: str) -> bytes:
        return password.encode("latin-1")


@defect("writes-passwords-in-latin-1")
class WritesPasswordsInLatin1(Client):
    """Encodes passwords as Latin-1 instead of UTF-8."""

    class Plain(SaslPlain):
        def exchange(self) -> Exchange:
            tokens = [f"\0{self.username}\0{self.password}".encode("latin-1")]
            return lambda _received: tokens.pop() if tokens else None

    class Latin(Scram):
        exchange_type = LatinExchange

    def mechanism(self, wanted: Mapping[str, str]) -> SaslMechanism:
        kind = self.Plain if wanted["mechanism"] == "PLAIN" else None
        if kind is not None:
            return kind(wanted["username"], wanted["password"])
        return self.Latin(wanted["mechanism"], wanted["username"], wanted["password"])


@defect("goes-on-unauthenticated")
class GoesOnUnauthenticated(Link):
    """Sends its requests although the broker refused the handshake."""

    async def authenticate(self, sasl: SaslMechanism) -> None:
        try:
            await super().authenticate(sasl)
        except BrokerError as refused:
            if refused.code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                raise
