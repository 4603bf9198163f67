"""A Spark Connect server on a port of its own, which it prints; it ends with its standard input."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from wiredump.spark.spark_home import quick_spark_home

SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


def main() -> None:
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with quick_spark_home():
        spark = builder.getOrCreate()
    companion = "org.apache.spark.sql.connect.service.SparkConnectService$"
    service = getattr(getattr(spark.sparkContext._jvm, companion), "MODULE$")
    print(service.localPort(), flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
