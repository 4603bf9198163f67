"""tables.md is what the schema says, and wiredump.md has every table."""

from __future__ import annotations

from pathlib import Path

from wiredump.rows.documentation import text
from wiredump.rows.schema import TABLES

DOCS = Path(__file__).parents[3] / "docs" / "reference"


def test_the_tables_are_documented_as_they_are() -> None:
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == text(), (
        "stale: python -m wiredump.rows > docs/reference/tables.md"
    )


def test_each_table_is_told_of() -> None:
    told = (DOCS / "wiredump.md").read_text(encoding="utf-8")
    assert [name for name in TABLES if f"`{name}`" not in told] == []


def test_columns_are_named_once_and_order_names_columns() -> None:
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert set(table.order) <= set(names)
        assert all(column.doc for column in table.columns)
