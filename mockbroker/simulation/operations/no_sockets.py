"""A simulated cluster without sockets as what operations act on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kproto.schema.releases import release
from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.upgrades import Software
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.arguments import Level, Place
from mockbroker.simulation.operations.methods import OperationMethods
from mockbroker.simulation.operations.operation import OperationCall, RunningCluster
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.snapshots import Snapshot

__all__ = ["SimulatedMethods"]


class _NoSockets:
    """The sockets of brokers that have none."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._saved: Snapshot | None = None

    async def close(self, broker_id: int) -> None:
        pass

    async def reopen(self, broker_id: int) -> None:
        pass

    def hang_up(self, broker_id: int) -> None:
        pass

    def set_latency(self, milliseconds: int, place: Place | None) -> None:
        pass

    def set_bandwidth(self, bytes_per_second: int, place: Place | None) -> None:
        pass

    async def snapshot(self) -> None:
        self._saved = Snapshot(self._cluster)

    async def reset(self) -> None:
        if self._saved is not None:
            self._saved.restore()

    def check_snapshot(self) -> None:
        pass

    def check_reset(self) -> None:
        if self._saved is None:
            raise ClusterError("there is no snapshot to return to; take one with `snapshot`")

    def advertise(self, broker_id: int, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._cluster.brokers.set_endpoint(broker_id, host, int(port))


class SimulatedMethods(OperationMethods):
    """Carries out operations on a simulated cluster, where none waits."""

    def __init__(self, cluster: Cluster) -> None:
        sockets = _NoSockets(cluster)
        self._target = RunningCluster(
            cluster, sockets, sockets, cluster.turns.advance, _versions, _software, _run, _then
        )

    def carry_out(self, call: OperationCall) -> Any:
        return call.run_at_once(self._target)


def _versions(level: Level) -> Mapping[int, Versions | None]:
    if isinstance(level, str):
        raise ClusterError(f"{level!r}: give the API versions by key; no release is served here")
    return level


def _software(name: str) -> Software:
    """What a broker of a release runs, whatever the requests between brokers."""
    found = release(name)
    number = Release(tuple(map(int, found.release.split("."))))
    if found.mode == "kraft":
        return Software(name, number, "kraft", "kraft", in_zookeeper=False)
    kind = number.value_of(facts.ZOOKEEPER_CONTROLLER)
    return Software(name, number, kind, "zookeeper", in_zookeeper=True)


async def _run(change: Callable[[], object]) -> object:
    return change()


async def _then(follow: Callable[[], Awaitable[None] | None]) -> None:
    following = follow()
    if following is not None:
        await following
