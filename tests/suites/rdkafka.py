"""The tests of the crate ``rdkafka``, librdkafka's binding for Rust.

Cargo fetches the crate with its tests and its ``Cargo.lock``, and builds a program of each file of
tests; the build compiles the librdkafka inside the crate ``rdkafka-sys``. Each test runs in a
process of its own, several at once, since most of a test's time is waiting.
"""

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

from kproto.builds import built, run
from kspec.runner import toolchains
from tests.suites.model import ClusterNeeds, Run, Status, Suite
from tests.suites.processes import lines_of

__all__ = ["RustRdkafka", "executables_of", "listed_tests", "status_of"]

RELEASE: Final = "0.39.0"
FETCHING: Final = f"""[package]
name = "fetching"
version = "0.0.0"
edition = "2021"
[lib]
path = "empty.rs"
[dependencies]
rdkafka = "={RELEASE}"
"""
"""A package that only makes cargo fetch the crate."""
COMPILERS: Final = ("gcc", "g++", "make")
BUILD: Final = ("cargo", "test", "--no-run", "--locked", "--message-format=json")
AT_ONCE: Final = 4
TEST_SECONDS: Final = 180.0
_RESULT: Final = re.compile(
    r"^test result: (ok|FAILED)\. (?P<passed>\d+) passed; \d+ failed; (?P<ignored>\d+) ignored"
)


class _Test(NamedTuple):
    program: str
    """The name of its file: ``test_admin``."""
    path: str
    """Its path in the program: ``test_topics``."""

    @property
    def name(self) -> str:
        return f"{self.program}::{self.path}"


class RustRdkafka(Suite):
    name = "rdkafka"
    package = f"crates.io rdkafka@{RELEASE} (librdkafka 2.12.1)"
    toolchains = ("rust",)
    private_network = True
    needs = ClusterNeeds(
        first_id=0, port=9092, advertised=("localhost", 9092), configs={"num.partitions": "3"}
    )
    seconds = 1800.0
    only_whole = "building them takes minutes"

    def install(self) -> Path:
        self.check_toolchains(*COMPILERS)
        made_of = [FETCHING, *BUILD, toolchains.find("rust") or ""]
        return built(f"suites/{self.name}", made_of, self._build)

    def _build(self, folder: Path) -> None:
        fetching = folder / "fetching"
        fetching.mkdir()
        (fetching / "Cargo.toml").write_text(FETCHING, "utf-8")
        (fetching / "empty.rs").touch()
        described = ["cargo", "metadata", "--format-version=1"]
        run([*described, "--quiet"], cwd=fetching)
        done = subprocess.run(described, cwd=fetching, capture_output=True, text=True, check=True)
        (manifest,) = [
            Path(each["manifest_path"])
            for each in json.loads(done.stdout)["packages"]
            if each["name"] == "rdkafka"
        ]
        shutil.rmtree(fetching)
        sources = folder / "sources"
        shutil.copytree(manifest.parent, sources)
        run(BUILD, cwd=sources)  # it may be repeated, with the parts that are built
        done = subprocess.run(BUILD, cwd=sources, capture_output=True, text=True, check=True)
        programs = folder / "programs"
        programs.mkdir()
        for name, path in executables_of(done.stdout.splitlines()).items():
            shutil.copy(path, programs / name)
        shutil.rmtree(sources / "target")

    def run(self, run: Run) -> None:
        tests = [
            _Test(program.name, path)
            for program in sorted((run.folder / "programs").iterdir())
            for path in listed_tests(_listed(program))
        ]
        if run.chosen is None:
            chosen = [each for each in tests if each.name not in run.left_out]
        else:
            chosen = [each for each in tests if each.name in run.chosen]
        environment = {
            "KAFKA_HOST": run.bootstrap,
            "KAFKA_VERSION": run.target.version,
            "RUST_BACKTRACE": "0",
            "RUST_LOG": "off",
        }
        deadline = time.monotonic() + run.seconds
        stop = threading.Event()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            calls = {
                pool.submit(_outcome, run.folder, each, environment, deadline, stop): each
                for each in chosen
            }
            try:
                for call in as_completed(calls):
                    status, output = call.result()
                    run.report(calls[call].name, status, output)
            finally:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


def executables_of(messages: Iterable[str]) -> dict[str, Path]:
    """The programs of tests among cargo's messages, by the name of their target."""
    found = {}
    for line in messages:
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or not message["executable"]:
            continue
        if message["profile"]["test"] and {*message["target"]["kind"]} & {"lib", "test"}:
            found[message["target"]["name"]] = Path(message["executable"])
    return found


def listed_tests(listing: str) -> list[str]:
    """The tests that a program lists: ``path: test``."""
    lines = listing.splitlines()
    return [line.removesuffix(": test") for line in lines if line.endswith(": test")]


def status_of(lines: Iterable[str]) -> Status:
    """What a program reports that ran one test. A test without a result has crashed, or its time
    was up."""
    for line in lines:
        if (result := _RESULT.match(line)) is not None:
            if result[1] == "ok" and result["passed"] == "1":
                return Status.PASSED
            if result["ignored"] == "1":
                return Status.SKIPPED
    return Status.FAILED


def _listed(program: Path) -> str:
    return subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout


def _outcome(
    folder: Path,
    test: _Test,
    environment: Mapping[str, str],
    deadline: float,
    stop: threading.Event,
) -> tuple[Status, str]:
    lines = []
    for line in lines_of(
        [folder / "programs" / test.program, "--exact", test.path],
        cwd=folder / "sources",
        environment=environment,
        seconds=max(0.0, min(TEST_SECONDS, deadline - time.monotonic())),
    ):
        lines.append(line)
        if stop.is_set():
            break
    return status_of(lines), "\n".join(lines)
