"""Sessions over share groups (KIP-932): ShareGroupHeartbeat (76), ShareGroupDescribe (77); and how
the sessions of their other APIs become members of a group."""

from __future__ import annotations

from typing import Any, Final

from kproto.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from kproto.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from tests.real.data.consumer_groups import GROUP, config_of, until
from tests.real.data.registry import session
from tests.real.data.side import CLOSED, Failed, Side

__all__ = ["OTHERS", "beat", "configure", "describe", "join", "leave", "shared"]

OTHERS: Final = (15, 16, 42, 76, 77, 78, 79, 90, 91, 92)

AT_ONCE: Final = {"share.assignment.interval.ms": "0"}
FROM_THE_START: Final = {"share.auto.offset.reset": "earliest"}


def beat(k: Side, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
    fields.setdefault("member_id", "a")
    fields.setdefault("group_id", k.group)
    return ShareGroupHeartbeatRequest(member_epoch=epoch, **fields)


def describe(*groups: str) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True)


async def configure(k: Side, configs: dict[str, str]) -> None:
    """Set configs of the session's group, and wait until both brokers have them. Those that the
    release lacks are left out."""
    known = await config_of(k, None)()
    configs = {name: value for name, value in configs.items() if name in known}
    rows = [AlterableConfig(name=each, config_operation=0, value=configs[each]) for each in configs]
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=k.group, configs=rows)
    answer = await k.ask(IncrementalAlterConfigsRequest(resources=[resource]), quiet=True)
    if answer is CLOSED or answer.responses[0].error_code:
        raise Failed(f"{k.group} has no configs: {answer}")
    for name, value in configs.items():
        for broker in (k.coordinator, k.other_broker):
            await until(k, config_of(k, name, broker), lambda found, value=value: found == value)


async def join(
    k: Side, member: str = "a", *, topics: tuple[str, ...] = (), waits: bool = True
) -> int:
    """Let a member join and, unless ``waits`` is False, have partitions. Returns its epoch;
    nothing is noted."""
    names = list(topics) or [k.topic]
    answer = await k.ask(beat(k, 0, member_id=member, subscribed_topic_names=names), quiet=True)
    epoch: int = answer.member_epoch

    async def look() -> Any:
        nonlocal epoch
        found = await k.ask(beat(k, epoch, member_id=member), quiet=True)
        epoch = found.member_epoch
        return found

    has = bool(answer.assignment and answer.assignment.topic_partitions)
    if waits and not has:
        await until(k, look, lambda found: found.assignment and found.assignment.topic_partitions)
    return epoch


async def leave(k: Side, member: str = "a") -> None:
    await k.ask(beat(k, -1, member_id=member), quiet=True)


async def shared(k: Side, *assignment: list[int], member: str = "a", **configs: str) -> None:
    """Create the session's topic and let a member have its partitions, which the group reads from
    the start unless a config of the group says otherwise (underscores stand for dots)."""
    await k.create(*assignment)
    given = {each.replace("_", "."): value for each, value in configs.items()}
    await configure(k, {**AT_ONCE, **FROM_THE_START, **given})
    await join(k, member)


@session(76, since=1, needs=OTHERS)
async def share_heartbeat(k: Side) -> None:
    await k.create()
    for fields in (
        {"epoch": 0},
        {"epoch": 0, "subscribed_topic_names": []},
        {"epoch": 0, "member_id": ""},
        {"epoch": 0, "member_id": " ", "subscribed_topic_names": [k.topic]},
        {"epoch": 0, "member_id": "x" * 37},
        {"epoch": 0, "rack_id": "", "subscribed_topic_names": [k.topic]},
        {"epoch": -2},
        {"epoch": 1},
        {"epoch": -1},
    ):
        given = dict(fields)
        epoch = given.pop("epoch")
        await k.ask(beat(k, epoch, **given), broker=k.coordinator)
    await k.ask(beat(k, 0, subscribed_topic_names=[k.topic]), broker=k.coordinator)
    await k.ask(beat(k, 9), broker=k.coordinator)
    await k.ask(beat(k, 1, member_id="b"), broker=k.coordinator)
    await k.ask(ShareGroupDescribeRequest(group_ids=[k.group, "none"]), broker=k.coordinator)
    await k.ask(ListGroupsRequest(types_filter=["share"]), broker=k.coordinator)
    await k.ask(DescribeGroupsRequest(groups=[k.group]), broker=k.coordinator)
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]), broker=k.coordinator)
    await k.ask(beat(k, -1), broker=k.coordinator)
    await k.ask(ShareGroupDescribeRequest(group_ids=[k.group]), broker=k.coordinator)


@session(77, since=1, needs=OTHERS)
async def share_describe(k: Side) -> None:
    """Groups in each state, also where they do not belong."""
    await shared(k)
    await k.ask(describe(k.group))
    await k.ask(describe())
    await k.ask(describe("", k.group, k.group))
    await k.ask(describe(k.group), broker=k.other_broker)
    await join(k, "b", waits=False)
    await k.ask(describe(k.group))
    await leave(k, "a")
    await k.ask(describe(k.group))
    await leave(k, "b")
    await k.ask(describe(k.group))
    await k.ask(ListGroupsRequest(states_filter=["empty"], types_filter=["Share"]))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await k.ask(describe(k.group))
