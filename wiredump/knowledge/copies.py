"""Exchanges that were captured twice, before and after a translation of addresses (NAT)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Protocol

from wiredump.knowledge.excerpts import Excerpt
from wiredump.rows.exchanges import Row

__all__ = ["LONGEST_HOP_NS", "Copies", "Follower", "WithoutCopies"]

LONGEST_HOP_NS: Final = 50_000_000
"""How much later a packet may pass the second point of capture."""


class Follower(Protocol):
    """Makes the rows of a table. Takes the exchanges of its API keys, in the order of requests."""

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        """Return the rows that this exchange completes."""

    def end(self) -> Iterator[Row]:
        """Return the rows that are complete after the last exchange."""


class WithoutCopies:
    """Gives a follower the exchanges that are not copies."""

    def __init__(self, follower: Follower) -> None:
        self._follower, self._copies = follower, Copies()

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        if not self._copies.has(excerpt):
            yield from self._follower.feed(excerpt)

    def end(self) -> Iterator[Row]:
        yield from self._follower.end()


class Copies:
    """Takes exchanges in the order of requests, file by file.

    A copy is an exchange between other addresses at most ``LONGEST_HOP_NS`` later, with the same
    request and response, and as many bytes of requests before it. Two clients that begin alike look
    like one; what depends on several exchanges has names that they do not share (transactional ids,
    member ids).
    """

    def __init__(self) -> None:
        self._recent: deque[Excerpt] = deque()
        self._at: dict[int, list[Excerpt]] = {}

    def has(self, excerpt: Excerpt) -> bool:
        """Whether an exchange is a copy of one before. Another one is remembered."""
        now = excerpt.requested_ns
        if self._recent and self._recent[-1].requested_ns - now > LONGEST_HOP_NS:
            # Another file, which is older.
            self._recent.clear()
            self._at.clear()
        while self._recent and self._recent[0].requested_ns < now - LONGEST_HOP_NS:
            gone = self._recent.popleft()
            there = self._at[gone.request_offset]
            there.pop(0)
            if not there:
                del self._at[gone.request_offset]
        there = self._at.setdefault(excerpt.request_offset, [])
        if any(_is_copy(excerpt, each) for each in there):
            return True
        there.append(excerpt)
        self._recent.append(excerpt)
        return False


def _is_copy(later: Excerpt, earlier: Excerpt) -> bool:
    return (
        0 <= later.requested_ns - earlier.requested_ns <= LONGEST_HOP_NS
        and (later.client, later.broker) != (earlier.client, earlier.broker)
        and (later.api_key, later.api_version) == (earlier.api_key, earlier.api_version)
        and later.client_id == earlier.client_id
        and later.request == earlier.request
        and (later.response == earlier.response or None in (later.response, earlier.response))
    )
