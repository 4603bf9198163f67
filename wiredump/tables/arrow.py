"""The tables' columns as Arrow types, and rows as record batches. Needs pyarrow, knows no files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from wiredump.rows.schema import SCHEMA_VERSION, TABLES, Table, TypeName

__all__ = ["arrow_schema", "to_table"]

_TYPES: Final[dict[TypeName, pa.DataType]] = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "strings": pa.list_(pa.string()),
    "int32s": pa.list_(pa.int32()),
}


@cache
def arrow_schema(name: str) -> pa.Schema:
    """The schema of a table, with its documentation and version as metadata."""
    table = TABLES[name]
    fields = [
        pa.field(column.name, _TYPES[column.type], metadata={"doc": column.doc})
        for column in table.columns
    ]
    return pa.schema(fields, metadata={"doc": table.doc, "wiredump.schema": str(SCHEMA_VERSION)})


def to_table(name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of one table, sorted by what names a row."""
    schema = arrow_schema(name)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return _sorted(TABLES[name], pa.Table.from_arrays(arrays, schema=schema))


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type_)
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
        return pa.array([_fitting(value, type_) for value in values], type_)


def _fitting(value: Any, type_: pa.DataType) -> Any:
    """Where a peer's or a capture's numbers leave the type, which only damaged ones do, the nearest
    that is in it; where a text is no Unicode (a path), what is."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(value, int) and pa.types.is_signed_integer(type_):
        greatest = 2 ** (type_.bit_width - 1) - 1
        return min(max(value, -greatest - 1), greatest)
    return value


def _sorted(table: Table, rows: pa.Table) -> pa.Table:
    return rows.sort_by([(column, "ascending") for column in table.order])
