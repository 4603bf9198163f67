"""The steps of fault rules: commands that run while a broker handles a request.

A step changes the simulated cluster at once, before the answer is made. The sockets follow on the
event loop, so that an answer that does not wait goes out before its broker's listener closes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from mockbroker.errors import ClusterError
from mockbroker.serving.broker_sockets import BrokerSockets
from mockbroker.serving.cluster_clock import ClusterClock
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations import BrokerChoice, CommandCall
from mockbroker.simulation.state.timers import sleep

__all__ = ["FaultSteps"]


class FaultSteps:
    """The ``CommandTarget`` of fault rules. ``schedule`` runs a coroutine on the event loop,
    ``change_software`` is ``set_level`` without waiting."""

    def __init__(
        self,
        cluster: Cluster,
        clock: ClusterClock,
        sockets: BrokerSockets,
        schedule: Callable[[Coroutine[Any, Any, None]], None],
        change_software: Callable[[int, str], None],
    ) -> None:
        self.cluster = cluster
        self.advance = clock.advance
        self.set_level = change_software
        self.advertise = sockets.advertise
        self._clock = clock
        self._sockets = sockets
        self._schedule = schedule

    def perform(self, call: CommandCall, broker_id: int) -> None:
        """Carry out a step of a request that this broker received. Raises ClusterError."""
        self._clock.follow()
        call.with_broker(lambda choice: self._broker_id(choice, broker_id)).run(self)

    def _broker_id(self, choice: BrokerChoice, receiver: int) -> int:
        if isinstance(choice, int):
            return choice
        if choice == "self":
            return receiver
        for broker in self.cluster.brokers.values():
            if broker.live and broker.broker_id != receiver:
                return broker.broker_id
        raise ClusterError(f"no broker other than {receiver} is live")

    def stop_broker(self, broker_id: int) -> None:
        self.cluster.stop_broker(broker_id)
        self._schedule(self._close_later(broker_id))

    def start_broker(self, broker_id: int) -> None:
        self.cluster.start_broker(broker_id)
        self._schedule(self._sockets.reopen(broker_id))

    def fail_log_dir(self, broker_id: int, directory: str | None = None) -> None:
        self.cluster.fail_log_dir(broker_id, directory)
        if not self.cluster.controller.broker(broker_id).live:
            self._schedule(self._close_later(broker_id))

    def mend_log_dir(self, broker_id: int, directory: str | None = None) -> None:
        self.cluster.mend_log_dir(broker_id, directory)
        self._schedule(self._hang_up_later(broker_id))

    def close_listener(self, broker_id: int) -> None:
        self.cluster.controller.broker(broker_id)
        self._schedule(self._close_later(broker_id))

    def open_listener(self, broker_id: int) -> None:
        self.cluster.controller.broker(broker_id)
        self._schedule(self._sockets.reopen(broker_id))

    async def _hang_up_later(self, broker_id: int) -> None:
        await sleep(0)
        self._sockets.hang_up(broker_id)

    async def _close_later(self, broker_id: int) -> None:
        await sleep(0)
        await self._sockets.close(broker_id)
