"""A journal as text, with routine traffic folded: what a failed test shows of its cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kproto.dialects import Dialect
from kproto.journal import Entry, describe

__all__ = ["journal_lines"]

_ROUTINE_APIS = {3: "Metadata", 18: "ApiVersions"}
_ROUTINE_EVENTS = frozenset({"connected", "disconnected"})
_FEWEST = 6
"""Shorter runs are not folded."""


def journal_lines(
    entries: Iterable[Entry], codec_of: Callable[[Entry], Dialect | None], *, since_ns: int
) -> Iterator[str]:
    """Yield one line a frame. Connections, and requests that every client sends by itself, are
    counted: many in a row are one line. An entry that a fault or an error concerns is shown."""
    folded: list[Entry] = []
    for entry in entries:
        if _routine(entry) is not None:
            folded.append(entry)
            continue
        yield from _folded(folded, codec_of, since_ns)
        folded = []
        yield describe(entry, since_ns=since_ns, using=codec_of(entry))
    yield from _folded(folded, codec_of, since_ns)


def _routine(entry: Entry) -> str | None:
    """What the line of folded entries counts this one as; None if it is shown."""
    if entry.direction == "event":
        return entry.event if entry.event in _ROUTINE_EVENTS else None
    return None if entry.event or entry.api_key is None else _ROUTINE_APIS.get(entry.api_key)


def _folded(
    entries: list[Entry], codec_of: Callable[[Entry], Dialect | None], since_ns: int
) -> Iterator[str]:
    if len(entries) < _FEWEST:
        for entry in entries:
            yield describe(entry, since_ns=since_ns, using=codec_of(entry))
    else:
        counts = Counter(
            name
            for entry in entries
            if entry.direction != "response" and (name := _routine(entry)) is not None
        )
        seconds = (entries[0].timestamp_ns - since_ns) / 1e9
        each = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield f"{seconds:.3f} folded: {each or 'responses'}"
