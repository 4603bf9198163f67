"""The reference client's side of SCRAM (RFC 5802, RFC 7677, KIP-84), each rule in a method.

The user's password is not sent, and the broker has to prove that it knows it, too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

from kproto.client.errors import SaslExchangeError
from kproto.client.sasl import Exchange

__all__ = ["Scram", "ScramExchange"]

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING: Final = "n,,"
_LEAST_ITERATIONS: Final = 4096
_MOST_ITERATIONS: Final = 1_000_000
"""Computing more would keep the event loop for longer than a call may take."""
_NONCE_BYTES: Final = 18


class ScramExchange:
    """The exchange on one connection. Every method raises SaslExchangeError."""

    def __init__(self, mechanism: str, username: str, password: str) -> None:
        self.hash = _HASHES[mechanism]
        self.username = username
        self.password = password
        self.nonce = self.new_nonce()
        self.client_first = f"n={self.escaped(username)},r={self.nonce}"
        self.server_signature = b""
        self._steps: list[Callable[[str], str | None]] = [self.first, self.prove, self.verify]

    def step(self, token: bytes) -> bytes | None:
        try:
            answer = self._steps.pop(0)(token.decode())
        except (UnicodeDecodeError, binascii.Error, IndexError):
            raise SaslExchangeError("the broker's SCRAM token cannot be read") from None
        return None if answer is None else answer.encode()

    def new_nonce(self) -> str:
        """Another one in each exchange, so that none can be replayed."""
        return base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()

    def escaped(self, name: str) -> str:
        """A comma would end the name."""
        return name.replace("=", "=3D").replace(",", "=2C")

    def prepared(self, password: str) -> bytes:
        """The password as both sides hash it (SASLprep)."""
        return unicodedata.normalize("NFKC", password).encode()

    # ---- the three messages ----------------------------------------------------------------------

    def first(self, _token: str) -> str:
        return _NO_CHANNEL_BINDING + self.client_first

    def prove(self, server_first: str) -> str:
        """Answer the broker's salt with a proof that the password is known."""
        found = self.attributes(server_first, "rsi")
        self.check_nonce(found["r"])
        iterations = self.iterations(found["i"])
        salt = base64.b64decode(found["s"], validate=True)
        binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={binding},r={found['r']}"
        signed = ",".join((self.client_first, server_first, without_proof)).encode()
        salted = hashlib.pbkdf2_hmac(self.hash, self.prepared(self.password), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        stored_key = hashlib.new(self.hash, client_key).digest()
        signature = hmac.digest(stored_key, signed, self.hash)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self.hash)
        self.server_signature = hmac.digest(server_key, signed, self.hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}"

    def verify(self, server_final: str) -> None:
        """The broker proves that it knows the password."""
        found = self.attributes(server_final, "v")
        signature = base64.b64decode(found["v"], validate=True)
        if not self.is_signature(signature):
            raise SaslExchangeError("the broker does not prove that it knows the password")

    # ---- what the broker says --------------------------------------------------------------------

    def attributes(self, text: str, wanted: str) -> Mapping[str, str]:
        """Return the attributes of a message, which begins with those that are wanted."""
        parts = [each.partition("=") for each in text.split(",")]
        self.check_extension(parts[0][0])
        names = [name for name, _, _ in parts]
        if names[: len(wanted)] != list(wanted):
            raise SaslExchangeError(f"the broker's SCRAM token has {names}, not {list(wanted)}")
        return {name: value for name, _, value in parts}

    def check_extension(self, name: str) -> None:
        """An extension that the client must know ends the exchange, as it knows none."""
        if name == "m":
            raise SaslExchangeError("the broker demands an extension of SCRAM")

    def check_nonce(self, nonce: str) -> None:
        """The broker appends to the client's nonce."""
        if not nonce.startswith(self.nonce) or len(nonce) == len(self.nonce):
            raise SaslExchangeError("the broker's nonce does not begin with the client's")

    def iterations(self, text: str) -> int:
        """Few make a stolen proof cheap to break, and too many take too long."""
        number = int(text) if text.isdigit() else 0
        if number < _LEAST_ITERATIONS:
            raise SaslExchangeError(f"{text} iterations of SCRAM are less than {_LEAST_ITERATIONS}")
        if number > _MOST_ITERATIONS:
            raise SaslExchangeError(f"{text} iterations of SCRAM are more than {_MOST_ITERATIONS}")
        return number

    def is_signature(self, signature: bytes) -> bool:
        return hmac.compare_digest(signature, self.server_signature)


class Scram:
    """SCRAM of one user. ``mechanism`` is SCRAM-SHA-256 or SCRAM-SHA-512."""

    exchange_type: type[ScramExchange] = ScramExchange

    def __init__(self, mechanism: str, username: str, password: str) -> None:
        self.mechanism = mechanism
        self.username = username
        self.password = password

    def exchange(self) -> Exchange:
        return self.exchange_type(self.mechanism, self.username, self.password).step
