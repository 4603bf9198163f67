"""Any commands in any order on every kind of cluster there is, over the wire: ``fuzz.stateful``.

The same few examples at every run; docs/explanation/fuzz-stateful.md has the long runs.
"""

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz.stateful.machine import machine_of
from mockbroker.profiles import all_profiles
from tests.support.full import quick

PROFILES = {each.name: each for each in all_profiles()}
QUICK = ("kafka-4.4", "kafka-2.4", "kip-455-new", "kip-236-old", "kip-860")
"""One of each family of controllers; the others are taken where there is time."""
SEED = 455


def run(name: str, examples: int) -> None:
    machine = machine_of(PROFILES[name])
    run_state_machine_as_test(
        seed(SEED)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert machine.tally["steps"] >= examples, "commands were given"


@pytest.mark.parametrize("name", QUICK)
def test_whatever_is_done(name: str) -> None:
    run(name, quick(3, sampled=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROFILES)
def test_whatever_is_done_to_any_profile(name: str) -> None:
    run(name, 10)
