"""What a suite is: a released package with tests, a way to install and to run it."""

from __future__ import annotations

import enum
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from kproto.errors import AbsentError
from kspec.runner import toolchains

if TYPE_CHECKING:
    from tests.suites.targets import Target

__all__ = ["ClusterNeeds", "Report", "Run", "Status", "Suite"]


class Status(enum.StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


Report = Callable[[str, Status, str], None]
"""Takes the name of a test, its status and its output, as soon as the test ends."""


@dataclass(frozen=True, slots=True)
class ClusterNeeds:
    """The cluster that a suite expects to find."""

    brokers: int = 1
    first_id: int = 1
    """The id of the first broker; the others' follow."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Static configs of every broker."""
    authorizer: bool = False
    """Whether brokers keep access rules. Clients are super users."""
    open_resources: bool = False
    """With ``authorizer``: clients are no super users, and everything is allowed on resources
    without a rule."""
    port: int = 0
    """The port of the first broker; the others' follow. Only in a network of its own
    (``Suite.private_network``); 0 takes free ports."""
    advertised: tuple[str, int] | None = None
    """The host and port that the first broker advertises; the others' ports follow."""

    @property
    def ids(self) -> range:
        return range(self.first_id, self.first_id + self.brokers)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite."""

    folder: Path
    """What ``Suite.install`` returned."""
    bootstrap: str
    """``HOST:PORT`` of each broker, comma-separated; empty if the suite starts its own clusters."""
    target: Target
    chosen: Collection[str] | None
    """The tests to run; None for every test that is not left out."""
    left_out: Collection[str]
    output: Path
    """A folder for logs."""
    seconds: float
    """How long the run may take."""
    report: Report


class Suite(ABC):
    """A released package whose tests ask a broker."""

    name: ClassVar[str]
    package: ClassVar[str]
    """The registry, the package and its version: "Go github.com/twmb/franz-go@v1.22.2"."""
    toolchains: ClassVar[tuple[str, ...]] = ()
    """Names of ``kspec.runner.toolchains``."""
    needs: ClassVar[ClusterNeeds | None] = ClusterNeeds()
    """None for a suite that starts clusters itself, by ``Run.target``."""
    real: ClassVar[str] = "kafka:4.4.0"
    """The real cluster that it runs on: the newest that it can."""
    private_network: ClassVar[bool] = False
    """Whether the suite uses fixed ports, and so runs in a network namespace of its own."""
    seconds: ClassVar[float] = 1800.0
    """How long all its tests may take."""
    quick: ClassVar[tuple[str, ...]] = ()
    """The tests that ``make test`` runs, on the mock: telling and fast."""
    only_whole: ClassVar[str] = ""
    """Why ``make test`` runs none of them, so that only ``make suites`` runs the suite."""

    def check_toolchains(self, *commands: str) -> None:
        """Raise AbsentError if a toolchain or one of these commands is absent."""
        missing = toolchains.missing(list(self.toolchains))
        if absent := [each for each in commands if shutil.which(each) is None]:
            missing.append(f"absent: {', '.join(absent)} (Debian: build-essential)")
        if missing:
            raise AbsentError("; ".join(missing))

    @abstractmethod
    def install(self) -> Path:
        """Install the suite, unless it is cached. Raises AbsentError with the reason."""

    @abstractmethod
    def run(self, run: Run) -> None:
        """Run tests and report each. A test without a report counts as one that did not run."""
