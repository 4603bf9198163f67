"""A pytest plugin, loaded by ``conftest.py``: requirements and the tests that name them.

``@pytest.mark.requirement("K455-35")`` names the requirement that a test shows. A mark may hold
several ids; an unknown id fails the collection. ``--requirements=check`` fails a run if a
requirement has no passing test; it checks nothing if only some tests ran, and reports that. A run
with several processes (``-n``) knows tests only by their reports, so it may not deselect any.
``--requirement-tests=FILE`` writes the tests of each requirement as JSON, from which the
documentation site makes its page. ``support.requirements`` judges the results.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import requirements
from tests.support.requirements import Requirements, Shown

DOCS = Path(__file__).parent.parent / "docs" / "reference"

_PROPERTY = "requirements"
"""The name of the ids in a test's report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--requirements",
        choices=("check",),
        help="after a run of all tests: check that each requirement is shown",
    )
    parser.addoption(
        "--requirement-tests",
        metavar="FILE",
        type=Path,
        help="after collection: write the tests of each requirement as JSON",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Traceability(config), "traceability-of-this-run")


def ids_of(item: pytest.Item) -> list[str]:
    """The ids a test is marked with, each once. Raises UsageError for a mark without ids."""
    found: list[str] = []
    for mark in item.iter_markers("requirement"):
        if not mark.args or mark.kwargs or not all(isinstance(each, str) for each in mark.args):
            raise pytest.UsageError(f"{item.nodeid}: requirement() takes ids as strings")
        found += mark.args
    return list(dict.fromkeys(found))


class Traceability:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._mode: str | None = config.getoption("requirements")
        if hasattr(config, "workerinput"):  # an xdist worker: the controller reports
            self._mode = None
        self._known: Requirements = requirements.load(DOCS / "requirements.json")
        self._ids: dict[str, list[str]] = {}
        self._outcomes: dict[str, str] = {}
        self._left_out = 0
        self._lines: list[str] = []

    # ---- collect outcomes --------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Runs before every other plugin, so that it sees tests which are deselected later."""
        for item in items:
            ids = ids_of(item)
            unknown = [each for each in ids if each not in self._known.by_id]
            if unknown:
                raise pytest.UsageError(
                    f"{item.nodeid}: no requirement {', '.join(unknown)}; "
                    "docs/reference/requirements.json has them all"
                )
            if ids:
                item.user_properties.append((_PROPERTY, ids))
                self._ids[item.nodeid] = ids

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._left_out += len(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passes if its call passes, and neither set-up nor tear-down fails."""
        ids = dict(report.user_properties).get(_PROPERTY)
        if isinstance(ids, list):  # another process may have collected the test
            self._ids[report.nodeid] = ids
        if report.nodeid in self._ids and (report.when == "call" or not report.passed):
            before = self._outcomes.get(report.nodeid)
            self._outcomes[report.nodeid] = "failed" if before == "failed" else report.outcome

    # ---- list or check -----------------------------------------------------------------------

    def pytest_collection_finish(self) -> None:
        path: Path | None = self._config.getoption("requirement_tests")
        if path is not None:
            tests: dict[str, Counter[str]] = defaultdict(Counter)
            for nodeid, ids in self._ids.items():
                for each in ids:
                    tests[each][nodeid.partition("[")[0]] += 1
            path.write_text(json.dumps(tests))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        why = self._why_incomplete(session)
        if self._mode is not None and why:
            self._lines = [f"Requirements were not checked: {why}."]
        elif self._mode is not None:
            self._check(session)

    def _why_incomplete(self, session: pytest.Session) -> str:
        if self._config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
            return "only some paths ran"
        shared_out = self._config.pluginmanager.hasplugin("dsession")
        if self._config.option.collectonly:
            return "no test ran"
        if session.shouldstop or session.shouldfail or session.exitstatus not in (0, 1):
            return "the run was stopped"
        if self._left_out:
            return f"{self._left_out} tests were deselected"
        chosen = self._config.option.markexpr or self._config.option.keyword
        if shared_out and chosen:  # only the workers know how many
            return "tests were deselected"
        return ""

    def _check(self, session: pytest.Session) -> None:
        self._lines = requirements.problems(self._known, self._tests())
        if self._lines and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _tests(self) -> requirements.Tests:
        tests: dict[str, dict[str, Shown]] = defaultdict(lambda: defaultdict(Shown))
        for nodeid, ids in self._ids.items():
            outcome = self._outcomes.get(nodeid, "left_out")
            for each in ids:
                shown = tests[each][nodeid.partition("[")[0]]
                setattr(shown, outcome, getattr(shown, outcome) + 1)
        return tests

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            terminalreporter.section("requirements")
            for line in self._lines:
                terminalreporter.write_line(line)
