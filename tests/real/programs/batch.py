"""Programs that are played at the same time on one real cluster, each beside a mock of its own.

Between two steps of the cluster every program goes its own way; those steps wait for all of them,
are taken once on the real side, and are then compared by each program.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.messages import DeleteTopicsRequest, DescribeQuorumRequest, MetadataRequest
from kproto.messages.describe_quorum_request import PartitionData as QuorumPartition
from kproto.messages.describe_quorum_request import TopicData as QuorumTopic
from kproto.schema.versions import Versions
from tests.real.compare import Difference
from tests.real.kafka import BROKER_IDS, RealKafka
from tests.real.programs.lane import Lane
from tests.real.programs.mock_side import Brokers
from tests.real.programs.model import Program, ProgramStep, Setting, segments
from tests.real.programs.requests import RATES, SUBMISSIONS, ask_of
from tests.real.steps import BROKER, DELETE, change
from tests.real.targets import CLOSED, MockTarget, RealTarget

__all__ = ["Arena", "Played"]

PATIENCE: Final = 120.0
AT_ONCE: Final = 8
"""Programs that ask at the same moment; more would only wait for each other's processors."""


@dataclass
class Played:
    """What came of some programs."""

    programs: int = 0
    steps: int = 0
    cluster_steps: int = 0
    fields: int = 0
    batches: int = 0
    """Stored batches that were compared as bytes, of programs of the data plane."""
    differences: list[tuple[Program, Difference]] = field(default_factory=list)

    def __str__(self) -> str:
        stored = f"{self.batches} stored batches, " if self.batches else ""
        return (
            f"{self.programs} programs, {self.steps} steps, {self.cluster_steps} of the cluster, "
            f"{self.fields} fields, {stored}{len(self.differences)} differences"
        )

    def add(self, other: Played) -> None:
        self.programs += other.programs
        self.steps += other.steps
        self.cluster_steps += other.cluster_steps
        self.fields += other.fields
        self.batches += other.batches
        self.differences += other.differences


class Arena:
    """A running real cluster, and batches played on it, one after the other."""

    def __init__(
        self,
        kafka: RealKafka,
        setting: Setting,
        real: RealTarget,
        on_step: Callable[[str, ProgramStep, float], None] = lambda name, step, seconds: None,
    ) -> None:
        self._on_step = on_step
        """Called with a program's name, "" for the cluster's own steps; what; how long it took."""
        self._kafka = kafka
        self._setting = setting
        self._real = real
        self._served: dict[int, Versions] = {}
        self._brokers = Brokers()
        self._batches = 0
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def ready(self) -> None:
        """Every broker knows every other, and what both sides serve is known."""
        await self._real.ready()
        async with MockTarget.cluster(self._setting.profile) as mock:
            self._served = _both_serve(self._real.served, mock.served)

    async def play(self, programs: Sequence[Program], patience: float = PATIENCE) -> Played:
        """Programs of one batch. Afterwards the cluster is whole again, and has no topic left."""
        self._batches += 1
        self._brokers.lagged.clear()
        played = Played(programs=len(programs))
        groups = [segments(program.steps) for program in programs]
        if self._setting.zookeeper:
            await self._move_controller(1)
        async with AsyncExitStack() as stack:
            lanes: list[Lane | None] = []
            for place in range(len(programs)):
                wires = await stack.enter_async_context(self._real.beside())
                lane = Lane(
                    f"p{self._batches}x{place}-v", self._setting.profile, wires, self._served,
                    self._brokers, await self._epoch(), patience,
                )  # fmt: skip
                lanes.append(await stack.enter_async_context(lane))
            all_lanes = [lane for lane in lanes if lane is not None]
            for place in range(len(groups[0])):
                shared = groups[0][place][0] if place else None
                began = time.monotonic()
                answer = await self._take(shared) if shared else None
                if shared:
                    self._on_step("", shared, time.monotonic() - began)
                played.cluster_steps += shared is not None
                found = await asyncio.gather(
                    *(
                        self._play(lane, group[place], answer) if lane else _nothing()
                        for lane, group in zip(lanes, groups, strict=True)
                    )
                )
                for which, difference in enumerate(found):
                    if difference is not None:
                        played.differences.append((programs[which], difference))
                        lanes[which] = None
            played.steps = sum(lane.played for lane in all_lanes)
            played.fields = sum(lane.fields for lane in all_lanes)
        await self._tidy()
        return played

    async def _play(
        self, lane: Lane, steps: Sequence[ProgramStep], answer: Any
    ) -> Difference | None:
        for step in steps:
            async with self._turns:
                began = time.monotonic()
                found = await lane.play(step, answer)
                self._on_step(lane.prefix, step, time.monotonic() - began)
            answer = None
            if found is not None:
                return found
        return None

    # ---- steps of the cluster, on the real side ----------------------------------------------

    async def _take(self, step: ProgramStep) -> Any:
        """The raw answer, of a step that has one."""
        kafka, brokers, broker = self._kafka, self._brokers, step.get("broker", 0)
        if step["do"] in ("stop", "kill", "freeze"):
            brokers.lagged.add(broker)
        match step["do"]:
            case "stop":
                await asyncio.to_thread(kafka.stop, broker)
                brokers.stopped.add(broker)
            case "kill":
                await asyncio.to_thread(kafka.kill, broker)
                brokers.stopped.add(broker)
                succeeds = brokers.controller == broker
                if succeeds:
                    brokers.controller = brokers.live[0]
                await self._expire(broker, controller=succeeds)
            case "start":
                await self._real.bring_back(broker, brokers.answering[0])
                brokers.stopped.discard(broker)
            case "freeze":
                kafka.freeze(broker)
                brokers.frozen.add(broker)
            case "thaw":
                kafka.thaw(broker)
                brokers.frozen.discard(broker)
            case "kill-controller":
                await self._kill_active()
            case "move-controller":
                await self._move_controller(step["to"])
            case _:
                via = brokers.controller or brokers.answering[0]
                ask = ask_of(step, str, step.get("broker", via))
                assert ask is not None
                version = self._served[ask.body.API_KEY].highest
                return ask.body, await self._real.exchange(ask.broker_id, ask.body, version, None)
        await self._known()
        return None

    async def _known(self) -> None:
        """Every broker that answers lists those that run, and no other."""
        await self._real.hang_up()
        for broker_id in self._brokers.answering:
            await self._real.until_listed(broker_id, self._brokers.live)

    async def _kill_active(self) -> None:
        """The active controller of the quorum dies, another takes over, and it comes back."""
        killed = await self._active()
        await asyncio.to_thread(self._kafka.kill, killed)

        async def succeeded() -> bool:
            return await self._active() not in (killed, -1)

        await self._real.until(succeeded, "another active controller")
        await asyncio.to_thread(self._kafka.start, killed)

    async def _active(self) -> int:
        topic = QuorumTopic(topic_name="__cluster_metadata", partitions=[QuorumPartition()])
        body = DescribeQuorumRequest(topics=[topic])
        answer = await self._real.exchange(self._brokers.answering[0], body, 1, None)
        if answer is CLOSED or answer.error_code or not answer.topics:
            return -1
        leader: int = answer.topics[0].partitions[0].leader_id
        return leader

    async def _expire(self, broker_id: int, *, controller: bool) -> None:
        """Delete the znodes of a killed broker, as ZooKeeper does in one transaction when the
        session ends. Nobody watches the broker's own znode while ``/controller`` stands for it, so
        the successor always starts without that broker."""
        await self._with_one_candidate(
            [f"/brokers/ids/{broker_id}", *(["/controller"] if controller else [])]
        )

    async def _move_controller(self, to: int) -> None:
        if await self._controller() == to:
            self._brokers.controller = to
            return
        self._brokers.controller = to
        await self._with_one_candidate(["/controller"])

    async def _with_one_candidate(self, paths: Sequence[str]) -> None:
        """Delete znodes. Where that means an election, all brokers but the one that shall win are
        held meanwhile, as it is a race otherwise."""
        held = []
        if "/controller" in paths:
            await self._deletions_settled()
            held = [i for i in self._brokers.answering if i != self._brokers.controller]
        for broker_id in held:
            self._kafka.freeze(broker_id)
        try:
            for path in paths:
                await self._real.write_znode(path, None)
            if held:
                await self._real.until(self._elected, "a controller")
        finally:
            for broker_id in held:
                self._kafka.thaw(broker_id)

    async def _deletions_settled(self) -> None:
        """Wait until no topic is being deleted; with brokers down, which may delay that for good,
        for two seconds at most. A controller that is deposed while it deletes keeps the requests
        that it had not sent. If it is elected again, every change of a replica's state fails:
        "Controller to broker state change requests batch is not empty" (2.4.1 to 3.9.2)."""

        async def settled() -> bool:
            return not await self._real.znode_children("/admin/delete_topics")

        if not self._brokers.stopped and not self._brokers.frozen:
            await self._real.until(settled, "the deletion of topics")
            return
        deadline = time.monotonic() + 2
        while not await settled() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)

    async def _elected(self) -> bool:
        return await self._controller() == self._brokers.controller

    async def _controller(self) -> int | None:
        text = await self._real.read_znode("/controller")
        return None if text is None else int(json.loads(text)["brokerid"])

    async def _epoch(self) -> int:
        if not self._setting.zookeeper:
            return 1
        return int(await self._real.read_znode("/controller_epoch") or 0)

    # ---- afterwards --------------------------------------------------------------------------

    async def _tidy(self) -> None:
        """Programs that were cut short, or made smaller, leave brokers down."""
        for broker_id in sorted(self._brokers.frozen):
            await self._take({"do": "thaw", "broker": broker_id})
        for broker_id in sorted(self._brokers.stopped):
            await self._take({"do": "start", "broker": broker_id})
        via = self._brokers.controller or 1
        for broker_id in BROKER_IDS:
            rates = [(name, DELETE, None) for name in RATES]
            body = change((BROKER, str(broker_id), rates)).body
            version = self._served[body.API_KEY].highest
            await self._real.exchange(broker_id, body, version, None)
        everything = await self._real.exchange(via, MetadataRequest(topics=None), 5, None)
        names = [topic.name for topic in everything.topics if "-v" in topic.name]
        for path in SUBMISSIONS if self._setting.zookeeper else ():
            # A controller ignores a plan that is written while another one is there.
            if await self._real.read_znode(path) is not None:
                await self._real.write_znode(path, None)
        if names:
            body = DeleteTopicsRequest(timeout_ms=60_000, topic_names=names)
            await self._real.exchange(via, body, 4, None)


async def _nothing() -> None:
    return None


def _both_serve(real: Mapping[int, Versions], mock: Mapping[int, Versions]) -> dict[int, Versions]:
    return {
        key: Versions(
            max(real[key].lowest, mock[key].lowest), min(real[key].highest, mock[key].highest)
        )
        for key in real.keys() & mock.keys()
    }
