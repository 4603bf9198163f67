"""Who asked what, out of captures: by this process, or by several that share out connections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kproto.errors import KprotoError
from wiredump.audit import Observed
from wiredump.model import Exchange
from wiredump.readers.share import Share
from wiredump.rows.exchanges import rows_of
from wiredump.rows.schema import TABLES
from wiredump.sources import open_sources
from wiredump.sources.opening import kind_of
from wiredump.tables.processes import Progress, share_out, usable_cores

__all__ = ["observed_together", "observed_within"]

_API_VERSIONS = 18


def observed_within(paths: Sequence[str], **options: Any) -> Observed:
    """By one process; ``options`` are those of ``open_sources``."""
    observed = Observed()
    names = {table: [each.name for each in TABLES[table].columns] for table in observed.TABLES}
    for item in open_sources(paths, alone=True, **options):
        if not isinstance(item, Exchange):
            continue
        # Bodies matter of ApiVersions alone: they are what was offered.
        for table, row in rows_of(item, bodies=item.api_key == _API_VERSIONS):
            if table in names:
                observed.add(table, dict(zip(names[table], row, strict=True)))
    return observed


def observed_together(
    paths: Sequence[str], jobs: int, progress: Progress, *, memory: int | None = None,
    **options: Any,
) -> Observed:  # fmt: skip
    """The same by so many processes (0: one a processor). Each reads all captures and takes some of
    the connections. ``memory`` is for all of them."""
    if "-" in paths:
        raise KprotoError("standard input can be read by one process only: leave out --jobs")
    captures = [number for number, path in enumerate(paths) if kind_of(path) == "capture"]
    count = jobs or usable_cores()
    options["memory"] = None if memory is None else memory // count
    found = Observed()
    for each in share_out(partial(_share_of, paths, captures, options), count, progress):
        found.merge(each)
    return found


def _share_of(
    paths: Sequence[str], captures: Sequence[int], options: dict[str, Any], share: Share,
    progress: Progress,
) -> Observed:  # fmt: skip
    observed = Observed()
    texts = [number for number in range(len(paths)) if number not in captures]
    wanted = [(captures, share)] if captures else []
    if share.is_first:
        wanted += [([number], Share(0, 1)) for number in texts]
    for numbers, mine in wanted:
        chosen = [paths[number] for number in numbers]
        told = {"numbers": numbers, "share": mine, "progress": progress, **options}
        observed.merge(observed_within(chosen, **told))
    return observed
