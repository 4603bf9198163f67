"""Producers, consumers, groups and a tester in any order on a cluster: ``fuzz.stateful --data``.

The same few examples at every run; docs/explanation/fuzz-stateful.md has the long runs.
"""

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz.stateful.planted import DATA_DEFECTS, found
from fuzz.stateful.transaction_rules import data_machine_of, data_profiles
from tests.support.full import drawn, quick

PROFILES = {each.name: each for each in data_profiles()}
QUICK = ("kafka-4.4", "kafka-2.4")
SEED = 19
MISSED = 0.3
"""Of the planted defects, at most: some take a longer story than these examples."""


def run(name: str, examples: int) -> None:
    machine = data_machine_of(PROFILES[name])
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
    assert machine.tally["produce"] >= examples, "batches were produced"
    assert machine.tally["init_transactions"] > 0, "transactional producers began"


@pytest.mark.parametrize("name", QUICK)
def test_whatever_clients_do(name: str) -> None:
    run(name, quick(5, sampled=3))


@pytest.mark.slow
def test_whatever_clients_do_to_other_releases() -> None:
    for each in drawn("releases under clients", sorted(PROFILES), few=4):
        run(each, 5)


@pytest.mark.slow
def test_most_planted_defects_of_data_are_found() -> None:
    sought = drawn("planted in the data plane", DATA_DEFECTS, few=2)
    said = {bug.name: found(bug, number=SEED, examples=250) for bug in sought}
    missed = [name for name, text in said.items() if text is None]
    assert len(missed) <= max(1, MISSED * len(sought)), missed
