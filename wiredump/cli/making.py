"""Write the tables of sources to a folder, in one process or in several."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from kproto.cli.dialect_option import named_dialect
from kproto.errors import KprotoError
from wiredump.cli.damage import Purpose, check_read
from wiredump.cli.progress import reading
from wiredump.cli.source_options import SourceOptions
from wiredump.questions.twins import FOLDED
from wiredump.skipped import lacks_requests
from wiredump.tables.work import Work, passing_folder

if TYPE_CHECKING:
    from wiredump.tables.making import Made

__all__ = ["folder_among", "make", "processes_for", "require_tables", "tables_of_sources"]


def folder_among(sources: Sequence[str]) -> str | None:
    """Return the source that is a folder of tables. Raises click.UsageError unless it is the only
    source."""
    folder = next((path for path in sources if os.path.isdir(path)), None)
    if folder is not None and len(sources) > 1:
        raise click.UsageError(f"{folder} is a folder of tables and must be the only source")
    return folder


def require_tables(folder: str, tables: Sequence[str]) -> None:
    """Raise KprotoError unless a folder has these tables."""
    from wiredump.tables.reading import TableFolder

    found = TableFolder(folder)
    missing = [name for name in tables if name not in found.names]
    if missing:
        raise KprotoError(f"{folder} lacks {', '.join(missing)}: write the tables again with them")


@contextmanager
def tables_of_sources(
    sources: tuple[str, ...], tables: tuple[str, ...], options: SourceOptions,
    purpose: Purpose | None = None,
) -> Iterator[tuple[str, Mapping[str, int]]]:  # fmt: skip
    """Yield a folder of tables, and the account of the captures. It is the folder that is the only
    source, without an account, or a temporary one with these ``tables``. In the end, say what was
    not read (``check_read``).

    Raises what reading sources raises, and NothingReadError at the end if a capture has no TCP. If
    no request was read, nothing is yielded for a ``purpose``.
    """
    folder = folder_among(sources)
    if folder is not None:
        known = _known(folder, purpose)
        yield folder, {}
        check_read({}, known)
        return
    from wiredump.storage import Location

    for path in sources:
        if path != "-" and not Location(path).exists():
            raise KprotoError(f"{path} does not exist: name captures, or a folder of tables")
    named_dialect(options.dialect_name)  # fails for an unknown dialect before anything is read
    if not FOLDED.isdisjoint(tables):
        tables = tuple(dict.fromkeys(("connections", *tables)))  # which tell the twins
    with passing_folder() as folder:
        work = Work(
            out=folder, paths=dict(enumerate(sources)), tables=tables, run="this",
            **options.of_work,
        )  # fmt: skip
        with reading(sources) as progress:
            made = make(work, processes_for(work, options.jobs), progress)
        if purpose is not None and lacks_requests(made.account):
            check_read(made.unread, made.account, purpose)
        yield folder, made.account
    check_read(made.unread, made.account)


def _known(folder: str, purpose: Purpose | None) -> Mapping[str, int]:
    """Return the bytes that were read for a folder of tables, and not. Raises NothingJudgedError if
    its tables have no request."""
    from wiredump.questions.accounts import account_of_tables
    from wiredump.questions.database import FolderTables

    account = account_of_tables(FolderTables(folder))
    if purpose is not None and lacks_requests(account):
        check_read({}, account, purpose)
    return account


def processes_for(work: Work, jobs: int) -> int:
    """Return how many processes to use, and prepare them. Raises OSError."""
    if jobs == 1:
        return 1
    from wiredump.tables.useful_processes import usable_cores, useful_processes

    number = useful_processes(work, jobs or usable_cores())
    if number > 1:
        from wiredump.tables.processes import prepare  # multiprocessing is slow to import

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
    from wiredump.tables import making

    return making.make(work, rotated=rotated, progress=progress)
