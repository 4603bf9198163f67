"""Functions for queries in a session of Spark: those that ``wiredump.questions.answers`` lists and
Spark lacks, and those that decode frames.

``decode_request(frame)`` and ``decode_response(frame, api_key, api_version)`` take a frame as a
socket carries it, size included, and return a struct (``wiredump.frame_texts.FrameText``). Nothing
in a frame makes a job fail: ``problem`` has the reason. Frames come in batches of Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.functions import udf

from kproto.dialects import dialect
from wiredump.frame_texts import FrameText, request_text, response_text
from wiredump.questions.partition_errors import partition_errors
from wiredump.questions.partition_offsets import partition_offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register_functions"]

_IN_SQL: Final = (
    # Timestamps are whole microseconds; a time before 1970 is rounded down, too.
    """moment(ns BIGINT) RETURNS TIMESTAMP
       RETURN timestamp_micros((ns - pmod(ns, 1000)) div 1000)""",
    "ms(ns DOUBLE) RETURNS DOUBLE RETURN round(ns / 1000) / 1000",
    # The difference of two times may exceed 64 bits.
    """part_of(ns BIGINT, first BIGINT, last BIGINT, parts INT) RETURNS INT
       RETURN CAST((CAST(ns AS DECIMAL(38, 0)) - first)
         div ((CAST(last AS DECIMAL(38, 0)) - first + parts) div parts) AS INT)""",
)
_FRAME: Final = """
api_key SMALLINT COMMENT 'of the request; null if it is not in the frame',
api STRING COMMENT 'name as in the messages (Metadata); null if it is unknown',
api_version SMALLINT COMMENT 'the version of the body',
correlation_id INT COMMENT 'of the header',
client_id STRING COMMENT 'of a request; null in a response',
message STRING COMMENT 'name of the message (MetadataResponse)',
header STRING COMMENT 'JSON; null where it cannot be read',
body STRING COMMENT 'JSON, as far as it could be read, without secrets and records',
errors ARRAY<STRING> COMMENT 'names of error codes in a response, each once, sorted',
problem STRING COMMENT 'why the frame could not be read whole; null where it could'"""


def register_functions(spark: SparkSession, dialect_name: str = "kafka") -> None:
    """Register the functions; frames are decoded in a dialect. Raises UnknownNameError for a
    dialect that does not exist."""
    dialect(dialect_name)
    for function in _IN_SQL:
        spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {function}")

    def decode_request(frame: bytes | None) -> FrameText | None:
        return None if frame is None else request_text(bytes(frame), dialect(dialect_name))

    def decode_response(
        frame: bytes | None, api_key: int | None, api_version: int | None
    ) -> FrameText | None:
        if frame is None:
            return None
        return response_text(bytes(frame), api_key, api_version, dialect(dialect_name))

    for listing in (partition_errors, partition_offsets):
        spark.udf.register(listing.__name__, udf(listing, "ARRAY<STRING>", useArrow=True))
    for decode in (decode_request, decode_response):
        decoded = udf(decode, f"STRUCT<{_FRAME}>", useArrow=True)
        spark.udf.register(decode.__name__, decoded)
