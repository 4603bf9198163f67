"""Sessions over FindCoordinator (10), DescribeGroups (15), ListGroups (16), DeleteTopics (20),
InitProducerId (22), DeleteGroups (42), DescribeProducers (61) and DescribeTopicPartitions (75)."""

from __future__ import annotations

import uuid
from typing import Any

from kproto.messages import (
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListGroupsRequest,
)
from kproto.messages.delete_topics_request import DeleteTopicState
from kproto.messages.describe_producers_request import TopicRequest as ProducersOf
from kproto.messages.describe_topic_partitions_request import Cursor
from kproto.messages.describe_topic_partitions_request import TopicRequest as PageOf
from tests.real.data.batches import batch
from tests.real.data.groups import joined, one_member
from tests.real.data.registry import session
from tests.real.data.requests import commit, committed, join, leave, produce, read_log
from tests.real.data.side import CLOSED, Side

TRANSACTIONS = (24, 26)
"""APIs without which no transactional id has a coordinator."""


@session(10)
async def find_coordinators(k: Side) -> None:
    for kind in (0, 1, 2, 3, -1) if k.version else (0,):
        body = FindCoordinatorRequest(key_type=kind)
        if k.version < 4:
            body.key = k.group
        else:
            body.coordinator_keys = [k.group]
        await k.ask(body, broker=1)
        await k.ask(body, broker=2)


@session(10)
async def find_coordinators_of_unusual_keys(k: Side) -> None:
    if k.version < 4:
        await k.ask(FindCoordinatorRequest(key=""), broker=1)
        return
    for keys in ([], [""], ["a", "b", "a"], ["ä" * 300]):
        await k.ask(FindCoordinatorRequest(coordinator_keys=keys), broker=1)


@session(10, since=6)
async def find_coordinators_of_share_keys(k: Side) -> None:
    await k.create()
    for key in (f"{k.group}:nothing:0", f"{k.group}", f"{k.group}:AAAAAAAAAAAAAAAAAAAATQ:x", "::"):
        body = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        await k.ask(body, broker=1)


@session(15)
async def describe_a_group(k: Side) -> None:
    describe = DescribeGroupsRequest(groups=[k.group])
    await k.ask(describe)
    await k.create()
    await k.ask(commit(k, (0, 5, "")), quiet=True)
    await k.ask(describe)
    first, _ = await one_member(k)
    await k.ask(describe)
    pending = await k.ask(join(k), version=9, quiet=True)
    k.names.text(pending.member_id, "second")
    await k.ask(describe)
    waiting = k.start(join(k, pending.member_id), "second", version=9)
    await joined(k, 2)
    await k.still_waits(waiting)
    await k.ask(describe)
    await k.ask(join(k, first), version=9)
    await k.ask(describe)
    await k.ask(leave(k, (first, None), (pending.member_id, None)))
    await k.ask(describe)


@session(15)
async def describe_many_groups(k: Side) -> None:
    await one_member(k, instance="one")
    await k.ask(DescribeGroupsRequest(groups=[k.group, f"{k.group}.unknown", ""]))
    await k.ask(DescribeGroupsRequest(groups=[]))
    await k.ask(DescribeGroupsRequest(groups=[k.group]), broker=k.other_broker)
    if k.version >= 3:
        body = DescribeGroupsRequest(groups=[k.group], include_authorized_operations=True)
        await k.ask(body)


@session(16)
async def list_groups(k: Side) -> None:
    await k.create()
    await k.ask(ListGroupsRequest())
    await k.ask(commit(k, (0, 5, ""), group=f"{k.group}.simple"), quiet=True)
    first, _ = await one_member(k)
    await k.ask(ListGroupsRequest())
    await k.ask(ListGroupsRequest(), broker=k.other_broker)
    if k.version >= 4:
        for states in (["Stable"], ["stable"], ["Empty", "nothing"], ["nothing"], ["Dead"]):
            await k.ask(ListGroupsRequest(states_filter=states))
    if k.version >= 5:
        for types in (["classic"], ["Classic"], ["consumer"], ["nothing"]):
            await k.ask(ListGroupsRequest(types_filter=types))
    await k.ask(leave(k, (first, None)))
    await k.ask(ListGroupsRequest())


@session(42)
async def delete_groups(k: Side) -> None:
    await k.create()
    delete = DeleteGroupsRequest(groups_names=[k.group, f"{k.group}.unknown"])
    await k.ask(delete)
    first, generation = await one_member(k)
    await k.ask(commit(k, (0, 5, ""), member=first, generation=generation))
    await k.ask(delete)
    await k.ask(leave(k, (first, None)))
    await k.ask(delete)
    await k.ask(committed(k, everything=True))
    await k.ask(DescribeGroupsRequest(groups=[k.group]))
    await k.ask(delete)
    await k.ask(DeleteGroupsRequest(groups_names=[""]))
    await k.ask(DeleteGroupsRequest(groups_names=[]))
    await k.ask(delete, broker=k.other_broker)


@session(42)
async def delete_simple_groups(k: Side) -> None:
    await k.create()
    await k.ask(commit(k, (0, 5, "")))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group, k.group]))
    await k.ask(committed(k, 0))


# ---- 20, 61, 75: topics ----------------------------------------------------------------------


@session(20, since=6)
async def delete_topics_by_name_and_id(k: Side) -> None:
    """A topic may be given once. Rows of one topic have no order in Kafka, so there is one each."""
    named, by_id = (True, False), (False, True)
    for number, given in enumerate(
        ([(True, True)], [named, by_id], [by_id, named], [by_id, by_id], [named, named], [by_id])
    ):
        name = f"{k.topic}.{number}"
        await k.create(topic=name)
        topics = [
            DeleteTopicState(
                name=name if has_name else None,
                topic_id=k.topic_ids[name] if has_id else uuid.UUID(int=0),
            )
            for has_name, has_id in given
        ]
        await k.ask(DeleteTopicsRequest(timeout_ms=10_000, topics=topics))
    nothing = DeleteTopicState(name=None, topic_id=uuid.UUID(int=0))
    await k.ask(DeleteTopicsRequest(timeout_ms=10_000, topics=[nothing, nothing]))


@session(61)
async def producers_of_unusual_topics(k: Side) -> None:
    for name in ("unknown", "a b", "", ".", "x" * 250):
        topic = ProducersOf(name=name, partition_indexes=[0, -1])
        await k.ask(DescribeProducersRequest(topics=[topic]))


@session(75)
async def pages_by_unusual_cursors(k: Side) -> None:
    await k.create([1], [1])
    for names in ([k.topic], [""], [k.topic, ""], [k.topic, f"{k.topic}.unknown"]):
        for cursor in (None, ("", 0), (k.topic, 1), (k.topic, 2), (k.topic, -1), ("zzz", 0)):
            body = DescribeTopicPartitionsRequest(
                topics=[PageOf(name=name) for name in names],
                cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
            )
            await k.ask(body)


# ---- 22 InitProducerId -----------------------------------------------------------------------


async def _producer(k: Side, name: str, body: InitProducerIdRequest, **arguments: Any) -> Any:
    answer = await k.exchange(body, k.version, arguments.get("broker", k.transactions), "main")
    if answer is not CLOSED:
        k.names.producer(answer.producer_id, name)
    k.note(body, k.version, answer)
    return answer


@session(22)
async def init_idempotent_producers(k: Side) -> None:
    await k.create()
    body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    first = await _producer(k, "first", body, broker=1)
    await _producer(k, "second", body, broker=2)
    flags = {"producer_id": first.producer_id, "producer_epoch": 0, "base_sequence": 0}
    await k.ask(produce(k, batch(b"a", **flags)))
    await k.ask(produce(k, batch(b"a", **flags)))
    await read_log(k)


@session(22, needs=TRANSACTIONS)
async def init_wrong_producers(k: Side) -> None:
    for identifier, timeout in (("", 60_000), (k.group, 0), (k.group, -1), (k.group, 99_000_000)):
        body = InitProducerIdRequest(transactional_id=identifier, transaction_timeout_ms=timeout)
        await _producer(k, "wrong", body)
    body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
    await _producer(k, "other", body)


@session(22, needs=TRANSACTIONS)
async def init_transactional_producers(k: Side) -> None:
    body = InitProducerIdRequest(transactional_id=k.group, transaction_timeout_ms=60_000)
    await _producer(k, "first", body)
    await _producer(k, "second", body)
    await _producer(k, "third", body)
    await _producer(k, "elsewhere", body, broker=k.not_(k.transactions))


@session(22, since=3, needs=TRANSACTIONS)
async def init_producers_again(k: Side) -> None:
    """With the id and epoch that a producer has."""
    body = InitProducerIdRequest(transactional_id=k.group, transaction_timeout_ms=60_000)
    first = await _producer(k, "first", body)
    known = first.producer_id
    pairs = ((known, 0), (known, 0), (known, 1), (known, 9), (99_999, 0), (-1, 3), (known, -1))
    for producer, epoch in pairs:
        body = InitProducerIdRequest(
            transactional_id=k.group, transaction_timeout_ms=60_000, producer_id=producer,
            producer_epoch=epoch,
        )  # fmt: skip
        await _producer(k, "first again", body)
    body = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60_000, producer_id=5, producer_epoch=1
    )
    await _producer(k, "idempotent", body)
