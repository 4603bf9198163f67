"""What a program is: data that can be written down, replayed, and made smaller.

A step is a JSON object whose ``do`` says what it does. Topics have short names of the program's
own; the prefix that keeps programs apart in one cluster is added when it is played. The steps in
``CLUSTER_STEPS`` happen to brokers, so programs that are played at the same time share them; all
others concern the program's own topics alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["CLUSTER_STEPS", "RELEASES", "Program", "ProgramStep", "Setting", "segments"]

ProgramStep: TypeAlias = Mapping[str, Any]

CLUSTER_STEPS: Final = frozenset({
    "stop", "start", "freeze", "thaw", "kill", "kill-controller", "move-controller",
    "broker-configs", "elect-all",
})  # fmt: skip


class Setting(NamedTuple):
    """A cluster that programs are played on; ``spared`` are the brokers that it cannot do without:
    a KRaft controller that is a broker too. ``edits_lists``: programs append to lists in
    configs."""

    release: str
    profile: str
    zookeeper: bool
    spared: frozenset[int] = frozenset()
    edits_lists: bool = True

    @property
    def quorum(self) -> bool:
        """Whether an active controller can be killed, and another takes over."""
        return not self.zookeeper and not self.spared


RELEASES: Final[Mapping[str, Setting]] = {
    "2.4-zk": Setting("2.4.1", "kafka-2.4", zookeeper=True, edits_lists=False),
    "2.8-zk": Setting("2.8.2", "kafka-2.8-zk", zookeeper=True, edits_lists=False),
    "3.9-zk": Setting("3.9.2", "kafka-3.9-zk", zookeeper=True),
    "3.9": Setting("3.9.2", "kafka-3.9", zookeeper=False),
    "4.1": Setting("4.1.2", "kafka-4.1", zookeeper=False),
    "4.4": Setting("4.4.0", "kafka-4.4", zookeeper=False),
}
"""What ``make fidelity-programs`` plays programs on, by the name it takes."""


@dataclass(frozen=True)
class Program:
    """``name`` tells programs of a run apart and, with the run's seed, brings this one back."""

    name: str
    steps: Sequence[ProgramStep]

    def to_json(self) -> str:
        """A step a line."""
        steps = ",\n  ".join(json.dumps(step) for step in self.steps)
        return f'{{"name": {json.dumps(self.name)}, "steps": [\n  {steps}\n]}}'

    @staticmethod
    def from_json(text: str) -> Program:
        """Raises ValueError or KeyError for text that is no program."""
        read = json.loads(text)
        return Program(read["name"], read["steps"])


def segments(steps: Sequence[ProgramStep]) -> list[list[ProgramStep]]:
    """Steps in groups: all but the first group begin with a step of the cluster."""
    groups: list[list[ProgramStep]] = [[]]
    for step in steps:
        if step["do"] in CLUSTER_STEPS:
            groups.append([])
        groups[-1].append(step)
    return groups
