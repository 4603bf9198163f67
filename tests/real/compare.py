"""Play every session on Kafka and on the mock, and compare what they answer, field by field.

Knows which fields may differ and why; which whole answers do is ``known_differences``.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kproto.messages import CreateTopicsRequest, DeleteTopicsRequest
from kproto.schema.model import ZERO_UUID
from kproto.schema.versions import Versions
from tests.real.steps import Ask, CatchUp, Look, Session, Settle, Step, Submit
from tests.real.targets import CLOSED, MockTarget, RealTarget, Target

__all__ = ["MASKED", "UNORDERED", "Comparison", "Difference", "Masked", "play"]

EVENTUALLY_SECONDS: Final = 3.0
"""How long a broker may take to hear of a change. Every known difference of such an answer waits
this long, so sessions avoid asking for them."""


class Masked(NamedTuple):
    """A field that may differ, by api key and path, and why."""

    api_key: int
    path: str
    why: str


MASKED: Final = (
    Masked(3, "brokers[].port", "a free port"),
    Masked(60, "brokers[].port", "a free port"),
    Masked(3, "clusterId", "random"),
    Masked(60, "clusterId", "random"),
    Masked(35, "results[].logDir", "a folder of this run"),
    Masked(35, "results[].totalBytes", "of this machine's disk"),
    Masked(35, "results[].usableBytes", "of this machine's disk"),
    Masked(
        18, "finalizedFeaturesEpoch", "counts metadata records, thousands of which are internal"
    ),
)
"""Fields whose values say nothing of the protocol. Both sides must have them all the same."""

_MASKS: Final = {(each.api_key, each.path) for each in MASKED}

UNORDERED: Final[Mapping[tuple[int, str], tuple[str, str]]] = {
    (3, "topics"): ("name", "Kafka gathers them in a hash map"),
    (3, "brokers"): ("nodeId", "Kafka gathers them in a hash map"),
    (3, "topics[].partitions"): ("partitionIndex", "Kafka gathers them in a hash map"),
    (3, "topics[].partitions[].isrNodes"): ("", "replicas that catch up together, in any order"),
    (60, "brokers"): ("brokerId", "Kafka gathers them in a hash map"),
    (18, "apiKeys"): ("apiKey", "Kafka's order is that of an enum, which changes"),
    (18, "supportedFeatures"): ("name", "Kafka gathers them in a hash map"),
    (18, "finalizedFeatures"): ("name", "Kafka gathers them in a hash map"),
    (32, "results[].configs"): ("name", "Kafka gathers them in a hash map"),
    (19, "topics[].configs"): ("name", "Kafka gathers them in a hash map"),
    (35, "results[].topics"): ("name", "Kafka gathers them in a hash map"),
    (35, "results[].topics[].partitions"): ("partitionIndex", "Kafka gathers them in a hash map"),
    (37, "results"): ("name", "Kafka gathers them in a hash map"),
    (20, "responses"): ("name", "Kafka gathers them in a hash map"),
    (46, "topics"): ("name", "Kafka gathers them in a hash map"),
    (46, "topics[].partitions"): ("partitionIndex", "Kafka gathers them in a hash map"),
    (43, "replicaElectionResults"): ("topic", "Kafka gathers them in a hash map"),
    (43, "replicaElectionResults[].partitionResult"): (
        "partitionId",
        "Kafka gathers them in a hash map",
    ),
}
"""Arrays without an order: (api key, path) -> (field to sort by, why)."""

OWN_TOPICS: Final = {3: ("topics", "name"), 46: ("topics", "name"),
                     35: ("results[].topics", "name"),
                     43: ("replicaElectionResults", "topic")}  # fmt: skip
"""Answers about everything are compared as far as the session's own topics go: what other sessions
left behind is theirs to compare."""


ZNODE: Final = -1
"""In place of an api key: what brokers and controller keep in ZooKeeper."""


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
        self.topics: list[str] = []
        self._targets: tuple[RealTarget, MockTarget] = (real, mock)
        self._served = served
        self._comparison = comparison
        self._forwards = not zookeeper
        self._ids: tuple[dict[str, uuid.UUID], dict[str, uuid.UUID]] = ({}, {})
        self._asked = 0

    async def play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Ask):
                await self._compare(step)
            elif isinstance(step, Look):
                await self._look(step)
            else:
                for target in self._targets:
                    await self._act(target, step)

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
        mocked = await self._znode(look.path, 1)
        differing, leaves = _differences(await self._znode(look.path, 0), mocked)
        while differing and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            differing, leaves = _differences(await self._znode(look.path, 0), mocked)
        self._count("znodes", leaves, f"{look.path} in ZooKeeper", differing)

    async def _znode(self, path: str, side: int) -> Any:
        text = await self._targets[side].read_znode(path)
        if text is None:
            return None
        try:
            read = json.loads(text)
        except ValueError:
            return text
        return self._normal(read, ZNODE, "", self._names(side))

    def _count(self, api: str, leaves: int, request: str, differing: Sequence[str]) -> None:
        self._comparison.responses += 1
        self._comparison.fields += leaves
        self._comparison.by_api[api] += 1
        if differing:
            self._comparison.differences.append(
                Difference(self.session.name, self._asked, request, tuple(differing))
            )

    def _names(self, side: int) -> dict[str, str]:
        """Topic ids as they are written, and what stands for them in a comparison."""
        return {_text(value): f"<id of {name}>" for name, value in self._ids[side].items()}

    async def _compare(self, ask: Ask) -> None:
        self._asked += 1
        api_key = self._body(ask, 0).API_KEY
        version = ask.version
        if version is None:
            own = api_key == self.session.api_key
            version = self.session.version if own else self._served[api_key].highest
        mocked = await self._answer(ask, 1, api_key, version)
        found = await self._answer(ask, 0, api_key, version)
        differing, leaves = _differences(found, mocked)
        deadline = time.monotonic() + EVENTUALLY_SECONDS
        while ask.eventually and differing and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            found = await self._answer(ask, 0, api_key, version)
            differing, leaves = _differences(found, mocked)
        if not ask.refusable:
            self._check_not_refused(found, mocked)
        name = type(self._body(ask, 0)).__name__.removesuffix("Request")
        body = str(self._body(ask, 0).to_json(version))[:160]
        request = f"{name} v{version} to broker {ask.broker_id}: {body}"
        self._count(name, leaves, request, differing)

    def _check_not_refused(self, *answers: Any) -> None:
        for answer in answers:
            codes = [value for path, value in _leaves(answer) if path.endswith("errorCode")]
            if not codes or any(codes):
                raise AssertionError(f"{self.session.name} cannot be played: {answer}")

    def _body(self, ask: Ask, side: int) -> Any:
        return ask.body(self._ids[side]) if callable(ask.body) else ask.body

    async def _answer(self, ask: Ask, side: int, api_key: int, version: int) -> Any:
        body = self._body(ask, side)
        answer = await self._targets[side].ask(ask, body, version)
        if answer is CLOSED:
            return CLOSED
        self._remember(body, answer, side)
        plain = _plain(answer, 0 if ask.forged is not None else version)
        if self._forwards:
            _hide_controller(plain)
        return self._normal(plain, api_key, "", self._names(side))

    def _remember(self, body: Any, answer: Any, side: int) -> None:
        """Topics made or seen, and their ids."""
        if isinstance(body, CreateTopicsRequest):
            for row in answer.topics:
                if row.error_code == 0 and row.name not in self.topics:
                    self.topics.append(row.name)
        elif isinstance(body, DeleteTopicsRequest):
            for row in answer.responses:
                if row.error_code == 0 and row.name in self.topics:
                    self.topics.remove(row.name)
        for row in getattr(answer, "topics", ()):
            topic_id = getattr(row, "topic_id", ZERO_UUID)
            if row.name and topic_id != ZERO_UUID:
                self._ids[side][row.name] = topic_id

    def _normal(self, value: Any, api_key: int, path: str, ids: Mapping[str, str]) -> Any:
        """Masked fields hidden, arrays without order sorted, other sessions' topics left out."""
        if (api_key, path) in _MASKS:
            return "<masked>"
        if isinstance(value, dict):
            return {
                key: self._normal(each, api_key, f"{path}.{key}" if path else key, ids)
                for key, each in value.items()
            }
        if isinstance(value, list):
            rows = [self._normal(each, api_key, f"{path}[]", ids) for each in value]
            if OWN_TOPICS.get(api_key, ("", ""))[0] == path:
                name = OWN_TOPICS[api_key][1]
                rows = [row for row in rows if self._is_mine(row[name])]
            if (api_key, path) in UNORDERED:
                key = UNORDERED[api_key, path][0]
                rows.sort(key=lambda row: (row[key] is None, row[key]) if key else row)
            return rows
        return ids.get(value, value) if isinstance(value, str) else value

    def _is_mine(self, name: str | None) -> bool:
        """Topics no session made, such as unknown ones, are in no other session's answer."""
        return name is None or name.startswith(self.session.name) or "-v" not in name


def _hide_controller(answer: dict[str, Any]) -> None:
    """Each broker forwards, so Kafka names any that is live."""
    if "controllerId" in answer:
        brokers = [each.get("nodeId", each.get("brokerId")) for each in answer["brokers"]]
        if answer["controllerId"] in brokers:
            answer["controllerId"] = "<a live broker>"


def _plain(answer: Any, version: int) -> Any:
    return json.loads(answer.to_json(version))


def _text(topic_id: uuid.UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _differences(real: Any, mock: Any) -> tuple[list[str], int]:
    """(what differs, how many fields there were)"""
    ours, theirs = dict(_leaves(mock)), dict(_leaves(real))
    paths = list(dict.fromkeys([*theirs, *ours]))
    missing = "<absent>"
    rows = [
        f"{path}: {theirs.get(path, missing)!r} / {ours.get(path, missing)!r}"
        for path in paths
        if theirs.get(path, missing) != ours.get(path, missing)
    ]
    return rows, len(paths)


_KEY_FIELDS: Final = ("apiKey", "name", "nodeId", "partitionIndex", "brokerId", "partitionId")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every field; an empty array or object is one too. Rows that have a name
    are called by it, so that one row too many is one difference."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        seen: Counter[str] = Counter()
        yield f"{path}.length", len(value)
        for row in value:
            key = next((str(row[name]) for name in _KEY_FIELDS if name in row), "")
            seen[key] += 1
            nth = f"#{seen[key]}" if seen[key] > 1 else ""
            yield from _leaves(row, f"{path}[{key}{nth}]")
    else:
        yield re.sub(r"\s+", " ", path), value
