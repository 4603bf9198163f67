"""Fixtures, hypothesis profiles and report lines that every test shares.

``KPROTO_HYPOTHESIS`` names the profile: ``fast`` (few examples), ``default``, ``ci`` (the same
examples whatever the seed) or ``full`` (many examples). Examples depend on the run's seed, like
everything that is random.
"""

import gc
import os
import random
import re
from collections.abc import Callable, Generator
from pathlib import Path

import hypothesis.core
import pytest
from hypothesis import HealthCheck, settings

import kproto
from tests.support import full, rewriting, seeds
from tests.support.shares import in_shares

pytest_plugins = ["tests.traceability", "tests.support.folder_seconds"]

# No deadlines: a loaded machine may stall for longer than any example takes.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _COMMON, max_examples=full.quick(25, sampled=12))
settings.register_profile("default", _COMMON, max_examples=100)
settings.register_profile("ci", _COMMON, max_examples=full.quick(60, sampled=25), derandomize=True)
settings.register_profile("full", _COMMON, max_examples=1000)
settings.load_profile(os.environ.get("KPROTO_HYPOTHESIS", "default"))

rewriting.rewrite_once()


def pytest_configure(config: pytest.Config) -> None:
    """Give the seed to hypothesis, and to the processes that pytest-xdist starts."""
    rewriting.rewrite_only_tests(config)
    os.environ["KPROTO_SEED"] = str(seeds.seed())
    # Adapters are built with it, and Go compiles its library and the clients again without.
    os.environ.setdefault("GOFLAGS", "-trimpath")
    if config.getoption("--hypothesis-seed") is None:
        hypothesis.core.global_force_seed = seeds.seed()  # type: ignore[assignment]
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(_Failures(config))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection, which takes a quarter of the time and finds nothing.

    What was collected lives until the end. The collector need not look at it in each test, either.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_MODULE_MARKS = re.compile(r"^pytestmark = (.*?)^(?=\S)(?!\])", re.MULTILINE | re.DOTALL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a module all of whose tests a ``-m "not slow and not java"`` leaves out."""
    conditions = config.option.markexpr.split(" and ")
    unwanted = {f"mark.{each.removeprefix('not ')}" for each in conditions}
    named = any(".py" in each for each in config.args)
    if (
        named
        or not all(each.startswith("not ") for each in conditions)
        or (not collection_path.name.startswith("test_"))
    ):
        return None
    marks = _MODULE_MARKS.search(collection_path.read_text())
    found = set(re.findall(r"mark\.\w+", marks[1])) if marks else set()
    return True if found & unwanted else None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    """Sample a quick run before pytest makes a test of each set of parameters: three of four sets
    would be left out by ``pytest_collection_modifyitems``, which knows what else was left out."""
    result = yield
    named = metafunc.config.option.keyword or any("[" in each for each in metafunc.config.args)
    if full.QUICK and not named:
        metafunc._calls = full.some_of_each_kind(
            metafunc.definition.nodeid,
            metafunc._calls,
            kind=lambda call: tuple((mark.name, mark.args) for mark in call.marks),
        )
    return result


_TOGETHER = tuple(
    str(Path(__file__).parent / folder) + os.sep
    for folder in ("browser", "oracle", "records/oracle", "tshark", "wireshark")
)
"""Folders whose tests share programs that take seconds to start."""


_LONG = tuple(
    str(Path(__file__).parent / folder) + os.sep
    for folder in ("fuzz", "kspec", "real", "recipes", "suites", "tools", "wiredump/spark")
)
"""Folders whose slow tests take half a minute rather than seconds."""


def _unit(item: pytest.Item) -> str:
    """The tests that one process should run: those of such a folder, those with Spark's session, or
    a module's slow or quick ones."""
    if "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    path = str(item.path)
    module = f"{path} {_is_slow(item)}"
    return next((folder for folder in _TOGETHER if path.startswith(folder)), module)


def _weight(item: pytest.Item) -> int:
    if not _is_slow(item):
        return 0
    return 10 if str(item.path).startswith(_LONG) else 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After options and other plugins have left tests out: sample a quick run, and order the tests
    for several processes."""
    if full.QUICK:
        from tests.traceability import ids_of  # which pytest loads as a plugin, after this file

        items[:], left_out = full.some_parameters(
            items, name=_without_parameters, slow=_is_slow, shows=ids_of
        )
        config.hook.pytest_deselected(items=left_out)
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        items[:] = in_shares(items, processes, unit=_unit, weight=_weight)


class _Failures:
    """Prints each test that fails, and the end of its traceback, at once: a run that is stopped has
    no summary."""

    LINES = 25

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._plugins.getplugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f"\n{report.when} failed: {report.nodeid}")
            for line in report.longreprtext.splitlines()[-self.LINES :]:
                terminal.write_line(f"    {line}")


def _without_parameters(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def _header() -> str:
    return (
        f"kproto: {kproto.engine} engine, KPROTO_SEED={seeds.seed()}, "
        f"KPROTO_HYPOTHESIS={os.environ.get('KPROTO_HYPOTHESIS', 'default')}, "
        f"KPROTO_REQUIRE={os.environ.get('KPROTO_REQUIRE', '')}"
        f"{', sampled for KPROTO_QUICK' if full.QUICK else ''}"
    )


def pytest_report_header() -> str:
    return _header()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the notes of tests, and with ``-q`` the header, which has the seed."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, text in report.user_properties:
                    if name == "note":
                        terminalreporter.write_line(f"note: {report.nodeid}: {text}")
    if not terminalreporter.showheader or terminalreporter.no_header:
        terminalreporter.write_line(_header())


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A function that adds a line to the run's summary, for a finding that fails no test."""
    return lambda text: request.node.user_properties.append(("note", text))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A generator that draws the same numbers whenever this test runs under the same seed."""
    return seeds.generator(request.node.nodeid)
