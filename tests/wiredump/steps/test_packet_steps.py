"""The steps to read a capture grow with its packets, whatever their arrangement."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support import seeds
from tests.support.full import quick
from tests.support.steps import MOST_GROWTH, Growth, growth_of
from tests.wiredump.quickly import read_quickly, require_quick
from tests.wiredump.steps.arrangements import NAMED, Arrangement, arranged
from tests.wiredump.steps.reading import WAYS, reader_of

SIZE = 120


def growth(arrangement: Arrangement, way: str) -> Growth:
    if way == "extension":
        require_quick()
    return growth_of(partial(reader_of, arrangement, way), SIZE)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMED)
def test_steps_grow_with_packets(name: str, way: str) -> None:
    found = growth(NAMED[name], way)
    assert found.factor <= MOST_GROWTH, found


@pytest.mark.slow
def test_steps_grow_with_packets_in_any_arrangement() -> None:
    """A sample of ``tests.wiredump.steps.search``, by the run's seed."""
    for number in range(quick(8, sampled=2)):
        rng = seeds.generator(f"arrangement {number}")
        arrangement, way = arranged(rng), rng.choice(list(WAYS))
        found = growth(arrangement, way)
        assert found.factor <= MOST_GROWTH, (way, arrangement, found)


def test_usual_arrangements_are_the_extension_s() -> None:
    """Otherwise the steps of its loops would not be counted."""
    require_quick()
    for name in ("in order", "answered in reverse", "the first never answered", "many SYNs"):
        assert read_quickly(NAMED[name].capture(50)).slowly == 0
