"""The tables' documentation as Markdown, from their schema."""

from __future__ import annotations

from typing import Final

from wiredump.rows.schema import SCHEMA_VERSION, TABLES, Table

__all__ = ["text"]

_TOP: Final = """# Tables

This page lists the columns of every table that `wiredump table` writes (schema version {version}).
`python -m wiredump.rows` generates it, and the files' metadata contain the same descriptions.

A table is a directory of Parquet files, with a subdirectory `run=ID` for each
[run](wiredump.md#runs) of the command. Readers of partitioned Parquet (Spark, pyarrow, pandas,
DuckDB) add a string column `run`. Connections and sources are numbered per run, so join rows of
several runs on `run` as well.

Columns that end in `_ns` are int64 nanoseconds, and times count from the Unix epoch. `connection`
is the id in [connections](#connections). `capture` and `packet` identify a packet: the number of
the source in [lineage](#lineage), and the byte at which its record begins (in a journal, the
sequence number of the entry). JSON text has the form of Kafka's own converters. `strings` and
`int32s` are lists.
"""


def text() -> str:
    """Return the text of docs/reference/tables.md."""
    contents = " · ".join(f"[{name}](#{name})" for name in TABLES)
    parts = [_TOP.format(version=SCHEMA_VERSION), f"{contents}\n", *map(_table, TABLES.values())]
    return "\n".join(parts)


def _table(table: Table) -> str:
    rows = "".join(
        f"| `{each.name}` | {each.type} | {_cell(each.doc)} |\n" for each in table.columns
    )
    named = ", ".join(f"`{column}`" for column in ("run", *table.order))
    return (
        f"## {table.name}\n\n{table.doc} Key: {named}.\n\n"
        f"| Column | Type | Meaning |\n|---|---|---|\n{rows}"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
