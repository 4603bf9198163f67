"""Write the tables of ``wiredump table`` through Apache Spark. No other package imports pyspark.

::

    wiredump spark CAPTURE... --out DIR            the command
    spark.dataSource.register(KafkaCapture)        for your own job, see ``source``
    spark.read.format("kafka_capture").option("table", "requests").load(...)
    stream(spark, "captures/", out="tables/", checkpoint="progress/")    rotating captures
    register(spark, "tables/")                     tables as views, functions for queries
    run(spark, ["a.pcap"], out="tables/")          the batch of the command, in your own session

Each stage is complete before the next begins:

1. **Packets** (``source``, ``splits``): a task per part of a capture finds the first record by a
   chain of headers (``record_boundaries``), reads the headers of all packets, mostly in bulk
   (``wiredump.readers``), and returns rows of TCP segments (``columns``): addresses, numbers, and
   the position of the payload in the file. It notes where it began and ended. The driver checks
   that the notes cover each file (``planning``); if a guess was wrong, it walks through that file
   and reads it again by its true boundaries. One task reads a file that can only be read from its
   beginning (compressed, damaged, without times).
2. **Connections** (``connections``): rows are shuffled by endpoints and sorted in the order in
   which one process would read them. A task processes one connection after the other with the code
   of ``wiredump table``, reads payloads from the file (``payloads``), and writes Parquet. Of local
   captures only positions are shuffled, and only one connection's state is held.
3. **Knowledge** (``knowledge``): what depends on several connections, from what tasks set aside
   (``deferred_rows``): names of topics, fetch sessions, reassignments, groups, transactions.

The bytes are added up, the files of committed tasks are published (``publishing``), and
``_SUCCESS`` is written. The driver holds notes and manifests only.

The rows equal those of ``wiredump table``, whatever the size of parts and the number of tasks. The
driver and every executor must reach captures and output under the same paths or URIs
(``wiredump.storage``).

This module imports nothing, so that a missing package can be reported in one sentence.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiredump.spark.batch import run
    from wiredump.spark.listening import BatchListener
    from wiredump.spark.source import KafkaCapture
    from wiredump.spark.streaming import end, stream
    from wiredump.spark.views import register

__all__ = ["BatchListener", "KafkaCapture", "end", "register", "run", "stream"]

_MODULES = {
    "BatchListener": "listening",
    "KafkaCapture": "source",
    "end": "streaming",
    "register": "views",
    "run": "batch",
    "stream": "streaming",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
