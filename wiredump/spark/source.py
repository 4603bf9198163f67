"""``spark.read.format("kafka_capture")``: tables as a data source of Spark's, for any job.

::

    from wiredump.spark import KafkaCapture
    spark.dataSource.register(KafkaCapture)
    reader = spark.read.format("kafka_capture").option("table", "requests")
    requests = reader.load(["a.pcap", "b.pcapng"])

``columns`` names the wanted columns, and with Spark's ``spark.sql.python.filterPushdown.enabled``
filters by API, time and connection are applied before anything is decoded (``push_down``).
``table_source`` reads captures, by paths and URIs, which may be patterns. ``spark.readStream``
reads the tables that ``wiredump spark --follow`` writes: ``stream_reader``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from wiredump.spark.push_down import is_pushing
from wiredump.spark.stream_reader import StreamReader
from wiredump.spark.table_schema import spark_schema
from wiredump.spark.table_source import (
    FilteredReader,
    OptionError,
    TableReader,
    columns_of,
    table_of,
)
from wiredump.storage import expand

__all__ = ["KafkaCapture"]


class KafkaCapture(DataSource):
    """The data source, which is registered by name; see the module."""

    @classmethod
    def name(cls) -> str:
        return "kafka_capture"

    def schema(self) -> Any:
        options = self._lowered()
        schema, columns = spark_schema(table_of(options)), columns_of(table_of(options), options)
        return schema if not columns else type(schema)([schema[name] for name in columns])

    def reader(self, schema: Any) -> DataSourceReader:
        options = self._lowered()
        # Spark refuses a reader that takes filters unless they are to be handed over.
        reader = FilteredReader if is_pushing() else TableReader
        return reader(table_of(options), _paths(options), options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        options = self._lowered()
        if options.get("columns"):
            raise OptionError("readStream has no option columns: select them")
        return StreamReader(table_of(options), options)

    def _lowered(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.options.items()}


def _paths(options: Mapping[str, str]) -> list[str]:
    given = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
    found = [each for path in given for each in expand(path, paths=True)]
    if not any(found):
        raise OptionError("there are no captures: name them in load(...)")
    return found
