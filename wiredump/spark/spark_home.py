"""A folder for ``SPARK_HOME`` whose Python processes begin sooner.

Spark has them import PySpark from the archive ``python/lib/pyspark.zip``, for which Python keeps no
compiled modules: each process compiles them again, which takes it a second, and a session has five
or more of them. Here the archive's name is a folder with a link to the package that is installed;
everything else is a link, too. It is for masters on this machine: YARN copies the archive.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kproto.builds import built
from kproto.errors import AbsentError

__all__ = ["quick_spark_home"]

_ARCHIVES = {"pyspark.zip": "pyspark", "py4j-*.zip": "py4j"}
"""In ``python/lib``, with the package of each."""


@contextmanager
def quick_spark_home() -> Iterator[None]:
    """Let a JVM that starts meanwhile have such a folder, if its PySpark is that of pip. A
    SPARK_HOME that is set stays."""
    home = None if "SPARK_HOME" in os.environ else _made()
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _made() -> Path | None:
    """Return the folder, which is made once; None where PySpark has no archive, or there can be no
    links."""
    package = _folder("pyspark")
    if package is None:
        return None
    try:
        stamp = (package / "python" / "lib" / "pyspark.zip").stat().st_mtime_ns
        return built("spark-home", [str(package), str(stamp)], lambda home: _link(package, home))
    except (AbsentError, OSError):
        return None


def _folder(name: str) -> Path | None:
    found = importlib.util.find_spec(name)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _link(package: Path, home: Path) -> None:
    for each in package.iterdir():
        if each.name != "python":
            (home / each.name).symlink_to(each)
    lib = home / "python" / "lib"
    lib.mkdir(parents=True)
    for each in (package / "python").iterdir():
        if each.name != "lib":
            (home / "python" / each.name).symlink_to(each)
    for each in (package / "python" / "lib").iterdir():
        names = [name for archive, name in _ARCHIVES.items() if each.match(archive)]
        inside = _folder(names[0]) if names else None
        if inside is None:
            (lib / each.name).symlink_to(each)
        else:
            (lib / each.name).mkdir()
            (lib / each.name / inside.name).symlink_to(inside)
