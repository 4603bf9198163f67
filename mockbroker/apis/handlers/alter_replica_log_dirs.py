"""AlterReplicaLogDirs (34, KIP-113): move replicas of the receiving broker to another directory.

Versions: 1 throttle time; 2 flexible. A broker has the directories of its config ``log.dirs``.
"""

from __future__ import annotations

from collections import defaultdict

from kproto.error_codes import ErrorCode
from kproto.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from kproto.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from mockbroker.apis.common.authorization import may
from mockbroker.apis.registry import Call, register

__all__ = ["alter_replica_log_dirs"]


@register(34, "0-2")
def alter_replica_log_dirs(call: Call) -> AlterReplicaLogDirsResponse:
    body: AlterReplicaLogDirsRequest = call.body
    requested = [
        (directory.path, topic.name, index)
        for directory in body.dirs
        for topic in directory.topics
        for index in topic.partitions
    ]
    allowed = may(call)
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for path, name, index in requested:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if allowed:
            code = call.cluster.move_replica(call.broker_id, (name, index), path)
        results[name].append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=rows)
            for name, rows in results.items()
        ]
    )
