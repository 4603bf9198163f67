"""Sessions over consumer groups (KIP-848): ConsumerGroupHeartbeat (68), ConsumerGroupDescribe (69),
and members of the classic protocol among them.

Kafka deals partitions in the order of hash tables, so groups are such that it does not matter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from kproto.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest,
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from kproto.messages.consumer_group_heartbeat_request import TopicPartitions
from kproto.messages.create_partitions_request import CreatePartitionsTopic
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.mockbroker.simulation.groups.test_mixed_groups import assignment, subscription
from tests.real.data.group_log import note_group_records
from tests.real.data.registry import session
from tests.real.data.requests import (
    commit,
    committed,
    heartbeat,
    join,
    leave,
    sync,
)
from tests.real.data.side import CLOSED, Failed, Side

PATIENCE: Final = 30.0
GROUP: Final = 32
INTERVAL: Final = "consumer.assignment.interval.ms"
UNSUPPORTED: Final = 35


def epoch_of(number: int) -> int:
    """The epoch of a new group's first target, second target and so on."""
    return number if number <= 0 else number + 1


def beat(
    k: Side, member: str = "a", epoch: int = 0, *, topics: Sequence[str] | None = None,
    owned: Sequence[int] | None = None, **fields: Any,
) -> ConsumerGroupHeartbeatRequest:  # fmt: skip
    """A heartbeat; at epoch 0 it joins, subscribed to the session's topic unless a regular
    expression is given. Epochs count from the first target, which is that of epoch 2 since 4.3."""
    if epoch == 0:
        fields.setdefault("rebalance_timeout_ms", 60_000)
        owned = () if owned is None else owned
        if topics is None and "subscribed_topic_regex" not in fields:
            topics = [k.topic]
    partitions = None
    if owned is not None:
        rows = [TopicPartitions(topic_id=k.topic_ids[k.topic], partitions=list(owned))]
        partitions = rows if owned else []
    return ConsumerGroupHeartbeatRequest(
        group_id=fields.pop("group_id", k.group),
        member_id=member,
        member_epoch=epoch_of(epoch),
        subscribed_topic_names=None if topics is None else list(topics),
        topic_partitions=fields.pop("topic_partitions", partitions),
        **fields,
    )


def describe(*groups: str) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True)


async def quick(k: Side, partitions: int = 2) -> None:
    """A topic with these partitions, and targets that may follow one another at once, where the
    release has an interval."""
    await k.create(*([1] for _ in range(partitions)))
    resource = AlterConfigsResource(
        resource_type=GROUP, resource_name=k.group,
        configs=[AlterableConfig(name=INTERVAL, config_operation=0, value="0")],
    )  # fmt: skip
    answer = await k.ask(IncrementalAlterConfigsRequest(resources=[resource]), quiet=True)
    if answer is CLOSED or answer.responses[0].error_code:
        return
    await until(k, config_of(k, INTERVAL), lambda found: found == "0")


def config_of(k: Side, name: str | None, broker: int | None = None) -> Any:
    """What returns a config of the session's group; without a name, all of them."""

    async def look() -> Any:
        body = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=GROUP, resource_name=k.group)]
        )
        at = k.coordinator if broker is None else broker
        answer = await k.ask(body, broker=at, quiet=True)
        configs = {each.name: each.value for each in answer.results[0].configs}
        return configs if name is None else configs.get(name)

    return look


async def until(k: Side, look: Any, holds: Any) -> Any:
    """What ``look`` returns once it ``holds``. Raises Failed."""
    deadline = time.monotonic() + PATIENCE
    while not holds(found := await look()):
        if time.monotonic() > deadline:
            raise Failed(f"{k.group}: it stays {found!r:.300}")
        await asyncio.sleep(0.02)
    return found


async def reaches(k: Side, member: str, epoch: int, target: int, owned: Sequence[int]) -> int:
    """Send heartbeats with these partitions, which the client has, until the member is at an epoch.
    Returns that; nothing is noted."""

    async def look() -> Any:
        nonlocal epoch
        answer = await k.ask(beat(k, member, epoch, owned=owned), quiet=True)
        if answer is not CLOSED and not answer.error_code:
            epoch = answer.member_epoch - 1
        return answer

    await until(
        k, look, lambda answer: answer.error_code or answer.member_epoch >= epoch_of(target)
    )
    return epoch


async def stable(k: Side, group: str | None = None) -> None:
    """Wait until the group has a target and every member is at it, as ``describe`` shows."""
    body = describe(group or k.group)

    async def look() -> str:
        answer = await k.ask(body, version=min(k.version_of(69), 1), quiet=True)
        return str(answer.groups[0].group_state)

    await until(k, look, lambda state: state in ("Stable", "", "Dead", "Empty"))


# ---- 68 ConsumerGroupHeartbeat ---------------------------------------------------------------


@session(68)
async def beat_wrongly(k: Side) -> None:
    await k.create()
    await k.ask(beat(k, "", 1))
    await k.ask(beat(k, "", -1))
    await k.ask(beat(k, "", -2, instance_id="i"))
    await k.ask(beat(k, " ", 5))
    await k.ask(beat(k, group_id=""))
    await k.ask(beat(k, group_id=" "))
    await k.ask(beat(k, instance_id=""))
    await k.ask(beat(k, rack_id=" "))
    await k.ask(beat(k, rebalance_timeout_ms=-1))
    await k.ask(beat(k, owned=[0]))
    body = beat(k)
    body.topic_partitions = None
    await k.ask(body)
    body = beat(k)
    body.subscribed_topic_names = None
    await k.ask(body)
    await k.ask(beat(k, epoch=-2))
    await k.ask(beat(k, epoch=-3))
    await k.ask(beat(k, server_assignor="sticky"))
    await k.ask(beat(k, server_assignor=""))
    await k.ask(beat(k, epoch=1))
    await k.ask(beat(k, epoch=-1))
    await k.ask(beat(k, epoch=-2, instance_id="i"))
    await k.ask(beat(k), broker=k.other_broker)
    await k.ask(beat(k, "", 1), broker=k.other_broker)


@session(68)
async def beat_alone(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k))
    await stable(k)
    await k.ask(beat(k, epoch=1))
    await k.ask(beat(k, epoch=1, owned=[0, 1]))
    await k.ask(beat(k, epoch=1, owned=[0, 1], topics=[k.topic], rebalance_timeout_ms=60_000))
    await k.ask(beat(k, epoch=1, topics=[k.topic], rebalance_timeout_ms=60_000))
    await k.ask(beat(k, epoch=2))
    await k.ask(beat(k, epoch=0))
    await k.ask(beat(k, "b", 1))
    await k.ask(beat(k, "b", -1))
    await k.ask(describe(k.group))
    await k.ask(beat(k, epoch=-1))
    await k.ask(describe(k.group))
    await k.ask(beat(k, epoch=-1))
    await k.ask(beat(k, epoch=1))


@session(68, until=0)
async def beat_without_an_id(k: Side) -> None:
    await quick(k)
    answer = await k.exchange(beat(k, ""), 0, k.coordinator, "main")
    k.names.text(answer.member_id or "", "made")
    k.note(beat(k, ""), 0, answer)
    if not answer.error_code:
        await k.ask(beat(k, answer.member_id, answer.member_epoch))


@session(68)
async def beat_with_nothing(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k, topics=[]))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "b", topics=[f"{k.topic}.unknown"]))
    await k.ask(describe(k.group))


@session(68)
async def beat_as_two(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k))
    await k.ask(beat(k, "b"))
    await k.ask(describe(k.group))
    answer = await k.ask(beat(k, epoch=1))
    if answer.error_code:
        return
    await k.ask(describe(k.group))
    await k.ask(beat(k, epoch=1))
    await k.ask(beat(k, epoch=1, owned=[0, 1]))
    await k.ask(beat(k, "b", 2))
    await k.ask(beat(k, epoch=1, owned=[0]))
    await k.ask(beat(k, epoch=1))
    await k.ask(beat(k, epoch=1, owned=[1]))
    await k.ask(beat(k, epoch=1, owned=[0]))
    await k.ask(beat(k, epoch=1, owned=[]))
    await k.ask(beat(k, epoch=2))
    await k.ask(beat(k, "b", 2))
    await k.ask(beat(k, "b", 2))
    await k.ask(describe(k.group))
    await k.ask(beat(k, epoch=-1))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "b", 2, owned=[1]))
    await k.ask(beat(k, "b", 3, owned=[0, 1]))
    await k.ask(describe(k.group))


@session(68)
async def beat_as_three(k: Side) -> None:
    """The second and third come while the first still has everything."""
    await quick(k, 3)
    for member in ("a", "b", "c"):
        await k.ask(beat(k, member, server_assignor="range"))
    answer = await k.ask(beat(k, epoch=1))
    if answer.error_code:
        return
    await k.ask(describe(k.group))
    await k.ask(beat(k, epoch=1, owned=[0]))
    await k.ask(beat(k, "b", 2, owned=[]))
    await k.ask(beat(k, "c", 3, owned=[]))
    await k.ask(beat(k, "b", 3, owned=[1]))
    await k.ask(describe(k.group))


@session(68)
async def beat_with_another_subscription(k: Side) -> None:
    await quick(k)
    other = f"{k.topic}.other"
    await k.create([1], topic=other)
    await k.ask(beat(k))
    await stable(k)
    await k.ask(beat(k, epoch=1, topics=[k.topic, other]))
    await k.ask(beat(k, epoch=2, topics=[other]))
    await k.ask(beat(k, epoch=2))
    await k.ask(describe(k.group))
    await k.ask(beat(k, epoch=2, topics=[other], owned=[]))
    await k.ask(describe(k.group))
    epoch = 3
    for changes in (
        {"rebalance_timeout_ms": 5}, {"rack_id": "r"}, {"rack_id": "s"},
        {"server_assignor": "range"}, {"server_assignor": "uniform"}, {"topics": [other, other]},
    ):  # fmt: skip
        answer = await k.ask(beat(k, epoch=epoch, **changes))
        if answer.error_code:
            return
        epoch = answer.member_epoch - 1
    await k.ask(describe(k.group))


@session(68)
async def beat_with_another_assignor(k: Side) -> None:
    """Members that subscribe to nothing raise no epoch by that."""
    await quick(k, 1)
    for member, assignor in (("a", "uniform"), ("b", "uniform"), ("c", None), ("d", None)):
        await k.ask(beat(k, member, topics=[], server_assignor=assignor))
    for member, assignor in (
        ("c", "uniform"), ("c", "range"), ("d", "range"), ("a", "range"), ("b", "range"),
    ):  # fmt: skip
        await k.ask(beat(k, member, topics=[], server_assignor=assignor))
        await k.ask(describe(k.group))


@session(68)
async def beat_as_a_static_member(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k, instance_id="one"))
    await k.ask(beat(k, "b", instance_id="one"))
    await k.ask(beat(k, instance_id="one"))
    await k.ask(beat(k, "b", 1, instance_id="one"))
    await k.ask(beat(k, "b", -1, instance_id="one"))
    await k.ask(beat(k, "a", 1, instance_id="two"))
    await k.ask(beat(k, "a", -2, instance_id="two"))
    await k.ask(beat(k, "a", 1))
    await k.ask(beat(k, "a", -2, instance_id="one"))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "a", 1, instance_id="one"))
    await k.ask(beat(k, "b", instance_id="one"))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "a", 1, instance_id="one"))
    await k.ask(beat(k, "b", 1, instance_id="one", owned=[0, 1]))
    await k.ask(beat(k, "b", -1, instance_id="one"))
    await k.ask(describe(k.group))


@session(68)
async def beat_in_a_full_group(k: Side) -> None:
    await quick(k)
    for member in "abcde":
        await k.ask(beat(k, member, topics=[]))
    await k.ask(beat(k, "d", topics=[]))
    await k.ask(beat(k, "e", 1))


@session(68, needs=(37,))
async def beat_after_a_topic_grew(k: Side) -> None:
    await quick(k, 1)
    answer = await k.ask(beat(k))
    if answer.error_code:
        return
    await stable(k)
    body = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=k.topic, count=3, assignments=None)],
        timeout_ms=30_000,
    )
    grown = await k.ask(body, broker=1)
    if grown.results[0].error_code:
        raise Failed(f"{k.topic} does not grow: {grown}")
    await reaches(k, "a", 1, 2, [0])
    await k.ask(describe(k.group))


# ---- regular expressions ---------------------------------------------------------------------


@session(68, since=1)
async def beat_with_a_wrong_expression(k: Side) -> None:
    await k.create()
    for regex in (
        "(", ")", "[a", "*", "+a", "a**", "a{2000}", "a{2,1}", "(?=a)", "(?<n>", "(?P<n", "[z-a]",
        r"\8", r"\q", "a\\", "(?i", "(?P<n>a)(?P<n>b)", "[[:what:]]", r"\pX", "(?z)a", "x{1001}",
    ):  # fmt: skip
        await k.ask(beat(k, subscribed_topic_regex=regex))
    await k.ask(beat(k, epoch=1, subscribed_topic_regex="("))


@session(68, since=1)
async def beat_with_an_expression(k: Side) -> None:
    await quick(k)
    await k.create([1], topic=f"{k.topic}.x")
    regex = f"{k.topic.replace('.', '[.]')}([.]x)?"
    await k.ask(beat(k, subscribed_topic_regex=regex))

    async def look() -> Any:
        return await k.ask(beat(k, subscribed_topic_regex=regex), quiet=True)

    await until(k, look, lambda answer: answer.error_code or answer.assignment.topic_partitions)
    await k.ask(beat(k, subscribed_topic_regex=regex))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "b", subscribed_topic_regex=regex, topics=[]))
    await k.ask(beat(k, epoch=1, subscribed_topic_regex=""))
    await k.ask(describe(k.group))
    await k.ask(beat(k, "b", -1))
    await k.ask(beat(k, "a", -1))
    await k.ask(describe(k.group))


# ---- 69 ConsumerGroupDescribe ----------------------------------------------------------------


@session(69)
async def describe_consumer_groups(k: Side) -> None:
    await quick(k)
    await k.ask(describe(k.group))
    await k.ask(commit(k, (0, 5, ""), group=f"{k.group}.classic"))
    await k.ask(describe(k.group, f"{k.group}.classic", ""))
    await k.ask(beat(k, rack_id="r", server_assignor="range", instance_id="one"))
    await k.ask(describe(k.group))
    await k.ask(describe(k.group), broker=k.other_broker)


@session(16, since=5, needs=(68,))
async def list_groups_of_types(k: Side) -> None:
    await quick(k)
    await k.ask(commit(k, (0, 5, ""), group=f"{k.group}.classic"))
    await k.ask(beat(k))
    for types in ([], ["consumer"], ["Classic"], ["share"], ["nothing"]):
        await k.ask(ListGroupsRequest(types_filter=types))
    await k.ask(ListGroupsRequest(states_filter=["stable", "empty"]))
    await k.ask(beat(k, epoch=-1))
    await k.ask(ListGroupsRequest(states_filter=["Empty"], types_filter=["consumer"]))


@session(15, since=4, needs=(68,))
async def describe_consumer_groups_as_classic(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k))
    await k.ask(DescribeGroupsRequest(groups=[k.group], include_authorized_operations=True))
    await k.ask(beat(k, epoch=-1))
    await k.ask(DescribeGroupsRequest(groups=[k.group]))


@session(42, needs=(68,))
async def delete_consumer_groups(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k))
    await k.ask(commit(k, (0, 5, ""), member="a", generation=epoch_of(1)))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await k.ask(beat(k, epoch=-1))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await k.ask(committed(k, 0))
    await k.ask(describe(k.group))


# ---- offsets ---------------------------------------------------------------------------------


@session(8, since=2, needs=(68,))
async def commit_as_a_consumer(k: Side) -> None:
    await quick(k)
    await k.ask(commit(k, (0, 1, ""), member="a", generation=epoch_of(1)))
    await k.ask(beat(k))
    await k.ask(commit(k, (0, 5, "")))
    await k.ask(commit(k, (0, 5, ""), member="b", generation=epoch_of(1)))
    await k.ask(commit(k, (0, 5, ""), member="a", generation=epoch_of(0)))
    await k.ask(commit(k, (0, 5, "text"), (1, 6, ""), member="a", generation=epoch_of(1)))
    await k.ask(commit(k, (0, 5, ""), member="a", generation=epoch_of(2)))
    await k.ask(beat(k, "b"))
    await k.ask(beat(k, epoch=1))
    await k.ask(commit(k, (1, 7, ""), member="a", generation=epoch_of(1)))
    await k.ask(commit(k, (1, 7, ""), member="b", generation=epoch_of(2)))
    answer = await k.ask(beat(k, epoch=1, owned=[0]))
    if answer.error_code:
        return
    await k.ask(beat(k, "b", 2))
    await k.ask(commit(k, (0, 8, ""), member="a", generation=epoch_of(1)))
    await k.ask(commit(k, (0, 8, ""), (1, 8, ""), member="a", generation=epoch_of(1)))
    await k.ask(commit(k, (1, 9, ""), member="b", generation=epoch_of(1)))
    await k.ask(commit(k, (1, 9, ""), member="b", generation=epoch_of(2)))
    await k.ask(committed(k, 0, 1))


@session(9, since=9, needs=(68,))
async def fetch_offsets_as_a_consumer(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k))
    await k.ask(commit(k, (0, 5, "text"), member="a", generation=epoch_of(1)))
    for member, epoch in (
        (None, -1), ("", -1), ("", 0), (None, 1), ("a", 1), ("a", 0), ("a", -1), ("b", 1),
    ):  # fmt: skip
        body = committed(k, 0)
        body.groups[0].member_id, body.groups[0].member_epoch = member, epoch_of(epoch)
        await k.ask(body)


@session(47, needs=(68,))
async def delete_offsets_of_a_consumer_group(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k))
    await k.ask(commit(k, (0, 5, ""), member="a", generation=epoch_of(1)))
    rows = [OffsetDeleteRequestPartition(partition_index=0)]
    body = OffsetDeleteRequest(
        group_id=k.group, topics=[OffsetDeleteRequestTopic(name=k.topic, partitions=rows)]
    )
    await k.ask(body)
    await k.ask(beat(k, epoch=1, topics=[], owned=[]))
    await k.ask(body)
    await k.ask(committed(k, 0))


# ---- both protocols --------------------------------------------------------------------------


def _protocols(k: Side, owned: Sequence[int] = ()) -> tuple[tuple[str, bytes], ...]:
    names = tuple(f"{k.topic}-{index}" for index in owned)
    return (("range", subscription(k.topic, owned=names)),)


async def _classic(k: Side, member: str = "", name: str = "classic", **fields: Any) -> Any:
    """Join by JoinGroup, with an id if the group asks for that. Every answer is noted."""
    while True:
        fields.setdefault("protocols", _protocols(k))
        body = join(k, member, session_ms=30_000, **fields)
        answer = await k.exchange(body, k.version_of(11), k.coordinator, "main")
        if answer is not CLOSED:
            k.names.text(answer.member_id, name)
        k.note(body, k.version_of(11), answer)
        if answer is CLOSED or answer.error_code != 79 or member:
            return answer
        member = answer.member_id


def _sync(k: Side, member: str, generation: int, given: Sequence[tuple[str, bytes]] = ()) -> Any:
    body = sync(k, member, generation, given)
    if k.version_of(14) < 5:
        body.protocol_type = body.protocol_name = None
    return body


@session(11, since=3, needs=(68,))
async def join_a_consumer_group(k: Side) -> None:
    await quick(k)
    answer = await k.ask(beat(k))
    if answer.error_code:
        return
    await k.ask(join(k, protocols=_protocols(k), kind="connect"))
    await k.ask(join(k, protocols=()))
    await k.ask(join(k, protocols=_protocols(k), session_ms=50))
    if k.version >= 5:
        await k.ask(join(k, "nobody", protocols=_protocols(k), instance="one"))
    answer = await _classic(k)
    member, generation = answer.member_id, answer.generation_id
    await k.ask(describe(k.group))
    await k.ask(heartbeat(k, member, generation))
    await k.ask(heartbeat(k, member, generation + 1))
    await k.ask(heartbeat(k, "a", 1))
    await k.ask(heartbeat(k, "nobody", 1))
    await k.ask(_sync(k, member, generation + 1))
    await k.ask(_sync(k, "a", 1))
    await k.ask(_sync(k, member, generation))
    await k.ask(beat(k, epoch=1))
    await k.ask(heartbeat(k, member, generation))
    await k.ask(beat(k, epoch=1, owned=[0]))
    await k.ask(heartbeat(k, member, generation))
    await _classic(k, member)
    await k.ask(_sync(k, member, generation))
    await k.ask(heartbeat(k, member, generation))
    await k.ask(commit(k, (1, 5, ""), member=member, generation=generation))
    await k.ask(commit(k, (1, 5, ""), member=member, generation=generation + 1))
    await k.ask(commit(k, (1, 5, ""), member=member, generation=generation - 1))
    await k.ask(describe(k.group))
    await k.ask(leave(k, ("nobody", None)))
    await k.ask(leave(k, (member, None)))
    await k.ask(describe(k.group))


@session(11, since=5, needs=(68,))
async def join_a_consumer_group_statically(k: Side) -> None:
    await quick(k)
    answer = await k.ask(beat(k))
    if answer.error_code:
        return
    await k.ask(beat(k, "b", instance_id="one", topics=[]))
    answer = await _classic(k, instance="one", protocols=_protocols(k))
    await k.ask(describe(k.group))
    await k.ask(heartbeat(k, answer.member_id, answer.generation_id, instance="one"))
    await k.ask(heartbeat(k, "b", answer.generation_id, instance="one"))
    await k.ask(heartbeat(k, answer.member_id, answer.generation_id, instance="two"))
    again = await _classic(k, instance="one", name="again", protocols=_protocols(k))
    await k.ask(heartbeat(k, answer.member_id, again.generation_id, instance="one"))
    await k.ask(leave(k, ("", "two"), ("b", "one"), ("", "one")))
    await k.ask(describe(k.group))


@session(11, since=3, needs=(68,))
async def upgrade_a_group_and_back(k: Side) -> None:
    await quick(k)
    answer = await _classic(k)
    member, generation = answer.member_id, answer.generation_id
    everything = [(member, assignment(f"{k.topic}-0", f"{k.topic}-1"))]
    await k.ask(_sync(k, member, generation, everything))
    answer = await k.ask(beat(k))
    if answer.error_code:
        return
    await k.ask(describe(k.group))
    await k.ask(heartbeat(k, member, generation))
    await k.ask(DescribeGroupsRequest(groups=[k.group]))
    again = await _classic(k, member, protocols=_protocols(k, [0, 1]))
    await k.ask(_sync(k, member, again.generation_id))
    await k.ask(heartbeat(k, member, again.generation_id))
    again = await _classic(k, member, protocols=_protocols(k, [0]))
    await k.ask(_sync(k, member, again.generation_id))
    await k.ask(beat(k, epoch=1))
    await k.ask(describe(k.group))
    await k.ask(beat(k, epoch=-1))
    await k.ask(DescribeGroupsRequest(groups=[k.group]))
    await k.ask(describe(k.group))
    await k.ask(heartbeat(k, member, again.generation_id))
    again = await _classic(k, member)
    await k.ask(heartbeat(k, member, again.generation_id))


@session(68)
async def beat_a_classic_group(k: Side) -> None:
    """Groups that cannot become consumer groups, and empty ones that do."""
    await quick(k)
    connect, bad = f"{k.group}.connect", f"{k.group}.bad"
    for group, kind, data in ((connect, "connect", b"m"), (bad, "consumer", b"\x00\x00\x00\x00")):
        body = join(k, group=group, kind=kind, protocols=(("range", data),), session_ms=30_000)
        answer = await k.ask(body, version=3, quiet=True)
        k.names.text(answer.member_id, group)
        await k.ask(beat(k, group_id=group))
        await k.ask(beat(k, epoch=1, group_id=group))
        await k.ask(beat(k, epoch=-1, group_id=group))
        await k.ask(leave(k, (answer.member_id, None), group=group), version=3)
        await k.ask(beat(k, group_id=group))


@session(11, since=3, needs=(68,))
async def join_an_empty_consumer_group(k: Side) -> None:
    await quick(k)
    await k.ask(beat(k))
    await k.ask(beat(k, epoch=-1))
    answer = await _classic(k)
    await k.ask(heartbeat(k, answer.member_id, answer.generation_id))
    await k.ask(describe(k.group))


# ---- configs ---------------------------------------------------------------------------------


@session(44, needs=(32, 68))
async def configs_of_groups(k: Side) -> None:
    heartbeats, sessions = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
    # The group without a name comes first: who has the last change of the other, has this one.
    await k.ask(_alter("", (heartbeats, 0, "6000")))
    for name, how, value in (
        (heartbeats, 0, "4999"), (heartbeats, 0, "15001"), (heartbeats, 0, "x"),
        (sessions, 0, "44999"), (sessions, 0, "60001"), (sessions, 0, "0"), ("unknown", 0, "1"),
        (heartbeats, 2, "1"), (sessions, 0, "46000"), (heartbeats, 0, "6000"),
    ):  # fmt: skip
        await k.ask(_alter(k.group, (name, how, value)))
    await until(k, config_of(k, heartbeats), lambda found: found in ("6000", None))
    body = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=GROUP, resource_name=k.group),
            DescribeConfigsResource(resource_type=GROUP, resource_name=""),
        ],
        include_synonyms=True,
    )
    await k.ask(body)
    await k.create()
    await k.ask(beat(k))
    await k.ask(_alter(k.group, (heartbeats, 1, None)))


def _alter(group: str, *operations: tuple[str, int, str | None]) -> Any:
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=GROUP, resource_name=group, configs=[
                    AlterableConfig(name=name, config_operation=how, value=value)
                    for name, how, value in operations
                ],
            )
        ]
    )  # fmt: skip


# ---- the log ---------------------------------------------------------------------------------


@session(68, since=1)
async def beat_and_look_at_the_log(k: Side) -> None:
    await quick(k)
    answer = await k.ask(beat(k, instance_id="one", rack_id="r", server_assignor="range"))
    if answer.error_code:
        return
    await k.ask(beat(k, "b"))
    await k.ask(beat(k, epoch=1))
    await k.ask(beat(k, epoch=1, owned=[0]))
    await k.ask(beat(k, "b", 2))
    await k.ask(beat(k, "b", 2, topics=[]))
    await k.ask(beat(k, epoch=-2, instance_id="one"))
    await k.ask(beat(k, "c", instance_id="one"))
    await k.ask(beat(k, "b", -1))
    await k.ask(beat(k, "c", -1, instance_id="one"))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await note_group_records(k)
