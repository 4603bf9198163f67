"""Jars from Maven Central by coordinates, cached by version outside the repository.

They are kept in ``$KPROTO_CACHE/maven`` (``~/.cache/kproto/maven``) and downloaded once. Without
Maven the calling test is skipped, or fails where ``KPROTO_REQUIRE`` requires Maven.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.support.toolchain import require

__all__ = ["artifact", "artifacts", "cache_folder"]

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
</project>
"""
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
        pom = Path(work) / "pom.xml"
        pom.write_text(_POM.format(items=items), "utf-8")
        jars = Path(work) / "jars"
        command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy"]
        command += [f"-DoutputDirectory={jars}"]
        for _ in range(ATTEMPTS):
            # Registries fail at times. Maven keeps what it downloaded before the failure.
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            if done.returncode == 0:
                break
        else:
            pytest.fail(f"Maven could not fetch {wanted}:\n{done.stdout}{done.stderr}")
        for jar in jars.iterdir():
            os.replace(jar, folder / jar.name)  # atomic: two runs may fetch at once
