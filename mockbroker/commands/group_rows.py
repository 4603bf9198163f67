"""The commands on coordinators, groups and committed offsets."""

from __future__ import annotations

import json
from typing import Any, Final

from mockbroker.commands.arguments import (
    BROKER,
    COUNT,
    PARTITION,
    WORD,
    Argument,
    ArgumentType,
)
from mockbroker.commands.command import Command
from mockbroker.errors import ClusterError
from mockbroker.state.model import TopicPartition

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
        "Let a coordinator load its partition.",
        lambda on, given: on.cluster.load_coordinator(given["kind"], given["key"]),
        (_KIND, _KEY),
        details="Its requests fail with error 14 until `finish-loading`.",
    ),
    Command(
        "finish-loading",
        "End the loading of a coordinator.",
        lambda on, given: on.cluster.finish_loading(given["kind"], given["key"]),
        (_KIND, _KEY),
    ),
    Command(
        "hold-joins",
        "Keep the rebalances of a group from completing.",
        lambda on, given: on.cluster.hold_joins(given["group"]),
        (_GROUP,),
        details="JoinGroup requests wait until `complete-join`.",
    ),
    Command(
        "complete-join",
        "Complete the rebalance of a group now.",
        lambda on, given: on.cluster.complete_join(given["group"]),
        (_GROUP,),
        details="Members that have not joined are left out, and joins are held no more.",
    ),
    Command(
        "rebalance",
        "Let a group rebalance.",
        lambda on, given: on.cluster.rebalance(given["group"]),
        (_GROUP,),
        details="Its members get error 27 and join again. The epoch of a consumer or streams group "
        "rises, and the next heartbeat makes another target.",
    ),
    Command(
        "expire-member",
        "End the session of a member.",
        lambda on, given: on.cluster.expire_member(given["group"], given["member"]),
        (_GROUP, _MEMBER),
        details="The member gets error 25, and the group rebalances. So it does in a consumer "
        "group.",
    ),
    Command(
        "remove-member",
        "Remove a member from its group.",
        lambda on, given: on.cluster.remove_member(given["group"], given["member"]),
        (_GROUP, _MEMBER),
        details="As an administrator does with LeaveGroup.",
    ),
    Command(
        "fence-instance",
        "Let a stranger take the instance id of a member.",
        lambda on, given: on.cluster.fence_instance(given["group"], given["instance"]),
        (_GROUP, Argument("instance", WORD, "The instance id of a static member.")),
        details="The member that had it gets error 82 (KIP-345).",
    ),
    Command(
        "set-generation",
        "Let a group be in another generation.",
        lambda on, given: on.cluster.set_generation(given["group"], given["generation"]),
        (_GROUP, Argument("generation", COUNT, "Its number.")),
        details="Requests of the former generation get error 22. A consumer group and its members "
        "are at another epoch: 110 for heartbeats, 113 for commits.",
    ),
    Command(
        "set-target-assignment",
        "Give the members of a consumer or streams group a target by hand.",
        lambda on, given: on.cluster.set_target_assignment(given["group"], given["target"]),
        (_GROUP, Argument("target", TARGET, "Member id or instance id -> partitions.")),
        details="Until `release-assignor`. Members that are not named get nothing: "
        '`{"one": ["foo-0", "foo-1"]}`. Those of a streams group get active tasks: `0-2` is '
        "partition 2 of subtopology 0.",
    ),
    Command(
        "shutdown-application",
        "Let a member request that its application shuts down.",
        lambda on, given: on.cluster.shutdown_application(given["group"], given["member"]),
        (_GROUP, _MEMBER),
        details="Each member of the streams group gets status 4 with its next heartbeat.",
    ),
    Command(
        "release-assignor",
        "Let the assignor of a consumer or streams group make its targets again.",
        lambda on, given: on.cluster.release_assignor(given["group"]),
        (_GROUP,),
    ),
    Command(
        "hold-assignment",
        "Keep the members of a consumer or streams group from their targets.",
        lambda on, given: on.cluster.hold_assignment(given["group"]),
        (_GROUP,),
        details="They have to give up partitions again and again, and get none, until "
        "`release-assignment`.",
    ),
    Command(
        "release-assignment",
        "Let the members of a consumer or streams group get to their targets.",
        lambda on, given: on.cluster.release_assignment(given["group"]),
        (_GROUP,),
    ),
    Command(
        "expire-locks",
        "Let the locks of a share group end.",
        lambda on, given: on.cluster.expire_locks(given["group"], given["partition"]),
        (
            _GROUP,
            Argument("partition", PARTITION.type, "The partition; none for all.", optional=True),
        ),
        details="Its records are available again, or archived if they were delivered too often; "
        "acknowledgements of them get error 121.",
    ),
    Command(
        "expire-share-session",
        "Let brokers forget the share sessions of a member.",
        lambda on, given: on.cluster.expire_share_session(given["group"], given["member"]),
        (_GROUP, Argument("member", WORD, "The member id.")),
        details="Its next request gets error 122, and what it has acquired is available again.",
    ),
    Command(
        "set-delivery-count",
        "Let a record have been delivered this often to a share group.",
        lambda on, given: on.cluster.set_delivery_count(
            given["group"], given["partition"], given["offset"], given["count"]
        ),
        (
            _GROUP,
            PARTITION,
            Argument("offset", COUNT, "Of a record that is in flight."),
            Argument("count", COUNT, "How often it was delivered."),
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
        details="Whoever its members are; a group that does not exist begins to.",
    ),
    Command(
        "drop-offset",
        "Delete a committed offset of a group.",
        lambda on, given: on.cluster.drop_offset(given["group"], given["partition"]),
        (_GROUP, PARTITION),
        details="As if it had expired.",
    ),
    Command(
        "hold-commits",
        "Let the commits of a group wait.",
        lambda on, given: on.cluster.hold_commits(given["group"]),
        (_GROUP,),
        details="They are neither answered nor seen until `release-commits`; fetches of stable "
        "offsets get error 88.",
    ),
    Command(
        "release-commits",
        "Complete the commits that wait.",
        lambda on, given: on.cluster.release_commits(given["group"]),
        (_GROUP,),
    ),
)
