"""The tables as Spark's types: the columns of ``wiredump table``, then a timestamp for each time,
and the run.

``requested_ns`` is an integer of nanoseconds, which Spark's timestamps cannot represent;
``requested_at`` is the same time as TimestampType, in whole microseconds.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pyarrow as pa

from wiredump.knowledge.following import FOLLOWED
from wiredump.rows.schema import TABLES, TypeName

__all__ = ["AT_THE_END", "spark_schema", "with_timestamps"]

_MICROSECONDS: Final = pa.timestamp("us", tz="UTC")

AT_THE_END: Final = frozenset({"lineage", "account", "topics", *FOLLOWED})
"""Tables whose rows depend on several connections, so that only the end of a stream has them."""


def spark_schema(table: str) -> Any:
    """Return the ``StructType`` of a table. Each field has the column's documentation as its
    comment."""
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    types = _spark_types()
    columns = TABLES[table].columns
    fields = [
        StructField(each.name, types[each.type], metadata={"comment": each.doc}) for each in columns
    ]
    fields += [
        StructField(name, TimestampType(), metadata={"comment": f"{source}, in microseconds"})
        for name, source in TABLES[table].timestamps.items()
    ]
    return StructType([*fields, StructField("run", StringType(), metadata={"comment": "its run"})])


def with_timestamps(table: str, rows: pa.RecordBatch, run: str) -> pa.RecordBatch:
    """Return the table's own columns of rows, with the columns that ``spark_schema`` adds."""
    names = [each.name for each in TABLES[table].columns]
    arrays = [rows.column(name) for name in names]
    for name, source in TABLES[table].timestamps.items():
        times = rows.column(source).view(pa.timestamp("ns", tz="UTC"))
        arrays.append(times.cast(_MICROSECONDS, safe=False))
        names.append(name)
    arrays.append(pa.repeat(run, rows.num_rows))
    return pa.RecordBatch.from_arrays(arrays, names=[*names, "run"])


@cache
def _spark_types() -> dict[TypeName, Any]:
    from pyspark.sql import types

    return {
        "bool": types.BooleanType(),
        "int16": types.ShortType(),
        "int32": types.IntegerType(),
        "int64": types.LongType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        "strings": types.ArrayType(types.StringType()),
        "int32s": types.ArrayType(types.IntegerType()),
    }
