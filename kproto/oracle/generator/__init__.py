"""Kafka's own message generator, run over a folder of schemas of ours.

``Generate.java`` is the program. What it makes is compiled and can be asked like the classes of a
release (``kproto.oracle.oracle``).
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kproto.errors import AbsentError
from kproto.oracle.build import class_path
from kproto.oracle.oracle import Oracle

__all__ = ["RELEASE", "Generated", "generated", "refusals"]

RELEASE: Final = "4.3.1"
"""The newest release whose generator is published."""

_PACKAGE: Final = "kproto.generated.drafts"
_JAR: Final = "kproto-drafts.jar"
_SECONDS: Final = 900.0
_SOURCE: Final = re.compile(r"^(?P<path>[^ ]+\.java):\d+: error: (?P<problem>.*)$", re.MULTILINE)


class Generated(NamedTuple):
    """``refused`` has the exception of Kafka's generator by file name; ``not_java`` has the first
    error of the compiler for what it makes that is not Java. ``oracle`` has the other messages."""

    oracle: Oracle
    refused: dict[str, str]
    not_java: dict[str, str]


@contextmanager
def generated(folder: Path) -> Iterator[Generated]:
    """Run the generator over every ``*.json`` directly in ``folder`` and start the classes.

    Raises AbsentError without Java or Maven.
    """
    classes = class_path(RELEASE)
    with tempfile.TemporaryDirectory(prefix="kproto-generated-") as scratch:
        work = Path(scratch)
        refused = _generate(folder, work / "sources")
        not_java = _compile(work, classes)
        path = os.pathsep.join([str(_packed(work)), classes])
        with Oracle(RELEASE, class_path=path, jars=re.escape(_JAR)) as oracle:
            yield Generated(oracle, refused, not_java)


def refusals(folder: Path) -> dict[str, str]:
    """Run the generator alone. Returns its exceptions by file name. Raises AbsentError."""
    with tempfile.TemporaryDirectory(prefix="kproto-generated-") as scratch:
        return _generate(folder, Path(scratch) / "sources")


def _generate(folder: Path, into: Path) -> dict[str, str]:
    into.mkdir()
    path = class_path(RELEASE, Path(__file__).resolve().parent, leave_out="none")
    command = [
        "java", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", path,
        "org.apache.kafka.message.Generate", str(folder), str(into), _PACKAGE,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        raise AbsentError(f"Kafka's generator ended with {done.returncode}: {done.stderr[-500:]}")
    refused: dict[str, str] = {}
    for line in done.stdout.splitlines():
        file, verdict, *reason = line.split("\t")
        if verdict == "refused":
            refused[file] = reason[0]
    return refused


def _compile(work: Path, path: str) -> dict[str, str]:
    """Compile what was generated. Leaves out schemas whose classes the compiler refuses."""
    refused: dict[str, str] = {}
    classes = work / "classes"
    classes.mkdir()
    while True:
        sources = sorted(
            source
            for each in (work / "sources").iterdir()
            if f"{each.name}.json" not in refused
            for source in each.glob("*.java")
        )
        if not sources:
            return refused
        listed = work / "sources.txt"
        listed.write_text("\n".join(map(str, sources)), "utf-8")
        done = subprocess.run(
            ["javac", "-nowarn", "-proc:none", "-Xmaxerrs", "10000", "-d", str(classes), "-cp",
             path, f"@{listed}"],
            capture_output=True, text=True, timeout=_SECONDS,
        )  # fmt: skip
        if done.returncode == 0:
            return refused
        found = {
            f"{Path(each['path']).parent.name}.json": each["problem"]
            for each in reversed(list(_SOURCE.finditer(done.stderr)))
        }
        if not found:
            raise AbsentError(f"javac ended with {done.returncode}: {done.stderr[-500:]}")
        refused |= found


def _packed(work: Path) -> Path:
    jar = work / _JAR
    with zipfile.ZipFile(jar, "w") as packed:
        for file in sorted((work / "classes").rglob("*.class")):
            packed.write(file, str(file.relative_to(work / "classes")))
    return jar
