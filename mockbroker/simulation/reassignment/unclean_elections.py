"""Elections that a ZooKeeper controller holds because a config starts to allow unclean ones.

They are a rule of every ZooKeeper controller, so the table stands beside their folders.
"""

from __future__ import annotations

from typing import Final

from mockbroker.simulation.configs.effective import UNCLEAN_ELECTION
from mockbroker.simulation.elections.partition_change import Election, next_partition
from mockbroker.simulation.reassignment.transitions import RuleContext, Table, Transition
from mockbroker.simulation.releases.rows import Row
from mockbroker.simulation.state.actions import PartitionChanged
from mockbroker.simulation.state.cluster_parts import NO_LEADER

__all__ = ["BY_TOPIC", "ON_UNCLEAN_ALLOWED"]

BY_TOPIC: Final = "by topic"
"""Fact: whether the topic's own config allows them, rather than the broker's default. The fact
``UNCLEAN_ELECTION`` says whether the topic allows them now, all its configs considered."""


def elect_uncleanly(transition: Transition) -> None:
    """Elect a leader, out of sync if the topic allows that."""
    before = transition.now
    unclean = transition.facts[UNCLEAN_ELECTION]
    after = next_partition(
        before, transition.is_online, election=Election.UNCLEAN if unclean else Election.ONLINE
    )
    if after != before:
        transition.writer.change_partition(
            transition.cause, PartitionChanged(transition.tp[0], before, after)
        )


def _by_topic(context: RuleContext) -> bool:
    return _offline(context) and bool(context.facts[BY_TOPIC])


def _by_default(context: RuleContext) -> bool:
    return _offline(context) and not context.facts[BY_TOPIC]


def _offline(context: RuleContext) -> bool:
    return context.start.leader == NO_LEADER and not context.start.vacated


ON_UNCLEAN_ALLOWED: Final[Table] = (
    Row("A-55", _by_topic, (elect_uncleanly,), since=(2, 1)),
    Row("A-55", _by_default, (elect_uncleanly,)),
)
"""Applied to each partition of the topics concerned
(``enableTopicUncleanLeaderElection``, ``enableDefaultUncleanLeaderElection``)."""
