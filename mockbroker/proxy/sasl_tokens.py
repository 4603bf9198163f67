"""SASL through a proxy: which frames are raw tokens. No I/O.

SaslHandshake 0 is followed by raw tokens, which are frames without a header; SaslHandshake 1 by
SaslAuthenticate requests. Nothing on the wire marks the last raw token, so the mechanism decides
how many there are.
"""

from __future__ import annotations

from typing import Any, Final

from kproto.dialects import Dialect
from kproto.framing import SIZE_LENGTH

__all__ = ["SASL_AUTHENTICATE", "SASL_HANDSHAKE", "SaslPassage"]

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36

_TOKENS: Final = {"PLAIN": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2, "OAUTHBEARER": 1}
"""How many tokens a client sends."""


class SaslPassage:
    """What of one connection's authentication passes through."""

    def __init__(self, codec: Dialect) -> None:
        self.mechanism: str | None = None
        """The mechanism of the last SaslHandshake."""
        self._codec = codec
        self._left: int | None = 0
        """Raw tokens that the client still sends; None if that is not known."""

    def handshake(self, body: Any) -> None:
        """The client has sent a SaslHandshake."""
        self.mechanism = body.mechanism

    def accepted(self, version: int) -> None:
        """The upstream has accepted the SaslHandshake of this version."""
        if version == 0:
            self._left = _TOKENS.get(self.mechanism or "")

    def is_token(self, data: bytes, at: int) -> bool:
        """Whether the frame that the client sends at this offset is a raw token."""
        if self._left is None and self._is_request(data, at):
            self._left = 0
        if not self._left:
            return self._left is None
        self._left -= 1
        return True

    def _is_request(self, data: bytes, at: int) -> bool:
        """Whether the bytes begin like a request of a known API and version."""
        start = at + SIZE_LENGTH
        api = self._codec.apis.get(int.from_bytes(data[start : start + 2], "big", signed=True))
        version = int.from_bytes(data[start + 2 : start + 4], "big", signed=True)
        return api is not None and version in api.valid_versions
