"""The outer marks: Kafka's own Java classes, franz-go's kmsg, the crate kafka-protocol.

Knows how each small program beside this file is built into the cache (``$KPROTO_CACHE``) and
started; ``worker`` talks to it. Where a toolchain is absent, or its packages cannot be had, the
codec is an ``Absent`` that says why, and the run goes on without it. What does not round-trip the
bytes is an error, not an absence.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.codec_marks import GO, JAVA, RUST
from benchmarks.timing import Timing
from benchmarks.worker import OPERATIONS
from kproto.builds import built, run
from kproto.errors import AbsentError
from kspec.runner import toolchains

__all__ = ["GO", "GROWN", "JAVA", "NAMES", "REUSED", "RUST", "Absent", "Program", "jmh", "programs"]

HERE = Path(__file__).resolve().parent
NAMES = (JAVA, GO, RUST)
GROWN, REUSED = "encode-grown", "encode-reused"
"""Encoding into a buffer that begins empty, and into the same one each time."""

JVM = ["-XX:+UseSerialGC", "-Xms512m", "-Xmx512m", "-Xmn384m"]
"""The collector with the cheapest barriers, and room enough that it seldom runs."""
JAVA_WARM_UP = 2.0
"""Seconds of each operation on each workload; the optimizing compiler is done long before."""

JMH_OPTIONS = ["-f", "1", "-t", "1", "-wi", "2", "-w", "1s", "-i", "3", "-r", "1s", "-foe", "true"]
JMH_SECONDS = 600.0


@dataclass(frozen=True)
class Program:
    """How to start a worker: the command before the message's name, its version and the file."""

    command: tuple[str, ...]
    operations: tuple[str, ...] = OPERATIONS
    warm_up: float = 0.0


@dataclass(frozen=True)
class Absent:
    """Why a codec is not in the run."""

    reason: str


def programs(names: Sequence[str] = NAMES) -> dict[str, Program | Absent]:
    """The outer codecs of these names, built unless they are already."""
    builders: dict[str, Callable[[], Program]] = {JAVA: _java, GO: _go, RUST: _rust}
    found: dict[str, Program | Absent] = {}
    for name in names:
        try:
            found[name] = builders[name]()
        except AbsentError as absent:
            found[name] = Absent(str(absent))
    return found


def _require(*names: str) -> list[str]:
    """The toolchains' versions; AbsentError where one is missing."""
    missing = toolchains.missing(list(names))
    if missing:
        raise AbsentError("; ".join(missing))
    return [toolchains.find(name) or "" for name in names]


def _java() -> Program:
    versions = _require("java", "maven")
    source = HERE / "java"
    files = [source / "pom.xml", *sorted(source.glob("kproto/*.java"))]

    def build(folder: Path) -> None:
        shutil.copy(files[0], folder)
        run(
            [
                "mvn", "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime",
                f"-DoutputDirectory={folder / 'lib'}",
            ],
            cwd=folder,
        )  # fmt: skip
        run(
            [
                "javac", "-processor", "org.openjdk.jmh.generators.BenchmarkProcessor",
                "-cp", str(folder / "lib" / "*"), "-d", str(folder), *map(str, files[1:]),
            ],
            cwd=folder,
        )  # fmt: skip

    folder = built("benchmarks/java", [*(file.read_text() for file in files), *versions], build)
    path = os.pathsep.join([str(folder), str(folder / "lib" / "*")])
    return Program(("java", *JVM, "-cp", path, "kproto.Worker"), warm_up=JAVA_WARM_UP)


def _go() -> Program:
    versions = _require("go")
    source = HERE / "go"
    files = sorted(source.glob("*"))

    def build(folder: Path) -> None:
        run(["go", "build", "-trimpath", "-o", str(folder / "worker"), "."], cwd=source)

    folder = built("benchmarks/go", [*(file.read_text() for file in files), *versions], build)
    return Program((str(folder / "worker"),), (*OPERATIONS, GROWN, REUSED))


def _rust() -> Program:
    versions = _require("rust")
    source = HERE / "rust"
    files = [source / "Cargo.toml", source / "src" / "main.rs"]

    def build(folder: Path) -> None:
        # A copy, so that what Cargo writes beside its manifest is not in the checkout.
        crate = folder / "crate"
        (crate / "src").mkdir(parents=True)
        for file in files:
            shutil.copy(file, crate / file.relative_to(source))
        run(["cargo", "build", "--release", "--quiet"], cwd=crate)
        shutil.move(crate / "target" / "release" / "kproto-benchmarks", folder / "worker")
        shutil.rmtree(crate / "target")

    folder = built("benchmarks/rust", [*(file.read_text() for file in files), *versions], build)
    return Program((str(folder / "worker"),), (*OPERATIONS, GROWN, REUSED))


def jmh(java: Program, bodies: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Timing]]:
    """JMH's averages of the Java classes, by workload and operation; ``bodies`` holds, by workload,
    what its worker is started with. Wall time: a warm process for each pair, one thread.

    Raises AbsentError where JMH does not run here (its processes speak over loopback).
    """
    path = java.command[java.command.index("-cp") + 1]
    specs = {" ".join(arguments): key for key, arguments in bodies.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [
            "java", "-cp", path, "org.openjdk.jmh.Main", *JMH_OPTIONS,
            "-jvmArgs", " ".join(JVM), "-p", "workload=" + ",".join(specs),
            "-rf", "json", "-rff", str(folder / "figures.json"),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=JMH_SECONDS,
            text=True,
        )
        if done.returncode != 0:
            raise AbsentError(f"JMH failed: {' '.join(done.stdout.split())[-300:]}")
        found: dict[str, dict[str, Timing]] = {key: {} for key in bodies}
        for row in json.loads((folder / "figures.json").read_text()):
            operation = row["benchmark"].rpartition(".")[2]
            assert operation in OPERATIONS
            samples = [value for fork in row["primaryMetric"]["rawData"] for value in fork]
            found[specs[row["params"]["workload"]]][operation] = Timing.of(samples)
    return found
