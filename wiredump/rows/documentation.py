"""The tables' documentation as Markdown, from their schema."""

from __future__ import annotations

from wiredump.rows.schema import TABLES, Table

__all__ = ["tables"]


def tables() -> str:
    """The tables' names, and a section for each table with its columns."""
    contents = " · ".join(f"[{name}](#{name})" for name in TABLES)
    return "\n".join([f"{contents}\n", *map(_table, TABLES.values())])


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
