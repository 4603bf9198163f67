"""One program on both sides: its steps are played on Kafka and on a mock cluster of its own, and
what can be seen afterwards is compared until it is the same, or has been different for too long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kproto.schema.versions import Versions
from tests.real.answers import Answers, differences
from tests.real.compare import Difference
from tests.real.programs.mock_side import Brokers, MockSide, Outcome, View
from tests.real.programs.model import CLUSTER_STEPS, ProgramStep
from tests.real.programs.requests import CONFIG_CHANGES, ask_of, writes_of
from tests.real.steps import BROKER, TOPIC, Ask, describe, listing, metadata
from tests.real.targets import RealTarget

__all__ = ["Lane"]

ALTER_REASSIGNMENTS: Final = 45
COMMON_SECONDS: Final = 15.0
"""How long it has to take until a rare outcome is thought of."""


class Lane:
    """``prefix`` begins the names of the program's topics, on both sides."""

    def __init__(
        self,
        prefix: str,
        profile: str,
        real: RealTarget,
        served: Mapping[int, Versions],
        brokers: Brokers,
        first_epoch: int,
        patience: float,
    ) -> None:
        self.prefix = prefix
        self.fields = 0
        self.played = 0
        self._served = served
        self._brokers = brokers
        self._zookeeper = brokers.controller is not None
        self._real = Answers(real, prefix, forwards=not self._zookeeper)
        self._real_target = real
        self._first_epoch = first_epoch
        """The real controller's when the program began; its mock's is 1."""
        self._patience = patience
        """Seconds that Kafka may take to get where the mock is. Only a difference waits so long."""
        self._names: list[str] = []
        self._mock = MockSide(profile, prefix, zookeeper=self._zookeeper, act=self._act)

    async def __aenter__(self) -> Lane:
        await self._mock.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._mock.close()

    # ---- steps -------------------------------------------------------------------------------

    async def play(
        self, step: ProgramStep, shared: tuple[Any, Any] | None = None
    ) -> Difference | None:
        """A step. The batch has taken those of the cluster on the real side; ``shared`` is the
        request, and the answer, of one that has some."""
        brokers = self._brokers.copy()
        self._names.extend(topic for topic in _topics_of(step) if topic not in self._names)
        steps = self._at_once(step)
        if shared is not None:
            body, raw = shared
            answers = [self._real.read(raw, body, self._served[body.API_KEY].highest)]
        elif step["do"] in CLUSTER_STEPS:
            answers = [None]
            await self._real_target.hang_up()
        elif len(steps) > 1:
            answers = await self._ask_at_once(steps, brokers)
        else:
            answers = [await self._act(self._real, step, brokers)]
        found = await self._compare(step, steps, answers, brokers)
        self.played += 1
        if not found:
            return None
        return Difference(self.prefix, self.played, str(dict(step)), tuple(found))

    @staticmethod
    def _at_once(step: ProgramStep) -> list[ProgramStep]:
        """The step, or both of two admins who go by way of different brokers."""
        if step["do"] != "together":
            return [step]
        via = step.get("via", 0)
        return [{**each, "via": via + place} for place, each in enumerate(step["steps"])]

    async def _ask_at_once(self, steps: Sequence[ProgramStep], brokers: Brokers) -> list[Any]:
        wires = [self._wire(each, brokers) for each in steps]
        raw = await asyncio.gather(*(self._real_target.exchange_alone(*each) for each in wires))
        return [
            self._real.read(answer, body, version)
            for answer, (_, body, version) in zip(raw, wires, strict=True)
        ]

    async def _compare(
        self,
        step: ProgramStep,
        steps: Sequence[ProgramStep],
        answers: Sequence[Any],
        brokers: Brokers,
    ) -> list[str]:
        """How Kafka differs from that outcome of the mock's which is nearest; the mock goes on
        from there."""

        async def see(side: Answers) -> View:
            return await self._view(side, step, brokers, 1)

        before = self._mock.history
        common = await self._mock.outcomes(steps, brokers, see)
        rare = len(steps) > 1
        patience = min(self._patience, COMMON_SECONDS) if rare else self._patience
        found, chosen = await self._nearest(step, common, answers, brokers, patience)
        if found and rare:
            await self._mock.go_to(before)
            common += await self._mock.rare_outcomes(steps, brokers, see)
            found, chosen = await self._nearest(step, common, answers, brokers, self._patience)
        await self._mock.go_to(chosen.history)
        return found

    async def _nearest(
        self,
        step: ProgramStep,
        outcomes: Sequence[Outcome],
        answers: Sequence[Any],
        brokers: Brokers,
        patience: float,
    ) -> tuple[list[str], Outcome]:
        answered = [each for each in outcomes if not differences(answers, each.answers)[0]]
        # What was answered stays: without an outcome of that there is nothing to wait for.
        deadline = time.monotonic() + (patience if answered else 0.0)
        outcomes = answered or outcomes
        pause = 0.01
        while True:
            view = await self._view(self._real, step, brokers, self._first_epoch)
            real = {"answers": dict(enumerate(answers)), **view}
            compared = [
                differences(real, {"answers": dict(enumerate(each.answers)), **each.view})
                for each in outcomes
            ]
            chosen = min(range(len(outcomes)), key=lambda each: len(compared[each][0]))
            found, count = compared[chosen]
            if not found or time.monotonic() > deadline:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        self.fields += count
        return found, outcomes[chosen]

    def _wire(self, step: ProgramStep, brokers: Brokers) -> tuple[int, Any, int]:
        """(broker, body, version)"""
        ask = self._ask(step, brokers)
        assert ask is not None
        body = self._real.body(ask)
        return ask.broker_id, body, self._version(ask, body.API_KEY)

    def _ask(self, step: ProgramStep, brokers: Brokers) -> Ask | None:
        if step.get("guard") and self._served[ALTER_REASSIGNMENTS].highest < 1:
            step = {**step, "guard": False}
        return ask_of(step, self._name, self._reached(step, brokers))

    def _reached(self, step: ProgramStep, brokers: Brokers) -> int:
        if step["do"] == "broker-configs":
            return int(step["broker"])
        if brokers.controller is not None:
            return brokers.controller
        answering = brokers.answering
        via: int = step.get("via", 0)
        return answering[via % len(answering)]

    def _version(self, ask: Ask, api_key: int) -> int:
        highest: int = self._served[api_key].highest
        return highest if ask.version is None else min(ask.version, highest)

    def _name(self, topic: str) -> str:
        return f"{self.prefix}{topic}"

    async def _act(self, side: Answers, step: ProgramStep, brokers: Brokers) -> Any:
        ask = self._ask(step, brokers)
        if ask is not None:
            return await side.ask(ask, self._version(ask, side.body(ask).API_KEY))
        for submitted in writes_of(step, self._name):
            if submitted.path == CONFIG_CHANGES:
                await side.target.append_znode(submitted.path, submitted.text or "")
            else:
                await side.target.write_znode(submitted.path, submitted.text)
        return None

    # ---- what can be seen --------------------------------------------------------------------

    async def _view(
        self, side: Answers, step: ProgramStep, brokers: Brokers, first_epoch: int
    ) -> View:
        names = [self._name(topic) for topic in self._names]
        answering = brokers.answering
        first = brokers.controller or answering[0]
        other = answering[step.get("via", 0) % len(answering)]
        view: View = {}
        seen = metadata(*names, broker_id=first)
        view["metadata"] = await side.ask(seen, self._version(seen, 3))
        if other != first:
            seen = metadata(*names, broker_id=other)
            view[f"metadata of {other}"] = await side.ask(seen, self._version(seen, 3))
        asked = listing(everything=True, broker_id=first)
        view["reassignments"] = await side.ask(asked, self._version(asked, 46))
        describing = self._describing(brokers, other)
        for topic in _configured(step) if describing else ():
            described = describe((TOPIC, self._name(topic)), broker_id=describing)
            answer = await side.ask(described, self._version(described, 32))
            view[f"configs of {topic}"] = answer
        if step["do"] == "broker-configs":
            rates = [operation[0] for operation in step["operations"]]
            broker = step["broker"]
            described = describe((BROKER, str(broker)), names=rates, broker_id=broker)
            view["configs"] = await side.ask(described, self._version(described, 32))
        if self._zookeeper:
            view.update(await self._znodes(side, view["metadata"], first_epoch))
        return view

    def _describing(self, brokers: Brokers, preferred: int) -> int | None:
        """The broker that describes configs. A KRaft broker that reads the creation, the configs
        and the deletion of a topic as one delta gives the configs to a later topic of that name:
        ``ConfigurationsDelta`` forgets only what the image before the delta had (Kafka 4.4.0)."""
        if self._zookeeper:
            return preferred
        steady = [each for each in brokers.answering if each not in brokers.lagged]
        return preferred if preferred in steady else next(iter(steady), None)

    async def _znodes(self, side: Answers, seen: Any, first_epoch: int) -> View:
        found: View = {}
        for topic in seen["topics"]:
            path = f"/brokers/topics/{topic['name']}"
            found[path] = await side.znode(path)
            for partition in topic["partitions"]:
                below = f"{path}/partitions/{partition['partitionIndex']}/state"
                state = await side.znode(below)
                if isinstance(state, dict):
                    state["controller_epoch"] -= first_epoch
                found[below] = state
        return found


def _configured(step: ProgramStep) -> list[str]:
    """Topics whose configs the step, or one of two steps taken at once, changes."""
    changed = [topic for each in step.get("steps", ()) for topic in _configured(each)]
    if step["do"] in ("configs", "submit-config"):
        changed.append(step["topic"])
    return list(dict.fromkeys(changed))


def _topics_of(step: ProgramStep) -> list[str]:
    inner = [topic for each in step.get("steps", ()) for topic in _topics_of(each)]
    rows = [row[0] for row in step.get("rows", ())]
    named = [step["topic"]] if "topic" in step else []
    return [*inner, *rows, *named, *step.get("topics", ())]
