"""One small Spark session for all tests here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kspec.runner import toolchains
from tests.support.class_data import SparkClassData
from tests.support.maven import artifacts, with_dependencies
from tests.support.toolchain import require, require_module
from tests.wiredump.spark import starved

_CLIENTS = (
    # Of Spark 4.2, the newest that was published in November 2026.
    ("org.apache.spark:spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark:spark-token-provider-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.kafka:kafka-clients", "3.9.2"),
    ("org.apache.commons:commons-pool2", "2.13.1"),
    ("org.apache.hadoop:hadoop-aws", "3.5.0"),
)
_SDK = (
    # Without the bundle of all of them, which is forty times as large.
    *(
        (f"software.amazon.awssdk:{name}", "2.35.4")
        for name in ("s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    ),
    ("software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3", "1.3.1"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    return starved.play(item, nextitem)


def _clients() -> dict[str, str]:
    """Spark's own clients for Kafka and S3, which Java takes when it starts."""
    if toolchains.find("maven") is None:
        return {}
    return {"spark.jars": ",".join(map(str, [*artifacts(_CLIENTS), *with_dependencies(_SDK)]))}


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, spark_class_data: SparkClassData
) -> Iterator[object]:
    """``local[2]``: loopback only, no page of its own, little memory."""
    require("java")
    require_module("pyspark")
    from wiredump.spark.session import start

    place = tmp_path_factory.mktemp("spark")
    root = str(Path(__file__).parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # CI, which requires everything, would write the archive at its end, and never use it.
    keeps = os.environ.get("KPROTO_REQUIRE") != "all"
    spark_class_data.hand_on(record=keeps)
    session = start(
        "local[2]",
        settings={
            "spark.driver.memory": "1g",
            "spark.local.dir": str(place),
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
            **_clients(),
        },
    )
    session.range(9).selectExpr("sum(id)").collect()
    gateway = session.sparkContext._gateway
    assert gateway is not None
    spark_class_data.hand_on()
    yield session
    session.stop()
    # Last, because a JVM that writes its archive does nothing else, on a busy machine for minutes.
    if keeps:
        spark_class_data.keep_of(gateway.proc)
