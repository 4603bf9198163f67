"""Programs played at the same time on one real cluster and on one mock, step by step."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kproto.schema.versions import Versions
from mockbroker import MockCluster
from tests.real.answers import differences
from tests.real.compare import Difference
from tests.real.data.clusters import DataKafka, data_mock
from tests.real.data.pairs import PROFILES, clusters_of
from tests.real.data.side import Cluster
from tests.real.programs.batch import Played
from tests.real.programs.model import Program, ProgramStep
from tests.real.walks.generator import CONSUMER_GROUPS, REPLICAS
from tests.real.walks.stored import differing_batches, group_records, kafka_log, mock_log
from tests.real.walks.walker import Walker

__all__ = ["Lane", "WalkArena"]

AT_ONCE: Final = 8
"""Programs that ask at the same moment; more would only wait for each other's processors."""
MOMENT_SECONDS: Final = 0.05
"""After a step, how long an open request is given to be answered."""
PATIENCE: Final = 30.0
WRITING_SECONDS: Final = 3.0
RESOLVING_SECONDS: Final = 3.0


class WalkArena:
    """A running real cluster, and batches of programs played on it. Each batch has a mock of its
    own."""

    def __init__(
        self,
        kafka: DataKafka,
        on_step: Callable[[str, ProgramStep, float], None] = lambda name, step, seconds: None,
    ) -> None:
        self._on_step = on_step
        """Called with a program's name, a step, and how long it took."""
        self._kafka = kafka
        self._batches = 0
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def play(self, programs: Sequence[Program], patience: float = PATIENCE) -> Played:
        self._batches += 1
        played = Played(programs=len(programs))
        async with data_mock(PROFILES[self._kafka.release], walks=True) as mock:
            real, mocked, served = await clusters_of(self._kafka, mock)
            lanes = [
                Lane(f"w{self._batches}x{place}", real, mocked, served, patience)
                for place in range(len(programs))
            ]
            found: list[Difference | None] = await asyncio.gather(
                *(self._play(lane, each.steps) for lane, each in zip(lanes, programs, strict=True))
            )
            for place, lane in enumerate(lanes):
                if found[place] is None:
                    found[place] = await lane.compare_logs(self._kafka, mock)
            for lane in lanes:  # once all have ended: Kafka looks at the offsets of every group
                await lane.tidy()
        for lane, program, difference in zip(lanes, programs, found, strict=True):
            played.steps += lane.played
            played.fields += lane.fields
            played.batches += lane.batches
            if difference is not None:
                played.differences.append((program, difference))
        return played

    async def _play(self, lane: Lane, steps: Sequence[ProgramStep]) -> Difference | None:
        await lane.prepare(steps)
        for step in steps:
            async with self._turns:
                began = time.monotonic()
                found = await lane.play(step)
                self._on_step(lane.name, step, time.monotonic() - began)
            if found is not None:
                return found
        return None


class Lane:
    """One program: a walker on each side."""

    def __init__(
        self,
        name: str,
        real: Cluster,
        mocked: Cluster,
        served: Mapping[int, Versions],
        patience: float,
    ) -> None:
        self.name = name
        self.played = 0
        self.fields = 0
        self.batches = 0
        """How many stored batches, and records of groups, were compared."""
        self._patience = patience
        self._real = Walker(real, name, served)
        self._mock = Walker(mocked, name, served)

    async def tidy(self) -> None:
        """Delete the topics, and leave requests that still wait."""
        await self._real.delete_topics()
        self._real.close()
        self._mock.close()

    async def prepare(self, steps: Sequence[ProgramStep]) -> None:
        await asyncio.gather(self._real.prepare(steps), self._mock.prepare(steps))

    async def play(self, step: ProgramStep) -> Difference | None:
        sides = (self._real, self._mock)
        self.played += 1
        try:
            await asyncio.gather(*(side.take(step) for side in sides))
            await self._settle()
            await self._agree(step)
            await asyncio.gather(*(side.end(step) for side in sides))
        except Exception:
            text = traceback.format_exc(limit=-4)
            return Difference(self.name, self.played, str(dict(step)), (f"stopped: {text}",))
        real, mock = (dict(enumerate(map(_plain, side.new_notes()))) for side in sides)
        found, count = differences(real, mock)
        self.fields += count
        if not found:
            return None
        return Difference(self.name, self.played, str(dict(step)), tuple(found))

    async def compare_logs(self, kafka: DataKafka, mock: MockCluster) -> Difference | None:
        """Compare what both sides have stored. Kafka may still be writing."""
        deadline = time.monotonic() + WRITING_SECONDS
        while (found := self._stored(kafka, mock)) and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        if not found:
            return None
        return Difference(self.name, self.played, "the stored logs", tuple(found))

    def _stored(self, kafka: DataKafka, mock: MockCluster) -> list[str]:
        found: list[str] = []
        self.batches = 0
        for topic in REPLICAS:
            for index in range(len(mock.cluster.topics[f"{self.name}.{topic}"].partitions)):
                tp = (f"{self.name}.{topic}", index)
                folder = kafka.logs(self._real.leader(topic, index))
                theirs, (ours, start) = kafka_log(folder, tp), mock_log(mock, tp)
                rows = differing_batches(
                    theirs.since(start), ours.since(start), recompressed=topic == "c"
                )
                self.batches += len(ours.batches)
                found += [f"{tp[0]}-{index} {row}" for row in rows]
        tp = ("__consumer_offsets", 0)
        theirs = kafka_log(kafka.logs(self._real.coordinator), tp)
        ours, _ = mock_log(mock, tp)
        real = group_records(theirs.batches, f"{self.name}.", self._real.names.of_text)
        mocked = group_records(ours.batches, f"{self.name}.", self._mock.names.of_text)
        self.batches += len(mocked)
        rows, _ = differences({"record": real}, {"record": mocked})
        return [*found, *(f"records of groups: {row}" for row in rows)]

    async def _settle(self) -> None:
        """Both sides have answered the same of the requests that waited, or one differs."""
        real, mock = self._real, self._mock
        if not real.waiting and not mock.waiting:
            return
        await asyncio.sleep(MOMENT_SECONDS)
        deadline = time.monotonic() + self._patience
        while real.answered != mock.answered and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        real.take_answers(real.answered)
        mock.take_answers(mock.answered)

    async def _agree(self, step: ProgramStep) -> None:
        """Both sides show the same of a consumer group, or one differs: a coordinator resolves
        regular expressions after its answer."""
        group = step.get("group")
        if group not in CONSUMER_GROUPS:
            return
        deadline = time.monotonic() + RESOLVING_SECONDS
        while time.monotonic() < deadline:
            shown = await asyncio.gather(
                *(side.consumers.described(group) for side in (self._real, self._mock))
            )
            if shown[0] == shown[1]:
                return
            await asyncio.sleep(0.02)


def _plain(note: tuple[str, Any]) -> dict[str, Any]:
    label, answer = note
    return {"request": label, "answer": answer}
