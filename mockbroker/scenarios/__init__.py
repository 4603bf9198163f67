"""Scenarios of reassignments and of data, narrated and checked on a mock cluster: ``mockbroker
scenario``.

A scenario starts a cluster and talks to it through an admin client, or as a producer, a consumer or
a member of a group (``data_clients``). Events that no client can cause (a replica catches up, a
broker is upgraded) are operations of ``mockbroker.simulation.operations``. A claim that turns out
false raises ScenarioError.

Each module has one theme and registers its scenarios with ``scenario``.
"""

from __future__ import annotations

from kproto.errors import UnknownNameError
from mockbroker.scenarios import (
    cancellation,
    coordinator_moves,
    failed_log_dir,
    failover,
    hanging_transaction,
    lost_acknowledgement,
    metadata_races,
    poison_record,
    rebalance_storm,
    rolling_upgrade,
    target_replicas,
    two_apis,
    unclean_loss,
    zombie_producer,
)
from mockbroker.scenarios.registry import SCENARIOS, Scenario
from mockbroker.scenarios.story import ScenarioError, Story

__all__ = ["SCENARIOS", "Scenario", "ScenarioError", "Story", "find", "themes"]

themes = (
    target_replicas,
    failover,
    cancellation,
    two_apis,
    metadata_races,
    lost_acknowledgement,
    rebalance_storm,
    coordinator_moves,
    unclean_loss,
    poison_record,
    zombie_producer,
    hanging_transaction,
    failed_log_dir,
    rolling_upgrade,
)
"""Importing these modules fills ``SCENARIOS``."""


def find(name: str) -> Scenario:
    """Raises UnknownNameError, which lists the names."""
    found = SCENARIOS.get(name)
    if found is None:
        raise UnknownNameError(
            f"unknown scenario {name!r}; the scenarios are {', '.join(SCENARIOS)}"
        )
    return found
