"""Defects that were put there on purpose are found: ``fuzz.stateful.planted``."""

import pytest

from fuzz.stateful.planted import DEFECTS, found
from tests.support.full import drawn

SEED, EXAMPLES = 860, 80
MISSED = 0.3
"""Of what is sought, at most: some take a longer story, and what Hypothesis draws of one seed also
depends on the modules that were imported before."""


@pytest.mark.slow
def test_most_planted_bugs_are_found() -> None:
    sought = drawn("planted in the cluster", DEFECTS, few=4)
    said = {bug.name: found(bug, number=SEED, examples=EXAMPLES) for bug in sought}
    missed = [name for name, text in said.items() if text is None]
    assert len(missed) <= MISSED * len(sought), missed
