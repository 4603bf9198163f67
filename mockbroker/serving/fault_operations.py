"""The operations of fault rules, which run while a broker handles a request.

They change the simulated cluster at once, before the answer is made. The sockets follow on the
event loop, so that an answer that does not wait goes out before its broker's listener closes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError
from mockbroker.serving.broker_sockets import BrokerSockets
from mockbroker.serving.cluster_clock import ClusterClock
from mockbroker.serving.saved_state import ClusterSnapshots
from mockbroker.simulation.brokers.upgrades import Software
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations import BrokerChoice, OperationCall, RunningCluster
from mockbroker.simulation.operations.arguments import Level
from mockbroker.simulation.state.timers import sleep

__all__ = ["FaultOperations"]


class FaultOperations:
    """``schedule`` runs a coroutine on the event loop. For ``software`` and ``release`` see
    ``RunningCluster``."""

    def __init__(
        self,
        cluster: Cluster,
        clock: ClusterClock,
        sockets: BrokerSockets,
        saved: ClusterSnapshots,
        software: Callable[[Level], Mapping[int, Versions | None]],
        release: Callable[[str], Software],
        schedule: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._clock = clock
        self._target = RunningCluster(
            cluster, sockets, saved, clock.advance, software, release, _run, self._schedule_change
        )
        self._schedule = schedule

    def carry_out(self, call: OperationCall, broker_id: int) -> None:
        """Carry out an operation for a request that this broker received. Raises ClusterError."""
        self._clock.follow()
        chosen = call.with_broker(lambda choice: self._broker_id(choice, broker_id))
        chosen.run_at_once(self._target)

    def _broker_id(self, choice: BrokerChoice, receiver: int) -> int:
        if isinstance(choice, int):
            return choice
        if choice == "self":
            return receiver
        for broker in self._target.cluster.brokers.values():
            if broker.live and broker.broker_id != receiver:
                return broker.broker_id
        raise ClusterError(f"no broker other than {receiver} is live")

    async def _schedule_change(self, change: Callable[[], Awaitable[None] | None]) -> None:
        self._schedule(_change_later(change))


async def _run(change: Callable[[], object]) -> object:
    return change()


async def _change_later(change: Callable[[], Awaitable[None] | None]) -> None:
    await sleep(0)
    changing = change()
    if changing is not None:
        await changing
