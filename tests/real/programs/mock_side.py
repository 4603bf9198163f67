"""The mock's side of a program: a mock cluster of its own, and all outcomes Kafka may come to.

The mock's replicas are driven to where Kafka's settle: whoever runs catches up with every leader
that runs. Where Kafka leaves an order to chance, each order is an outcome: of two requests that are
sent at once, and of replicas that catch up while a reassignment waits for others of them. The mock
cannot go back, so an outcome is played by replaying what led to it on a new mock cluster.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeAlias

from mockbroker import MockCluster
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition
from tests.real.answers import Answers
from tests.real.kafka import BROKER_IDS
from tests.real.programs.model import CLUSTER_STEPS, ProgramStep
from tests.real.targets import MockTarget
from tests.support.ports import free_ports

__all__ = ["Brokers", "MockSide", "Outcome", "View"]

OUTCOMES_AT_MOST: Final = 24
ORDERS_AT_MOST: Final = 600
ATTEMPTS: Final = 10

View: TypeAlias = dict[str, Any]
"""What can be seen of a program's topics, by where it was seen."""

Late: TypeAlias = tuple[tuple[TopicPartition, frozenset[int]], ...]
"""Replicas that have not caught up yet when the second of two requests is taken."""

Early: TypeAlias = tuple[tuple[TopicPartition, tuple[int, ...]], ...]
"""Replicas that catch up before those which a reassignment of their partition adds."""


@dataclass
class Brokers:
    """How the real brokers fare; every program of a batch knows it."""

    stopped: set[int] = field(default_factory=set)
    frozen: set[int] = field(default_factory=set)
    controller: int | None = None
    """With ZooKeeper; KRaft's is nobody's business, as any broker forwards to it."""
    lagged: set[int] = field(default_factory=set)
    """Brokers that were stopped or frozen in this batch, and read the metadata log in bulk."""

    @property
    def live(self) -> list[int]:
        return [i for i in BROKER_IDS if i not in self.stopped]

    @property
    def answering(self) -> list[int]:
        return [i for i in self.live if i not in self.frozen]

    def copy(self) -> Brokers:
        return Brokers(set(self.stopped), set(self.frozen), self.controller, set(self.lagged))


@dataclass(frozen=True)
class _Move:
    """One step as the mock takes it."""

    step: ProgramStep
    brokers: Brokers
    settles: bool = True
    late: Late = ()
    early: Early = ()


class Outcome(NamedTuple):
    """What the mock answered to each step, what can be seen then, and how it came there."""

    answers: list[Any]
    view: View
    history: list[_Move]


Act: TypeAlias = Callable[[Answers, ProgramStep, Brokers], Awaitable[Any]]
See: TypeAlias = Callable[[Answers], Awaitable[View]]


class MockSide:
    """``act`` sends a step's request; both sides are asked in the same way."""

    def __init__(self, profile: str, prefix: str, *, zookeeper: bool, act: Act) -> None:
        self._profile = profile
        self._prefix = prefix
        self._zookeeper = zookeeper
        self._act = act
        self._stack = AsyncExitStack()
        self._history: list[_Move] = []

    @property
    def history(self) -> list[_Move]:
        """What led here; for ``go_to``."""
        return list(self._history)

    async def open(self) -> None:
        self._stack = AsyncExitStack()
        self._mock = await self._started()
        self._target = await self._stack.enter_async_context(MockTarget(self._mock))
        self._answers = Answers(self._target, self._prefix, forwards=not self._zookeeper)
        self._history = []

    async def _started(self) -> MockCluster:
        """On ports that a broker which is down finds again: kernels give them to nobody."""
        for _ in range(ATTEMPTS):
            first, *_ = free_ports(1)
            with contextlib.suppress(OSError):
                mock = MockTarget.cluster(self._profile, first)
                return await self._stack.enter_async_context(mock)
        return await self._stack.enter_async_context(MockTarget.cluster(self._profile))

    async def close(self) -> None:
        await self._stack.aclose()

    async def outcomes(
        self, steps: Sequence[ProgramStep], brokers: Brokers, see: See
    ) -> list[Outcome]:
        """What may come of these steps, taken at once. The mock is left at the last outcome."""
        return await self._outcomes(steps, _orders(steps, brokers.copy()), see)

    async def rare_outcomes(
        self, steps: Sequence[ProgramStep], brokers: Brokers, see: See
    ) -> list[Outcome]:
        """As ``outcomes``, where some of the replicas alone catch up between two steps. They are
        many, and taken to be wanted seldom."""
        return await self._outcomes(steps, self._rare_orders(steps, brokers.copy()), see)

    def _rare_orders(self, steps: Sequence[ProgramStep], brokers: Brokers) -> Iterator[list[_Move]]:
        if len(steps) != 2:
            return
        both = {tuple(row[:2]) for row in steps[0].get("rows", ())}
        both &= {tuple(row[:2]) for row in steps[1].get("rows", ())}
        lags = [
            frozenset(lag) for size in range(5) for lag in itertools.combinations(BROKER_IDS, size)
        ]
        for first, second in (steps, steps[::-1]):
            for chosen in itertools.product(lags, repeat=len(both)):
                late = tuple(
                    ((f"{self._prefix}{topic}", index), lag)
                    for (topic, index), lag in zip(sorted(both), chosen, strict=True)
                )
                yield [_Move(first, brokers, late=late), _Move(second, brokers)]

    async def _outcomes(
        self, steps: Sequence[ProgramStep], orders: Iterable[list[_Move]], see: See
    ) -> list[Outcome]:
        before = list(self._history)
        waiting = [list(each) for each in itertools.islice(orders, ORDERS_AT_MOST)]
        found: list[Outcome] = []
        while waiting:
            moves = waiting.pop(0)
            if found:
                await self.go_to(before)
            answers: dict[int, Any] = {}
            open_orders: dict[TopicPartition, set[int]] = {}
            for move in moves:
                answer, open_orders = await self._take(move)
                answers[_place(steps, move.step)] = answer
            ordered = [answers[place] for place in range(len(steps))]
            found.append(Outcome(ordered, await see(self._answers), list(self._history)))
            if not moves[-1].early and len(waiting) < OUTCOMES_AT_MOST:
                waiting += [
                    [*moves[:-1], replace(moves[-1], early=early)] for early in _early(open_orders)
                ]
        return found

    async def go_to(self, history: Sequence[_Move]) -> None:
        """Begin anew, and replay."""
        if history == self._history:
            return
        await self.close()
        await self.open()
        for move in history:
            await self._take(move)

    async def _take(self, move: _Move) -> tuple[Any, dict[TopicPartition, set[int]]]:
        """(the answer, replicas that need not have caught up as late as they did, by partition)"""
        mock, step = self._mock, move.step
        answer = None
        match step["do"]:
            case "stop" | "kill":
                await mock.stop_broker(step["broker"])
            case "start":
                await mock.start_broker(step["broker"])
            case "move-controller":
                mock.failover(step["to"])
            case "kill-controller":
                now = mock.cluster.state.controller_id
                mock.failover(next(i for i in move.brokers.live if i != now))
            case "freeze" | "thaw":
                pass
            case _:
                answer = await self._act(self._answers, step, move.brokers)
        if step["do"] in CLUSTER_STEPS:
            await self._target.hang_up()
        self._history.append(move)
        return answer, _settle(mock, move) if move.settles else {}


def _orders(steps: Sequence[ProgramStep], brokers: Brokers) -> Iterator[list[_Move]]:
    """Every order of the steps; replicas may, or may not, have caught up between two of them."""
    for order in itertools.permutations(steps):
        for settles in (True, False) if len(order) > 1 else (True,):
            *first, last = order
            yield [*(_Move(step, brokers, settles) for step in first), _Move(last, brokers)]


def _place(steps: Sequence[ProgramStep], step: ProgramStep) -> int:
    return next(place for place, each in enumerate(steps) if each is step)


def _early(open_orders: Mapping[TopicPartition, set[int]]) -> Iterator[Early]:
    """Every choice of replicas that catch up first, but that of none at all."""
    choices = [
        [(tp, chosen) for size in range(len(late) + 1)
         for chosen in itertools.combinations(sorted(late), size)]
        for tp, late in open_orders.items()
    ]  # fmt: skip
    for early in itertools.product(*choices):
        if any(chosen for _, chosen in early):
            yield early


def _settle(mock: MockCluster, move: _Move) -> dict[TopicPartition, set[int]]:
    able = set(move.brokers.answering)
    early, late = dict(move.early), dict(move.late)
    open_orders: dict[TopicPartition, set[int]] = {}
    for name, topic in list(mock.cluster.topics.items()):
        for index in range(len(topic.partitions)):
            tp = (name, index)
            while joining := _joining(mock.cluster.topics.partition(*tp), able, late.get(tp)):
                now = mock.cluster.topics.partition(*tp)
                adding = [broker for broker in joining if broker in now.adding]
                others = [broker for broker in joining if broker not in now.adding]
                first = [broker for broker in others if broker in early.get(tp, ())]
                if adding and others and not first and tp not in early:
                    open_orders.setdefault(tp, set()).update(others)
                mock.join_isr(tp, (first or adding or others)[0])
    return open_orders


def _joining(partition: Partition, able: set[int], late: frozenset[int] | None = None) -> list[int]:
    """Who is about to catch up."""
    if partition.leader not in able:
        return []
    ready = able - (late or frozenset())
    return [each for each in partition.replicas if each in ready and each not in partition.isr]
