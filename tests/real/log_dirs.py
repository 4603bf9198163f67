"""A log directory that fails, on a real cluster and on the mock::

python -m tests.real.log_dirs --release 4.4.0
python -m tests.real.log_dirs --release 3.9.2 --zookeeper

Two brokers have two log directories each. One directory of broker 2 is moved away, so that the next
write into it fails. What the brokers answer before, then, and after the directory is back and the
broker was restarted is compared. Directories are chosen by where a replica is, because placements
need not be equal.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kproto.dialects import dialect
from kproto.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kproto.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kproto.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.records import Record, build_batch
from mockbroker import MockCluster
from tests.mockbroker.wire import Wire
from tests.real.kafka import RealKafka

_TOPIC: Final = "foo"
_PARTITIONS: Final = 4
_PATIENCE: Final = 120.0


class LogDirKafka(RealKafka):
    """Real brokers with two log directories; metadata of KRaft is in the first."""

    def __init__(self, release: str, folder: Path, *, zookeeper: bool) -> None:
        super().__init__(release, folder, zookeeper=zookeeper, broker_ids=(1, 2))

    def directories(self, broker_id: int) -> list[Path]:
        first = self.logs(broker_id)
        return [first, first.with_name(f"{first.name}-b")]

    def _identify(self, node_id: int) -> None:
        super()._identify(node_id)
        second = self.directories(node_id)[1]
        second.mkdir(exist_ok=True)
        lines = (self.logs(node_id) / "meta.properties").read_text("utf-8").splitlines()
        kept = [each for each in lines if not each.startswith("directory.id")]
        text = "\n".join([*kept, f"directory.id={'B' * 21}A", ""])
        (second / "meta.properties").write_text(text, "utf-8")

    def _changes(self, broker_id: int) -> dict[str, str]:
        return {
            "log.dirs": ",".join(map(str, self.directories(broker_id))),
            "replica.high.watermark.checkpoint.interval.ms": "500",
            "replica.lag.time.max.ms": "30000",
        }

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(broker_id)
        return {
            **configs,
            **self._changes(broker_id),
            "metadata.log.dir": str(self.logs(broker_id)),
            # A controller refuses the return of a broker that it takes for live.
            "broker.session.timeout.ms": "9000",
        }

    def _zookeeper_configs(self, broker_id: int) -> dict[str, str]:
        return {**super()._zookeeper_configs(broker_id), **self._changes(broker_id)}


class _Side:
    """One of the clusters: where its brokers are, and how a directory fails and comes back."""

    def __init__(
        self,
        addresses: Mapping[int, str],
        fail: Callable[[str], Awaitable[None]],
        mend: Callable[[str], Awaitable[None]],
    ) -> None:
        self.addresses = addresses
        self.fail = fail
        self.mend = mend

    async def ask(self, body: Any, version: int, broker_id: int) -> Any:
        host, port = self.addresses[broker_id].rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            return await Wire(reader, writer, dialect("kafka")).ask(body, version)
        finally:
            writer.close()

    async def play(self) -> list[tuple[str, Any]]:
        seen: list[tuple[str, Any]] = []
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[2, 1])
            for index in range(_PARTITIONS)
        ]
        topic = CreatableTopic(
            name=_TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        await self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5, 1)
        await self._until(lambda rows: all(len(each.isr_nodes) == 2 for each in rows))
        dirs = await self._directories()
        # The second directory has no metadata of KRaft.
        chosen = next(name for name in sorted(dirs, reverse=True) if dirs[name][1])
        failed, fine = (
            dirs[chosen][1][0],
            next(index for index in range(_PARTITIONS) if index not in dirs[chosen][1]),
        )
        seen.append(("before", await self._answers(failed)))
        await self.fail(chosen)
        await self._until(lambda rows: rows[failed].leader_id == 1)
        seen.append(("the failed replica", await self._answers(failed)))
        seen.append(("another replica", await self._answers(fine)))
        after = await self._directories()
        seen.append(("directories", sorted(code for code, _ in after.values())))
        seen.append(("its partitions", after[chosen]))
        seen.append(("old versions", await self._old(failed)))
        await self.mend(chosen)
        await self._until(lambda rows: 2 in rows[failed].isr_nodes)
        seen.append(("mended", await self._answers(failed)))
        return seen

    async def _metadata(self, broker_id: int = 1) -> Sequence[Any]:
        body = MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)])
        (row,) = (await self.ask(body, 8, broker_id)).topics
        return sorted(row.partitions, key=lambda each: int(each.partition_index))

    async def _until(self, holds: Callable[[Sequence[Any]], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            rows = await self._metadata()
            if len(rows) == _PARTITIONS and holds(rows):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(str(rows))
            await asyncio.sleep(0.2)

    async def _directories(self) -> dict[str, tuple[int, list[int]]]:
        answer = await self.ask(DescribeLogDirsRequest(topics=None), 1, 2)
        return {
            each.log_dir: (
                each.error_code,
                sorted(
                    partition.partition_index
                    for topic in each.topics
                    if topic.name == _TOPIC
                    for partition in topic.partitions
                ),
            )
            for each in answer.results
        }

    async def _answers(self, index: int) -> dict[str, Any]:
        """What broker 2 answers of its replica, and what both say of the partition."""
        listed = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=_TOPIC,
                    partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)],
                )
            ],
        )
        epochs = OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic=_TOPIC,
                    partitions=[OffsetForLeaderPartition(partition=index, leader_epoch=0)],
                )
            ]
        )
        producers = DescribeProducersRequest(
            topics=[TopicRequest(name=_TOPIC, partition_indexes=[index])]
        )
        found: dict[str, Any] = {
            "produce": (await self._produced(index, 7)),
            "fetch": (await self._fetched(index, 11)),
            "list offsets": (await self.ask(listed, 2, 2)).topics[0].partitions[0].error_code,
            "epochs": (await self.ask(epochs, 3, 2)).topics[0].partitions[0].error_code,
            "producers": (await self.ask(producers, 0, 2)).topics[0].partitions[0].error_code,
        }
        for broker_id in (1, 2):
            row = (await self._metadata(broker_id))[index]
            found[f"metadata of {broker_id}"] = (
                row.error_code, row.leader_id, sorted(row.isr_nodes), row.offline_replicas,
            )  # fmt: skip
        return found

    async def _old(self, index: int) -> dict[str, int]:
        return {
            "produce 3": await self._produced(index, 3),
            "fetch 5": await self._fetched(index, 5),
        }

    async def _produced(self, index: int, version: int) -> int:
        data = PartitionProduceData(index=index, records=build_batch([Record(value=b"x")]))
        body = ProduceRequest(
            acks=1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=_TOPIC, partition_data=[data])],
        )
        answer = await self.ask(body, version, 2)
        return int(answer.responses[0].partition_responses[0].error_code)

    async def _fetched(self, index: int, version: int) -> int:
        part = FetchPartition(partition=index, partition_max_bytes=10_000)
        body = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=10_000,
            topics=[FetchTopic(topic=_TOPIC, partitions=[part])],
        )
        return int((await self.ask(body, version, 2)).responses[0].partitions[0].error_code)


def _real_side(kafka: LogDirKafka) -> _Side:
    async def fail(directory: str) -> None:
        path = Path(directory)
        path.rename(path.with_name(path.name + "-away"))

    async def mend(directory: str) -> None:
        path = Path(directory)
        path.with_name(path.name + "-away").rename(path)
        kafka.stop(2)
        kafka.start(2)

    return _Side({i: f"127.0.0.1:{port}" for i, port in kafka.ports.items()}, fail, mend)


async def _main(release: str, *, zookeeper: bool) -> int:
    line = ".".join(release.split(".")[:2])
    profile = f"kafka-{line}-zk" if zookeeper else f"kafka-{line}"
    with (
        tempfile.TemporaryDirectory() as folder,
        LogDirKafka(release, Path(folder), zookeeper=zookeeper) as kafka,
    ):
        real = await _real_side(kafka).play()
    async with MockCluster(
        2, profile=profile, broker_configs={"log.dirs": "/a,/b"}, auto_progress_ms=50
    ) as mock:

        async def fail(directory: str) -> None:
            await mock.fail_log_dir(2, directory)

        async def mend(directory: str) -> None:
            await mock.mend_log_dir(2, directory)

        mocked = await _Side(mock.addresses, fail, mend).play()
    different = 0
    for (name, theirs), (_, ours) in zip(real, mocked, strict=True):
        equal = name == "its partitions" or theirs == ours
        different += not equal
        print(name, theirs if equal else f"DIFFERENT\n  Kafka {theirs}\n  mock  {ours}")
    print(f"{different} of {len(real)} differ")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.log_dirs")
    parser.add_argument("--release", required=True)
    parser.add_argument("--zookeeper", action="store_true")
    arguments = parser.parse_args()
    return asyncio.run(_main(arguments.release, zookeeper=arguments.zookeeper))


if __name__ == "__main__":
    sys.exit(main())
