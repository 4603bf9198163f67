"""Kafka's own command-line tools of one release, run over a pipe: see ``ToolRunner.java``."""

import asyncio
import base64
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.maven import artifacts
from tests.tools.commands import Outcome

__all__ = ["MAIN_CLASSES", "NEWEST", "RELEASES", "JavaTools", "KafkaTools", "class_path"]

_HERE: Final = Path(__file__).resolve().parent
_STOP_SECONDS: Final = 10.0

MAIN_CLASSES: Final = {
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "producer-performance": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-performance": "org.apache.kafka.tools.ConsumerPerformance",
    "end-to-end-latency": "org.apache.kafka.tools.EndToEndLatency",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "configs": "org.apache.kafka.tools.ConfigCommand",
}

_CONFIGS: Final = {"configs": "kafka.admin.ConfigCommand"}
_IN_SCALA: Final = {
    "3.9.2": {"console-producer": "kafka.tools.ConsoleProducer", **_CONFIGS},
    "4.3.1": _CONFIGS,
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
_COMMON: Final = (
    ("net.sf.jopt-simple:jopt-simple", "5.0.4"),
    ("net.sourceforge.argparse4j:argparse4j", "0.7.0"),
    ("com.google.re2j:re2j", "1.8"),
    ("org.bitbucket.b_c:jose4j", "0.9.6"),
    ("org.slf4j:slf4j-api", "1.7.36"),
)
_JACKSON: Final = "com.fasterxml.jackson.core:jackson-"
_CSV: Final = "com.fasterxml.jackson.dataformat:jackson-dataformat-csv"


def _of_4(release: str, jackson: str) -> tuple[tuple[str, str], ...]:
    return (
        *_COMMON,
        *((f"{_JACKSON}{each}", jackson) for each in ("databind", "core")),
        (_CSV, jackson),
        (f"{_JACKSON}annotations", "2.21"),
        ("org.apache.kafka:kafka-coordinator-common", release),
        ("org.pcollections:pcollections", "4.0.2"),
        ("org.apache.kafka:kafka_2.13", release),
        ("org.apache.kafka:kafka-share-coordinator", release),
        ("commons-validator:commons-validator", "1.10.1"),
        *((f"org.apache.logging.log4j:log4j-{each}", "2.24.3") for each in ("api", "core")),
        ("org.scala-lang:scala-library", "2.13.18"),
        ("com.typesafe.scala-logging:scala-logging_2.13", "3.9.6"),
    )


NEWEST: Final = "4.4.0"
_JARS: Final = {
    "3.9.2": (
        *_COMMON,
        *((f"{_JACKSON}{each}", "2.16.2") for each in ("databind", "core", "annotations")),
        (_CSV, "2.16.2"),
        ("org.apache.kafka:kafka_2.13", "3.9.2"),
        ("org.scala-lang:scala-library", "2.13.14"),
        ("commons-validator:commons-validator", "1.9.0"),
        ("com.typesafe.scala-logging:scala-logging_2.13", "3.9.5"),
    ),
    "4.3.1": _of_4("4.3.1", "2.21.2"),
    NEWEST: _of_4(NEWEST, "2.21.7"),
}
"""What the tools of a release need besides Kafka's jars."""
RELEASES: Final = {release: _JARS[release] for release in ("3.9.2", "4.3.1")}
"""The last release of 3.x, and the one whose texts ``kproto admin`` prints."""


class JavaTools:
    """One JVM for as many commands as wanted, one after the other."""

    def __init__(
        self, class_path: str, main_classes: Mapping[str, str], jvm: Sequence[str] = ()
    ) -> None:
        self._main_classes = main_classes
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        command += [*jvm, "-cp", class_path, str(_HERE / "ToolRunner.java")]
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

    async def run(self, tool: str, *arguments: str, text: str = "") -> Outcome:
        """The outcome of a tool that finds ``text`` on its standard input."""
        return await asyncio.to_thread(self._run, self._main_classes[tool], arguments, text)

    def _run(self, main_class: str, arguments: tuple[str, ...], text: str) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = (main_class, base64.b64encode(text.encode()).decode(), *arguments)
        self._process.stdin.write("\x1f".join(words) + "\n")
        self._process.stdin.flush()
        code, out, err = self._process.stdout.readline().split()
        return Outcome(int(code), _text(out), _text(err))


class KafkaTools(JavaTools):
    """Those of the releases in ``RELEASES``."""

    def __init__(self, release: str, jvm: Sequence[str] = ()) -> None:
        mains = {**MAIN_CLASSES, **_IN_SCALA.get(release, {})}
        super().__init__(class_path(release), mains, jvm)


def class_path(release: str) -> str:
    """The class path of the tools of one of ``RELEASES``."""
    wanted = [(f"org.apache.kafka:{name}", release) for name in _KAFKA]
    return os.pathsep.join(map(str, artifacts([*wanted, *_JARS[release]])))


def _text(word: str) -> str:
    return base64.b64decode(word.removeprefix("=")).decode()
