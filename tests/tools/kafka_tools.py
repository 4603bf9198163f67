"""Kafka's own command-line tools of one release, run over a pipe: see ``ToolRunner.java``."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.maven import artifacts
from tests.tools.commands import Outcome

__all__ = ["MAIN_CLASSES", "RELEASES", "JavaTools", "KafkaTools"]

_HERE: Final = Path(__file__).resolve().parent
_STOP_SECONDS: Final = 10.0

MAIN_CLASSES: Final = {
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
}

_KAFKA: Final = (
    "kafka-clients",
    "kafka-tools",
    "kafka-tools-api",
    "kafka-server-common",
    "kafka-server",
    "kafka-storage",
    "kafka-storage-api",
    "kafka-group-coordinator",
    "kafka-group-coordinator-api",
    "kafka-transaction-coordinator",
    "kafka-metadata",
    "kafka-raft",
)
_COMMON: Final = (("net.sf.jopt-simple:jopt-simple", "5.0.4"), ("org.slf4j:slf4j-api", "1.7.36"))
_JACKSON: Final = "com.fasterxml.jackson.core:jackson-"
RELEASES: Final = {
    "3.9.2": (
        *_COMMON,
        *((f"{_JACKSON}{each}", "2.16.2") for each in ("databind", "core", "annotations")),
    ),
    "4.3.1": (
        *_COMMON,
        *((f"{_JACKSON}{each}", "2.21.2") for each in ("databind", "core")),
        (f"{_JACKSON}annotations", "2.21"),
        ("org.apache.kafka:kafka-coordinator-common", "4.3.1"),
        ("org.pcollections:pcollections", "4.0.2"),
    ),
}
"""The last release of 3.x, and the newest whose tools are on Maven Central; with what they need
besides Kafka's jars."""


class JavaTools:
    """One JVM for as many commands as wanted, one after the other."""

    def __init__(self, class_path: str, main_classes: Mapping[str, str]) -> None:
        self._main_classes = main_classes
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        command += ["-cp", class_path, str(_HERE / "ToolRunner.java")]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate(timeout=_STOP_SECONDS)

    async def run(self, tool: str, *arguments: str) -> Outcome:
        return await asyncio.to_thread(self._run, self._main_classes[tool], arguments)

    def _run(self, main_class: str, arguments: tuple[str, ...]) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\x1f".join((main_class, *arguments)) + "\n")
        self._process.stdin.flush()
        code, out, err = self._process.stdout.readline().split()
        return Outcome(int(code), _text(out), _text(err))


class KafkaTools(JavaTools):
    """Those of releases that have them in Java."""

    def __init__(self, release: str) -> None:
        wanted = [(f"org.apache.kafka:{name}", release) for name in _KAFKA]
        jars = artifacts([*wanted, *RELEASES[release]])
        super().__init__(os.pathsep.join(map(str, jars)), MAIN_CLASSES)


def _text(word: str) -> str:
    return base64.b64decode(word.removeprefix("=")).decode()
