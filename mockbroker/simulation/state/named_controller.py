"""The broker that Metadata and DescribeCluster name as the controller.

With ZooKeeper it is the controller, which alone takes administrative requests. KRaft's brokers
forward them, and each answer names another live broker, drawn at random (3.9.2 and 4.4.0: by
bytecode, and by asking clusters of three brokers).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.option_types import choice_or_broker

__all__ = ["CONTROLLER_RULE", "NamedController"]

CONTROLLER_RULE: Final = choice_or_broker("leader", "random")


class NamedController:
    """``rule`` is the option's value: ``leader``, ``random``, a broker id, or None for what Kafka
    does. ``seed`` decides on what is drawn. Raises ClusterError for another rule."""

    def __init__(self, rule: str | int | None, seed: int) -> None:
        self._rule = CONTROLLER_RULE.from_json("named_controller", rule)
        self._random = random.Random(f"{seed}/controller")

    def draw_from(self, view: MetadataView, *, forwarding: bool) -> Callable[[], int] | None:
        """Return what draws the id for each answer from this view, or None if there is no choice.
        ``forwarding``: brokers forward to the controller, as with KRaft."""
        if self._rule != "random" and not (self._rule is None and forwarding):
            return None
        live = [broker.broker_id for broker in view.live_brokers()]
        return (lambda: self._random.choice(live)) if len(live) > 1 else None

    def fixed(self, view: MetadataView, *, forwarding: bool) -> int:
        """Return the id that every answer from this view has, or -1 for none. The given broker is
        named while it is live, else the controller."""
        if isinstance(self._rule, int) and view.is_live(self._rule):
            return self._rule
        return view.shown_controller_id(forwarding=forwarding)
