"""The faults of a running mock cluster: adding rules, waiting for them, what was never hit, and
what they do to the cluster. ``MockCluster`` has these as its own; which rule takes a request, and
what it does to an answer, is for ``faults``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from mockbroker.cluster import Cluster
from mockbroker.errors import ClusterError, FaultError
from mockbroker.faults.documents import fault_of
from mockbroker.faults.matching import ActiveFault, Predicate
from mockbroker.faults.rule import Fault
from mockbroker.faults.steps import ClusterStep
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.state.model import TopicPartition
from mockbroker.timers import called_back, sleep

__all__ = ["FaultControls"]


class FaultControls:
    cluster: Cluster
    _dispatcher: Dispatcher
    follow_clock: Callable[[], None]
    advance: Callable[[int], None]
    _soon: Callable[[Coroutine[Any, Any, None]], None]
    _close: Callable[[int], Coroutine[Any, Any, None]]
    _reopen: Callable[[int], Coroutine[Any, Any, None]]

    def fault(
        self, fault: Fault | None = None, /, *, when: Predicate | None = None, **members: Any
    ) -> ActiveFault:
        """Use a rule from now on, before those there are: a ``Fault``, or its members::

            rule = mock.fault(api=45, error="NOT_CONTROLLER", times=1)

        ``when`` is asked as well, and given the ``Call`` a handler is given. Raises FaultError.
        """
        if fault is not None and members:
            raise FaultError("give a Fault or its members, not both")
        (added,) = self.load_faults([fault_of(members) if fault is None else fault], when=when)
        return added

    def load_faults(
        self, faults: Sequence[Fault], *, when: Predicate | None = None
    ) -> list[ActiveFault]:
        """Use these rules, asked in this order, before those there are: all, or, as FaultError
        tells, none."""
        self.follow_clock()
        return self._dispatcher.faults.add(faults, self.cluster.now_ms, when)

    @property
    def faults(self) -> list[ActiveFault]:
        """Every rule, in the order in which they are asked; those used up among them."""
        self.follow_clock()
        rules = list(self._dispatcher.faults)
        for rule in rules:
            rule.expire(self.cluster.now_ms)
        return rules

    def remove_fault(self, rule: ActiveFault | str) -> None:
        """By itself or by name. Raises FaultError where there is none."""
        self._dispatcher.faults.remove(rule)

    def clear_faults(self) -> None:
        self._dispatcher.faults.clear()

    async def wait_for_hit(self, rule: ActiveFault | str, hits: int = 1) -> None:
        """Return once the rule has been hit so often, in all. Raises FaultError when it cannot be
        any more; how long to wait is the caller's, as in ``asyncio.timeout``."""
        found = self._dispatcher.faults.find(rule) if isinstance(rule, str) else rule
        while found.hits < hits:
            self.follow_clock()
            found.expire(self.cluster.now_ms)
            if not found.live:
                raise FaultError(f"over after {found.hits} hits, not {hits}", rule=found.name)
            await called_back(found.on_change)

    def unused_faults(self) -> list[ActiveFault]:
        """The rules that were never hit."""
        return self._dispatcher.faults.unused()

    def assert_faults_used(self) -> None:
        """Raises AssertionError naming the rules that were never hit."""
        unused = self.unused_faults()
        if unused:
            each = "; ".join(f"{rule.name} ({rule.fault.describe()})" for rule in unused)
            raise AssertionError(f"faults that nothing ran into: {each}")

    # ---- the steps of a rule -----------------------------------------------------------------

    def _perform(self, step: ClusterStep, asked: int) -> None:
        """Carry out a step, for a request that broker ``asked`` received. Raises ClusterError."""
        if step.command == "advance":
            return self.advance(step.milliseconds)
        self.follow_clock()
        if step.command == "resign-controller":
            return self.cluster.resign_controller()
        broker_id = self._broker_of(step, asked)
        if step.partition is not None:
            _OF_A_REPLICA[step.command](self.cluster, step.partition, broker_id)
            return None
        if step.command in _OF_A_BROKER:
            _OF_A_BROKER[step.command](self.cluster, broker_id)
        else:
            self.cluster.broker(broker_id)
        if step.command in ("stop-broker", "close-listener"):
            self._listener_closes(broker_id)
        elif step.command in ("start-broker", "open-listener"):
            self._listener_opens(broker_id)
        return None

    def _broker_of(self, step: ClusterStep, asked: int) -> int:
        if isinstance(step.broker, int):
            return step.broker
        if step.broker == "self":
            return asked
        for broker in self.cluster.brokers.values():
            if broker.live and broker.broker_id != asked:
                return broker.broker_id
        raise ClusterError(f"no live broker but {asked}")

    def _listener_closes(self, broker_id: int) -> None:
        """As when the broker's process ends: its connections break, its port refuses. What is
        being answered goes out before, if it does not wait."""

        async def close() -> None:
            await sleep(0)
            await self._close(broker_id)

        self._soon(close())

    def _listener_opens(self, broker_id: int) -> None:
        self._soon(self._reopen(broker_id))


_OF_A_BROKER: Final[dict[str, Callable[[Cluster, int], object]]] = {
    "failover": Cluster.failover,
    "expire-session": Cluster.expire_session,
    "stop-broker": Cluster.stop_broker,
    "start-broker": Cluster.start_broker,
    "hold-metadata": Cluster.hold_metadata,
    "release-metadata": Cluster.release_metadata,
}
_OF_A_REPLICA: Final[dict[str, Callable[[Cluster, TopicPartition, int], Any]]] = {
    "join-isr": Cluster.join_isr,
    "leave-isr": Cluster.leave_isr,
}
