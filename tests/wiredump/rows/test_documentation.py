"""The tables' documentation has every column, and wiredump.md every table."""

from __future__ import annotations

import re
from pathlib import Path

from wiredump.rows.documentation import tables
from wiredump.rows.schema import TABLES

DOCS = Path(__file__).parents[3] / "docs" / "reference"


def test_each_column_is_documented() -> None:
    text = tables()
    for name, table in TABLES.items():
        section = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` ", section, re.M) == [each.name for each in table.columns]


def test_the_page_of_wiredump_names_each_table() -> None:
    page = (DOCS / "wiredump.md").read_text(encoding="utf-8")
    assert [name for name in TABLES if f"`{name}`" not in page] == []


def test_columns_are_named_once_and_order_names_columns() -> None:
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert set(table.order) <= set(names)
        assert all(column.doc for column in table.columns)
