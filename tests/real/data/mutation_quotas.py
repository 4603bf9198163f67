"""Sessions over ``controller_mutation_rate`` (KIP-599), each with a client id of its own.

The rate is so low that throttle times hardly change while a session lasts; they are noted in units
of a minute. A throttled connection is muted, so each request has its own.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from kproto.messages import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kproto.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from kproto.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
)
from kproto.messages.create_topics_request import CreatableTopic
from tests.real.data.registry import session
from tests.real.data.side import PATIENCE, POLL_SECONDS, Failed, Side

RATE = 0.001
"""Tokens a second: a bucket holds 0.011, and a partition costs 1,000 seconds."""
MINUTE_MS = 60_000
THROTTLED = 89


async def _limit(k: Side, rate: float | None) -> None:
    entry = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name=k.group)],
        ops=[OpData(key="controller_mutation_rate", value=rate or 0.0, remove=rate is None)],
    )
    await k.ask(AlterClientQuotasRequest(entries=[entry]), broker=1)


async def _ask(k: Side, body: Any, version: int) -> Any:
    """Ask as the client that has the quota."""
    k.connections += 1
    connection = f"limited {k.connections}"
    return await k.exchange(body, version, 1, connection, client_id=k.group)


async def _note(k: Side, body: Any, version: int) -> None:
    answer = await _ask(k, body, version)
    rows = next(
        getattr(answer, name)
        for name in ("topics", "results", "responses")
        if hasattr(answer, name)
    )
    said = [(row.error_code, getattr(row, "error_message", None)) for row in rows]
    minutes = round(answer.throttle_time_ms / MINUTE_MS)
    k.remark(f"{type(body).__name__} v{version}", f"{said}, throttled for {minutes} minutes")


def _create(name: str, count: int = 1, *, validate_only: bool = False) -> CreateTopicsRequest:
    row = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
    return CreateTopicsRequest(topics=[row], timeout_ms=30_000, validate_only=validate_only)


def _grow(name: str, count: int, *lists: list[int]) -> CreatePartitionsRequest:
    assignments = [CreatePartitionsAssignment(broker_ids=each) for each in lists] or None
    row = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    return CreatePartitionsRequest(topics=[row], timeout_ms=30_000)


def _delete(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)


async def _until_throttled(k: Side) -> None:
    """The first partition beyond the quota empties the bucket, once the controller knows it."""
    deadline = time.monotonic() + PATIENCE
    body = _create(f"{k.topic}.validated", validate_only=True)
    while (await _ask(k, body, 7)).topics[0].error_code != THROTTLED:
        if time.monotonic() > deadline:
            raise Failed("the quota is not enforced")
        await asyncio.sleep(POLL_SECONDS)


@session(37, since=3, needs=(19, 20, 48, 49))
async def change_topics_beyond_a_quota(k: Side) -> None:
    grown = k.topic
    await k.create()
    await _limit(k, RATE)
    await _until_throttled(k)
    for version in (6, 7):
        await _note(k, _create(f"{k.topic}.strict"), version)
    await _note(k, _create(f"{k.topic}.strict", validate_only=True), 7)
    await _note(k, _create("not a name"), 7)
    await _note(k, _grow(grown, 3), 3)
    await _note(k, _grow(grown, 3, [9], [9]), 3)
    await _note(k, _grow(grown, 3, [1]), 3)
    await _note(k, _grow(grown, 1), 3)
    await _note(k, _delete(f"{k.topic}.strict"), 5)
    await _note(k, _delete(grown), 5)
    await _note(k, _create(f"{k.topic}.loose", 2), 5)
    await _note(k, _create(f"{k.topic}.loose", 2), 5)
    await _note(k, _grow(f"{k.topic}.loose", 4), 2)
    await _note(k, _delete(f"{k.topic}.loose"), 4)
    await _note(k, _delete(grown), 4)
    await _limit(k, None)
