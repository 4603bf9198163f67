"""OAUTHBEARER (RFC 7628, KIP-255) by the rules, each in a method that a defect may break.

The application gives tokens. One is used until shortly before it expires.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kproto.client.errors import SaslExchangeError
from kproto.client.sasl import Exchange

__all__ = ["Bearer"]

_SEPARATOR: Final = b"\x01"
_EARLY_SECONDS: Final = 1.0
"""So long before a token expires another one is asked for."""


class Bearer:
    """The mechanism of one client."""

    mechanism: ClassVar[str] = "OAUTHBEARER"

    def __init__(self, tokens: Sequence[Mapping[str, Any] | None]) -> None:
        """``tokens`` are what the application gives, one after the other; None is a failure."""
        self.tokens = list(tokens)
        self.current: Mapping[str, Any] | None = None

    def exchange(self) -> Exchange:
        """Begin an exchange. Raises SaslExchangeError if there is no token."""
        tokens = [self.first_message(self.token())]

        def step(received: bytes) -> bytes | None:
            if tokens:
                return tokens.pop()
            return self.after_answer(received)

        return step

    def first_message(self, token: str) -> bytes:
        parts = [b"n,,", f"auth=Bearer {token}".encode(), b"", b""]
        return _SEPARATOR.join(parts)

    def after_answer(self, received: bytes) -> bytes | None:
        """An answer that is not empty is an error, which the client acknowledges, so that the
        exchange fails (RFC 7628)."""
        return _SEPARATOR if received else None

    def token(self) -> str:
        """Return a token that has not expired."""
        if self.current is None or self.expires_soon(self.current):
            self.current = self.next_token()
        if self.current is None:
            raise SaslExchangeError("there is no token")
        return str(self.current["token"])

    def expires_soon(self, token: Mapping[str, Any]) -> bool:
        return bool(time.time() >= token["expires_ms"] / 1000 - _EARLY_SECONDS)

    def next_token(self) -> Mapping[str, Any] | None:
        return self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
