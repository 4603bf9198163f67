"""Print the tables of frames in a Kafka topic, as Spark's own connector reads them.

A program of its own, because Java gets the connector when it starts: ``python topic.py JARS
BOOTSTRAP TOPIC``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from wiredump.questions.answers import answer
from wiredump.questions.saved import question
from wiredump.rows.schema import TABLES
from wiredump.spark.session import start
from wiredump.spark.topics import OF_FRAMES, frames_of, table_of_frames
from wiredump.spark.views import register

_DECODED = """
SELECT decoded.header, decoded.body FROM (
  SELECT decode_request(frame) AS decoded FROM frames_in_topic WHERE direction = 'request'
  UNION ALL
  SELECT decode_response(frame, api_key, api_version) FROM frames_in_topic
  WHERE direction = 'response'
)
ORDER BY ALL"""


def main(jars: str, bootstrap: str, topic: str) -> None:
    spark = start(
        "local[1]",
        settings={
            "spark.jars": jars, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1",
        },
    )  # fmt: skip
    options = {
        "kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true",
        "startingOffsets": "earliest",
    }  # fmt: skip
    frames = frames_of(spark.read.format("kafka").options(**options).load()).cache()
    tables = {name: table_of_frames(frames, name).cache() for name in OF_FRAMES}
    found: dict[str, list[Any]] = {}
    for name, table in tables.items():
        names = [each.name for each in TABLES[name].columns]
        rows = table.select(names).collect()
        found[name] = sorted(repr({each: row[each] for each in names}) for row in rows)
    registered = register(spark, tables)
    frames.createOrReplaceTempView("frames_in_topic")
    found["decoded"] = [list(row) for row in answer(registered, _DECODED).rows]
    found["slow-apis"] = [list(row) for row in answer(registered, question("slow-apis").query).rows]
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
