"""Where Spark's Python processes import PySpark from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.toolchain import require_module
from wiredump.spark import spark_home
from wiredump.spark.spark_home import quick_spark_home


@pytest.mark.slow
@pytest.mark.java
def test_processes_import_the_installed_package(spark) -> None:
    """Whose modules are compiled; the archive's are not."""
    import pyspark

    def place(_: int) -> str:
        import pyspark

        return os.path.realpath(pyspark.__file__)

    assert "SPARK_HOME" not in os.environ
    assert spark.sparkContext.parallelize([1], 1).map(place).collect() == [
        os.path.realpath(pyspark.__file__)
    ]


def test_a_spark_home_that_is_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with quick_spark_home():
        assert os.environ["SPARK_HOME"] == "/opt/spark"


def test_the_folder_has_what_sparks_own_has(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(str(require_module("pyspark").__file__)).parent
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with quick_spark_home():
        home = Path(os.environ["SPARK_HOME"])
    assert "SPARK_HOME" not in os.environ
    for folder in (".", "python", "python/lib"):
        assert {each.name for each in (home / folder).iterdir()} == {
            each.name for each in (package / folder).iterdir()
        }
    assert (home / "jars").resolve() == (package / "jars").resolve()
    assert (home / "python" / "lib" / "pyspark.zip" / "pyspark").resolve() == package.resolve()


@pytest.mark.parametrize("name", ["pyspark", "pyspark_of_no_archive"])
def test_without_an_archive_or_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A PySpark without Java (Spark Connect's), and a cache that cannot be written."""
    require_module("pyspark")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("KPROTO_CACHE", str(tmp_path / "file"))
    if name != "pyspark":
        monkeypatch.setattr(spark_home, "_folder", lambda _: tmp_path)
    with quick_spark_home():
        assert "SPARK_HOME" not in os.environ
