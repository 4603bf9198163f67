"""The fuzzer is tested itself: bugs are planted in a sample decoder and a sample client, and found.

Bounded by cases of one seed, not by time; ``python -m fuzz.planted`` measures both.
"""

from __future__ import annotations

import pytest

from fuzz.planted.run import BUGS, hunt
from tests.support.full import drawn, either, quickly_drawn

DECODER_SEED = 0
CLIENT_SEED = 5
"""By which a frame of size 0, which one bug takes, comes early."""
DECODER_CASES = 120
CLIENT_CASES = 300
CALM_CASES = either(300, sampled=100)


@pytest.mark.parametrize("bug", quickly_drawn("planted", [*BUGS["decoder"]], 3))
def test_a_decoder_s_bug_is_found(bug: int) -> None:
    assert hunt("decoder", bug, seed=DECODER_SEED, cases=DECODER_CASES, seconds=300).found


@pytest.mark.slow
@pytest.mark.parametrize("bug", drawn("sample client", [*BUGS["client"]], few=4))
def test_a_client_s_bug_is_found(bug: int) -> None:
    assert hunt("client", bug, seed=CLIENT_SEED, cases=CLIENT_CASES, seconds=300).found


@pytest.mark.slow
def test_nothing_is_found_in_a_client_without_a_bug() -> None:
    calm = hunt("client", 0, seed=CLIENT_SEED, cases=CALM_CASES, seconds=300)
    assert (calm.how, calm.cases) == ("", CALM_CASES)


def test_there_are_ten_of_each() -> None:
    assert {sample: len(bugs) for sample, bugs in BUGS.items()} == {"client": 10, "decoder": 10}
