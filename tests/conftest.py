"""What every test may use: the run's seed, a seeded generator, and hypothesis profiles.

The profile is named by ``KPROTO_HYPOTHESIS``: ``fast`` (few examples), ``default``, ``ci`` (the
same examples every run, so that nothing flakes) or ``full`` (many, and new ones every run).
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, settings

import kproto
from tests.support import seeds

pytest_plugins = ["tests.traceability"]

# No deadline anywhere: a shared machine stalls for longer than any example should take.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _COMMON, max_examples=25)
settings.register_profile("default", _COMMON, max_examples=100)
settings.register_profile("ci", _COMMON, max_examples=60, derandomize=True)
settings.register_profile("full", _COMMON, max_examples=1000)
settings.load_profile(os.environ.get("KPROTO_HYPOTHESIS", "default"))


def pytest_configure() -> None:
    """Workers of pytest-xdist are started later, with this environment: one seed for all."""
    os.environ["KPROTO_SEED"] = str(seeds.seed())


def pytest_report_header() -> list[str]:
    return [
        f"kproto: {kproto.engine} engine, KPROTO_SEED={seeds.seed()}, "
        f"KPROTO_HYPOTHESIS={os.environ.get('KPROTO_HYPOTHESIS', 'default')}, "
        f"KPROTO_REQUIRE={os.environ.get('KPROTO_REQUIRE', '')}"
    ]


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A generator that draws the same numbers whenever this test runs under the same seed."""
    return seeds.generator(request.node.nodeid)
