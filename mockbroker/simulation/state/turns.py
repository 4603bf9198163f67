"""Steps of a cluster, one at a time: what follows from a step happens before the next one.

A watched znode may have changed, an election may be due, the controller may have died: all of this
is dealt with before a step returns. Time passes in steps, too.

This module imports no rules. Parts that have to react attach themselves when they are made.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from mockbroker.errors import ClusterError, ControllerDiedError, NotControllerError
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER
from mockbroker.simulation.state.cluster_state import ClusterState
from mockbroker.simulation.state.timers import Timers

__all__ = ["TakeTurn", "Turns", "no_wait", "step"]

P = ParamSpec("P")
S = TypeVar("S", bound="_HasTurns")
T = TypeVar("T")

TakeTurn: TypeAlias = Callable[..., AbstractContextManager[None]]
"""Encloses a step. Where steps may have to wait, it waits for the turn of the operation. It takes
``by_controller`` and ``first``, as ``Turns.step`` does."""


def no_wait(**_: bool) -> AbstractContextManager[None]:
    """Enclose a step that never has to wait."""
    return contextlib.nullcontext()


class Turns:
    """Runs the steps of one cluster. ``take_turn`` encloses each of them."""

    def __init__(self, state: ClusterState, timers: Timers, take_turn: TakeTurn = no_wait) -> None:
        self._state = state
        self._timers = timers
        self._take_turn = take_turn
        self._is_inside = False
        self.reactions: list[Callable[[], bool]] = []
        """Called in this order after each step, and once more after each that returns True: it did
        what those before it have to react to."""
        self.on_death: list[Callable[[int], None]] = []
        """Called with the id of the controller that died during a step."""
        self.on_succession: list[Callable[[int], None]] = []
        """Called with the id of a controller that died, once another one has taken over."""
        self.on_step: list[Callable[[], None]] = []
        """Called when a step and everything that follows from it is recorded."""

    @contextlib.contextmanager
    def step(self, *, by_controller: bool = False, first: bool = False) -> Iterator[None]:
        """Enclose one step: whatever may change the cluster, and everything that follows from it.

        A step within a step is a part of it. ``first``: before the steps that wait for their turn.
        Raises NotControllerError if there is no controller for a step ``by_controller``.
        """
        with self._take_turn(by_controller=by_controller, first=first):
            if by_controller and self._state.controller_id == NO_CONTROLLER:
                raise NotControllerError("there is no controller")
            if self._is_inside:
                yield
                return
            self._is_inside = True
            try:
                yield
                self.settle()
            except ControllerDiedError as death:
                for call in self.on_death:
                    call(death.broker_id)
                self.settle()
                for call in self.on_succession:
                    call(death.broker_id)
                raise
            finally:
                self._is_inside = False
                for done in self.on_step:
                    done()

    def react(self) -> None:
        """React to changes that other processes made in a shared ZooKeeper, and to the end of the
        session there."""
        with self.step(first=True):
            pass

    def reading(self, *, by_controller: bool = False) -> AbstractContextManager[None]:
        """Enclose what reads the cluster, and may have to wait for its turn."""
        return self._take_turn(by_controller=by_controller)

    def settle(self) -> None:
        """React to what a step did until nothing is left to do."""
        again = True
        while again:
            again = False
            for react in self.reactions:
                again = react() or again

    # ---- time --------------------------------------------------------------------------------

    def advance(self, milliseconds: int) -> None:
        """Advance the clock. Everything that falls due happens in order: ticks of auto-progress,
        the propagation of changes, time-outs of elections."""
        if milliseconds < 0:
            raise ClusterError(f"time cannot go back by {-milliseconds} ms")
        with self.step():
            self._timers.run_until(self._timers.now_ms + milliseconds)

    def follow(self, clock: Callable[[], int]) -> None:
        """Advance time to what ``clock`` returns, once it is this step's turn."""
        with self.step():
            self._timers.run_until(clock())


class _HasTurns(Protocol):
    @property
    def turns(self) -> Turns: ...


def step(
    *, by_controller: bool = False
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Return a decorator of methods that are one step of the cluster each, ``Turns.step``."""

    def decorate(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        @functools.wraps(method)
        def take(self: S, /, *arguments: P.args, **options: P.kwargs) -> T:
            with self.turns.step(by_controller=by_controller):
                return method(self, *arguments, **options)

        return take

    return decorate
