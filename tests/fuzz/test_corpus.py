"""Committed inputs and seeds hold their targets' invariants: no guide is needed to see that."""

import random
from pathlib import Path

import pytest

from fuzz import inputs, mutations
from fuzz.targets import TARGETS, Target, TargetModule, load
from tests.support import toolchain

MOST_COMMITTED = 1_000_000


def loaded(target: Target) -> TargetModule:
    try:
        return load(target)
    except ImportError as error:
        of_ours = (error.name or "").startswith("kproto.native") or "_engine" in str(error)
        toolchain.absent("native" if of_ours or not target.modules else "fuzz", str(error))
        raise


@pytest.mark.requirement("C-09")
@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_committed_inputs_hold(target: Target):
    files = inputs.committed(target.name)
    assert files
    for file in files:
        data = file.read_bytes()
        assert file.name == inputs.name_of(data), "named by its content"
        loaded(target).check(data)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_guide_has_something_to_begin_with(target: Target):
    """Seeds are the same each time, short enough, and what a mutation makes of one holds too."""
    module = loaded(target)
    seeds = list(module.seeds())
    assert seeds == list(module.seeds())
    assert 0 < max(map(len, seeds)) <= target.max_length
    rng = random.Random(7)
    mutate = getattr(module, "mutate", None)
    for seed in rng.sample(seeds, min(len(seeds), 5)):
        module.check(seed)
        if mutate is not None:
            plainly = lambda data, size: mutations.plain(data, size, rng)  # noqa: E731
            module.check(mutate(seed, target.max_length, rng, plainly)[: target.max_length])


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_target_says_what_holds_and_what_it_accepts(target: Target):
    text = loaded(target).__doc__ or ""
    assert "**Holds:**" in text
    assert "**Accepted:**" in text
    assert text.index("**Holds:**") < text.index("**Accepted:**")


def test_the_corpus_is_small():
    sizes = {path: path.stat().st_size for path in Path(inputs.CORPUS).rglob("*") if path.is_file()}
    assert sum(sizes.values()) < MOST_COMMITTED
    assert {path.parent.name for path in sizes} == set(TARGETS)
