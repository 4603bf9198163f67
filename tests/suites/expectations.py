"""The expected result of every test of a suite, on each target: ``expected/SUITE.json``.

A test passes, is skipped by the suite itself, is known to fail with a reason, or is left out on
every target with a reason. Tests are named exactly. A run agrees with the file if each test of the
run has the status that the file gives it, and if no failure lacks a reason.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from tests.suites.model import Status
from tests.suites.targets import COUNTERPARTS

__all__ = ["ASKS_NO_BROKER", "FOLDER", "Expectations", "Expected"]

FOLDER: Final = Path(__file__).with_name("expected")
ASKS_NO_BROKER: Final = "asks no broker"


@dataclass(slots=True)
class Expected:
    """The results on one target."""

    passed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    """Test -> why it fails."""

    def drop(self, names: Collection[str]) -> None:
        self.passed.difference_update(names)
        self.skipped.difference_update(names)
        for name in [*self.failed]:
            if name in names:
                del self.failed[name]

    def statuses(self) -> dict[str, Status]:
        return {
            **dict.fromkeys(self.passed, Status.PASSED),
            **dict.fromkeys(self.skipped, Status.SKIPPED),
            **dict.fromkeys(self.failed, Status.FAILED),
        }


@dataclass(slots=True)
class Expectations:
    """One file."""

    suite: str
    left_out: dict[str, str] = field(default_factory=dict)
    """Test -> why it does not run."""
    targets: dict[str, Expected] = field(default_factory=dict)

    @classmethod
    def read(cls, suite: str, folder: Path = FOLDER) -> Self:
        """An absent file expects nothing."""
        path = folder / f"{suite}.json"
        content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        targets = {
            name: Expected(set(lists["passed"]), set(lists["skipped"]), dict(lists["failed"]))
            for name, lists in content.get("targets", {}).items()
        }
        return cls(suite, content.get("left_out", {}), targets)

    def write(self, folder: Path = FOLDER) -> None:
        content = {
            "left_out": dict(sorted(self.left_out.items())),
            "targets": {
                name: {
                    "passed": sorted(expected.passed),
                    "skipped": sorted(expected.skipped),
                    "failed": dict(sorted(expected.failed.items())),
                }
                for name, expected in sorted(self.targets.items())
            },
        }
        text = json.dumps(content, indent=2, ensure_ascii=False)
        (folder / f"{self.suite}.json").write_text(f"{text}\n", "utf-8")

    # ---- comparing -------------------------------------------------------------------------------

    def problems(
        self, target: str, results: Mapping[str, Status], chosen: Collection[str] | None
    ) -> Iterator[str]:
        """A line for each disagreement; ``chosen`` are the tests of the run, None for all."""
        expected = self.targets.get(target, Expected())
        statuses = expected.statuses()
        names = {*statuses, *results} if chosen is None else {*chosen, *results}
        for name in sorted(names):
            status, wanted = results.get(name), statuses.get(name)
            if status is None:
                yield f"{name} did not run"
            elif wanted is None:
                yield f"{name} {_said(status)}, and no list has it"
            elif status is not wanted:
                yield f"{name} {_said(status)}, but {_should(wanted)}"
            elif status is Status.FAILED and not expected.failed[name].strip():
                yield f"{name} failed, and its list gives no reason"

        if chosen is None:
            for name, why in self.left_out.items():
                if not why.strip():
                    yield f"{name} is left out, and no reason is given"

    def without_reason(self) -> list[str]:
        """Tests that are left out, or known to fail, without a reason."""
        reasons = [self.left_out, *(expected.failed for expected in self.targets.values())]
        return sorted({name for each in reasons for name, why in each.items() if not why.strip()})

    # ---- updating --------------------------------------------------------------------------------

    def update(
        self, target: str, results: Mapping[str, Status], chosen: Collection[str] | None
    ) -> None:
        """Take over the results and keep the reasons. A new failure has the reason of the real
        release where that fails, too, else none yet. Without ``chosen``, tests that no longer exist
        are dropped."""
        if target == "nothing":
            asking = {name for name, why in self.left_out.items() if why == ASKS_NO_BROKER}
            for name in asking & set(results):
                del self.left_out[name]
            passed = [name for name, status in results.items() if status is Status.PASSED]
            self.left_out.update(dict.fromkeys(passed, ASKS_NO_BROKER))
            self._drop_left_out()
            return
        old = self.targets.setdefault(target, Expected())
        kept = {} if chosen is None else old.statuses()
        statuses = {**kept, **results}
        real = self.targets.get(COUNTERPARTS.get(target, ""), Expected()).failed
        failed = {
            name: old.failed.get(name) or _also(target, real.get(name, ""))
            for name, status in statuses.items()
            if status is Status.FAILED
        }
        self.targets[target] = Expected(
            {name for name, status in statuses.items() if status is Status.PASSED},
            {name for name, status in statuses.items() if status is Status.SKIPPED},
            failed,
        )
        self._drop_left_out()

    def _drop_left_out(self) -> None:
        for expected in self.targets.values():
            expected.drop(self.left_out)


def _also(target: str, reason: str) -> str:
    return f"as on {COUNTERPARTS[target]}: {reason}" if reason else ""


def _said(status: Status) -> str:
    return "was skipped" if status is Status.SKIPPED else str(status)


def _should(status: Status) -> str:
    return {
        Status.PASSED: "must pass",
        Status.SKIPPED: "the suite skipped it before",
        Status.FAILED: "is known to fail",
    }[status]
