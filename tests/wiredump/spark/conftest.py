"""One small Spark session for all tests here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.class_data import SparkClassData
from tests.support.toolchain import require, require_module


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
