"""Answer a query about tables or captures, and print the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import click
from rich.table import Table

from kproto.cli.tables import print_table
from kproto.cli.terminal import echo, echo_csv, echo_json, echo_text
from wiredump.cli.damage import Purpose
from wiredump.cli.making import folder_among, require_tables, tables_of_sources
from wiredump.cli.source_options import (
    SourceOptions,
    dialect_option,
    expanded,
    jobs_option,
    port_option,
    source_options,
)
from wiredump.cli.spark_tables import SparkOptions, spark_options, spark_tables, tables_in
from wiredump.questions.answers import Answer
from wiredump.questions.database import FolderTables, require_duckdb, tables_of
from wiredump.questions.openmetrics import openmetrics
from wiredump.tables import require_pyarrow

__all__ = ["answering_options", "print_answer", "print_metrics", "put", "put_all"]

FORMATS: Final = ("table", "csv", "json", "openmetrics")

_OPTIONS = (
    click.option("--format", "form", type=click.Choice(FORMATS), default="table",
                 show_default=True,
                 help="How to print: json is one object a line, openmetrics is for Prometheus."),
    dialect_option("Dialect of CAPTUREs"),
    port_option("brokers of CAPTUREs"),
    jobs_option,
)  # fmt: skip


def answering_options(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of a command that answers queries."""
    command = spark_options(source_options(command))
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_WITHOUT_REQUESTS: Final = frozenset({"lineage", "account", "connections", "anomalies", "packets"})
"""The tables that have rows of traffic that could not be read, too."""


def put(
    query: str, sources: tuple[str, ...], options: SourceOptions,
    spark: SparkOptions, tell: Callable[[Answer], object], *, judges: bool = False,
) -> None:  # fmt: skip
    """The same as ``put_all``, for one query."""

    def tell_one(answers: Iterator[Answer]) -> None:
        for found in answers:
            tell(found)

    put_all([query], sources, options, spark, tell_one, judges=judges)


def put_all(
    queries: Sequence[str], sources: tuple[str, ...], options: SourceOptions,
    spark: SparkOptions, tell: Callable[[Iterator[Answer]], object], *, judges: bool = False,
) -> None:  # fmt: skip
    """Pass to ``tell`` the answers to queries about a folder of tables, or about captures, of which
    only the tables that they read are made; then say what was not read.

    Raises QueryError, and what reading sources raises. An answer ``judges`` if it is a verdict:
    NothingJudgedError then stands for one about requests of which none could be read.
    """
    if spark.wanted:
        needed = _distinct(tables_in(query) for query in queries)
        with spark_tables(sources, needed, spark, _purpose(judges, needed)) as read:
            tell(read.answers(queries))
        return
    sources = expanded(sources)
    folder_among(sources)  # refuses several sources before anything is read
    require_pyarrow()
    require_duckdb()
    # This refuses a query before anything is read.
    tables = _distinct(tables_of(query) for query in queries)
    purpose = _purpose(judges, tables)
    with tables_of_sources(sources, tables, options, purpose) as (folder, _):
        require_tables(folder, tables)
        tell(FolderTables(folder).answers(queries))


def _distinct(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))


def _purpose(judges: bool, tables: Sequence[str]) -> Purpose | None:
    return "judged" if judges and not _WITHOUT_REQUESTS.issuperset(tables) else None


def print_metrics(answers: Iterable[tuple[str, Answer]]) -> None:
    """Print all rows of answers, by the names of their questions, for Prometheus."""
    echo_text(openmetrics(answers), nl=False)


def print_answer(
    found: Answer, form: str, *, limit: int | None = None, first: Mapping[str, str] | None = None
) -> None:
    """Print at most ``limit`` rows of an answer, and say on standard error how many are left.
    Objects begin with ``first``."""
    rows = found.rows if limit is None else found.rows[:limit]
    if form == "csv":
        echo_csv(*found.columns)
        for row in rows:
            echo_csv(*map(_csv, row))
    elif form == "json":
        for row in rows:
            named = dict(zip(found.columns, map(_json, row), strict=True))
            echo_json({**(first or {}), **named})
    else:
        _print_table(found, rows)
    if len(rows) < len(found.rows):
        echo(f"wiredump: {len(found.rows) - len(rows)} more rows (--limit)", err=True)


def _print_table(found: Answer, rows: list[tuple[Any, ...]]) -> None:
    table = Table(box=None, pad_edge=False)
    for name, kind in zip(found.columns, found.types, strict=True):
        table.add_column(name, justify="right" if _is_number(kind) else "left")
    for row in rows:
        table.add_row(*(_text(value, null="-") for value in row))
    print_table(table)
    if not rows:
        echo("No rows.")


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


def _csv(value: Any) -> Any:
    """Numbers stay numbers, which text that looks like one need not be."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return value if is_number or value is None else _text(value, null="")


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
