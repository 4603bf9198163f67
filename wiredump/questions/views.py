"""The tables of a folder in DuckDB, whatever the layout of their files.

Files may lie in folders that carry values of columns (``run=ID``, ``date=2026-01-31``,
``api=Fetch``), other ones in each run; a file that an earlier release wrote may lack columns, which
are null. Each table has, beside its columns, ``run``, a timestamp in UTC for each time
(``requested_at`` for ``requested_ns``), and the ``date`` and ``hour`` of its first time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from wiredump.questions.twins import TWINS
from wiredump.rows.schema import Table, TypeName
from wiredump.tables.reading import table_files

__all__ = ["empty_table", "view"]

_TYPES: Final[dict[TypeName, str]] = {
    "bool": "BOOLEAN",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "string": "VARCHAR",
    "binary": "BLOB",
    "strings": "VARCHAR[]",
    "int32s": "INTEGER[]",
}


def empty_table(table: Table) -> str:
    """Return the statement that creates a table without rows."""
    columns = (f'"{name}" {type_}' for name, type_ in _columns(table).items())
    return f"CREATE TABLE {table.name} ({', '.join(columns)})"


def view(table: Table, folder: Path, *, folded: bool = False) -> str:
    """Return the statement that creates the view of a table; without files, a table. A view that is
    ``folded`` leaves out the rows of twins."""
    layouts: dict[tuple[str, ...], list[Path]] = defaultdict(list)
    for file in table_files(folder, table.name):
        parts = file.relative_to(folder / table.name).parts[:-1]
        layouts[tuple(part.partition("=")[0] for part in parts if "=" in part)].append(file)
    if not layouts:
        return empty_table(table)
    columns = _columns(table)
    typed = ", ".join(f'NULL::{type_} AS "{name}"' for name, type_ in columns.items())
    rows = [f"SELECT {typed} WHERE false"]
    rows += [_layout(table, keys, files) for keys, files in layouts.items()]
    made = [f'{_moment(source)} AS "{name}"' for name, source in table.timestamps.items()]
    made.append("coalesce(run, '') AS run")
    union = " UNION ALL BY NAME ".join(rows)
    rows_of_all = f"SELECT * REPLACE ({', '.join(made)}) FROM ({union})"
    if folded:
        rows_of_all = f"SELECT * FROM ({rows_of_all}) ANTI JOIN {TWINS} USING (run, connection)"
    return f"CREATE VIEW {table.name} AS {rows_of_all}"


def _layout(table: Table, keys: tuple[str, ...], files: Iterable[Path]) -> str:
    """Return a query for files in folders with values of these columns."""
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    columns = _columns(table)
    types = ", ".join(f'"{key}": {columns[key]}' for key in keys if key in columns)
    how = f"hive_partitioning = true, hive_types = {{{types}}}" if types else ""
    how = how or f"hive_partitioning = {'true' if keys else 'false'}"
    made = {name: text for name, text in _dates(table).items() if name not in keys}
    more = "".join(f", {text} AS {name}" for name, text in made.items())
    return f"SELECT *{more} FROM read_parquet([{names}], union_by_name = true, {how})"


def _columns(table: Table) -> dict[str, str]:
    columns = {column.name: _TYPES[column.type] for column in table.columns}
    columns |= dict.fromkeys(table.timestamps, "TIMESTAMP")
    columns["run"] = "VARCHAR"
    if table.timestamps:
        columns |= {"date": "DATE", "hour": "INTEGER"}
    return columns


def _dates(table: Table) -> dict[str, str]:
    times = list(table.timestamps.values())
    if not times:
        return {}
    return {"date": f"{_moment(times[0])}::DATE", "hour": f"hour({_moment(times[0])})::INTEGER"}


def _moment(column: str) -> str:
    return f'make_timestamp("{column}" // 1000)'
