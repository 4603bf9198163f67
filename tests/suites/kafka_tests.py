"""Kafka's own integration tests, as ``org.apache.kafka`` publishes them in jars.

The tests start a cluster through a class of Kafka's test kit. On the mock a class of the same name
stands before it on the class path (``java/shadow``) and gives each test a mock cluster with the
number of brokers and the static configs that the test asks for. On real Kafka nothing stands before
it, and the brokers, of the same release as the tests, run in the process of the tests.
"""

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from kproto.builds import built, run
from kproto.errors import AbsentError
from kspec.runner import toolchains
from tests.suites.model import ClusterNeeds, Run, Status, Suite
from tests.suites.processes import lines_of
from tests.suites.targets import KafkaTarget, MockTarget, NoTarget, served

__all__ = ["RELEASE", "KafkaTests"]

SOURCES: Final = Path(__file__).with_name("java")
RELEASE: Final = "4.3.1"
"""The newest whose tests are published."""
JAVA: Final = ("java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaTests(Suite):
    """The tests of one jar. All suites of this kind share one class path."""

    artifact: ClassVar[str]
    """The jar's name without release and classifier."""
    prefix: ClassVar[str]
    """The package of the tests, which their names leave out."""
    test_seconds: ClassVar[int] = 120
    """How long a test may take, unless it has a limit of its own."""
    classes_at_once: ClassVar[int] = 1
    """How many classes run at once, each with clusters of its own. Most tests of Kafka Streams
    wait for rebalances and commits; those of Connect keep the processor busy, and those of the
    clients compare times."""
    toolchains = ("java", "maven")
    needs = None
    real = f"kafka:{RELEASE}"
    seconds = 3600.0

    @property
    def jar(self) -> str:
        return f"{self.artifact}-{RELEASE}-test.jar"

    def install(self) -> Path:
        self.check_toolchains()
        files = sorted(path for path in SOURCES.rglob("*") if path.is_file())
        made_of = [RELEASE, *(path.read_text("utf-8") for path in files)]
        made_of.append(toolchains.find("java") or "")
        return built("suites/kafka-tests", made_of, _build)

    def run(self, run: Run) -> None:
        if isinstance(run.target, MockTarget):
            with _control(run.target, run.output) as url:
                properties = [
                    f"-Dmockbroker.control={url}",
                    f"-Dmockbroker.profile={run.target.profile}",
                ]
                self._run(run, ["shadow"], properties)
        elif isinstance(run.target, NoTarget):
            self._run(run, ["shadow"], [])
        elif isinstance(run.target, KafkaTarget) and run.target.version == RELEASE:
            self._run(run, [], [])
        else:
            raise AbsentError(f"it runs on mocks and on kafka:{RELEASE}, not on {run.target.name}")

    def _run(self, run: Run, shadow: list[str], properties: list[str]) -> None:
        if run.chosen is None:
            whole = [f"{each}#*" for each in self._classes(run.folder / "lib" / self.jar)]
            names = [each for each in whole if each not in run.left_out]
            names += [f"-{each}" for each in run.left_out]
        else:
            names = [*run.chosen]
        listed = run.output / "tests.txt"
        listed.write_text("".join(f"{each}\n" for each in names), "utf-8")
        # Each jar has its own config of the log: the first one counts.
        path = [*shadow, "runner", f"lib/{self.jar}", "lib/*"]
        command = [
            *JAVA, *properties, "-cp", os.pathsep.join(str(run.folder / each) for each in path),
            "TestRunner", self.prefix, str(listed),
            "junit.jupiter.extensions.autodetection.enabled=true", *self._parallel(),
            f"junit.jupiter.execution.timeout.testable.method.default={self.test_seconds} s",
        ]  # fmt: skip
        with open(run.output / "output.log", "wb") as log:
            for line in lines_of(
                command, cwd=run.output, environment={}, seconds=run.seconds, log=log
            ):
                if line.startswith('{"'):
                    event = json.loads(line)
                    run.report(event["name"], Status(event["status"]), event["output"])

    def _parallel(self) -> list[str]:
        if self.classes_at_once == 1:
            return []
        parameters = {
            "enabled": "true",
            "mode.default": "same_thread",
            "mode.classes.default": "concurrent",
            "config.strategy": "fixed",
            "config.fixed.parallelism": str(self.classes_at_once),
            "config.fixed.max-pool-size": str(self.classes_at_once),
        }
        return [
            f"junit.jupiter.execution.parallel.{name}={parameters[name]}" for name in parameters
        ]

    def _classes(self, jar: Path) -> list[str]:
        """The classes of tests. A list leaves out a whole one as ``Class#*``."""
        with zipfile.ZipFile(jar) as packed:
            paths = packed.namelist()
        names = [path.removesuffix(".class").replace("/", ".") for path in sorted(paths)]
        return [
            name.removeprefix(self.prefix)
            for name in names
            if name.startswith(self.prefix) and name.endswith("Test")
        ]


def _build(folder: Path) -> None:
    shutil.copy(SOURCES / "pom.xml", folder)
    run(
        [
            "mvn", "-B", "-q", "dependency:copy-dependencies", f"-Dkafka.version={RELEASE}",
            f"-DoutputDirectory={folder / 'lib'}",
        ],
        cwd=folder,
    )  # fmt: skip
    for part in ("runner", "shadow"):
        sources = [str(path) for path in sorted((SOURCES / part).rglob("*.java"))]
        command = ["javac", "-nowarn", "-cp", str(folder / "lib" / "*")]
        run([*command, "-d", str(folder / part), *sources], cwd=folder)


@contextmanager
def _control(target: MockTarget, output: Path) -> Iterator[str]:
    """A mock whose control port makes the tests' clusters; its address."""
    command = [*target.command(ClusterNeeds()), "--control=127.0.0.1:0"]
    with served(command, output / "mockbroker.simulation.log") as ready:
        yield ready["control"]
