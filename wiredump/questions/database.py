"""A folder of tables that DuckDB queries. Needs the extra ``wiredump`` (duckdb).

Besides the tables a query may use the functions that ``answers`` lists.
"""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kproto.errors import MissingExtraError
from wiredump.questions.answers import Answer, QueryError
from wiredump.questions.partition_errors import partition_errors
from wiredump.questions.partition_offsets import partition_offsets
from wiredump.questions.twins import FOLDED, TWINS, TWINS_TABLE
from wiredump.questions.views import empty_table, view
from wiredump.rows.schema import TABLES
from wiredump.tables.reading import TableFolder

if TYPE_CHECKING:
    import duckdb

__all__ = ["FolderTables", "require_duckdb", "tables_of"]

_MACROS: Final = (
    "CREATE MACRO moment(ns) AS make_timestamp_ns(ns)",
    "CREATE MACRO ms(ns) AS round(ns / 1000) / 1000",
    """CREATE MACRO part_of(ns, first, last, parts) AS
       ((ns::HUGEINT - first) // ((last::HUGEINT - first + parts) // parts))::INTEGER""",
    "CREATE MACRO explode(list) AS unnest(list)",
    "CREATE MACRO array_join(list, text) AS array_to_string(list, text)",
    "CREATE MACRO array_size(list) AS len(list)",
    "CREATE MACRO collect_set(value) AS list(DISTINCT value) FILTER (WHERE value IS NOT NULL)",
)

_ATTEMPTS: Final = 10
_PAUSE_SECONDS: Final = 0.05


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
            connection.execute(empty_table(table))
        connection.execute(f"CREATE TABLE {TWINS} AS {TWINS_TABLE}")
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
    read |= {"connections"} if TWINS in read else set()
    found = tuple(name for name in TABLES if name in read)
    if not found:
        raise QueryError(f"the query reads none of the tables: {', '.join(TABLES)}")
    return found


class FolderTables:
    """The tables of a folder.

    Raises InputError for a folder without tables, and for one whose publishing was interrupted.
    """

    def __init__(self, folder: str) -> None:
        self._folder = TableFolder(folder)
        self.path = folder

    @property
    def names(self) -> Sequence[str]:
        """The tables that there are."""
        return self._folder.names

    def require_schema(self) -> None:
        """Raise InputError for a file that cannot be read, or has another version of the tables'
        schema."""
        self._folder.require_schema()

    def answers(self, queries: Iterable[str]) -> Iterator[Answer]:
        """Yield what each query selects. Raises QueryError."""
        import duckdb

        queries, done = list(queries), 0
        for attempt in range(1, _ATTEMPTS + 1):
            with _connection() as connection:
                try:
                    self._create(connection, queries[done:])
                    for query in queries[done:]:
                        found = _answered(connection.execute(query))
                        done += 1
                        yield found
                    return
                except duckdb.IOException as error:
                    # Perhaps files were compacted since they were listed.
                    if attempt == _ATTEMPTS:
                        raise QueryError(_message_of(error)) from None
                    time.sleep(_PAUSE_SECONDS * attempt)
                except duckdb.Error as error:
                    raise QueryError(_message_of(error)) from None

    def _create(self, connection: duckdb.DuckDBPyConnection, queries: Sequence[str]) -> None:
        """Create the tables that queries read, and the others empty."""
        import duckdb

        try:
            folder = Path(self.path)
            folds = _create_twins(connection, folder)
            for table in TABLES.values():
                if table.name == "connections":
                    continue
                read = any(re.search(rf"\b{table.name}\b", each, re.I) for each in queries)
                is_folded = folds and table.name in FOLDED
                connection.execute(
                    view(table, folder, folded=is_folded) if read else empty_table(table)
                )
        except duckdb.IOException:
            raise
        except duckdb.Error as error:
            problem = f"{self.path}: not the tables of a run: {_message_of(error)}"
            raise QueryError(problem) from None


def _answered(found: duckdb.DuckDBPyConnection) -> Answer:
    names, types = zip(*((each[0], str(each[1])) for each in found.description or []), strict=True)
    return Answer(names, types, found.fetchall())


def _create_twins(connection: duckdb.DuckDBPyConnection, folder: Path) -> bool:
    """Create the view of ``connections``, and the table of those that are twins; returns whether
    there are any."""
    connection.execute(view(TABLES["connections"], folder))
    connection.execute(f"CREATE TABLE {TWINS} AS {TWINS_TABLE}")
    return connection.execute(f"SELECT 1 FROM {TWINS} LIMIT 1").fetchone() is not None


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
    connection.execute("SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
    for macro in _MACROS:
        connection.execute(macro)
    text = duckdb.sqltype("VARCHAR")
    for function in (partition_errors, partition_offsets):
        connection.create_function(function.__name__, function, [text], duckdb.list_type(text))
    return connection


def _message_of(error: Exception) -> str:
    """DuckDB's message in one line, without the picture of the query."""
    return str(error).partition("\n\nLINE ")[0].replace("\n", " ").strip()
