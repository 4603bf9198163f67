"""Play every session on Kafka and on the mock, and compare what they answer, field by field.

Which fields may differ is ``answers``' to know, and which whole answers do, ``known_differences``'.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.schema.versions import Versions
from tests.real.answers import Answers, differences, leaves
from tests.real.steps import Ask, CatchUp, Look, Session, Settle, Step, Submit
from tests.real.targets import MockTarget, RealTarget, Target

__all__ = ["Comparison", "Difference", "play"]

EVENTUALLY_SECONDS: Final = 3.0
"""How long a broker may take to hear of a change. Every known difference of such an answer waits
this long, so sessions avoid asking for them."""


@dataclass(frozen=True)
class Difference:
    """One answer that is not the same; ``fields`` are "path: Kafka's value / the mock's"."""

    session: str
    step: int
    request: str
    fields: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"{self.session} #{self.step}"

    def __str__(self) -> str:
        rows = "".join(f"\n    {each}" for each in self.fields[:12])
        return f"{self.where} {self.request}{rows}"


@dataclass
class Comparison:
    """What was compared, and what was not the same."""

    sessions: int = 0
    responses: int = 0
    fields: int = 0
    by_api: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    seconds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        apis = ", ".join(f"{name} {count}" for name, count in self.by_api.most_common())
        rounds = ", ".join(f"{name} {taken:.1f} s" for name, taken in self.seconds.items())
        return (
            f"{self.sessions} sessions, {self.responses} responses ({apis}), {self.fields} fields, "
            f"{len(self.differences)} answers with a known difference ({rounds})"
        )


async def play(
    real: RealTarget, mock: MockTarget, sessions: Sequence[Session], served: Mapping[int, Versions],
    *, zookeeper: bool,
) -> Comparison:  # fmt: skip
    """All sessions, round by round, on both."""
    shown = {requirement for each in sessions for requirement in each.shows}
    comparison = Comparison(sessions=len(sessions), shown=shown)
    players = [_Player(each, real, mock, served, comparison, zookeeper) for each in sessions]
    for name in ("running", "frozen", "stopped"):
        began = time.monotonic()
        topics = [topic for player in players for topic in player.topics]
        if name == "frozen":
            await asyncio.gather(real.freeze(), mock.freeze())
        elif name == "stopped":
            await real.stop_laggard(topics)
            await mock.stop_laggard(topics)
        for player in players:
            await player.play(getattr(player.session.rounds, name))
        comparison.seconds[name] = time.monotonic() - began
    return comparison


class _Player:
    """One session, between rounds too: its topics, and their ids on either side."""

    def __init__(
        self,
        session: Session,
        real: RealTarget,
        mock: MockTarget,
        served: Mapping[int, Versions],
        comparison: Comparison,
        zookeeper: bool,
    ) -> None:
        self.session = session
        self._real = Answers(real, session.name, forwards=not zookeeper)
        self._mock = Answers(mock, session.name, forwards=not zookeeper)
        self._served = served
        self._comparison = comparison
        self._asked = 0

    @property
    def topics(self) -> list[str]:
        """Those that there are on either side."""
        return list(dict.fromkeys(self._real.topics + self._mock.topics))

    async def play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Ask):
                await self._compare(step)
            elif isinstance(step, Look):
                await self._look(step)
            else:
                for side in (self._real, self._mock):
                    await self._act(side.target, step)

    async def _act(self, target: Target, step: Settle | CatchUp | Submit) -> None:
        if isinstance(step, CatchUp):
            await target.catch_up(step)
        elif isinstance(step, Submit):
            await target.write_znode(step.path, step.text)
        else:
            await target.settle(self.topics)

    async def _look(self, look: Look) -> None:
        self._asked += 1
        deadline = time.monotonic() + EVENTUALLY_SECONDS
        mocked = await self._mock.znode(look.path)
        differing, count = differences(await self._real.znode(look.path), mocked)
        while differing and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            differing, count = differences(await self._real.znode(look.path), mocked)
        self._count("znodes", count, f"{look.path} in ZooKeeper", differing)

    def _count(self, api: str, count: int, request: str, differing: Sequence[str]) -> None:
        self._comparison.responses += 1
        self._comparison.fields += count
        self._comparison.by_api[api] += 1
        if differing:
            self._comparison.differences.append(
                Difference(self.session.name, self._asked, request, tuple(differing))
            )

    async def _compare(self, ask: Ask) -> None:
        self._asked += 1
        api_key = self._real.body(ask).API_KEY
        version = ask.version
        if version is None:
            own = api_key == self.session.api_key
            version = self.session.version if own else self._served[api_key].highest
        mocked = await self._mock.ask(ask, version)
        found = await self._real.ask(ask, version)
        differing, count = differences(found, mocked)
        deadline = time.monotonic() + EVENTUALLY_SECONDS
        while ask.eventually and differing and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            found = await self._real.ask(ask, version)
            differing, count = differences(found, mocked)
        if not ask.refusable:
            self._check_not_refused(found, mocked)
        body = self._real.body(ask)
        name = type(body).__name__.removesuffix("Request")
        text = str(body.to_json(version))[:160]
        request = f"{name} v{version} to broker {ask.broker_id}: {text}"
        self._count(name, count, request, differing)

    def _check_not_refused(self, *answers: Any) -> None:
        for answer in answers:
            codes = [value for path, value in leaves(answer) if path.endswith("errorCode")]
            if not codes or any(codes):
                raise AssertionError(f"{self.session.name} cannot be played: {answer}")
