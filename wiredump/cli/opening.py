"""Open the sources that a command line names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Protocol

from kproto.dialects import Dialect
from wiredump.model import Connection, Item
from wiredump.sources import open_sources

__all__ = ["Source", "open_items"]


class Source(Protocol):
    """Yields items in the order in which they became known; a source that follows a growing file
    blocks until there is another one.

    After the last item, ``account`` has the bytes by where they went, and ``unread`` the captures
    without TCP, each with the reason. ``connections`` are those met so far, by number.
    """

    def __iter__(self) -> Iterator[Item]: ...

    @property
    def account(self) -> Mapping[str, int]: ...

    @property
    def unread(self) -> Mapping[str, str]: ...

    @property
    def connections(self) -> Mapping[int, Connection]: ...


def open_items(
    paths: Sequence[str],
    *,
    codec: Dialect,
    ports: frozenset[int],
    follow: bool,
    keylog: str | None,
    zone: tzinfo,
    memory: int | None,
    progress: Callable[[int], object],
) -> Source:
    """Open the sources. Raises KprotoError or OSError if one cannot be opened."""
    return open_sources(
        paths,
        codec=codec,
        ports=ports,
        follow=follow,
        keylog=keylog,
        zone=zone,
        memory=memory,
        progress=progress,
    )
