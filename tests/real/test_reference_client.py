"""kspec's reference client with a real Kafka, which has to agree that the client is right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from kspec.reference_client.client import Client
from tests.real.single_kafka import SingleKafka
from tests.support.toolchain import require

RELEASE: Final = "4.4.0"
_VALUES: Final = [f"v{number}" for number in range(40)]
_ATTEMPTS: Final = 100


async def _client(address: str, **parts: Any) -> Client:
    client = Client()
    arguments = {"bootstrap": address, "timeout_ms": 8_000, **parts}
    assert (await client.call("connect", arguments))["ok"]
    return client


async def _ok(client: Client, op: str, **arguments: Any) -> Any:
    reply = await client.call(op, arguments)
    assert reply["ok"], (op, reply)
    return reply["result"]


async def _until_ok(client: Client, op: str, **arguments: Any) -> Any:
    """Repeat a call while the broker still creates its internal topics."""
    for _ in range(_ATTEMPTS):
        reply = await client.call(op, arguments)
        if reply["ok"]:
            return reply["result"]
        await asyncio.sleep(0.1)
    raise AssertionError((op, reply))


def _records(values: list[str], partitions: int = 2) -> list[dict[str, Any]]:
    return [
        {"topic": "foo", "partition": number % partitions, "key": "k", "value": value}
        for number, value in enumerate(values)
    ]


async def _read(client: Client, count: int) -> list[str]:
    found: list[dict[str, Any]] = []
    for _ in range(_ATTEMPTS):
        found += await _ok(client, "poll", records=count - len(found), ms=2_000)
        if len(found) >= count:
            break
    return sorted((each["value"] for each in found), key=lambda value: int(value[1:]))


async def _play(address: str) -> None:
    plain = await _client(
        address,
        producer={"acks": "all", "batch_bytes": 16, "compression": "zstd"},
        consumer={"offset_reset": "earliest", "isolation": "read_committed"},
    )
    await _until_ok(plain, "create_topics", topics={"foo": {"partitions": 2}})
    written = await _until_ok(plain, "produce", records=_records(_VALUES))
    assert [each["offset"] for each in written] == [number // 2 for number in range(len(_VALUES))]

    writer = await _client(address, producer={"transactional_id": "t"})
    await _until_ok(writer, "begin_transaction")
    await _ok(writer, "produce", records=_records(["v98", "v99"]))
    await _ok(writer, "abort_transaction")
    await _ok(writer, "begin_transaction")
    await _ok(writer, "produce", records=_records(["v40", "v41"]))
    await _ok(writer, "commit_transaction")

    await _ok(plain, "assign", offsets={"foo-0": 0, "foo-1": 0})
    assert await _read(plain, len(_VALUES) + 2) == [*_VALUES, "v40", "v41"]
    # The session forgets a partition, and goes on with the other one.
    await _ok(plain, "assign", offsets={"foo-1": 0})
    assert await _read(plain, len(_VALUES) // 2 + 1) == [*_VALUES[1::2], "v41"]

    held = [*_VALUES, "v40", "v41"]
    for protocol, later in (("classic", "v50"), ("consumer", "v51")):
        options = {"group": f"g-{protocol}", "protocol": protocol, "offset_reset": "earliest"}
        first = await _client(address, consumer={**options, "isolation": "read_committed"})
        await _ok(first, "subscribe", topics=["foo"])
        assert await _read(first, len(held)) == held
        committed = await _ok(first, "commit")
        assert committed == {"foo-0": None, "foo-1": None}
        await _ok(first, "close_consumer")
        await _ok(plain, "produce", records=_records([later], partitions=1))
        held.append(later)
        second = await _client(address, consumer={**options, "isolation": "read_committed"})
        await _ok(second, "subscribe", topics=["foo"])
        assert await _read(second, 1) == [later]
        await _ok(second, "commit")
        found = await _ok(second, "committed", partitions=["foo-0", "foo-1"])
        assert sorted(found) == ["foo-0", "foo-1"]
        assert min(found.values()) > len(_VALUES) // 2
        for each in (first, second):
            await each.close()
    for each in (plain, writer):
        await each.close()


@pytest.mark.slow
def test_the_reference_client_is_right_with_kafka(tmp_path: Path) -> None:
    require("java", "maven")
    with SingleKafka(RELEASE, tmp_path, configs={}) as kafka:
        asyncio.run(_play(kafka.address))
