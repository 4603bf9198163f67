"""Exchanges that were captured twice, before and after a translation of addresses (NAT)."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

import msgspec

from wiredump.knowledge.excerpts import Excerpt

__all__ = ["LONGEST_HOP_NS", "MOST_POINTS", "Copies"]

LONGEST_HOP_NS: Final = 50_000_000
"""How much later a packet may pass the second point of capture."""

MOST_POINTS: Final = 3
"""Of capture, with two translations between them. What more clients say at a time is not a copy."""

_Key: TypeAlias = tuple[int, int, int, str | None, bytes]
_Addresses: TypeAlias = tuple[str, str]
"""Of the client and the broker."""


class Copies:
    """Takes exchanges in the order of requests, file by file.

    A copy is an exchange between other addresses at most ``LONGEST_HOP_NS`` later, with the same
    request and response, and as many bytes of requests before it. Two clients that begin alike look
    like one; what depends on several exchanges has names that they do not share (transactional ids,
    member ids).
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, _Key, _Addresses]] = deque()
        self._at: dict[_Key, dict[_Addresses, Excerpt]] = {}

    def has(self, excerpt: Excerpt) -> bool:
        """Whether an exchange is a copy of one before. Another one is remembered."""
        now = excerpt.requested_ns
        if self._recent and self._recent[-1][0] - now > LONGEST_HOP_NS:
            # Another file, which is older.
            self._recent.clear()
            self._at.clear()
        while self._recent and self._recent[0][0] < now - LONGEST_HOP_NS:
            self._forget(*self._recent.popleft())
        key, addresses = _key(excerpt), (excerpt.client, excerpt.broker)
        there = self._at.setdefault(key, {})
        for others, earlier in there.items():
            if others != addresses and _may_be_copy(excerpt, earlier):
                return True
        if len(there) < MOST_POINTS or addresses in there:
            there[addresses] = excerpt
            self._recent.append((now, key, addresses))
        return False

    def _forget(self, requested_ns: int, key: _Key, addresses: _Addresses) -> None:
        there = self._at.get(key, {})
        found = there.get(addresses)
        if found is not None and found.requested_ns == requested_ns:
            del there[addresses]
            if not there:
                del self._at[key]


def _key(excerpt: Excerpt) -> _Key:
    """What a copy has in common with its original."""
    return (
        excerpt.request_offset, excerpt.api_key, excerpt.api_version, excerpt.client_id,
        msgspec.json.encode(excerpt.request),
    )  # fmt: skip


def _may_be_copy(later: Excerpt, earlier: Excerpt) -> bool:
    is_in_time = 0 <= later.requested_ns - earlier.requested_ns <= LONGEST_HOP_NS
    return is_in_time and (
        later.response == earlier.response or None in (later.response, earlier.response)
    )
