"""OffsetFetch (9): the committed offsets of groups.

Versions: 0 comes from ZooKeeper; 2 null topics for all, and a top-level error; 3 throttle time;
5 leader epochs (KIP-320); 6 flexible; 7 stable offsets only (KIP-447); 8 several groups, each with
an error (KIP-709); 9 member epochs (KIP-848); 10 topic ids. Below version 2 an error of the group
is in each partition. Without a commit the offset is -1 and there is no error; in ZooKeeper it has
error 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from kproto.error_codes import ErrorCode
from kproto.messages.offset_fetch_request import OffsetFetchRequest
from kproto.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kproto.schema.model import ZERO_UUID
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.coordinators.offset_store import FetchedOffset
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import Row, always, apply_first, rows_of_release
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.state.metadata_views import MetadataView

__all__ = ["offset_fetch"]

_GROUPS_SINCE_VERSION: Final = 8
_IDS_SINCE_VERSION: Final = 10
_TOP_ERROR_SINCE_VERSION: Final = 2


class _Topic(msgspec.Struct):
    """A topic of the request or the answer; the name is empty if the id is unknown."""

    name: str
    topic_id: UUID
    indexes: Sequence[int]
    rows: list[FetchedOffset]

    def fail(self, code: ErrorCode) -> None:
        self.rows = [FetchedOffset((self.name, index), error_code=code) for index in self.indexes]


class _Group(msgspec.Struct):
    """The request for one group's offsets, and its answer. ``topics`` None requests all topics."""

    group_id: str
    topics: list[_Topic] | None
    member_id: str | None = None
    member_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE


def _merge_topics(group: _Group) -> None:
    """A topic and a partition are answered once, a topic without partitions is not."""
    if group.topics is not None:
        merged: dict[str, dict[int, None]] = {}
        for topic in group.topics:
            merged.setdefault(topic.name, {}).update(dict.fromkeys(topic.indexes))
        group.topics = [
            _Topic(name, ZERO_UUID, list(indexes), [])
            for name, indexes in merged.items()
            if indexes
        ]


REPETITIONS: Final[tuple[Row[_Group, _Group], ...]] = (
    Row("DP-OFFSET-27", always, (_merge_topics,), until=(4, 0)),
)


@by_release
def _repetitions(release: Release) -> tuple[Row[_Group, _Group], ...]:
    return rows_of_release(REPETITIONS, release)


@register(9, "0-10")
def offset_fetch(call: Call) -> OffsetFetchResponse:
    groups = _groups(call)
    for group in groups:
        apply_first(_repetitions(call.cluster.logs.release), group, group)
        group.error = _error(call, group)
        if not group.error:
            _fill(call, group)
    if call.version >= _GROUPS_SINCE_VERSION:
        return OffsetFetchResponse(groups=[_group_row(each) for each in groups])
    (group,) = groups
    if group.error and call.version < _TOP_ERROR_SINCE_VERSION:
        for topic in group.topics or ():
            topic.fail(group.error)
        group.error = ErrorCode.NONE
    return OffsetFetchResponse(
        error_code=group.error if call.version >= _TOP_ERROR_SINCE_VERSION else 0,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[OffsetFetchResponsePartition(**_fields(row)) for row in topic.rows],
            )
            for topic in (() if group.error else group.topics or ())
        ],
    )


def _groups(call: Call) -> list[_Group]:
    request: OffsetFetchRequest = call.body
    view = call.cluster.controller.metadata_view(call.broker_id)
    if call.version < _GROUPS_SINCE_VERSION:
        return [_Group(request.group_id, _topics(call, view, request.topics))]
    requested = request.groups
    if call.release.has(facts.GROUPS_OF_OFFSETS_MAPPED):
        requested = list({each.group_id: each for each in requested}.values())
    return [
        _Group(each.group_id, _topics(call, view, each.topics), each.member_id, each.member_epoch)
        for each in requested
    ]


def _topics(call: Call, view: MetadataView, topics: Iterable[Any] | None) -> list[_Topic] | None:
    if topics is None:
        return None
    found = []
    for topic in topics:
        topic_id = topic.topic_id if call.version >= _IDS_SINCE_VERSION else ZERO_UUID
        name = topic.name
        if call.version >= _IDS_SINCE_VERSION:
            known = view.topic_by_id(topic_id)
            name = "" if known is None else known.name
        found.append(_Topic(name, topic_id, topic.partition_indexes, []))
    return found


def _error(call: Call, group: _Group) -> ErrorCode:
    """Return the error of the whole group."""
    if not call.authorizes(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if call.version == 0:
        in_zookeeper = call.cluster.controller.keeps_znodes
        return ErrorCode.NONE if in_zookeeper else ErrorCode.UNSUPPORTED_VERSION
    return call.cluster.coordinators.group_error(
        group.group_id, call.broker_id
    ) or call.cluster.offsets.groups.validate_fetch(
        group.group_id, group.member_id, group.member_epoch
    )


def _fill(call: Call, group: _Group) -> None:
    """Look up the requested offsets of topics that the caller may describe."""
    if group.topics is None:
        group.topics = _all_topics(call, group.group_id)
        return
    allowed = authorized_names(call, (topic.name for topic in group.topics), AclOperation.DESCRIBE)
    for topic in group.topics:
        if call.version >= _IDS_SINCE_VERSION and not topic.name:
            topic.fail(ErrorCode.UNKNOWN_TOPIC_ID)
        elif topic.name not in allowed:
            topic.fail(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif call.version == 0:
            topic.rows = [
                call.cluster.znode_offsets.fetch(call.broker_id, group.group_id, (topic.name, i))
                for i in topic.indexes
            ]
        else:
            topic.rows = call.cluster.offsets.fetch(
                group.group_id,
                [(topic.name, index) for index in topic.indexes],
                require_stable=call.body.require_stable,
            )


def _all_topics(call: Call, group_id: str) -> list[_Topic]:
    """The topics that have offsets; with ids only those whose id this broker knows."""
    rows = call.cluster.offsets.fetch(group_id, None, require_stable=call.body.require_stable)
    allowed = authorized_names(call, (row.tp[0] for row in rows), AclOperation.DESCRIBE)
    known = call.cluster.controller.metadata_view(call.broker_id).topics
    topics: dict[str, _Topic] = {}
    for row in rows:
        name = row.tp[0]
        if name in allowed and (call.version < _IDS_SINCE_VERSION or name in known):
            topic_id = known[name].topic_id if name in known else ZERO_UUID
            topics.setdefault(name, _Topic(name, topic_id, (), [])).rows.append(row)
    return list(topics.values())


def _fields(row: FetchedOffset) -> dict[str, Any]:
    return {
        "partition_index": row.tp[1],
        "committed_offset": row.offset,
        "committed_leader_epoch": row.leader_epoch,
        "metadata": row.metadata,
        "error_code": row.error_code,
    }


def _group_row(group: _Group) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        error_code=group.error,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[OffsetFetchResponsePartitions(**_fields(row)) for row in topic.rows],
            )
            for topic in (() if group.error else group.topics or ())
        ],
    )
