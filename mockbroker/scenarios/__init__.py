"""Known stories of reassignments, told and checked on a mock cluster: ``mockbroker scenario``.

Each runs brokers on sockets of their own and asks them by an admin client, as anybody would; steps
that no client can take (a replica catches up, a broker gets other software) are the mock's
controls. A scenario that does not come out as it has to raises ScenarioError.

One file a theme; a scenario registers itself with ``scenario``.
"""

from __future__ import annotations

from kproto.errors import UnknownNameError
from mockbroker.scenarios import (
    cancellation,
    failover,
    metadata_races,
    target_replicas,
    two_apis,
)
from mockbroker.scenarios.registry import SCENARIOS, Scenario
from mockbroker.scenarios.story import ScenarioError, Story

__all__ = ["SCENARIOS", "Scenario", "ScenarioError", "Story", "find", "themes"]

themes = (target_replicas, failover, cancellation, two_apis, metadata_races)
"""The files; importing them fills ``SCENARIOS``."""


def find(name: str) -> Scenario:
    """Raises UnknownNameError with the names there are."""
    found = SCENARIOS.get(name)
    if found is None:
        raise UnknownNameError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return found
