"""Complete a run whose tasks wrote their files: what depends on several connections, the tables of
the whole run, and publishing.

Tasks run in processes of ours (``jobs``) or in a cluster (``wiredump.spark.job``); this module does
not know where. It gets their manifests, never rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from wiredump.rows.connections import account_rows, lineage_rows
from wiredump.rows.schema import TABLES
from wiredump.storage import Location
from wiredump.tables.deferred_merge import gather_names, give_names
from wiredump.tables.deferred_rows import EXCERPTS, NAMED, unnamed
from wiredump.tables.parts import Manifest, PartWriter
from wiredump.tables.publishing import STAGING, Part

__all__ = ["RUN_TABLES", "LastTasks", "Parts", "complete", "written_tables"]

RUN_TABLES: Final = ("lineage", "account")
"""Tables of the whole run, with a few rows."""

Parts: TypeAlias = Mapping[str, Part]
"""Files by table."""


class LastTasks(Protocol):
    """Runs the tasks of the last stage."""

    def each(self, task: Callable[[Any], Manifest], items: Sequence[Any]) -> list[Manifest]:
        """Run ``task`` for each item."""

    def followed(self, files: Sequence[Location]) -> list[Manifest]:
        """Write the tables of ``knowledge.following`` from the exchanges kept in ``files``."""


class Publishing(Protocol):
    """Makes the files of a run visible."""

    def publish(self, tables: Iterable[str], parts: Iterable[Parts]) -> None:
        """Publish the files of tasks, by table."""


def written_tables(tables: Iterable[str]) -> list[str]:
    """Return the tables of a run on Spark, which always has those of the whole run."""
    wanted = {*tables, *RUN_TABLES}
    return [name for name in TABLES if name in wanted]


def complete(
    folder: str,
    manifests: Sequence[Manifest],
    tasks: LastTasks,
    publication: Publishing,
    *,
    tables: Sequence[str],
    names: bool,
    lineage: Iterable[tuple[Any, ...]],
    account: Mapping[str, int],
    divide: Callable[[list[Parts]], list[Parts]] = lambda parts: parts,
) -> dict[str, int]:
    """Write what is left of ``tables``, publish them, and return their rows. ``names``: topic names
    are needed; ``divide`` changes files before they are published."""
    merged = _merge(folder, manifests, tasks, names)
    last = PartWriter(folder, RUN_TABLES, len(manifests))
    last.add(lineage_rows(lineage))
    last.add(account_rows(account))
    parts: list[Parts] = [
        {name: part for name, part in each.parts.items() if name in tables}
        for each in (*manifests, *merged, last.manifest())
    ]
    publication.publish(tables, divide(parts))
    return {name: sum(each[name].rows for each in parts if name in each) for name in tables}


def _merge(
    folder: str, manifests: Sequence[Manifest], tasks: LastTasks, names: bool
) -> list[Manifest]:
    """Write the files that depend on what tasks set aside; those of ``topics`` are replaced."""
    found: list[Manifest] = []
    learnt = [each.parts.pop("topics").file for each in manifests if "topics" in each.parts]
    if names:
        found += tasks.each(partial(_gather, folder), [learnt])
    wanting = [
        (name, each.parts[unnamed(name)].file)
        for name in NAMED
        for each in manifests
        if unnamed(name) in each.parts
    ]
    if wanting:
        found += tasks.each(partial(_give, folder), wanting)
    staging = Location(folder) / STAGING / EXCERPTS
    excerpts = [staging / each.parts[EXCERPTS].file for each in manifests if EXCERPTS in each.parts]
    if excerpts:
        found += tasks.followed(excerpts)
    return found


def _gather(folder: str, files: Sequence[str]) -> Manifest:
    return gather_names(folder, files, 0)


def _give(folder: str, file: tuple[str, str]) -> Manifest:
    return give_names(folder, *file)
