"""The tables of ``wiredump table`` through Apache Spark: the only place that imports pyspark.

::

    wiredump spark CAPTURE... --out DIR            the command
    spark.dataSource.register(KafkaCapture)        for a job of your own, see ``source``
    spark.read.format("kafka_capture").load(...)

One stage behind the other, each written down before the next begins:

1. **Packets** (``source``, ``splits``): a task a part of a capture finds the first record in it
   by a chain of headers (``boundaries``), reads the headers of all packets, mostly by the column
   (``walks``, ``usual``), and gives a row a TCP segment (``columns``): addresses, numbers, and
   where in the file its payload is. It ends with a note of where it began and ended. The driver
   checks that the notes close over each file (``planning``); where they do not, since a guess can
   be fooled, it goes through that file record by record and has it read once more by its true
   boundaries. What can only be read from its beginning (compressed, damaged, of wrong times) is
   one task's.
2. **Connections** (``connections``): rows are shuffled by their two ends, and sorted as one process
   would meet them. A task goes through one connection after the other with the very same code as
   ``wiredump table``, reads payloads back from the file (``payloads``), and writes Parquet. Nothing
   but headers is shuffled, and no more than one connection's state is held.
3. **Knowledge** (``knowledge``): what takes more than one connection, from what tasks put aside
   (``apart``): topics' names, fetch sessions, reassignments.

Then the files of tasks that counted are moved into place, the bytes are added up, and ``_SUCCESS``
is written. On the driver there are notes and manifests, and nothing else.

What holds: the rows are those of ``wiredump table``, whatever the size of parts and the number of
tasks. Captures and the folder for the tables are on a file system that the driver and every
executor mount under the same paths.

Nothing is imported here, so that a missing package can be told of in a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiredump.spark.source import KafkaCapture

__all__ = ["KafkaCapture"]


def __getattr__(name: str) -> Any:
    if name == "KafkaCapture":
        from wiredump.spark.source import KafkaCapture

        return KafkaCapture
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
