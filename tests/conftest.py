"""What every test may use: the run's seed, a seeded generator, and hypothesis profiles.

The profile is named by ``KPROTO_HYPOTHESIS``: ``fast`` (few examples), ``default``, ``ci`` (the
same examples every run, so that nothing flakes) or ``full`` (many, and new ones every run).
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Generator

import pytest
from hypothesis import HealthCheck, settings

import kproto
from tests.support import full, order, seeds

pytest_plugins = ["tests.traceability"]

# No deadline anywhere: a shared machine stalls for longer than any example should take.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _COMMON, max_examples=full.quick(25, sampled=12))
settings.register_profile("default", _COMMON, max_examples=100)
settings.register_profile("ci", _COMMON, max_examples=60, derandomize=True)
settings.register_profile("full", _COMMON, max_examples=1000)
settings.load_profile(os.environ.get("KPROTO_HYPOTHESIS", "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Workers of pytest-xdist are started later, with this environment: one seed for all."""
    os.environ["KPROTO_SEED"] = str(seeds.seed())
    # Otherwise it shares out first the files that hold most tests, whatever those take.
    config.option.loadscopereorder = False


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
    """Notes of tests; and the header, which pytest leaves out with ``-q``: it has the seed."""
    reports = (report for each in terminalreporter.stats.values() for report in each)
    for report in reports:
        if getattr(report, "when", "") == "call":
            for name, text in report.user_properties:
                if name == "note":
                    terminalreporter.write_line(f"note: {report.nodeid}: {text}")
    if not terminalreporter.showheader or terminalreporter.no_header:
        terminalreporter.write_line(_header())


# ---- files in an order that leaves no process alone at the end ----------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: a cycle's search through all of it would find nothing,
    neither meanwhile nor in each test that asks for one."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and isinstance(collector, pytest.Directory) and order.backwards(worker):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A run in one process stays in the order it was asked for."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=order.place)


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A function that adds a line to the run's summary, for a finding that fails no test."""
    return lambda text: request.node.user_properties.append(("note", text))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A generator that draws the same numbers whenever this test runs under the same seed."""
    return seeds.generator(request.node.nodeid)
