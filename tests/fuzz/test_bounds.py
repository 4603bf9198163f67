"""The measure of memory bites, and the guides find what is there to be found."""

import pytest

from fuzz import bounds, guides, instruments
from fuzz.targets import TARGETS
from tests.support import toolchain


def test_more_than_the_input_explains_is_seen():
    data = bytes(100)
    assert bounds.allocating(lambda: len(bytes(1000)), data, a_byte=10, besides=4096) == 1000
    with pytest.raises(bounds.TooMuchMemory, match="for 100 of input; the limit is 5096"):
        bounds.allocating(lambda: bytes(6000), data, a_byte=10, besides=4096)


def test_what_is_instrumented_has_to_come_first():
    with pytest.raises(AssertionError, match="imported before the guide"):
        instruments._Patched(("fuzz.bounds",))


@pytest.mark.slow
@pytest.mark.parametrize("guide", ["python", "c", "none"])
def test_a_guide_runs_and_counts(guide: str):
    """A second of the shortest target: the worker starts under its guide, and reaches something."""
    target = TARGETS["columns"]
    reason = guides.absent(guide, target)
    if reason:
        toolchain.absent("fuzz", reason)
    ran = guides.fuzz(target, guide, seconds=2, seed=1, show=False)
    assert ran.kept == ""
    assert ran.executions > 0
    assert (ran.edges > 100) == (guide != "none")
