"""What listeners learn of a stream's batches: metrics that Spark observes, and the summaries of
``progress``.

::

    spark.streams.addListener(BatchListener(print))

Spark's own progress has ``observedMetrics["wiredump"]``, with the files and bytes of a batch, the
bad files, and those that are left for later. Frames, bytes that were not read and damaged files are
known when the tasks of a batch are done, so that a summary has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from wiredump.spark.progress import Progress
from wiredump.spark.stream_folder import StreamFolder

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["OBSERVED", "BatchListener", "observations"]

OBSERVED: Final = "wiredump"


def observations(folder: str) -> list[Column]:
    """Return what Spark observes of the rows of ``capture_files``; ``folder`` is the stream's."""
    from pyspark.sql.functions import col, count_if, lit, max, sum, when

    is_file = col("what") == "file"
    return [
        count_if(is_file).alias("files"),
        sum(when(is_file, col("size")).otherwise(0)).alias("bytes"),
        count_if(col("what") == "bad").alias("bad"),
        max(when(col("what") == "left", col("number"))).alias("left"),
        max(lit(folder)).alias("folder"),
    ]


class BatchListener(StreamingQueryListener):
    """Calls ``progress`` with the summary of each batch of each stream in the session."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def onQueryStarted(self, event: Any) -> None:
        return

    def onQueryProgress(self, event: Any) -> None:
        observed = event.progress.observedMetrics.get(OBSERVED)
        if observed is not None:
            record = StreamFolder(observed["folder"]).record(event.progress.batchId)
            if record is not None:
                self._progress(record.summary)

    def onQueryIdle(self, event: Any) -> None:
        return

    def onQueryTerminated(self, event: Any) -> None:
        return
