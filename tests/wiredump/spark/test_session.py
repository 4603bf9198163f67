"""What is set for a session. No Spark is started: a builder writes down what it is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.toolchain import require, require_module
from wiredump.spark import session
from wiredump.spark.settings import outer_settings

ROOT = Path(__file__).parents[3]
ARROW = "spark.sql.execution.arrow.maxRecordsPerBatch"
JAVA = "spark.driver.extraJavaOptions"


class Builder:
    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def appName(self, name: str) -> Builder:  # Spark's name
        return self

    def master(self, master: str) -> Builder:
        self.told["spark.master"] = master
        return self

    def remote(self, _address: str) -> Builder:
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
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
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


def test_the_log_has_no_stacks_unless_they_are_wanted(
    started: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local driver or one of a cluster; with KPROTO_DEBUG or a configuration of the user's own
    the log is Spark's."""
    for master in ("local[1]", "spark://there:7077"):
        (file,) = re.findall("-Dlog4j2.configurationFile=file://([^ ]+)", started(master)[JAVA])
        assert "%ex{none}" in Path(file).read_text()
    with monkeypatch.context() as patch:
        patch.setenv("KPROTO_DEBUG", "1")
        assert "log4j2" not in started("local[1]")[JAVA]
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert "log4j2" in started("local[1]")[JAVA]
    (tmp_path / "log4j2.properties").touch()
    assert "log4j2" not in started("local[1]")[JAVA]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Spark's Java process ended, or"),
        (
            RuntimeError("An error occurred while calling o1.collect.\n: org.Spark: Job aborted: "
                         "org.SparkException: Python worker exited unexpectedly (crashed). Set\n"
                         "\tat org.Task.run(Task.java:1)\nCaused by: java.io.EOFException\n"),
            "the Python process of a task was killed, perhaps for lack of memory: use more",
        ),
        (
            RuntimeError("Job aborted (host executor 1): org.PythonException: Traceback:\n"
                         '  File "a.py", line 1, in task\nValueError: no: luck\n\n\tat org.Task\n'
                         "Caused by: java.io.EOFException: Other\n\t... 21 more"),
            "ValueError: no: luck (",
        ),
        (
            RuntimeError("Traceback:\nwiredump.storage.errors.ChangedError: a.pcap changed"),
            "a.pcap changed (",
        ),
        (
            RuntimeError("Queries end\n\nJVM stacktrace:\norg.SparkException\n\tat org.A (A:1)\n"),
            "Queries end (",
        ),
        (
            RuntimeError("Python worker failed to connect back.\n\nJVM stacktrace:\norg.A\n\tat o"),
            "a Python process took more than Spark's ten seconds to start: ",
        ),
        (RuntimeError(), "RuntimeError ("),
    ],
)  # fmt: skip
def test_why_a_job_failed(error: Exception, why: str) -> None:
    """As Java reports it, in one line."""
    found = str(session.failure(error))
    assert found.startswith(f"the Spark job failed: {why}")
    assert found.endswith("(KPROTO_DEBUG=1 shows Spark's own log)")


@pytest.mark.parametrize(
    ("option", "used"), [(None, "spark://there:7077"), ("local[2]", "local[2]")]
)
def test_pyspark_submit_args_win_over_the_commands_own_settings(
    started: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str | None, used: str
) -> None:
    """And spark-defaults.conf gives way to the file that they name."""
    (tmp_path / "spark-defaults.conf").write_text("spark.master local[9]\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "mine.conf").write_text("spark.master = spark://there:7077\nspark.ui.enabled true")
    arguments = f"--properties-file {tmp_path}/mine.conf --conf {ARROW}=3 -c 'x=a b' pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    told = started(option)
    assert told["spark.master"] == used
    assert {ARROW, "spark.ui.enabled"}.isdisjoint(told)
    assert outer_settings()["x"] == "a b"


def test_tasks_import_few_packages() -> None:
    """Those that ``docs/how-to/spark.md`` installs for executors; Spark brings its own."""
    require_module("pyspark")
    program = (
        "import pyspark.worker, sys\n"
        "from wiredump.spark import functions, job, microbatch, naming, partitioning\n"
        "from wiredump.spark import table_source\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*(found - sys.stdlib_module_names))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = {name for name in done.stdout.split() if name[0] != "_"}
    installed = re.search(r"--no-deps (.+)", (ROOT / "docs/how-to/spark.md").read_text())
    assert installed is not None
    found -= {"wiredump", "pyspark", "py4j", "typing_extensions", "cython_runtime"}
    found -= {"pandas", "pytz", "dateutil", "six"}  # PySpark imports pandas if it is there
    assert found <= set(installed[1].split())


def test_without_anybodys_word_it_is_this_machine(started: Any) -> None:
    assert started(None)["spark.master"] == "local[*]"


@pytest.mark.slow
@pytest.mark.java
def test_what_spark_submit_sets_wins(tmp_path: Path) -> None:
    """Its master over --master, its --conf over the command's own settings; those of which it says
    nothing are the command's."""
    require("java")
    pyspark = require_module("pyspark")
    program = tmp_path / "program.py"
    program.write_text(
        "import json\n"
        "from wiredump.spark.session import master_of, start\n"
        "spark = start('local[7]')\n"
        f"names = ['{ARROW}', 'spark.sql.adaptive.enabled']\n"
        "told = [master_of(spark), *(spark.conf.get(name) for name in names)]\n"
        "print(json.dumps(told))\n"
    )
    done = subprocess.run(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]",
            "--conf", f"{ARROW}=77", "--conf", "spark.ui.enabled=false", str(program),
        ],
        env={
            **os.environ, "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["local[1]", "77", "true"]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"master": "spark://host:7077"}, "spark://host:7077"),
        ({"master": None, "remote": "sc://host;token=secret"}, "sc://host"),
    ],
)
def test_a_master_that_cannot_be_reached(
    started: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], place: str
) -> None:
    def failing(_self: Builder) -> None:
        raise RuntimeError("Call failed.\n: java.StateException: No master\n\tat Main.java:1")

    monkeypatch.setattr(Builder, "getOrCreate", failing)
    why = r"java\.StateException: No master"
    with pytest.raises(session.SparkStartError, match=rf"on {place}: check .*\({why}\)$"):
        started(**options)
