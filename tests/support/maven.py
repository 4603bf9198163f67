"""Jars from Maven Central by coordinates, cached by version outside the repository.

They are kept in ``$KPROTO_CACHE/maven`` (``~/.cache/kproto/maven``) and downloaded once. Without
Maven the calling test is skipped, or fails where ``KPROTO_REQUIRE`` requires Maven.
"""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.support.toolchain import require

__all__ = ["artifact", "artifacts", "cache_folder", "with_dependencies"]

ATTEMPTS = 3
SECONDS = 300.0

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kproto.tests</groupId><artifactId>jars</artifactId><version>1</version>
  <packaging>pom</packaging>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId>
    <artifactId>maven-dependency-plugin</artifactId>
    <configuration><artifactItems>{items}</artifactItems></configuration>
  </plugin></plugins></build>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
    "<version>{version}</version></dependency>"
)
_ITEM = (
    "<artifactItem><groupId>{group}</groupId><artifactId>{name}</artifactId>"
    "<version>{version}</version><classifier>{classifier}</classifier></artifactItem>"
)


def cache_folder() -> Path:
    base = os.environ.get("KPROTO_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "kproto") / "maven"


def artifact(group_artifact: str, version: str) -> Path:
    """The jar of ``group:artifact`` or ``group:artifact:classifier`` at ``version``, downloaded if
    it is not cached."""
    return artifacts([(group_artifact, version)])[0]


def artifacts(wanted: Iterable[tuple[str, str]]) -> list[Path]:
    """Several jars by one run of Maven; ``wanted`` has the arguments of ``artifact``."""
    wanted = list(wanted)
    folder = cache_folder()
    paths = [folder / _file_name(name, version) for name, version in wanted]
    missing = [item for item, path in zip(wanted, paths, strict=True) if not path.is_file()]
    if missing:
        require("java", "maven")
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(missing, folder)
    return paths


def _file_name(coordinates: str, version: str) -> str:
    """As Maven names it."""
    _, name, *classifier = coordinates.split(":")
    return f"{'-'.join([name, version, *classifier])}.jar"


def _fetch(wanted: list[tuple[str, str]], folder: Path) -> None:
    items = "".join(
        _ITEM.format(
            group=escape(group),
            name=escape(name),
            version=escape(version),
            classifier=escape("".join(classifier)),
        )
        for coordinates, version in wanted
        for group, name, *classifier in [coordinates.split(":")]
    )
    with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as work:
        jars = Path(work) / "jars"
        _copy(Path(work), _POM.format(items=items, dependencies=""), ["dependency:copy"], jars)
        for jar in jars.iterdir():
            os.replace(jar, folder / jar.name)  # atomic: two runs may fetch at once


def _copy(work: Path, content: str, command: Sequence[str], jars: Path) -> None:
    """Run Maven, which copies jars to a folder."""
    pom = work / "pom.xml"
    pom.write_text(content, "utf-8")
    every = ["mvn", "-B", "-q", "-f", str(pom), *command, f"-DoutputDirectory={jars}"]
    for _ in range(ATTEMPTS):
        # Registries fail at times. Maven keeps what it downloaded before the failure.
        done = subprocess.run(every, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode == 0:
            return
    pytest.fail(f"Maven could not fetch {content}:\n{done.stdout}{done.stderr}")


def with_dependencies(wanted: Iterable[tuple[str, str]]) -> list[Path]:
    """The jars of ``group:artifact`` at versions, and those that they need at run time."""
    found = [(*name.split(":"), version) for name, version in wanted]
    folder = cache_folder() / f"set-{hashlib.sha256(repr(found).encode()).hexdigest()[:16]}"
    if not folder.is_dir():
        require("java", "maven")
        cache_folder().mkdir(parents=True, exist_ok=True)
        dependencies = "".join(
            _DEPENDENCY.format(group=escape(group), name=escape(name), version=escape(version))
            for group, name, version in found
        )
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="fetching-") as work:
            content = _POM.format(items="", dependencies=dependencies)
            command = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            _copy(Path(work), content, command, Path(work) / "jars")
            with suppress(OSError):  # another run was faster
                os.rename(Path(work) / "jars", folder)
    return sorted(folder.iterdir())
