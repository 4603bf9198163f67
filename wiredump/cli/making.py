"""Write the tables of sources to a folder, in one process or in several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from kproto.cli.dialect_option import named_dialect

if TYPE_CHECKING:
    from wiredump.tables.jobs import Work
    from wiredump.tables.making import Made

__all__ = ["jobs_option", "make", "processes_for"]

jobs_option = click.option(
    "--jobs", type=click.IntRange(0), default=1, show_default=True, metavar="N",
    help="Number of processes that share the connections, at most; 0 means one for each processor. "
         "Small captures and a single connection are read by one.",
)  # fmt: skip


def processes_for(paths: Sequence[str], jobs: int) -> int:
    """Return how many processes to use, and prepare them. Raises OSError."""
    if jobs == 1:
        return 1
    from wiredump.tables.processes import prepare, usable_cores
    from wiredump.tables.useful_processes import useful_processes

    number = useful_processes(paths, jobs or usable_cores())
    if number > 1:
        prepare()
    return number


def make(
    work: Work, jobs: int, progress: Callable[[int], object], *, rotated: bool = False
) -> Made:
    """Write the tables of ``work`` with so many processes (``processes_for``).

    Raises what readers and writers raise.
    """
    if jobs != 1:
        from wiredump.tables.jobs import make_tables_in_processes

        return make_tables_in_processes(work, jobs, progress)
    from wiredump.sources import open_sources
    from wiredump.tables.making import make_tables
    from wiredump.tables.table_rows import TableRows

    codec = named_dialect(work.dialect)
    rows = TableRows(
        codec, tables=work.tables, bodies=work.bodies, values=work.values, secrets=work.secrets
    )
    sources = open_sources(
        work.paths, codec=codec, ports=frozenset(work.ports), rotated=rotated,
        keylog=work.keylog, zone=work.zone, memory=work.memory, progress=progress,
    )  # fmt: skip
    return make_tables(sources, rows, work.out, work.tables, run=work.run, mode=work.mode)
