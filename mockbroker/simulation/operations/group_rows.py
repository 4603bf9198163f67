"""The commands on coordinators, groups and committed offsets."""

from __future__ import annotations

import json
from typing import Any, Final

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.arguments import (
    BROKER,
    COUNT,
    PARTITION,
    WORD,
    Argument,
    ArgumentType,
)
from mockbroker.simulation.operations.command import Command
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["GROUP_ROWS"]

_KINDS: Final = ("group", "transaction", "share")


def _kind_json(name: str, value: Any) -> str:
    if value not in _KINDS:
        raise ClusterError(f'"{name}" must be one of {", ".join(_KINDS)}, not {value!r:.80}')
    return str(value)


def _target_json(name: str, value: Any) -> dict[str, list[TopicPartition]]:
    if isinstance(value, str):
        return _target_text(value)
    if not isinstance(value, dict) or not all(isinstance(each, list) for each in value.values()):
        raise ClusterError(
            f'"{name}" must be an object of members with lists of partitions, not {value!r:.80}'
        )
    return {
        member: [PARTITION.from_json(name, each) for each in partitions]
        for member, partitions in value.items()
    }


def _target_text(text: str) -> dict[str, list[TopicPartition]]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ClusterError(f"{text!r:.80} is not JSON: {error}") from None
    return _target_json("target", None if isinstance(value, str) else value)


def _target_words(target: dict[str, list[TopicPartition]]) -> str:
    return json.dumps(
        {member: [f"{name}-{index}" for name, index in each] for member, each in target.items()}
    )


TARGET: Final = ArgumentType(
    "JSON",
    {
        "type": ["object", "string"],
        "description": "Partitions by member, or that as JSON text.",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "examples": [{"one": ["foo-0", "foo-1"]}],
    },
    _target_json,
    _target_text,
    _target_words,
    to_end=True,
)
COORDINATOR_KIND: Final = ArgumentType(
    "KIND",
    {"type": "string", "enum": list(_KINDS)},
    _kind_json,
    lambda word: _kind_json("kind", word),
)
_KIND: Final = Argument("kind", COORDINATOR_KIND, "group, transaction or share.")
_GROUP: Final = Argument("group", WORD, "The group's id.")
_MEMBER: Final = Argument(
    "member",
    WORD,
    "A member id, the instance id of a static member, the client id of the only member that has "
    "it, in a classic group, or * for a group's only member.",
)
_KEY: Final = Argument("key", WORD, "The group's id, or the transactional id.")

GROUP_ROWS: Final = (
    Command(
        "move-coordinator",
        "Make a broker the coordinator of a group.",
        lambda on, given: on.cluster.move_coordinator(given["kind"], given["key"], given["broker"]),
        (_KIND, _KEY, BROKER),
        details="The leader of the key's partition of the internal topic moves; the old "
        "coordinator answers error 16. KIND is group, transaction or share.",
    ),
    Command(
        "load-coordinator",
        "Put a coordinator into the loading state.",
        lambda on, given: on.cluster.load_coordinator(given["kind"], given["key"]),
        (_KIND, _KEY),
        details="Requests to it get error 14 until `finish-loading`.",
    ),
    Command(
        "finish-loading",
        "End the loading of a coordinator.",
        lambda on, given: on.cluster.finish_loading(given["kind"], given["key"]),
        (_KIND, _KEY),
    ),
    Command(
        "hold-joins",
        "Hold the rebalances of a group open.",
        lambda on, given: on.cluster.hold_joins(given["group"]),
        (_GROUP,),
        details="JoinGroup requests wait until `complete-join`.",
    ),
    Command(
        "complete-join",
        "Complete the rebalance of a group now.",
        lambda on, given: on.cluster.complete_join(given["group"]),
        (_GROUP,),
        details="Members that have not rejoined are left out. Ends `hold-joins`.",
    ),
    Command(
        "rebalance",
        "Trigger a rebalance of a group.",
        lambda on, given: on.cluster.rebalance(given["group"]),
        (_GROUP,),
        details="Members of a classic group get error 27 and rejoin. A consumer or streams group "
        "gets a new epoch, and its next heartbeat computes a new target assignment.",
    ),
    Command(
        "expire-member",
        "Expire the session of a member.",
        lambda on, given: on.cluster.expire_member(given["group"], given["member"]),
        (_GROUP, _MEMBER),
        details="The member gets error 25 and the group rebalances, in classic and in newer "
        "groups.",
    ),
    Command(
        "remove-member",
        "Remove a member from its group.",
        lambda on, given: on.cluster.remove_member(given["group"], given["member"]),
        (_GROUP, _MEMBER),
        details="This is what an administrator does with LeaveGroup.",
    ),
    Command(
        "fence-instance",
        "Fence a static member: another member takes its instance id.",
        lambda on, given: on.cluster.fence_instance(given["group"], given["instance"]),
        (_GROUP, Argument("instance", WORD, "The instance id of a static member.")),
        details="The member that had it gets error 82 (KIP-345).",
    ),
    Command(
        "set-generation",
        "Change the generation of a group.",
        lambda on, given: on.cluster.set_generation(given["group"], given["generation"]),
        (_GROUP, Argument("generation", COUNT, "Its number.")),
        details="Requests with the old generation get error 22. In a consumer group the epoch "
        "changes: heartbeats get error 110 and commits 113.",
    ),
    Command(
        "set-target-assignment",
        "Set the target assignment of a consumer or streams group by hand.",
        lambda on, given: on.cluster.set_target_assignment(given["group"], given["target"]),
        (_GROUP, Argument("target", TARGET, "Member id or instance id -> partitions.")),
        details="It holds until `release-assignor`. Members that are not named get nothing: "
        '`{"one": ["foo-0", "foo-1"]}`. In a streams group the partitions are active tasks: `0-2` '
        "is partition 2 of subtopology 0.",
    ),
    Command(
        "shutdown-application",
        "Request the shutdown of a streams application on behalf of a member.",
        lambda on, given: on.cluster.shutdown_application(given["group"], given["member"]),
        (_GROUP, _MEMBER),
        details="Every member of the streams group gets status 4 in its next heartbeat response.",
    ),
    Command(
        "release-assignor",
        "Return a consumer or streams group to its assignor.",
        lambda on, given: on.cluster.release_assignor(given["group"]),
        (_GROUP,),
    ),
    Command(
        "hold-assignment",
        "Hold a consumer or streams group short of its target assignment.",
        lambda on, given: on.cluster.hold_assignment(given["group"]),
        (_GROUP,),
        details="Until `release-assignment`, members are told to revoke partitions and are "
        "assigned no new ones.",
    ),
    Command(
        "release-assignment",
        "Let the members of a consumer or streams group reach their target again.",
        lambda on, given: on.cluster.release_assignment(given["group"]),
        (_GROUP,),
    ),
    Command(
        "expire-locks",
        "Expire the acquisition locks of a share group.",
        lambda on, given: on.cluster.expire_locks(given["group"], given["partition"]),
        (
            _GROUP,
            Argument("partition", PARTITION.type, "The partition; none for all.", optional=True),
        ),
        details="The records become available again, or archived at the delivery limit; "
        "acknowledging them gets error 121.",
    ),
    Command(
        "expire-share-session",
        "Drop the share sessions of a member from all brokers.",
        lambda on, given: on.cluster.expire_share_session(given["group"], given["member"]),
        (_GROUP, Argument("member", WORD, "The member id.")),
        details="Its next request gets error 122, and the records that it had acquired become "
        "available.",
    ),
    Command(
        "set-delivery-count",
        "Set how often a record has been delivered to a share group.",
        lambda on, given: on.cluster.set_delivery_count(
            given["group"], given["partition"], given["offset"], given["count"]
        ),
        (
            _GROUP,
            PARTITION,
            Argument("offset", COUNT, "The offset of a record in flight."),
            Argument("count", COUNT, "The delivery count."),
        ),
        details="At the group's `share.delivery.count.limit` the record is archived when it is "
        "released.",
    ),
    Command(
        "set-offset",
        "Commit an offset for a group.",
        lambda on, given: on.cluster.set_offset(
            given["group"], given["partition"], given["offset"]
        ),
        (_GROUP, PARTITION, Argument("offset", COUNT, "The offset.")),
        details="The group's members are not checked. A group that does not exist is created.",
    ),
    Command(
        "drop-offset",
        "Delete a committed offset of a group.",
        lambda on, given: on.cluster.drop_offset(given["group"], given["partition"]),
        (_GROUP, PARTITION),
        details="This is what happens when an offset expires.",
    ),
    Command(
        "hold-commits",
        "Hold the offset commits of a group.",
        lambda on, given: on.cluster.hold_commits(given["group"]),
        (_GROUP,),
        details="Until `release-commits`, commits are neither answered nor visible, and "
        "OffsetFetch for stable offsets gets error 88.",
    ),
    Command(
        "release-commits",
        "Complete the held commits.",
        lambda on, given: on.cluster.release_commits(given["group"]),
        (_GROUP,),
    ),
)
