"""Read the tables that an audit needs from a folder of ``wiredump table``. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as datasets

from kproto.errors import KprotoError
from wiredump.rows.schema import TABLES

__all__ = ["table_rows"]


def table_rows(folder: str, table: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of one table, with their ``run`` if they have one. Raises KprotoError for a
    folder without the table."""
    try:
        found = datasets.dataset(f"{folder}/{table}", format="parquet", partitioning="hive")
        runs = ["run"] if "run" in found.schema.names else []
        for batch in found.to_batches(columns=[*columns, *runs]):
            yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        names = ", ".join(TABLES)
        problem = str(error).splitlines()[0]
        raise KprotoError(
            f"{folder} has no table {table} as wiredump table makes it ({names}): {problem}"
        ) from None
