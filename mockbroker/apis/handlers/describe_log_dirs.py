"""DescribeLogDirs (35, KIP-113): the replicas in each log directory of the receiving broker.

Versions: 2 flexible; 3 a top-level error; 4 sizes of the volume (KIP-827); 5 cordoned directories.
Sizes are those of the stored batches; the volume has no size.
"""

from __future__ import annotations

from kproto.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kproto.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from mockbroker.apis.common.request_partitions import distinct_partitions
from mockbroker.apis.common.requirements import cluster_access
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.results import LogDir

__all__ = ["describe_log_dirs"]


@register(35, "0-5", requires=(cluster_access(AclOperation.DESCRIBE),))
def describe_log_dirs(call: Call) -> DescribeLogDirsResponse:
    request: DescribeLogDirsRequest = call.body
    requested = None
    if request.topics is not None:
        distinct = distinct_partitions(
            request.topics,
            lambda topic: topic.topic,
            lambda topic: topic.partitions,
            lambda index: index,
        )
        requested = [(topic.topic, indexes) for topic, indexes in distinct]
    directories = call.cluster.log_dirs.describe(call.broker_id, requested)
    return DescribeLogDirsResponse(results=[_directory(each) for each in directories])


def _directory(directory: LogDir) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        error_code=directory.error_code,
        log_dir=directory.log_dir,
        topics=[
            DescribeLogDirsTopic(
                name=name,
                partitions=[
                    DescribeLogDirsPartition(
                        partition_index=replica.partition_index,
                        partition_size=replica.partition_size,
                        offset_lag=replica.offset_lag,
                        is_future_key=replica.is_future_key,
                    )
                    for replica in replicas
                ],
            )
            for name, replicas in directory.topics
        ],
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )
