"""The mock's data plane answers as a real cluster of the same release does, field by field.

The sessions are the scripts of ``tests.real.data``, each at every version that both sides serve: a
sample drawn by the run's seed, all of them with ``KPROTO_FULL=1``. The same seed draws a few random
programs (``tests.real.walks``); ``make fidelity-programs ARGS="--data"`` plays many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.real.compare import Comparison
from tests.real.data.clusters import DataKafka, data_mock
from tests.real.data.known import KNOWN
from tests.real.data.pairs import PROFILES, clusters_of
from tests.real.data.play import Tally, compare, play_on_both
from tests.real.data.scripts import sessions
from tests.real.known_differences import sift
from tests.real.programs.batch import Played
from tests.real.walks.arena import WalkArena
from tests.real.walks.generator import walks
from tests.support import seeds
from tests.support.full import FULL, drawn, either
from tests.support.toolchain import require

SESSIONS: Final = 80
"""How many are played where not all are."""
FIELDS_PER_SESSION: Final = 40
"""Fewer would mean that sessions end before they ask for anything."""

PROGRAMS: Final = either(24, 6)
STEPS: Final = 30


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("release", sorted(PROFILES))
async def test_the_data_plane(
    release: str,
    tmp_path: Path,
    tallies: dict[str, Tally],
    comparisons: dict[str, Comparison | Played],
) -> None:
    require("java", "maven")
    profile = PROFILES[release]
    with DataKafka(release, tmp_path) as kafka:
        async with data_mock(profile) as mock:
            real, mocked, served = await clusters_of(kafka, mock)
            every = sessions(served)
            chosen = drawn(f"data sessions of {release}", every, SESSIONS)
            tally = compare(*await play_on_both(real, mocked, chosen, served))
        played = await WalkArena(kafka).play(walks(str(seeds.seed()), 0, PROGRAMS, STEPS))
    comparisons[f"{release}, data at random"] = played
    tallies[release] = tally
    assert not tally.stopped, "\n".join(tally.stopped)
    assert tally.sessions == len(chosen)
    assert tally.fields >= FIELDS_PER_SESSION * tally.sessions
    unknown, stale = sift(tally.differences, KNOWN[profile])
    assert not unknown, "\n".join(["Kafka / mock:", *map(str, unknown)])
    assert not (FULL and stale), stale
    assert not played.differences, "\n".join(
        f"{found}\n{program.to_json()}" for program, found in played.differences
    )
    assert played.steps >= STEPS * PROGRAMS
