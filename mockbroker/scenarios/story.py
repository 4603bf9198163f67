"""How a scenario is narrated: what is done, how the cluster reacts, and what is then true.

Every claim is checked as it is printed. Lines go to ``write``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mockbroker.errors import ClusterError
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.simulation.state.action_texts import action_text

__all__ = ["ScenarioError", "Story"]

_SHOWN_KINDS = frozenset(
    {
        "ControllerChanged", "LeaderAndIsrSent", "PartitionChanged", "StopReplicaSent",
        "UpdateMetadataSent", "Warned",
    }
)  # fmt: skip
_SHOWN_ZNODES = ("/admin/", "/brokers/topics/", "/controller_epoch")


class ScenarioError(ClusterError):
    """A claim of a scenario is false."""


class Story:
    """One run of a scenario. ``facts`` counts the claims checked so far."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._step = 0
        self._next_action = 0
        self.facts = 0

    # ---- text --------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Print background, or a result."""
        self._write(f"   {text}")

    def step(self, text: str) -> None:
        """Print what is done next, as a numbered step."""
        self._step += 1
        self._write("")
        self._write(f"{self._step:>2} {text}")

    def check(self, claim: str, true: bool) -> None:
        """Print a claim. Raises ScenarioError if it is false."""
        if not true:
            raise ScenarioError(f"step {self._step}: this is false: {claim}")
        self.facts += 1
        self._write(f"   [ok] {claim}")

    @contextmanager
    def check_refused(self, claim: str) -> Iterator[None]:
        """Check that the cluster refuses the block inside, and print the reason it gives."""
        try:
            yield
        except ClusterError as error:
            self.check(f"{claim}: {error}", True)
        else:
            self.check(claim, False)

    # ---- the cluster -------------------------------------------------------------------------

    async def run(self, mock: MockCluster, *operations: str) -> None:
        """Carry out operations of ``mockbroker ctl``. Raises ClusterError."""
        for operation in operations:
            await mock.run_command(operation)

    async def show(self, mock: MockCluster, *operations: str) -> None:
        """Carry out operations, and print the cluster's actions since the last call."""
        await self.run(mock, *operations)
        self.show_actions(mock)

    def show_actions(self, mock: MockCluster) -> None:
        """Print the cluster's actions since the last call."""
        for action in mock.cluster.log.since(self._next_action):
            entry = action.to_dict()
            if _is_shown(entry):
                self._write(f"      {action_text(entry)}")
        self._next_action = len(mock.cluster.log)

    def skip_actions(self, mock: MockCluster) -> None:
        """Leave out the cluster's actions so far."""
        self._next_action = len(mock.cluster.log)


def _is_shown(entry: Mapping[str, Any]) -> bool:
    if entry["kind"] == "ZnodeWritten":
        return bool(entry["path"].startswith(_SHOWN_ZNODES))
    return entry["kind"] in _SHOWN_KINDS
