"""Types of resources as the release of a broker knows them."""

from __future__ import annotations

from typing import Final

from mockbroker.apis.calls import Call
from mockbroker.errors import UnreadableError
from mockbroker.simulation.releases import facts
from mockbroker.simulation.state.cluster_state import BROKER, BROKER_LOGGER, TOPIC

__all__ = ["config_type_name", "known_config_type"]

_UNKNOWN: Final = 0
_FORMER_NAMES: Final = {1: "ANY", 3: "GROUP"}


def known_config_type(call: Call, kind: int) -> int:
    """Return the type's number, 0 for a type that releases before 2.7 do not know. Raises
    UnreadableError for one that they cannot read."""
    known = kind in (TOPIC, BROKER)
    known = known or (kind == BROKER_LOGGER and call.release.has(facts.BROKER_LOGGERS))
    if call.release.has(facts.ANY_AND_GROUP_TYPES):
        if kind < 0:
            raise UnreadableError(f"resource type {kind}, which Kafka does not read")
        known = known or kind in _FORMER_NAMES
    return kind if known else _UNKNOWN


def config_type_name(call: Call, kind: int) -> str:
    """Return how texts name a type of resources that have no configs."""
    has_names = call.release.has(facts.ANY_AND_GROUP_TYPES)
    return _FORMER_NAMES.get(kind, "UNKNOWN") if has_names else "UNKNOWN"
