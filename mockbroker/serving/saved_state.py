"""The last snapshot of a running cluster: what is simulated, and what the tester has set up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kproto.journal import Journal
from mockbroker.errors import ClusterError
from mockbroker.serving.broker_sockets import BrokerSockets
from mockbroker.serving.cluster_clock import ClusterClock
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.simulation.state.snapshots import Snapshot

__all__ = ["ClusterSnapshots"]


class ClusterSnapshots:
    """``dispatchers`` are those of the brokers and of the controllers. With ``outside``, a part of
    the state is in a ZooKeeper server."""

    def __init__(
        self,
        dispatchers: Sequence[Dispatcher],
        sockets: BrokerSockets,
        clock: ClusterClock,
        journal: Journal,
        *,
        outside: bool,
    ) -> None:
        self._dispatchers = dispatchers
        self._sockets = sockets
        self._clock = clock
        self._journal = journal
        self._outside = outside
        self._restore: Callable[[], None] | None = None

    @property
    def exists(self) -> bool:
        return self._restore is not None

    def check_snapshot(self) -> None:
        """Raises ClusterError if no snapshot can be taken."""
        why = "a part of the state is in a ZooKeeper server" if self._outside else ""
        if self._sockets.network is not None:
            why = "brokers get requests of the controller over the network (inter_broker)"
        if why:
            raise ClusterError(f"no snapshot can be taken: {why}")

    def check_reset(self) -> None:
        """Raises ClusterError if there is no snapshot."""
        if self._restore is None:
            raise ClusterError("there is no snapshot to return to; take one with `snapshot`")

    async def snapshot(self) -> None:
        """Remember the state."""
        await self._sockets.disconnect()
        self._clock.follow()
        brokers = self._dispatchers[0]
        sockets = self._sockets
        found = Snapshot(
            brokers.cluster, brokers.faults, brokers.scripts, sockets.paces, sockets.own_advertised
        )
        skipped_ms = self._clock.skipped_ms

        def restore() -> None:
            brokers.faults.clear()  # ends the waits for hits of rules that are no longer there
            found.restore()
            self._clock.skipped_ms = skipped_ms

        self._restore = restore

    async def reset(self) -> None:
        """Return to the last snapshot."""
        await self._sockets.disconnect()
        assert self._restore is not None, "there is a snapshot"
        self._restore()
        for dispatcher in self._dispatchers:
            dispatcher.state_replaced()
        self._journal.clear()
        for tell in self._dispatchers[0].cluster.turns.on_step:
            tell()  # streams follow the log's new end
        self._clock.start()
        await self._sockets.follow_brokers()
