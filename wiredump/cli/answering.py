"""Answer a query about tables or captures, and print the answer."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import Any, Final, NamedTuple, TypeVar

import click
from rich.table import Table

from kproto.cli.completing import dialect_names
from kproto.cli.dialect_option import named_dialect
from kproto.cli.tables import print_table
from kproto.dialects import DIALECTS
from kproto.errors import KprotoError
from wiredump.cli.chosen import expanded, source_options
from wiredump.cli.making import jobs_option, make, processes_for
from wiredump.cli.progress import reading
from wiredump.conversation import DEFAULT_PORTS
from wiredump.questions.database import Answer, answer, require_duckdb, tables_of
from wiredump.skipped import require_read
from wiredump.tables import require_pyarrow
from wiredump.tables.work import Work, passing_folder

__all__ = ["SourceOptions", "answering_options", "print_answer", "put"]

FORMATS: Final = ("table", "csv", "json")

CommandT = TypeVar("CommandT", bound=Callable[..., None])


class SourceOptions(NamedTuple):
    """How to read captures."""

    dialect_name: str
    ports: tuple[int, ...]
    jobs: int
    keylog: str | None
    zone: tzinfo
    memory: int | None


_OPTIONS = (
    click.option("--format", "form", type=click.Choice(FORMATS), default="table",
                 show_default=True, help="How to print: json is one object a line."),
    click.option("--dialect", "dialect_name", default="auto", show_default=True,
                 metavar="NAME|DIR", shell_complete=dialect_names,
                 help=f"Dialect of CAPTUREs: one of {', '.join(DIALECTS)}, or a folder of "
                      "schemas."),
    click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True,
                 default=sorted(DEFAULT_PORTS), show_default=True,
                 help="Port on which brokers of CAPTUREs listen; tells clients from brokers. "
                      "Repeatable."),
    jobs_option,
    source_options,
)  # fmt: skip


def answering_options(command: CommandT) -> CommandT:
    """Add the options of a command that answers queries."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def put(query: str, sources: tuple[str, ...], options: SourceOptions) -> Answer:
    """Return the answer to a query about a folder of tables, or about captures, of which only the
    tables that it reads are made.

    Raises QueryError, and what reading sources raises.
    """
    sources = expanded(sources)
    folders = [path for path in sources if os.path.isdir(path)]
    if folders and len(sources) > 1:
        raise click.UsageError(f"{folders[0]} is a folder of tables and must be the only source")
    require_pyarrow()
    require_duckdb()
    tables = tables_of(query)  # refuses a query before anything is read
    if folders:
        from wiredump.tables.reading import TableFolder

        found = TableFolder(folders[0])
        missing = [name for name in tables if name not in found.names]
        if missing:
            raise KprotoError(
                f"{folders[0]} lacks {', '.join(missing)}: write the tables again with them"
            )
        return answer(folders[0], query)
    from wiredump.storage import Location

    for path in sources:
        if path != "-" and not Location(path).exists():
            raise KprotoError(f"{path} does not exist: name captures, or a folder of tables")
    named_dialect(options.dialect_name)  # fails for an unknown dialect before anything is read
    with passing_folder() as folder:
        work = Work(
            sources, folder, tables, options.dialect_name, options.ports, keylog=options.keylog,
            zone=options.zone, memory=options.memory, run="this",
        )  # fmt: skip
        with reading(sources) as progress:
            made = make(work, processes_for(sources, options.jobs), progress)
        require_read(made.unread, made.account)
        return answer(folder, query)


def print_answer(found: Answer, form: str, *, limit: int | None = None) -> None:
    """Print at most ``limit`` rows of an answer, and say on standard error how many are left."""
    rows = found.rows if limit is None else found.rows[:limit]
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows([_text(value, null="") for value in row] for row in rows)
    elif form == "json":
        for row in rows:
            click.echo(json.dumps(dict(zip(found.columns, map(_json, row), strict=True))))
    else:
        _print_table(found, rows)
    if len(rows) < len(found.rows):
        click.echo(f"wiredump: {len(found.rows) - len(rows)} more rows (--limit)", err=True)


def _print_table(found: Answer, rows: list[tuple[Any, ...]]) -> None:
    table = Table(box=None, pad_edge=False)
    for name, kind in zip(found.columns, found.types, strict=True):
        table.add_column(name, justify="right" if _is_number(kind) else "left")
    for row in rows:
        table.add_row(*(_text(value, null="-") for value in row))
    print_table(table)
    if not rows:
        click.echo("No rows.")


def _is_number(kind: str) -> bool:
    return kind.startswith(("NUMBER", "DOUBLE", "FLOAT", "BIGINT", "INTEGER", "SMALLINT", "HUGEINT",
                            "DECIMAL", "UBIGINT", "UINTEGER"))  # fmt: skip


def _text(value: Any, *, null: str) -> str:
    match value:
        case None:
            return null
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat(" ", "milliseconds")
        case list():
            return ", ".join(_text(each, null="null") for each in value)
        case _:
            return str(value)


def _json(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [_json(each) for each in value]
        case dict():
            return {str(key): _json(each) for key, each in value.items()}
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat(" ", "microseconds")
        case _:
            return str(value)
