"""Secrets of TLS connections from a key log: NSS's SSLKEYLOGFILE format, one secret per line.

This module knows the text, but not the use of secrets. A log may grow while it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kproto.errors import KprotoError

__all__ = ["KeyLog", "KeyLogError"]

_LENGTHS: Final = {
    "CLIENT_RANDOM": (48,),
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET": (32, 48),
    "SERVER_HANDSHAKE_TRAFFIC_SECRET": (32, 48),
    "CLIENT_TRAFFIC_SECRET_0": (32, 48),
    "SERVER_TRAFFIC_SECRET_0": (32, 48),
}
"""The labels that are used, and the lengths of their secrets. A log has others, which are not
needed."""

_RANDOM_LENGTH: Final = 32


class KeyLogError(KprotoError):
    """A file is not a key log, or has an invalid line. The message has the place, never the
    secret."""


class KeyLog:
    """``add`` text, then look up secrets. ``more`` returns the text that was appended since it was
    last called; it is called if a secret is missing. ``close`` closes its source."""

    def __init__(
        self, more: Callable[[], str] | None = None, close: Callable[[], None] | None = None
    ) -> None:
        self._close = close
        self._secrets: dict[tuple[str, bytes], bytes] = {}
        self._more = more
        self._rest = ""

    def close(self) -> None:
        """Stop reading a log that grows."""
        self._more = None
        if self._close is not None:
            self._close()

    def __len__(self) -> int:
        """The number of secrets."""
        return len(self._secrets)

    def __bool__(self) -> bool:
        """Whether there are secrets, or may be later."""
        return bool(self._secrets) or self.grows

    @property
    def grows(self) -> bool:
        """Whether a missing secret may still come."""
        return self._more is not None

    def add(self, text: str, source: str = "") -> None:
        """Add lines. With ``source``, the name of the log, raises KeyLogError for an invalid line;
        otherwise such lines are skipped. A last line without an end is kept until the rest of it
        comes."""
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        for number, line in enumerate(lines, 1):
            if not self._take(line) and source:
                raise KeyLogError(f"{source}, line {number}: not a line of a key log")

    def end(self) -> None:
        """End the last line, to which nothing is appended any more."""
        self._take(self._rest)
        self._rest = ""

    def secret(self, label: str, client_random: bytes) -> bytes | None:
        """Return a secret of the connection with this ClientHello random; None if it is unknown."""
        found = self._secrets.get((label, client_random))
        if found is None and self._more is not None:
            self.add(self._more())
            found = self._secrets.get((label, client_random))
        return found

    def _take(self, line: str) -> bool:
        """Add a line. Returns whether it is valid, even if it is not needed."""
        label, *values = line.split() or [""]
        lengths = _LENGTHS.get(label)
        if lengths is None:
            return not label or label.startswith("#") or _is_label(label)
        if len(values) != 2:
            return False
        try:
            random, secret = map(bytes.fromhex, values)
        except ValueError:
            return False
        if len(random) != _RANDOM_LENGTH or len(secret) not in lengths:
            return False
        self._secrets[label, random] = secret
        return True


def _is_label(word: str) -> bool:
    return re.fullmatch("[A-Z][A-Z0-9_]*", word) is not None
