"""What is set for a session. No Spark is started: a builder writes down what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolchain import require_module
from wiredump.spark import session

ARROW = "spark.sql.execution.arrow.maxRecordsPerBatch"
JAVA = "spark.driver.extraJavaOptions"


class Builder:
    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def appName(self, name: str) -> Builder:  # Spark's name
        return self

    def master(self, master: str) -> Builder:
        return self

    def config(self, name: str, value: str) -> Builder:
        self.told[name] = value
        return self

    def getOrCreate(self) -> dict[str, str]:  # Spark's name
        return self.told


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Any:
    require_module("pyspark")
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "builder", Builder())
    monkeypatch.setattr(session, "require_java", lambda: None)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return session.start


def test_memory_is_bounded_by_bytes_and_not_by_rows(started: Any) -> None:
    told = started("local[1]")
    assert int(told["spark.sql.execution.arrow.maxBytesPerBatch"]) <= 4 << 20
    assert int(told["spark.shuffle.spill.maxSizeInBytesForSpillThreshold"]) <= 64 << 20
    assert JAVA in told


def test_settings_that_are_given_are_stronger(started: Any) -> None:
    assert started("local[1]", settings={ARROW: "7", "spark.driver.memory": "1g"})[ARROW] == "7"


@pytest.mark.parametrize("place", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_what_spark_defaults_conf_sets_is_left_alone(
    started: Any, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "conf" if place == "SPARK_HOME" else tmp_path
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv(place, str(tmp_path))
    (folder / "spark-defaults.conf").write_text(
        f"# {ARROW} 3\n\n  {JAVA}   -Xmn64m -XX:+UseSerialGC\nspark.ui.enabled=true\n"
    )
    told = started("local[1]")
    assert {JAVA, "spark.ui.enabled"}.isdisjoint(told)
    assert told[ARROW] == "1024"
