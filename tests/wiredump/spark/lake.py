"""Write requests of two captures to an Iceberg table, one behind the other, and print what it has.

A program of its own, because it needs another Spark than the other tests: ``python lake.py JAR
FOLDER CAPTURE CAPTURE``.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import functions

from wiredump.rows.schema import TABLES
from wiredump.spark import KafkaCapture
from wiredump.spark.session import start

TABLE = "lake.kafka.requests"
NAMES = [each.name for each in TABLES["requests"].columns]


def main(jar: str, folder: str, *captures: str) -> None:
    catalog = "spark.sql.catalog.lake"
    spark = start(
        "local[2]",
        settings={
            "spark.jars": jar,
            "spark.driver.memory": "1g",
            # Iceberg shuffles by the hour, into 200 tasks if nobody says otherwise.
            "spark.sql.shuffle.partitions": "2",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
            f"{catalog}.warehouse": folder,
        },
    )
    spark.dataSource.register(KafkaCapture)
    reader = spark.read.format("kafka_capture").option("table", "requests")
    for number, capture in enumerate(captures):
        writer = reader.load(capture).writeTo(TABLE)
        if number:
            writer.append()
        else:
            by = functions.partitioning.hours(functions.col("requested_at"))
            writer.partitionedBy(by).create()
    rows = spark.table(TABLE).select("run", *NAMES).collect()
    partitions = spark.sql(f"select partition from {TABLE}.partitions").collect()
    found = {
        "rows": [[row["run"], repr({name: row[name] for name in NAMES})] for row in rows],
        "hours": sorted(row[0][0] for row in partitions),
        "comment": spark.table(TABLE).schema["latency_ns"].metadata.get("comment"),
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
