"""The steps of a running mock cluster: ``MockCluster`` has these as its own. Each brings the
simulated time up to date and then takes the step of the same name of ``Cluster``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec, TypeVar

from kproto.znodes import Stat
from mockbroker.cluster import Cluster
from mockbroker.errors import ClusterError
from mockbroker.serving.operations import Operations
from mockbroker.state.model import Partition, TopicPartition
from mockbroker.topics.spec import parse_topic_partition

__all__ = ["StepControls"]

P = ParamSpec("P")
T = TypeVar("T")


class StepControls:
    cluster: Cluster
    operations: Operations
    follow_clock: Callable[[], None]
    _skipped_ms: int
    _close: Callable[[int], Coroutine[Any, Any, None]]
    _reopen: Callable[[int], Coroutine[Any, Any, None]]

    async def take(
        self, step: Callable[P, T | Awaitable[T]], /, *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Take a step, and wait for it without stopping the event loop::

            await mock.take(mock.join_isr, "foo-0", 4)

        Only on a real ZooKeeper is there anything to wait for; there a step that is called directly
        blocks until the server answers, and raises ClusterError while another one waits.
        """
        done = await self.operations.run(partial(step, *arguments, **options))
        return await done if inspect.isawaitable(done) else done

    def join_isr(self, partition: str | TopicPartition, broker_id: int) -> Partition:
        """A replica has caught up. The partition is ``"foo-0"`` or ``("foo", 0)``."""
        self.follow_clock()
        return self.cluster.join_isr(_topic_partition(partition), broker_id)

    def leave_isr(self, partition: str | TopicPartition, broker_id: int) -> Partition:
        """A replica fell behind."""
        self.follow_clock()
        return self.cluster.leave_isr(_topic_partition(partition), broker_id)

    def failover(self, to: int) -> None:
        """Another live broker becomes the controller."""
        self.follow_clock()
        self.cluster.failover(to)

    def resign_controller(self) -> None:
        """Leave the cluster without a controller until ``failover``, or until a broker starts."""
        self.follow_clock()
        self.cluster.resign_controller()

    def expire_session(self, broker_id: int) -> None:
        """The broker's ZooKeeper session expires; it registers anew, and is no controller then."""
        self.follow_clock()
        self.cluster.expire_session(broker_id)

    def hold_metadata(self, broker_id: int) -> None:
        """From now on this broker answers Metadata from what it knows at this moment."""
        self.follow_clock()
        self.cluster.hold_metadata(broker_id)

    def release_metadata(self, broker_id: int) -> None:
        self.follow_clock()
        self.cluster.release_metadata(broker_id)

    def set_propagation(self, milliseconds: int) -> None:
        """From now on every broker hears of a change that much later; 0 for at once."""
        self.follow_clock()
        self.cluster.set_propagation(milliseconds)

    def hold_elections(self) -> None:
        """The controller does not get to the elections in its queue; their callers wait."""
        self.follow_clock()
        self.cluster.hold_elections()

    def release_elections(self) -> None:
        self.follow_clock()
        self.cluster.release_elections()

    def advance(self, milliseconds: int) -> None:
        """Let simulated time pass at once, on top of real time where the clock follows that."""
        self.follow_clock()
        if milliseconds < 0:
            raise ClusterError(f"time cannot go back by {-milliseconds} ms")
        self.cluster.advance(milliseconds)
        self._skipped_ms += milliseconds

    async def stop_broker(self, broker_id: int) -> None:
        """The broker dies: its connections break, its port refuses, leaders move."""
        await self.operations.run(partial(self._stop_broker, broker_id))
        await self._close(broker_id)

    def _stop_broker(self, broker_id: int) -> None:
        self.follow_clock()
        self.cluster.stop_broker(broker_id)

    async def start_broker(self, broker_id: int) -> None:
        """The broker comes back, on the same port."""
        self.follow_clock()
        self.cluster.broker(broker_id)
        await self._reopen(broker_id)
        await self.operations.run(partial(self.cluster.start_broker, broker_id))

    def kill_controller_after(self, changes: int) -> None:
        """Let the controller die in the midst of what it does, after this many more changes."""
        self.cluster.kill_controller_after(changes)

    def write_znode(self, path: str, text: str | None) -> None:
        """As any client of ZooKeeper can; None deletes."""
        self.follow_clock()
        self.cluster.write_znode(path, text)

    def append_znode(self, prefix: str, text: str) -> str:
        """Create a sequence znode; returns its path."""
        self.follow_clock()
        return self.cluster.append_znode(prefix, text)

    def read_znode(self, path: str) -> tuple[str, Stat] | None:
        """Text and stat, None where there is no such znode."""
        return self.cluster.read_znode(path)


def _topic_partition(partition: str | TopicPartition) -> TopicPartition:
    return parse_topic_partition(partition) if isinstance(partition, str) else partition
