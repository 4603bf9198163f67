"""A command collects seldom while it starts, and a server leaves out what it has loaded."""

import gc
from collections.abc import Iterator

import pytest

from mockbroker.cli.collector import collect_seldom, keep_what_is_loaded


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds, is_frozen = gc.get_threshold(), gc.get_freeze_count() > 0
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    if is_frozen:  # by tests/conftest.py
        gc.freeze()


def test_collections_are_seldom_at_first_and_spare_what_is_loaded() -> None:
    usual = (700, 10, 10)
    gc.set_threshold(*usual)  # other tests may have run commands in this process
    collect_seldom()
    starting = gc.get_threshold()
    gc.unfreeze()
    keep_what_is_loaded()
    serving = gc.get_threshold()
    assert usual[0] < serving[0] < starting[0]
    assert usual[1:] == serving[1:] == starting[1:]
    assert gc.get_freeze_count() > len(gc.get_objects(generation=0))
