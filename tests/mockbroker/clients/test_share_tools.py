"""``kafka-share-groups`` and ``kafka-console-share-consumer`` of Kafka, against a mock cluster.

What the tools print is compared with what the mock cluster holds.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from mockbroker import MockCluster
from mockbroker.simulation.groups.share.share_group import ShareHeartbeat
from tests.mockbroker.clients.tools import Tools
from tests.mockbroker.simulation.fetching.fetching import append
from tests.support.toolchain import require
from tests.tools.kafka_tools import KafkaTools

pytestmark = [pytest.mark.slow, pytest.mark.java]

RELEASE: Final = "4.3.1"
QUICK: Final = {
    "group.share.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[tuple[str, KafkaTools]]:
    require("java", "maven")
    with KafkaTools(RELEASE) as tools:
        yield RELEASE, tools


@asynccontextmanager
async def sharing(kafka: tuple[str, KafkaTools]) -> AsyncIterator[tuple[MockCluster, Tools]]:
    """A cluster with three records in each of two partitions, which the group g reads from their
    start."""
    async with MockCluster(
        2, topics=["foo:2:1"], profile="kafka-4.3", broker_configs=QUICK
    ) as mock:
        mock.cluster.config_changes.alter_incrementally(
            [(32, "g", [("share.auto.offset.reset", 0, "earliest")])]
        )
        mock.set_offset("other", "foo-0", 0)
        for index in (0, 1):
            append(
                mock.cluster, *(b"%d.%d" % (index, each) for each in range(3)), tp=("foo", index)
            )
        yield mock, Tools(kafka, mock)


def join(mock: MockCluster, member: str = "a") -> None:
    """Let a member have both partitions of foo."""
    groups = mock.cluster.groups.share
    epoch = 0
    for _ in range(2):
        request = ShareHeartbeat(
            "g", member, epoch, topic_names=("foo",), client_id="one", client_host="/127.0.0.1"
        )
        epoch = groups.heartbeat(request).member_epoch


def leave(mock: MockCluster, member: str = "a") -> None:
    mock.cluster.groups.share.heartbeat(ShareHeartbeat("g", member, -1))


async def consume(tools: Tools, count: int, *options: str) -> list[str]:
    """What the console consumer prints of so many records, in order."""
    lines = await tools.run(
        "console-share-consumer", "--topic", "foo", "--group", "g",
        "--max-messages", str(count), "--timeout-ms", "30000", *options,
    )  # fmt: skip
    return sorted(lines)


async def offsets(tools: Tools) -> dict[int, tuple[str, str]]:
    """Start offset and lag of each partition, as the tool describes them."""
    rows = await tools.table("share-groups", "--describe", "--group", "g", "--offsets")
    assert {(row["GROUP"], row["TOPIC"]) for row in rows} == {("g", "foo")}
    return {int(row["PARTITION"]): (row["START-OFFSET"], row["LAG"]) for row in rows}


@pytest.mark.requirement("DP-SHARE-05", "DP-SHARE-11")
async def test_records_that_are_released_are_read_again_and_rejected_ones_are_not(kafka):
    async with sharing(kafka) as (_, tools):
        everything = [f"{index}.{each}" for index in (0, 1) for each in range(3)]
        assert await consume(tools, 6, "--release") == everything
        assert await offsets(tools) == {0: ("0", "3"), 1: ("0", "3")}
        assert await consume(tools, 6, "--reject") == everything
        assert await offsets(tools) == {0: ("0", "0"), 1: ("0", "0")}, "as it was stored last"


@pytest.mark.requirement("DP-SHARE-11", "DP-SHARE-15")
async def test_a_group_is_listed_and_described(kafka: tuple[str, KafkaTools]) -> None:
    async with sharing(kafka) as (mock, tools):
        assert await tools.run("share-groups", "--list") == []
        join(mock)
        assert await tools.run("share-groups", "--list") == ["g"]
        assert await tools.table("share-groups", "--list", "--state", "Stable") == [
            {"GROUP": "g", "STATE": "Stable"}
        ]
        described = ("share-groups", "--describe", "--group", "g")
        (state,) = await tools.table(*described, "--state", "--verbose")
        group = mock.cluster.groups.share.group("g")
        assert group is not None
        assert (state["STATE"], state["#MEMBERS"]) == ("Stable", "1")
        assert (state["GROUP-EPOCH"], state["ASSIGNMENT-EPOCH"]) == (
            str(group.epoch), str(group.target_epoch),
        )  # fmt: skip
        (member,) = await tools.table(*described, "--members")
        assert member == {
            "GROUP": "g", "CONSUMER-ID": "a", "HOST": "/127.0.0.1", "CLIENT-ID": "one",
            "#PARTITIONS": "2", "ASSIGNMENT": "foo:0,1",
        }  # fmt: skip
        assert await offsets(tools) == {0: ("-", "-"), 1: ("-", "-")}


@pytest.mark.requirement("DP-SHARE-11")
async def test_offsets_are_reset(kafka: tuple[str, KafkaTools]) -> None:
    async with sharing(kafka) as (mock, tools):
        assert len(await consume(tools, 6)) == 6
        reset = ("share-groups", "--reset-offsets", "--group", "g", "--topic", "foo:0")
        (row,) = await tools.table(*reset, "--to-earliest", "--dry-run")
        assert (row["TOPIC"], row["PARTITION"], row["NEW-OFFSET"]) == ("foo", "0", "0")
        assert (await offsets(tools))[0] == ("0", "0")
        await tools.table(*reset, "--to-earliest", "--execute")
        assert await offsets(tools) == {0: ("0", "3"), 1: ("0", "0")}
        assert await consume(tools, 3) == ["0.0", "0.1", "0.2"]
        join(mock)
        refused = await kafka[1].run(
            reset[0], "--bootstrap-server", mock.bootstrap, *reset[1:], "--to-latest", "--execute"
        )
        assert "Share group 'g' is not empty." in refused.out + refused.err


@pytest.mark.requirement("DP-SHARE-11", "DP-SHARE-15")
async def test_offsets_and_groups_are_deleted(kafka: tuple[str, KafkaTools]) -> None:
    async with sharing(kafka) as (mock, tools):
        join(mock)
        forget = ("share-groups", "--delete-offsets", "--group", "g", "--topic")
        delete = ("share-groups", "--delete", "--group", "g")
        assert "The group is not empty" in "\n".join(await tools.run(*forget, "foo"))
        assert any("is not EMPTY" in line for line in await tools.run(*delete))
        leave(mock)
        assert await tools.table(*forget, "foo") == [{"TOPIC": "foo", "STATUS": "Successful"}]
        assert "no offset information" in "".join(
            await tools.run("share-groups", "--describe", "--group", "g")
        )
        await tools.run(*delete)
        assert mock.cluster.groups.share.group("g") is None
        assert await tools.run("share-groups", "--list") == []
