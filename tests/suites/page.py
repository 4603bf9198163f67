"""The tables of ``docs/explanation/suites.md``, from the lists. ``scripts.reference_pages`` writes
them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.suites.catalog import SUITES
from tests.suites.expectations import ASKS_NO_BROKER, Expectations
from tests.suites.targets import COUNTERPARTS, MOCK

__all__ = ["failures", "left_out", "results"]

_TARGETS: Final = [name for pair in COUNTERPARTS.items() for name in pair]

Rows = Iterator[Sequence[str]]


def results() -> Rows:
    """A suite; its package; the tests that ask a broker; how many pass on each target."""
    yield ("suite", "package", "tests", *_TARGETS)
    for name, suite in SUITES.items():
        expectations = Expectations.read(name)
        tests = {*_asking(expectations)}
        for expected in expectations.targets.values():
            tests |= expected.statuses().keys()
        passed = [_passed(expectations, target, suite.real) for target in _TARGETS]
        yield (f"`{name}`", suite.package, str(len(tests)), *passed)


def _passed(expectations: Expectations, target: str, real: str) -> str:
    """``real`` is the real cluster of the suite, which may be another than the others'."""
    other = target == COUNTERPARTS[MOCK] and target != real
    expected = expectations.targets.get(real if other else target)
    if expected is None:
        return "not run"
    skipped = f", {len(expected.skipped)} skipped" if expected.skipped else ""
    return f"{len(expected.passed)}{skipped}" + (f" on {real}" if other else "")


def failures() -> Rows:
    """A reason; the target; the suite; the tests."""
    yield ("target", "suite", "reason", "tests")
    for name in SUITES:
        for target, expected in Expectations.read(name).targets.items():
            for reason, tests in _by_reason(expected.failed):
                yield (target, f"`{name}`", reason, _names(tests))


def left_out() -> Rows:
    """A suite; a reason; the tests. Those that ask no broker are only counted."""
    yield ("suite", "reason", "tests")
    for name in SUITES:
        for reason, tests in _by_reason(Expectations.read(name).left_out):
            yield (
                f"`{name}`",
                reason,
                str(len(tests)) if reason == ASKS_NO_BROKER else _names(tests),
            )


def _asking(expectations: Expectations) -> Iterator[str]:
    return (name for name, why in expectations.left_out.items() if why != ASKS_NO_BROKER)


def _by_reason(reasons: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """The tests of each reason; the reason with the most tests comes first."""
    tests = defaultdict(list)
    for name, reason in sorted(reasons.items()):
        tests[reason].append(name)
    return sorted(tests.items(), key=lambda each: (-len(each[1]), each[0]))


def _names(tests: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in tests)
