"""Programs on three brokers, one of which stops and starts again.

``python -m tests.real.search.outages`` plays batches of them: all programs of a batch play an act,
then a broker stops on both sides; it starts again after the second act. Each request goes to the
broker that leads or coordinates what it is about, and sometimes to another one.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kproto.messages import (
    CreateTopicsRequest,
    ElectLeadersRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    UnregisterBrokerRequest,
)
from kproto.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from tests.real.data.clusters import DATA_CONFIGS, KAFKA_CONFIGS
from tests.real.data.side import CLOSED, Cluster
from tests.real.data.side import Side as DataSide
from tests.real.kafka import COMMON_CONFIGS, RealKafka
from tests.real.programs.model import Program
from tests.real.search.clusters import RELEASES
from tests.real.search.kinds import signature_of
from tests.real.search.pairs import served_by
from tests.real.search.play import Lane, Played
from tests.real.search.programs import FAMILIES, drawn_request
from tests.real.search.requests import setup
from tests.real.search.side import Side
from tests.real.targets import MockTarget
from tests.support.ports import free_ports

__all__ = ["LAYOUT", "leader_of", "outage_programs"]

BROKERS: Final = (1, 2, 3)
STOPPED: Final = (2, 3)
"""Broker 1 is the controller, too, and stays."""
LAYOUT: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
"""Replicas of the partitions of each topic. The first leads."""
GROUPS, TRANSACTIONS, SHARE_STATES = range(3)
"""Kinds of coordinators, as FindCoordinator numbers them."""
INTERNAL: Final[Mapping[int, tuple[str, tuple[int, ...]]]] = {
    GROUPS: ("__consumer_offsets", (2, 3, 1)),
    TRANSACTIONS: ("__transaction_state", (3, 2, 1)),
    SHARE_STATES: ("__share_group_state", (2, 1, 3)),
}
"""The internal topics of one partition, by kind. Kafka would place them at random."""

ACTS: Final = 3
LENGTH: Final = 5
BATCH: Final = 24
ELSEWHERE: Final = 0.15
"""How many requests go to a broker that may have nothing to do with them."""
PATIENCE: Final = 120.0
POLL_SECONDS: Final = 0.1
FOREVER_MS: Final = "1800000"

_CONFIGS: Final[Mapping[str, str]] = {
    **DATA_CONFIGS,
    "group.consumer.session.timeout.ms": FOREVER_MS,
    "group.consumer.max.session.timeout.ms": FOREVER_MS,
    "group.share.session.timeout.ms": FOREVER_MS,
    "group.share.max.session.timeout.ms": FOREVER_MS,
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
}
"""No member's session ends while a broker is away."""
_OF_GROUPS: Final = frozenset({8, 9, 11, 12, 13, 14, 15, 28, 42, 47, 68, 69, 76, 77, 90, 91, 92})
_OF_TRANSACTIONS: Final = frozenset({22, 24, 25, 26, 65})
_OF_LEADERS: Final = frozenset({0, 1, 2, 21, 23, 61, 78, 79})
_FAMILIES: Final = (
    "classic groups", "consumer groups", "share groups", "transactions", "data", "offsets",
)  # fmt: skip
_OUTAGE: Final = "outage"
_SHARE_FETCH: Final = 78
STATE_WAIT_MS: Final = 3000
"""A new leader reads the state of a share partition from another broker."""


def leader_of(replicas: Sequence[int], stopped: int, act: int) -> int:
    """Who leads in an act: the first replica, until it stops; leaders do not move back."""
    return next(each for each in replicas if act == 0 or each != stopped)


# ---- what is drawn -------------------------------------------------------------------------------


def outage_programs(
    seed: str, batch: int, count: int, served: Mapping[int, Versions]
) -> tuple[int, list[Program]]:
    """The broker that stops, and programs of the batch."""
    stopped = random.Random(f"{seed}:b{batch}").choice(STOPPED)
    names = (f"{seed}:b{batch}:{number}" for number in range(count))
    return stopped, [_program(name, stopped, served) for name in names]


def _program(name: str, stopped: int, served: Mapping[int, Versions]) -> Program:
    draw = random.Random(name)
    family = FAMILIES[draw.choice(_FAMILIES)]
    steps = list(_prepared(setup(family.needs, served)))
    weights = {api: weight for api, weight in family.apis.items() if api in served}
    for act in range(ACTS):
        if act:
            steps.append({"api": 0, "version": 0, "body": {}, _OUTAGE: stopped})
        for _ in range(LENGTH):
            (api,) = draw.choices(list(weights), list(weights.values()))
            step = drawn_request(draw, api, draw.choice(list(served[api])), family)
            partition = draw.randrange(len(LAYOUT))
            if api in _OF_LEADERS:
                step["body"] = _set_partition(step["body"], partition)
            if api == _SHARE_FETCH:
                step["body"]["maxWaitMs"] = STATE_WAIT_MS
            live = [each for each in BROKERS if act != 1 or each != stopped]
            broker = _broker_of(api, partition, stopped, act) or draw.choice(live)
            if draw.random() < ELSEWHERE:
                broker = draw.choice(live)
            steps.append({**step, "on": f"b{broker}"})
    return Program(name, steps)


def _broker_of(api: int, partition: int, stopped: int, act: int) -> int:
    """The broker that must answer; 0 if any may."""
    if api in _OF_LEADERS:
        return leader_of(LAYOUT[partition], stopped, act)
    if api in _OF_GROUPS:
        return leader_of(INTERNAL[GROUPS][1], stopped, act)
    if api in _OF_TRANSACTIONS:
        return leader_of(INTERNAL[TRANSACTIONS][1], stopped, act)
    return 0


def _prepared(steps: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The state of a program, on three brokers: requests about a topic for each partition."""
    for step in steps:
        if step["api"] == 19:
            (topic,) = step["body"]["topics"]
            topic["numPartitions"] = topic["replicationFactor"] = -1
            topic["assignments"] = [
                {"partitionIndex": place, "brokerIds": list(replicas)}
                for place, replicas in enumerate(LAYOUT)
            ]
        if step["api"] == 3:
            yield from ({**step, "on": f"b{each}"} for each in BROKERS)
        elif step["api"] in _OF_LEADERS:
            for place, replicas in enumerate(LAYOUT):
                body = _set_partition(step["body"], place)
                yield {**step, "body": body, "on": f"b{replicas[0]}"}
        else:
            yield {**step, "on": f"b{_broker_of(step['api'], 0, 0, 0) or 1}"}


def _set_partition(value: Any, index: int) -> Any:
    """``value`` with that partition everywhere."""
    if isinstance(value, list):
        return [_set_partition(each, index) for each in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, each in value.items():
        if key in ("partitionIndex", "partition", "index") and isinstance(each, int):
            found[key] = index
        elif key == "partitions" and each and isinstance(each[0], int):
            found[key] = [index]
        else:
            found[key] = _set_partition(each, index)
    return found


# ---- the clusters --------------------------------------------------------------------------------


class OutageKafka(RealKafka):
    def __init__(self, release: str, folder: Path) -> None:
        super().__init__(release, folder, zookeeper=False, broker_ids=BROKERS)

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        return {**super()._kraft_configs(broker_id), **_CONFIGS, **KAFKA_CONFIGS}


class _ClusterSide(Side):
    """Connections are named ``b1`` to ``b3`` after the brokers that they go to."""

    def __init__(self, addresses: Mapping[int, tuple[str, int]], name: str) -> None:
        super().__init__(addresses[1], name)
        self._addresses = addresses
        self._names.coordinators = set()

    def address_of(self, connection: str) -> tuple[str, int]:
        return self._addresses[int(connection[1:])]


class Outages:
    """Both clusters, whose brokers stop and start together."""

    def __init__(self, kafka: OutageKafka, mock: MockCluster, release: str) -> None:
        self._kafka, self._mock, self._release = kafka, mock, release
        ours = {}
        for broker_id, address in mock.addresses.items():
            host, port = address.rsplit(":", 1)
            ours[broker_id] = (host, int(port))
        self._both = ({i: ("127.0.0.1", port) for i, port in kafka.ports.items()}, ours)
        self._count = 0
        self.served: Mapping[int, Versions] = {}

    async def prepare(self) -> None:
        """Create the internal topics where they belong."""
        theirs, ours = [await served_by(addresses[1]) for addresses in self._both]
        self.served = {
            key: both
            for key in theirs
            if key in ours and (both := theirs[key].intersect(ours[key]))
        }
        topics = [
            CreatableTopic(
                name=name, num_partitions=-1, replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
                ],
            )
            for name, replicas in INTERNAL.values()
        ]  # fmt: skip
        for addresses in self._both:
            side = DataSide(Cluster(addresses), "outages", 19, 7, {})
            await side.exchange(CreateTopicsRequest(topics=topics), 7, 1, "main")
            side.close()
        await self._agree(0, 0)

    async def _agree(self, stopped: int, act: int) -> None:
        """Wait until every broker names these brokers, leaders and coordinators, and with all
        brokers until all replicas are in sync."""
        live = [each for each in BROKERS if act != 1 or each != stopped]
        for addresses in self._both:
            side = DataSide(Cluster(addresses), "outages", 3, 9, {})
            try:
                await _until(side, live, stopped, act)
            finally:
                side.close()

    async def _take(self, stopped: int, act: int) -> None:
        if act == 1:
            await asyncio.to_thread(self._kafka.stop, stopped)
            await self._mock.stop_broker(stopped)
        else:
            side = DataSide(Cluster(self._both[0]), "outages", 64, 0, {})
            await side.exchange(UnregisterBrokerRequest(broker_id=stopped), 0, 1, "main")
            side.close()
            await asyncio.to_thread(self._kafka.start, stopped)
            await self._mock.start_broker(stopped)
            target = MockTarget(self._mock)
            await target.settle(list(self._mock.cluster.topics))
        await self._agree(stopped, act)

    async def play(self, programs: Sequence[Program], stopped: int) -> list[Played]:
        """A batch. The cluster is whole before and after it."""
        played = [Played() for _ in programs]
        sides: list[list[_ClusterSide]] = []
        lanes = []
        for each in played:
            self._count += 1
            name = f"s001x{self._count:04}"
            sides.append([_ClusterSide(addresses, name) for addresses in self._both])
            lanes.append(Lane(sides[-1], each, PATIENCE, self._release))
        for act in range(ACTS):
            if act:
                for side in (each for pair in sides for each in pair):
                    side.leave(f"b{stopped}")
                await self._take(stopped, act)
            await asyncio.gather(
                *(
                    lane.play(*_act(program.steps, act))
                    for lane, program, each in zip(lanes, programs, played, strict=True)
                    if each.found is None
                )
            )
        for side in (each for pair in sides for each in pair):
            side.close()
        self._kafka.check_running()
        for addresses in self._both:
            elections = DataSide(Cluster(addresses), "outages", 43, 2, {})
            await elections.exchange(ElectLeadersRequest(topic_partitions=None), 2, 1, "main")
            elections.close()
        await self._agree(stopped, 0)
        return played


def _act(steps: Sequence[Mapping[str, Any]], act: int) -> tuple[Sequence[Mapping[str, Any]], int]:
    """The steps up to the end of an act, and where it begins."""
    breaks = [place for place, step in enumerate(steps) if _OUTAGE in step]
    first = breaks[act - 1] + 1 if act else 0
    return steps[: breaks[act]] if act < len(breaks) else steps, first


async def _until(side: DataSide, live: Sequence[int], stopped: int, act: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await _ready(side, live, stopped, act):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the brokers {live} do not agree")
        await asyncio.sleep(POLL_SECONDS)


async def _ready(side: DataSide, live: Sequence[int], stopped: int, act: int) -> bool:
    for broker in live:
        answer = await side.exchange(MetadataRequest(topics=None), 9, broker, "main")
        if answer is CLOSED or sorted(each.node_id for each in answer.brokers) != sorted(live):
            return False
        for topic in answer.topics:
            for row in topic.partitions:
                if row.leader_id not in live or not set(row.isr_nodes) <= set(live):
                    return False
                if act != 1 and len(row.isr_nodes) < len(row.replica_nodes):
                    return False
        for kind, (_, replicas) in INTERNAL.items():
            key = "x" if kind != SHARE_STATES else "x:AAAAAAAAAAAAAAAAAAAAAQ:0"
            body = FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
            found = await side.exchange(body, 6, broker, "main")
            (row,) = found.coordinators
            if row.error_code or row.node_id != leader_of(replicas, stopped, act):
                return False
    return True


# ---- a run ---------------------------------------------------------------------------------------


async def _run(release: str, seed: str, batches: int) -> int:
    chosen = RELEASES[release]
    configs = {**COMMON_CONFIGS, **_CONFIGS}
    with tempfile.TemporaryDirectory() as folder, OutageKafka(chosen.kafka, Path(folder)) as kafka:
        async with MockCluster(
            len(BROKERS), profile=chosen.profile, broker_configs=configs, cut_last_batch=True,
            port=free_ports(1)[0],
        ) as mock:  # fmt: skip
            outages = Outages(kafka, mock, release)
            await outages.prepare()
            total, kinds = Played(), 0
            for batch in range(batches):
                stopped, programs = outage_programs(seed, batch, BATCH, outages.served)
                played = await outages.play(programs, stopped)
                differing = [
                    program for program, each in zip(programs, played, strict=True) if each.found
                ]
                total.requests += sum(each.requests for each in played)
                total.fields += sum(each.fields for each in played)
                print(
                    f"batch {batch}, broker {stopped} stopped: {len(differing)} programs differ; "
                    f"{total.requests} requests, {total.fields} fields",
                    flush=True,
                )
                again = await outages.play(differing, stopped) if differing else []
                for program, each in zip(differing, again, strict=True):
                    if each.found is not None:
                        kinds += 1
                        print(signature_of(program, each.found), program.name, flush=True)
                        for step in program.steps[: each.found.step + 1]:
                            print(f"    {step}", flush=True)
            print(f"{kinds} programs differ again")
    return int(kinds > 0)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.search.outages", description=__doc__
    )
    parser.add_argument("--release", choices=["4.4.0"], default="4.4.0")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(2**32)))
    parser.add_argument("--batches", type=int, default=5, help=f"of {BATCH} programs")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    logging.getLogger("mockbroker").setLevel(logging.ERROR)
    return asyncio.run(_run(options.release, options.seed, options.batches))


if __name__ == "__main__":
    sys.exit(main())
