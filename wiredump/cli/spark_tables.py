"""Tables that Spark reads: the options of commands that ask them, and the session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import click

from kproto.errors import KprotoError
from wiredump.cli.damage import Purpose, check_read
from wiredump.cli.spark_session import spark_session
from wiredump.questions.accounts import account_of_tables
from wiredump.questions.answers import Tables
from wiredump.questions.twins import TWINS
from wiredump.rows.schema import TABLES
from wiredump.skipped import lacks_requests

__all__ = ["SparkOptions", "spark_options", "spark_tables", "tables_in"]

_OPTIONS = (
    click.option("--spark", "wanted", is_flag=True,
                 help="Read TABLES with Apache Spark: a folder, as a path or URI for Spark, or a "
                      "namespace of a catalog."),
    click.option("--master", metavar="URL",
                 help="With --spark: its master, as of `wiredump spark`."),
    click.option("--remote", metavar="URL",
                 help="With --spark: a Spark Connect server, instead of --master."),
    click.option("--table-format", metavar="FORMAT", default="parquet", show_default=True,
                 help="With --spark: parquet, delta, iceberg or another format of Spark; catalog "
                      "for a namespace, such as lake.kafka."),
)  # fmt: skip


class SparkOptions(NamedTuple):
    """``wanted`` is whether Spark reads the tables."""

    wanted: bool
    master: str | None
    remote: str | None
    table_format: str


def spark_options(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options. The command takes them as ``spark``."""

    @wraps(command)
    def with_options(**given: Any) -> int | None:
        chosen = SparkOptions(*(given.pop(name) for name in SparkOptions._fields))
        if not chosen.wanted and (
            chosen.master or chosen.remote or chosen.table_format != "parquet"
        ):
            raise click.UsageError("--master, --remote and --table-format need --spark")
        return command(spark=chosen, **given)

    found: Callable[..., int | None] = with_options
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def tables_in(query: str) -> list[str]:
    """Return the tables that a query names behind FROM or JOIN."""
    named = {name.lower() for name in re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", query, re.IGNORECASE)}
    named |= {"connections"} if TWINS in named else set()
    return [name for name in TABLES if name in named]


@contextmanager
def spark_tables(
    sources: Sequence[str], needed: Sequence[str], options: SparkOptions,
    purpose: Purpose | None = None,
) -> Iterator[Tables]:  # fmt: skip
    """Start Spark, unless this process has a session already, and yield the tables of the only
    source. In the end, say what was not read.

    Raises KprotoError if tables that are ``needed`` are missing, NothingJudgedError if there is no
    request for a ``purpose``, and what Spark reports.
    """
    if len(sources) != 1:
        raise click.UsageError("--spark takes one folder of tables, or one namespace")
    (source,) = sources
    with spark_session(options.master, options.remote) as spark:
        from wiredump.spark.views import register

        tables = register(spark, source, form=options.table_format)
        missing = [name for name in needed if name not in tables.names]
        if missing:
            raise KprotoError(
                f"{source} lacks {', '.join(missing)}: write the tables again with them"
            )
        account = account_of_tables(tables)
        if purpose is not None and lacks_requests(account):
            check_read({}, account, purpose)
        yield tables
        check_read({}, account)
