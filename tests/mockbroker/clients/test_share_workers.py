"""Two Java share consumers share the work of a topic, and one of them fails in the middle of it."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from mockbroker import MockCluster
from tests.mockbroker.simulation.fetching.fetching import append
from tests.real.jars import class_path
from tests.support.full import drawn
from tests.support.toolchain import require

PROGRAM: Final = Path(__file__).parent / "ShareWorker.java"
JAVA: Final = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
PATIENCE: Final = 120.0
LOCK_MS: Final = 3_600_000
RECORDS: Final = 20
ALL: Final = str(RECORDS)
Delivered = tuple[str, int, int]
"""Whether the worker has accepted or held a record, its offset and how often it was delivered."""


@asynccontextmanager
async def worker(mock: MockCluster, most: str) -> AsyncIterator[Process]:
    """A process that accepts so many records and keeps the next ones."""
    jars = await asyncio.to_thread(class_path, "4.4.0")
    process = await asyncio.create_subprocess_exec(
        *JAVA, "-cp", jars, str(PROGRAM), mock.bootstrap, most, stdout=PIPE, stderr=DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def delivered(process: Process, count: int) -> list[Delivered]:
    """The next deliveries that a worker prints."""
    assert process.stdout is not None
    found: list[Delivered] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            verb, offset, times = (await process.stdout.readline()).decode().split()
            found.append((verb, int(offset), int(times)))
    return found


def held(mock: MockCluster) -> set[int]:
    """The offsets that any member has acquired."""
    view = mock.group("g")
    assert view is not None
    assert view.share_partitions is not None
    return {
        offset
        for partition in view.share_partitions
        for each in partition.in_flight
        if each.state == "Acquired"
        for offset in range(each.first, each.last + 1)
    }


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("DP-SHARE-05", "DP-SHARE-06", "DP-SHARE-10", "DP-SHARE-32")
@pytest.mark.parametrize("failure", drawn("failures of share consumers", ["hangs", "dies"], 1))
async def test_records_of_a_consumer_that_fails_come_back(failure: str) -> None:
    require("java", "maven")
    configs = {
        "group.share.heartbeat.interval.ms": "200",
        "group.share.assignment.interval.ms": "0",
        "group.share.session.timeout.ms": str(3 * LOCK_MS),
        "group.share.record.lock.duration.ms": str(LOCK_MS),
    }
    async with MockCluster(
        2, topics=["foo:1:1"], profile="kafka-4.4", broker_configs=configs
    ) as mock:
        mock.cluster.config_changes.alter_incrementally(
            [(32, "g", [("share.auto.offset.reset", 0, "earliest")])]
        )
        for _ in range(RECORDS // 4):
            append(mock.cluster, *(b"%d" % each for each in range(4)), tp=("foo", 0))
        async with worker(mock, "4") as first:
            *accepted, (verb, _, _) = await delivered(first, 5)
            assert verb == "held"
            lost = held(mock)
            assert len(lost) == 4
            async with worker(mock, ALL) as other:
                accepted += await delivered(other, RECORDS - 4 - len(lost))
                assert held(mock) == lost, "everything else is accepted"
                if failure == "dies":
                    first.kill()
                else:
                    mock.advance(LOCK_MS)
                again = await delivered(other, len(lost))
        assert {each[1:] for each in again} == {(offset, 2) for offset in lost}
        assert {times for _, _, times in accepted} == {1}
        everything = [offset for verb, offset, _ in accepted + again if verb == "accepted"]
        assert sorted(everything) == list(range(RECORDS)), "none is lost, and none accepted twice"
        assert held(mock) == set()
