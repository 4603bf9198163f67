"""Which exchanges get rows, decided before anything of them is decoded."""

from __future__ import annotations

from typing import Final

import msgspec

from wiredump.model import Exchange

__all__ = ["FILTERED", "ExchangeFilter"]

FILTERED: Final = frozenset({"frames", "requests", "bodies", "batches", "records"})
"""Tables each of whose rows belongs to one exchange."""

_MOST: Final = 2**63 - 1


class ExchangeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Lets exchanges pass with one of ``api_keys`` and ``connections`` (ids); None: any. Between
    its first and its last byte, an exchange must be within ``since_ns`` and ``until_ns``. Those of
    which other exchanges' rows need something, such as a topic's name, may pass, too."""

    api_keys: tuple[int, ...] | None = None
    connections: tuple[int, ...] | None = None
    since_ns: int = -_MOST
    until_ns: int = _MOST

    def passes(self, item: Exchange) -> bool:
        frames = [each for each in (item.request, item.response) if each is not None]
        return (
            (self.api_keys is None or item.api_key in self.api_keys)
            and (self.connections is None or item.connection.id in self.connections)
            and min(each.first_ns for each in frames) <= self.until_ns
            and max(each.last_ns for each in frames) >= self.since_ns
        )

    def also(
        self, *, api_keys: frozenset[int] | None = None, connections: frozenset[int] | None = None,
        since_ns: int = -_MOST, until_ns: int = _MOST,
    ) -> ExchangeFilter:  # fmt: skip
        """Return a filter that lets pass what passes both."""
        return ExchangeFilter(
            api_keys=_both(self.api_keys, api_keys),
            connections=_both(self.connections, connections),
            since_ns=max(self.since_ns, since_ns),
            until_ns=min(self.until_ns, until_ns),
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing passes."""
        return () in (self.api_keys, self.connections) or self.since_ns > self.until_ns


def _both(one: tuple[int, ...] | None, other: frozenset[int] | None) -> tuple[int, ...] | None:
    if one is None or other is None:
        return tuple(sorted(other)) if one is None and other is not None else one
    return tuple(sorted(other.intersection(one)))
