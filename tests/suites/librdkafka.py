"""librdkafka's own tests in C and C++, built from the sources that a package of npm brings.

``make test`` runs none of them, because building them takes minutes. They expect three brokers and
topics of four partitions; a few expect that topics are not created by themselves, and run on a
cluster of their own. Most of a test's time is waiting, so several run at once, each in a program of
its own.

Quick mode makes a test smaller. Where it would leave out subtests, which no result shows, tests run
whole.

A program takes the number of a test, ``0045``, which several tests may share, and whether it runs
those that librdkafka calls local. Its report gives the state of each test.
"""

import json
import re
import shlex
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final, NamedTuple

from kproto.builds import built, run
from kspec.runner.kafka_tools import installed_tools, tool_command
from kspec.runner.librdkafka import PACKAGE, PACKED, built_library
from tests.suites.model import ClusterNeeds, Run, Status, Suite
from tests.suites.processes import lines_of

__all__ = ["Librdkafka", "Program", "programs_of", "statuses"]

RELEASE: Final = "2.15.1"
COMPILERS: Final = ("gcc", "g++", "make")
TOOLS: Final = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}
"""Kafka's commands that tests call in the folder ``bin`` of KAFKA_PATH."""
SCRIPT: Final = '#!/bin/sh\nexec {command} "$@"\n'
AT_ONCE: Final = 6
CONF: Final = "bootstrap.servers={}\ntest.timeout.multiplier=3\n"
"""The tests' own time-outs are those of one test at a time on a machine that does nothing else."""
PROGRAM_SECONDS: Final = 1200.0

_CONFIGS: Final = {
    "num.partitions": "4",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "3000",  # the default; two consumers join within it
    "group.share.min.record.lock.duration.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
RULES: Final = "rules"
CLUSTERS: Final[Mapping[str, ClusterNeeds]] = {
    "default": ClusterNeeds(brokers=3, configs=_CONFIGS),
    "noautocreate": ClusterNeeds(
        brokers=3, configs={**_CONFIGS, "auto.create.topics.enable": "false"}
    ),
    RULES: ClusterNeeds(brokers=3, configs=_CONFIGS, authorizer=True, open_resources=True),
}
"""librdkafka's scenarios, and a cluster for tests that add access rules."""

_WHOLE: Final = re.compile(r"\bSUB_TEST0?\(|due to quick mode")
"""Occurs in the sources of tests that leave something out in quick mode."""
_STATES: Final = {"PASSED": Status.PASSED, "SKIPPED": Status.SKIPPED}
_TABLE: Final = re.compile(r"^struct test tests\[\] = \{$(.*?)^ *\{NULL\}\};$", re.M | re.S)
_ENTRY: Final = re.compile(r"^ +_TEST\((?=\d)", re.M)
_SCENARIO: Final = re.compile(r'\.scenario = "(\w+)')


class Program(NamedTuple):
    """What one call of the test runner selects."""

    scenario: str
    number: str
    local: bool


def programs_of(source: str) -> dict[Program, list[str]]:
    """The tests of each program, from the table of tests in librdkafka's ``test.c``."""
    table = _TABLE.search(source)
    assert table is not None
    programs = defaultdict(list)
    for entry in _ENTRY.split(table[1])[1:]:
        name = entry.partition(",")[0]
        scenario = _SCENARIO.search(entry)
        program = Program(
            "default" if scenario is None else scenario[1],
            name.partition("_")[0],
            "TEST_F_LOCAL" in entry,
        )
        programs[program].append(name)
    return dict(programs)


class Librdkafka(Suite):
    name = "librdkafka"
    package = f"npm {PACKAGE}@{PACKED[RELEASE]}, deps/librdkafka/tests (librdkafka {RELEASE})"
    toolchains = ("npm", "java", "maven")
    needs = None
    seconds = 3600.0
    only_whole = "building them takes minutes"

    def install(self) -> Path:
        self.check_toolchains(*COMPILERS)
        library = built_library(RELEASE)

        def build(folder: Path) -> None:
            sources = folder / "sources"
            shutil.copytree(library, sources, symlinks=True)
            run(["make", "CXX=g++", "libs"], cwd=sources)
            run(["make", "CXX=g++", "-C", "tests", "build"], cwd=sources)
            for path in sources.rglob("*.o"):
                path.unlink()

        return built(f"suites/{self.name}", [str(library)], build)

    def run(self, run: Run) -> None:
        tests = run.folder / "sources" / "tests"
        programs = programs_of((tests / "test.c").read_text("utf-8"))
        if run.chosen is None:
            wanted = {name for names in programs.values() for name in names} - {*run.left_out}
        else:
            wanted = {*run.chosen}
        kafka = run.output / "kafka"
        _write_tools(kafka)
        deadline = time.monotonic() + run.seconds
        for cluster, needs in CLUSTERS.items():
            chosen = {
                program: names
                for program, names in programs.items()
                if _cluster_of(program, tests) == cluster and wanted & {*names}
            }
            if not chosen:
                continue
            folder = run.output / cluster
            folder.mkdir()
            with run.target.start(needs, folder) as bootstrap:
                conf = folder / "test.conf"
                conf.write_text(CONF.format(bootstrap), "utf-8")
                environment = {
                    "RDKAFKA_TEST_CONF": str(conf),
                    "BROKERS": bootstrap,
                    "KAFKA_PATH": str(kafka),
                    "TEST_KAFKA_VERSION": run.target.version,
                    "LD_LIBRARY_PATH": f"{tests.parent / 'src'}:{tests.parent / 'src-cpp'}",
                }
                stop = threading.Event()
                with ThreadPoolExecutor(AT_ONCE) as pool:
                    calls = [
                        pool.submit(_called, program, tests, folder, environment, deadline, stop)
                        for program in chosen
                    ]
                    try:
                        for call in as_completed(calls):
                            program, states, output = call.result()
                            for name, status in statuses(chosen[program], states):
                                if name in wanted:
                                    run.report(name, status, output)
                    finally:
                        stop.set()
                        pool.shutdown(wait=False, cancel_futures=True)


def _source(program: Program, tests: Path) -> str:
    return "".join(path.read_text("utf-8") for path in tests.glob(f"{program.number}-*.c*"))


def _cluster_of(program: Program, tests: Path) -> str:
    return RULES if "kafka-acls.sh" in _source(program, tests) else program.scenario


def _write_tools(folder: Path) -> None:
    jars = str(installed_tools())
    (folder / "bin").mkdir(parents=True)
    for script, name in TOOLS.items():
        path = folder / "bin" / script
        path.write_text(SCRIPT.format(command=shlex.join(tool_command(jars, name))), "utf-8")
        path.chmod(0o755)


def _called(
    program: Program,
    tests: Path,
    folder: Path,
    environment: Mapping[str, str],
    deadline: float,
    stop: threading.Event,
) -> tuple[Program, dict[str, str], str]:
    """Run a program in a folder of its own; the state of each test, and the output. The program is
    killed with the next line that it prints after ``stop``."""
    place = folder / f"{program.number}{'-local' if program.local else ''}"
    place.mkdir()
    for entry in tests.iterdir():
        if entry.is_dir():  # files that tests read
            (place / entry.name).symlink_to(entry)
    options = [] if _WHOLE.search(_source(program, tests)) else ["-Q"]
    report = place / "report.json"
    with open(place / "output.log", "w+b") as log:
        for _ in lines_of(
            [tests / "test-runner", "-p1", "-l" if program.local else "-L", *options],
            cwd=place,
            environment={
                **environment,
                "TESTS": program.number,
                "TEST_SCENARIO": program.scenario,
                "TEST_REPORT": report.name,
            },
            seconds=max(0.0, min(PROGRAM_SECONDS, deadline - time.monotonic())),
            log=log,
        ):
            if stop.is_set():
                break
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    states: dict[str, Any] = {}
    if report.is_file():
        states = json.loads(report.read_text("utf-8"))["tests"]
    return program, {name: each["state"] for name, each in states.items()}, output


def statuses(names: list[str], states: Mapping[str, str]) -> Iterator[tuple[str, Status]]:
    """A program without a report has crashed, or its time was up: what it ran has failed. A test
    that one with a report did not start (DNS) is left out: the one before it has ended both."""
    for name in names:
        state = states.get(name, "FAILED")
        if state != "DNS":
            yield name, _STATES.get(state, Status.FAILED)
