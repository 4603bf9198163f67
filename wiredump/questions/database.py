"""Queries over a folder of tables, in DuckDB's SQL. Needs the extra ``wiredump`` (duckdb).

Besides the tables a query may use two macros: ``moment(ns)``, a timestamp of a column whose name
ends in ``_ns``, and ``ms(ns)``, a duration in milliseconds.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kproto.errors import KprotoError, MissingExtraError
from wiredump.rows.schema import TABLES, Table, TypeName

if TYPE_CHECKING:
    import duckdb

__all__ = ["Answer", "QueryError", "answer", "answers", "require_duckdb", "tables_of"]

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
_MACROS: Final = (
    "CREATE MACRO moment(ns) AS make_timestamp_ns(ns)",
    "CREATE MACRO ms(ns) AS round(ns / 1000000, 3)",
)


class QueryError(KprotoError):
    """A query is not valid, or fails on these tables. The message is DuckDB's."""


class Answer(NamedTuple):
    """``types`` are DuckDB's names of the columns' types."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def require_duckdb() -> None:
    """Raise MissingExtraError if duckdb is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        raise MissingExtraError("queries need duckdb", extra="wiredump")


def tables_of(query: str) -> tuple[str, ...]:
    """Return the tables that a query reads, in the order of the documentation.

    Raises QueryError for a query that names a column or table that does not exist, and for one that
    reads none of the tables.
    """
    import duckdb

    with _connection() as connection:
        for table in TABLES.values():
            connection.execute(_empty(table))
        try:
            serialized = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
            assert serialized is not None
            tree = json.loads(serialized[0])
            if tree["error"]:
                raise QueryError(f"{tree['error_message']}; a query is one SELECT")
            if not tree["statements"]:
                raise QueryError("the query is empty; a query is one SELECT")
            connection.execute(f"EXPLAIN {query}")
        except duckdb.Error as error:
            raise QueryError(_message_of(error)) from None
    read = {name.lower() for name in _names(tree)}
    found = tuple(name for name in TABLES if name in read)
    if not found:
        raise QueryError(f"the query reads none of the tables: {', '.join(TABLES)}")
    return found


def answer(folder: str, query: str) -> Answer:
    """Return what the query selects from the tables below ``folder``, which may lack some: the
    query then finds them empty. Raises QueryError."""
    (found,) = answers(folder, [query])
    return found


def answers(folder: str, queries: Iterable[str]) -> Iterator[Answer]:
    """Return the same for several queries."""
    import duckdb

    with _connection() as connection:
        try:
            for table in TABLES.values():
                connection.execute(_view(table, Path(folder)))
        except duckdb.Error as error:
            raise QueryError(f"{folder}: not the tables of a run: {_message_of(error)}") from None
        for query in queries:
            try:
                found = connection.execute(query)
                described = found.description or []
                rows = found.fetchall()
            except duckdb.Error as error:
                raise QueryError(_message_of(error)) from None
            names, types = zip(*((each[0], str(each[1])) for each in described), strict=True)
            yield Answer(names, types, rows)


def _names(tree: Any) -> Iterator[str]:
    """The names of the tables in a serialized query."""
    if isinstance(tree, list):
        for each in tree:
            yield from _names(each)
    elif isinstance(tree, dict):
        if tree.get("type") == "BASE_TABLE":
            yield tree["table_name"]
        for each in tree.values():
            yield from _names(each)


def _connection() -> duckdb.DuckDBPyConnection:
    import duckdb

    # Whatever a query needs is in the package: nothing is fetched.
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    for macro in _MACROS:
        connection.execute(macro)
    return connection


def _empty(table: Table) -> str:
    columns = (f'"{column.name}" {_TYPES[column.type]}' for column in table.columns)
    return f"CREATE TABLE {table.name} ({', '.join(columns)}, run VARCHAR)"


def _view(table: Table, folder: Path) -> str:
    files = sorted((folder / table.name).rglob("*.parquet"))
    if not files:
        return _empty(table)
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    columns, options = "*", "hive_partitioning = true, hive_types = {'run': VARCHAR}"
    if not any(file.parent.name.startswith("run=") for file in files):
        columns, options = "*, '' AS run", "hive_partitioning = false"
    return f"CREATE VIEW {table.name} AS SELECT {columns} FROM read_parquet([{names}], {options})"


def _message_of(error: Exception) -> str:
    """DuckDB's message in one line, without the picture of the query."""
    return str(error).partition("\n\nLINE ")[0].replace("\n", " ").strip()
