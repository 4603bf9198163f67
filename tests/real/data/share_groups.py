"""Sessions over share groups (KIP-932): ShareGroupHeartbeat (76), ShareGroupDescribe (77)."""

from __future__ import annotations

from typing import Any, Final

from kproto.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from tests.real.data.registry import session
from tests.real.data.side import Side

OTHERS: Final = (15, 16, 42, 77)


def beat(k: Side, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
    fields.setdefault("member_id", "a")
    fields.setdefault("group_id", k.group)
    return ShareGroupHeartbeatRequest(member_epoch=epoch, **fields)


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
