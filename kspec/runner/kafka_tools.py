"""Kafka's own command-line tools, installed from Maven Central."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kproto.builds import built, run
from kproto.errors import AbsentError
from kspec.runner import toolchains

__all__ = ["RELEASE", "installed_tools", "tool_command"]

RELEASE: Final = "4.3.1"
"""The newest whose tools are on Maven Central."""
_POM: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kproto</groupId><artifactId>tools</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
    <version>{RELEASE}</version>
  </dependency></dependencies>
</project>
"""
_OPTIONS: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def installed_tools() -> Path:
    """The folder of the tools' jars, filled at the first call. Raises AbsentError."""
    missing = toolchains.missing(["java", "maven"])
    if missing:
        raise AbsentError("; ".join(missing))
    return built("kafka-tools", [_POM], _build) / "lib"


def _build(folder: Path) -> None:
    (folder / "pom.xml").write_text(_POM, "utf-8")
    run(
        [
            "mvn", "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime",
            f"-DoutputDirectory={folder / 'lib'}",
        ],
        cwd=folder,
    )  # fmt: skip


def tool_command(jars: str, main_class: str) -> list[str]:
    """The command of a tool whose jars are in this folder."""
    return ["java", *_OPTIONS, "-cp", f"{jars}/*", main_class]
