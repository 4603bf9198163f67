"""How a scenario is narrated: what is done, how the cluster reacts, and what is then true.

Every claim is checked as it is printed. Lines go to ``write``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mockbroker.errors import ClusterError
from mockbroker.mock_cluster import MockCluster
from mockbroker.state.actions import (
    Change,
    ControllerChanged,
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
    ZnodeWritten,
)
from mockbroker.state.model import Partition

__all__ = ["ScenarioError", "Story"]

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

    async def run(self, mock: MockCluster, *commands: str) -> None:
        """Run commands of ``mockbroker ctl``. Raises ClusterError."""
        for command in commands:
            await mock.run_command(command)

    def show_actions(self, mock: MockCluster) -> None:
        """Print the cluster's actions since the last call."""
        for action in mock.cluster.log.since(self._next_action):
            line = _line(action.change)
            if line:
                self._write(f"      {line}")
        self._next_action = len(mock.cluster.log)

    def skip_actions(self, mock: MockCluster) -> None:
        """Leave out the cluster's actions so far."""
        self._next_action = len(mock.cluster.log)


def _line(change: Change) -> str | None:
    match change:
        case PartitionChanged(topic, before, after):
            return f"{topic}-{after.index}  {_partition(before, after)}"
        case LeaderAndIsrSent():
            return _leader_and_isr(change)
        case StopReplicaSent():
            what = "StopReplica, data deleted" if change.delete else "StopReplica, data kept"
            return f"controller -> {_ids(change.to)}  {what}"
        case UpdateMetadataSent():
            return f"controller -> {_ids(change.to)}  UpdateMetadata"
        case ZnodeWritten(path, _, text) if path.startswith(_SHOWN_ZNODES):
            return f"znode {path}  {'deleted' if text is None else text or '(empty)'}"
        case ControllerChanged():
            return f"broker {change.after} is the controller, epoch {change.epoch}"
        case Warned(text):
            return f"controller warns: {text}"
    return None


def _partition(before: Partition, after: Partition) -> str:
    parts = [
        f"R {_ids(after.replicas)}",
        f"I {_ids(after.isr)}",
        f"leader {after.leader} epoch {after.leader_epoch}",
    ]
    if after.target is not None:
        parts.insert(2, f"T {_ids(after.target) or '(empty)'}")
    elif before.reassigning:
        parts.append("no longer reassigning")
    return "  ".join(parts)


def _leader_and_isr(change: LeaderAndIsrSent) -> str:
    versions = dict(zip(change.to, change.versions, strict=False))
    groups: dict[int | None, list[int]] = {}
    for broker in change.to:
        groups.setdefault(versions.get(broker), []).append(broker)
    parts = []
    for version, brokers in groups.items():
        name = "LeaderAndIsr" if version is None else f"LeaderAndIsr v{version}"
        parts.append(f"{_ids(tuple(brokers))}  {name}")
    fields = [f"R {_ids(change.replicas)}", f"I {_ids(change.isr)}"]
    if change.target_replicas is not None:
        fields.append(f"TargetReplicas {_ids(change.target_replicas)} (v3 and later)")
    if change.adding or change.removing:
        fields.append(f"adding {_ids(change.adding)} removing {_ids(change.removing)}")
    return f"controller -> {'; '.join(parts)}  {'  '.join(fields)}"


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
