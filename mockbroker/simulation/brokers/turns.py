"""Steps of a cluster, one at a time: what follows from a step happens before the next one.

A watched znode may have changed, an election may be due, the controller may have died: all of this
is dealt with before a step returns. Time passes in steps, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from mockbroker.errors import ClusterError, ControllerDiedError, NotControllerError
from mockbroker.simulation.brokers.steps import Steps
from mockbroker.simulation.elections.queue import ElectionQueue
from mockbroker.simulation.reassignment.reassignment_controller import ReassignmentController
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.timers import Timers

__all__ = ["Turns"]


class Turns:
    """Runs the steps of one cluster. The owner of the cluster may set the three hooks."""

    on_death: Callable[[int], None] = staticmethod(lambda broker_id: None)
    """Called with the id of a broker that died, after another one became the controller."""

    on_step: Callable[[], None] = staticmethod(lambda: None)
    """Called when a step and everything that follows from it is recorded."""

    turn: Callable[..., contextlib.AbstractContextManager[None]] = staticmethod(
        lambda **_: contextlib.nullcontext()
    )
    """Entered around each step; where steps may have to wait, the turn of the operation."""

    def __init__(
        self,
        controller: Controller,
        reassignment: ReassignmentController,
        elections: ElectionQueue,
        steps: Steps,
    ) -> None:
        self._controller = controller
        self._state = controller.state
        self._reassignment = reassignment
        self._elections = elections
        self._steps = steps
        elections.on_due = self._settle
        self._queues_elections = elections.answers.queued
        self._keeps_znodes = controller.keeps_znodes

    @contextlib.contextmanager
    def _acting(self, *, by_controller: bool = False, first: bool = False) -> Iterator[None]:
        """Enclose one step: whatever may change the cluster, and everything that follows from it.

        Watch events and elections are processed after it, and a controller that dies during it is
        replaced. Raises NotControllerError if there is no controller for a step ``by_controller``.
        """
        with self.turn(by_controller=by_controller, first=first):
            if by_controller and self._state.controller_id == NO_CONTROLLER:
                raise NotControllerError("there is no controller")
            try:
                yield
                self._settle()
            except ControllerDiedError as death:
                self._steps.replace_dead_controller(death.broker_id)
                self._settle()
                self.on_death(death.broker_id)
                raise
            finally:
                self.on_step()

    def _settle(self) -> None:
        """React to watch events and process elections until nothing is left to do.

        An election changes znodes, and a znode may request an election.
        """
        self._process_watch_events()
        while self._queues_elections and self._elections.settle():
            self._process_watch_events()

    def _process_watch_events(self) -> None:
        """React to znodes that changed. Without a controller nobody does; the next controller reads
        all of them when it takes over."""
        controller = self._controller
        while self._keeps_znodes:
            events = controller.znodes.take_events()
            if events is None:
                # Whatever else happened, the next controller reads all znodes.
                self._steps.session_expired()
                continue
            if not events:
                return
            for event in events:
                if self._state.controller_id != NO_CONTROLLER:
                    self._reassignment.react(event)

    # ---- time --------------------------------------------------------------------------------

    @property
    def timers(self) -> Timers:
        """The virtual clock, with the timers on it."""
        return self._controller.timers

    @property
    def next_due_ms(self) -> int | None:
        """When time has to be advanced next, because a timer is due; None if none is set."""
        return self._controller.timers.next_due_ms

    def advance(self, milliseconds: int) -> None:
        """Advance the clock. Everything that falls due happens in order: ticks of auto-progress,
        the propagation of changes, time-outs of elections."""
        if milliseconds < 0:
            raise ClusterError(f"time cannot go back by {-milliseconds} ms")
        with self._acting():
            self._controller.timers.run_until(self._controller.now_ms + milliseconds)

    def follow(self, clock: Callable[[], int]) -> None:
        """Advance time to what ``clock`` returns, once it is this step's turn."""
        with self._acting():
            self._controller.timers.run_until(clock())
