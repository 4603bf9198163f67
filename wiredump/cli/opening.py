"""From paths on a command line to items: the one place where commands meet ``wiredump.sources``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Protocol

from kproto.dialects import Dialect
from wiredump.model import Connection, Item
from wiredump.sources import open_sources

__all__ = ["Source", "open_items"]


class Source(Protocol):
    """Items in the order in which they became known. One that follows a growing file blocks until
    there is another. ``account`` says, when the items have ended, where the bytes went: whatever it
    counts, by name; ``unread`` which captures have no TCP, and why. ``connections`` are those met
    so far, by their numbers."""

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
    """Raises KprotoError or OSError for what cannot be opened."""
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
