"""Mishaps of operators and their machines, one after the other, by a search: nothing is lost,
nothing is there twice, each error says what to do, and the next start goes on."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.full import quick
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.mishaps import MISHAPS, World
from tests.wiredump.spark.rotating import so_far

__all__ = ["session"]

quiet = settings(
    deadline=None,
    max_examples=quick(60, 4),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def world_of(tmp_path: Path, session: FakeSession, seed: int, *, skip: bool, clock: bool) -> World:
    root = tmp_path / "world"
    shutil.rmtree(root, ignore_errors=True)
    (root / "all").mkdir(parents=True)
    return World(root, session, seed, skip=skip, clock=clock)


@pytest.mark.slow
@quiet
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from(sorted(MISHAPS)), min_size=1, max_size=4),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_any_mishaps(
    tmp_path: Path, session: FakeSession, seed: int, mishaps: list[str], skip: bool, clock: bool
) -> None:
    world = world_of(tmp_path, session, seed, skip=skip, clock=clock)
    try:
        for each in mishaps:
            world.happens(each)
        world.check()
    finally:
        world.patch.undo()
        time.tzset()


@pytest.mark.parametrize("mishap", sorted(MISHAPS))
def test_each_mishap(tmp_path: Path, session: FakeSession, mishap: str) -> None:
    world = world_of(tmp_path, session, 7, skip=False, clock=False)
    try:
        world.happens(mishap)
        world.check()
    finally:
        world.patch.undo()
        time.tzset()


def test_a_folder_without_files(tmp_path: Path, session: FakeSession) -> None:
    """And its end."""
    world = world_of(tmp_path, session, 7, skip=False, clock=False)
    for path in world.place.iterdir():
        path.unlink()
    so_far(session, world.stream())
    world.arrived = 0
    world.check()
