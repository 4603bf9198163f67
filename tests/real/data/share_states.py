"""Sessions over the state of share partitions (83 to 87), KIP-932: what leaders ask the share
coordinator."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from typing import Any, Final, TypeAlias

from kproto.messages import delete_share_group_state_request as delete
from kproto.messages import initialize_share_group_state_request as initialize
from kproto.messages import read_share_group_state_request as read
from kproto.messages import read_share_group_state_summary_request as summary
from kproto.messages import write_share_group_state_request as write
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from tests.real.data.group_log import note_share_records
from tests.real.data.registry import session
from tests.real.data.share_fetches import acknowledge, awaited, share_fetch
from tests.real.data.share_fetches import write as produced
from tests.real.data.share_groups import OTHERS, leave, shared
from tests.real.data.side import PATIENCE, POLL_SECONDS, Failed, Side

STATES: Final = (*OTHERS, 78, 79, 83, 84, 85, 86, 87)
UNKNOWN: Final = uuid.UUID(int=7)
Batch: TypeAlias = tuple[int, int, int, int]
"""First and last offset, state and count of deliveries."""


async def coordinator(k: Side) -> int:
    """Return the share coordinator once it has loaded its partition."""
    key = base64.urlsafe_b64encode(k.topic_ids[k.topic].bytes).decode().rstrip("=")
    body = FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{k.group}:{key}:0"])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        (found,) = (await k.ask(body, quiet=True)).coordinators
        if not found.error_code:
            answer = await k.ask(summarized(k, 0), broker=found.node_id, quiet=True)
            if answer.results[0].partitions[0].error_code not in (14, 16):
                return int(found.node_id)
        await asyncio.sleep(POLL_SECONDS)
    raise Failed("no share coordinator")


def _asked(k: Side, request: Any, topic: Any, rows: list[Any], **fields: Any) -> Any:
    topic_id = fields.get("topic_id") or k.topic_ids[k.topic]
    group = fields.get("group", k.group)
    return request(group_id=group, topics=[topic(topic_id=topic_id, partitions=rows)])


def initialized(k: Side, *rows: tuple[int, int, int], **fields: Any) -> Any:
    """(partition, state epoch, start offset) rows."""
    return _asked(
        k,
        initialize.InitializeShareGroupStateRequest,
        initialize.InitializeStateData,
        [
            initialize.PartitionData(partition=index, state_epoch=epoch, start_offset=start)
            for index, epoch, start in rows
        ],
        **fields,
    )


def loaded(k: Side, *rows: tuple[int, int], **fields: Any) -> Any:
    """(partition, leader epoch) rows."""
    parts = [read.PartitionData(partition=index, leader_epoch=epoch) for index, epoch in rows]
    return _asked(k, read.ReadShareGroupStateRequest, read.ReadStateData, parts, **fields)


def stored(
    k: Side, *batches: Batch, index: int = 0, epochs: tuple[int, int] = (2, 9), start: int = -1,
    complete: int = 0, **fields: Any,
) -> Any:  # fmt: skip
    """Batches of one partition; ``epochs`` are those of the state and of the leader."""
    part = write.PartitionData(
        partition=index,
        state_epoch=epochs[0],
        leader_epoch=epochs[1],
        start_offset=start,
        delivery_complete_count=complete,
        state_batches=[
            write.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    return _asked(k, write.WriteShareGroupStateRequest, write.WriteStateData, [part], **fields)


def deleted(k: Side, *indexes: int, **fields: Any) -> Any:
    parts = [delete.PartitionData(partition=index) for index in indexes]
    return _asked(k, delete.DeleteShareGroupStateRequest, delete.DeleteStateData, parts, **fields)


def summarized(k: Side, *indexes: int, **fields: Any) -> Any:
    parts = [summary.PartitionData(partition=index) for index in indexes]
    return _asked(
        k, summary.ReadShareGroupStateSummaryRequest, summary.ReadStateSummaryData, parts, **fields
    )


async def _look(k: Side, broker: int, *indexes: int, epoch: int = 9) -> None:
    """``epoch`` is that of the leader that looks, which fences older ones."""
    await k.ask(loaded(k, *((index, epoch) for index in indexes or (0,))), broker=broker)
    await k.ask(summarized(k, *(indexes or (0,))), broker=broker)


@session(83, needs=STATES)
async def share_states_begin_and_end(k: Side) -> None:
    """Of several partitions, again, with older epochs, and of partitions that are not there."""
    await k.create([1], [1], [1])
    at = await coordinator(k)
    await _look(k, at, 0, 1, 2, 3, -1)
    await k.ask(loaded(k, (0, -1), (9, -1), (-1, -1)), broker=at)
    await k.ask(loaded(k, (0, -1), topic_id=UNKNOWN), broker=at)
    await k.ask(initialized(k, (9, -1, 0), (-1, -1, 0), (0, -2, -5)), broker=at)
    for epochs in ((-1, -1), (-1, 0), (0, -1)):
        await k.ask(stored(k, epochs=epochs), broker=at)
    await k.ask(initialized(k, (2, 3, 5), (0, 1, -1)), broker=at)
    await k.ask(loaded(k, (2, -1), (2, 0)), broker=at)
    await _look(k, at, 2, 0, 1)
    await k.ask(initialized(k, (2, 2, 9)), broker=at)
    await k.ask(initialized(k, (2, 4, 9)), broker=at)
    await k.ask(initialized(k, (2, -1, 7)), broker=at)
    await _look(k, at, 2)
    await k.ask(initialized(k, (-1, 0, 0), (3, 0, 0), (1, 0, 0)), broker=at)
    await k.ask(initialized(k, (0, 0, 0), topic_id=UNKNOWN), broker=at)
    await k.ask(deleted(k, 0, 1, 1, 9, -1), broker=at)
    await k.ask(deleted(k, 0), broker=at)
    await k.ask(deleted(k, 0, topic_id=UNKNOWN), broker=at)
    await _look(k, at, 0, 1, 2)
    await note_share_records(k, at)


@session(85, needs=STATES)
async def share_states_are_stored(k: Side) -> None:
    """Batches beside, within and across others, start offsets that move, fenced epochs."""
    await k.create([1])
    at = await coordinator(k)
    await k.ask(stored(k, (0, 9, 0, 1)), broker=at)
    await k.ask(initialized(k, (0, 2, 0)), broker=at)
    for batches, start, complete in (
        ([(0, 9, 0, 1)], 0, 0),
        ([(10, 19, 2, 1)], -1, 10),
        ([(2, 4, 2, 1)], -1, 13),
        ([(4, 7, 0, 2), (15, 24, 4, 2)], -1, 20),
        ([(0, 1, 4, 5), (5, 5, 0, 1)], -1, 20),
        ([], 3, 18),
        ([(20, 29, 2, 1)], 12, 9),
        ([(25, 25, 0, 1), (26, 26, 0, 1)], -1, 9),
        ([(27, 27, 2, 1)], 12, 7),
        ([(28, 28, 2, 1)], 12, 10),
        ([(28, 28, 2, 2)], 11, 5),
        ([(29, 29, 2, 2)], -1, 6),
        ([(29, 30, 4, 2)], 13, 3),
        ([], 40, 0),
        ([(50, 59, 2, 1), (40, 41, 4, 1)], -1, 12),
    ):
        await k.ask(stored(k, *batches, start=start, complete=complete), broker=at)
        await _look(k, at)
    await k.ask(loaded(k, (0, 14)), broker=at)
    await k.ask(loaded(k, (0, 13)), broker=at)
    for epochs in ((2, 13), (2, 14), (1, 14), (3, 15), (1, 13), (2, -1), (-1, 14)):
        await k.ask(stored(k, (60, 60, 2, 1), epochs=epochs), broker=at)
    await _look(k, at)
    await k.ask(stored(k, index=9), broker=at)
    await k.ask(stored(k, index=-1), broker=at)
    await k.ask(stored(k, topic_id=UNKNOWN), broker=at)
    await note_share_records(k, at)


@session(87, needs=STATES)
async def share_states_of_nobody(k: Side) -> None:
    """Without groups, topics and partitions, and at brokers that do not coordinate."""
    await k.create([1])
    at = await coordinator(k)
    other = k.not_(at)
    await k.ask(initialized(k, (0, 0, 0)), broker=at)
    for group in ("", " ", f"{k.group}.none"):
        await k.ask(summarized(k, 0, group=group), broker=at)
        await k.ask(loaded(k, (0, 0), group=group), broker=at)
        await k.ask(deleted(k, 0, group=group), broker=at)
    await k.ask(summarized(k), broker=at)
    await k.ask(summary.ReadShareGroupStateSummaryRequest(group_id=k.group), broker=at)
    await k.ask(summarized(k, 0, topic_id=UNKNOWN), broker=at)
    for body in (
        initialized(k, (0, 0, 0)), loaded(k, (0, 0)), stored(k), deleted(k, 0), summarized(k, 0),
    ):  # fmt: skip
        await k.ask(body, broker=other)


@session(84, needs=STATES)
async def share_states_of_a_group(k: Side) -> None:
    """What acknowledgements of a member store, and what its group reads of another's writing."""
    await shared(k)
    at = await coordinator(k)
    await _look(k, at, epoch=0)
    await k.ask(share_fetch(k, 0))
    await produced(k, 6)
    await k.ask(awaited(k, 1))
    await _look(k, at, epoch=0)
    for epoch, row in enumerate(((3, 3, [1]), (0, 1, [1]), (2, 2, [2]), (4, 4, [3])), start=2):
        await k.ask(acknowledge(k, epoch, row))
        await _look(k, at, epoch=0)
    await k.ask(share_fetch(k, -1))
    await leave(k)
    await _look(k, at, epoch=0)
    await note_share_records(k, at)
