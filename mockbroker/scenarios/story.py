"""How a scenario is told: what is done, what the cluster does about it, and what then holds.

Every sentence that claims something is checked as it is told. Lines go to ``write``; nothing of a
cluster's behaviour is known here.
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

_TOLD_ZNODES = ("/admin/", "/brokers/topics/", "/controller_epoch")


class ScenarioError(ClusterError):
    """A scenario did not come out as it has to."""


class Story:
    """One telling. ``facts`` counts what was checked."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._step = 0
        self._told = 0
        self.facts = 0

    # ---- words -------------------------------------------------------------------------------

    def says(self, text: str) -> None:
        """What somebody has to know first."""
        self._write(f"   {text}")

    def step(self, text: str) -> None:
        """What is done now."""
        self._step += 1
        self._write("")
        self._write(f"{self._step:>2} {text}")

    def holds(self, fact: str, true: bool) -> None:
        """Raises ScenarioError unless it does."""
        if not true:
            raise ScenarioError(f"step {self._step}: it does not hold that {fact}")
        self.facts += 1
        self._write(f"   [ok] {fact}")

    @contextmanager
    def refused(self, fact: str) -> Iterator[None]:
        """What stands inside has to be refused by the cluster, which says why."""
        try:
            yield
        except ClusterError as error:
            self.holds(f"{fact}: {error}", True)
        else:
            self.holds(fact, False)

    # ---- what the cluster did ----------------------------------------------------------------

    def looks(self, mock: MockCluster) -> None:
        """Tell what has happened in the cluster since the last look, in its order."""
        for action in mock.cluster.log.since(self._told):
            line = _line(action.change)
            if line:
                self._write(f"      {line}")
        self._told = len(mock.cluster.log)

    def skips(self, mock: MockCluster) -> None:
        """What has happened so far is no part of the story."""
        self._told = len(mock.cluster.log)


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
        case ZnodeWritten(path, _, text) if path.startswith(_TOLD_ZNODES):
            return f"znode {path}  {'is gone' if text is None else text or '(empty)'}"
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
        parts.append("no reassignment any more")
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
        fields.append(f"TargetReplicas {_ids(change.target_replicas)} (from v3 on)")
    if change.adding or change.removing:
        fields.append(f"adding {_ids(change.adding)} removing {_ids(change.removing)}")
    return f"controller -> {'; '.join(parts)}  {'  '.join(fields)}"


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
