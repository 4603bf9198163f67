"""Collect the requests of each client from captures, in one process or in several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from kproto.errors import KprotoError
from wiredump.audit import Observed
from wiredump.model import Exchange
from wiredump.readers.share import Share
from wiredump.rows.exchanges import rows_of
from wiredump.rows.schema import TABLES
from wiredump.sources import open_sources
from wiredump.sources.kinds import kind_of
from wiredump.tables.processes import Progress, share_out, usable_cores

__all__ = ["Traffic", "observed_in_processes", "observed_within"]

_API_VERSIONS = 18


class Traffic(NamedTuple):
    """The clients observed; ``account`` and ``unread`` are those of ``Sources``."""

    observed: Observed
    account: dict[str, int]
    unread: dict[str, str]

    def merge(self, other: Traffic) -> None:
        """Add other connections, or other sources."""
        self.observed.merge(other.observed)
        for name, count in other.account.items():
            self.account[name] = self.account.get(name, 0) + count
        self.unread.update(other.unread)


def observed_within(paths: Sequence[str], **options: Any) -> Traffic:
    """Read in this process. ``options`` are those of ``open_sources``.

    Raises UnaccountedError or AccountError if bytes are unaccounted for, which is a bug.
    """
    observed = Observed()
    names = {table: [each.name for each in TABLES[table].columns] for table in observed.TABLES}
    sources = open_sources(paths, **options)
    for item in sources:
        if not isinstance(item, Exchange):
            continue
        # Only the bodies of ApiVersions matter: they have the versions that brokers offered.
        for table, row in rows_of(item, bodies=item.api_key == _API_VERSIONS):
            if table in names:
                observed.add(table, dict(zip(names[table], row, strict=True)))
    return Traffic(observed, dict(sources.account), dict(sources.unread))


def observed_in_processes(
    paths: Sequence[str], jobs: int, progress: Progress, *, memory: int | None = None,
    **options: Any,
) -> Traffic:  # fmt: skip
    """Read in ``jobs`` processes (0: one for each processor).

    Each process reads all captures and takes its share of the connections. ``memory`` is the limit
    of all processes together.
    """
    if "-" in paths:
        raise KprotoError("only one process can read standard input: leave out --jobs")
    captures = [number for number, path in enumerate(paths) if kind_of(path) == "capture"]
    count = jobs or usable_cores()
    options["memory"] = None if memory is None else memory // count
    found = Traffic(Observed(), {}, {})
    for each in share_out(partial(_share_of, paths, captures, options), count, progress):
        found.merge(each)
    return found


def _share_of(
    paths: Sequence[str], captures: Sequence[int], options: dict[str, Any], share: Share,
    progress: Progress,
) -> Traffic:  # fmt: skip
    traffic = Traffic(Observed(), {}, {})
    texts = [number for number in range(len(paths)) if number not in captures]
    wanted = [(captures, share)] if captures else []
    if share.is_first:
        wanted += [([number], Share(0, 1)) for number in texts]
    for numbers, mine in wanted:
        chosen = [paths[number] for number in numbers]
        arguments = {"numbers": numbers, "share": mine, "progress": progress, **options}
        traffic.merge(observed_within(chosen, **arguments))
    return traffic
