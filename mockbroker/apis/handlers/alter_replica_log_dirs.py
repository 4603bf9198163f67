"""AlterReplicaLogDirs (34, KIP-113): move replicas of the receiving broker to another directory.

Versions: 1 throttle time; 2 flexible. A broker has the directories of its config ``log.dirs``.
"""

from __future__ import annotations

from collections import defaultdict

from kproto.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from kproto.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from mockbroker.apis.common.requirements import cluster_access, merged
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["alter_replica_log_dirs"]


@register(34, "0-2", requires=(merged(cluster_access(AclOperation.ALTER)),))
def alter_replica_log_dirs(call: Call) -> AlterReplicaLogDirsResponse:
    body: AlterReplicaLogDirsRequest = call.body
    # Of a partition that the request names twice the last directory counts.
    requested = {
        (topic.name, index): directory.path
        for directory in body.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for (name, index), path in requested.items():
        code = call.cluster.log_dirs.move(call.broker_id, (name, index), path)
        results[name].append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=rows)
            for name, rows in results.items()
        ]
    )
