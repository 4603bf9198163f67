"""The tables' documentation as Markdown, from their schema."""

from __future__ import annotations

from typing import Final

from wiredump.rows.schema import SCHEMA_VERSION, TABLES, Table

__all__ = ["text"]

_TOP: Final = """# Tables

What `wiredump table` writes, version {version} of the schema. Made by `python -m wiredump.rows`;
a test compares.

Each table is a folder of Parquet files, whose metadata have this documentation too. They lie in a
folder `run=ID` for each run of the command (see [runs](wiredump.md#runs)): readers of partitioned
Parquet (Spark, pyarrow, pandas, DuckDB) add a column `run`, a string. Connections and sources are
numbered within a run, so that rows of several runs are joined by `run`, too.

Times, which end in `_ns`, are int64: nanoseconds since the Unix epoch. `connection` is the id that
[connections](#connections) has. `capture` and `packet` name a packet: the source's number in
[lineage](#lineage), and the byte at which its record begins (of a journal: the entry's sequence).
Text in JSON is as Kafka's own converters write it. `strings` and `int32s` are lists.
"""


def text() -> str:
    """Return the text of docs/tables.md."""
    contents = " · ".join(f"[{name}](#{name})" for name in TABLES)
    parts = [_TOP.format(version=SCHEMA_VERSION), f"{contents}\n", *map(_table, TABLES.values())]
    return "\n".join(parts)


def _table(table: Table) -> str:
    rows = "".join(f"| `{each.name}` | {each.type} | {each.doc} |\n" for each in table.columns)
    named = ", ".join(f"`{column}`" for column in ("run", *table.order))
    return (
        f"## {table.name}\n\n{table.doc} A row is named by {named}.\n\n"
        f"| column | type | what it is |\n|---|---|---|\n{rows}"
    )
