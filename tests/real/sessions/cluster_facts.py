"""Sessions over ApiVersions (18), Metadata (3), DescribeCluster (60), DescribeTopicPartitions (75)
and DescribeLogDirs (35)."""

from __future__ import annotations

import uuid

from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from kproto.messages.describe_log_dirs_request import DescribableLogDirTopic
from kproto.messages.describe_topic_partitions_request import Cursor, TopicRequest
from tests.real.sessions.registry import session
from tests.real.steps import (
    Ask,
    Rounds,
    cluster,
    create,
    metadata,
)

# ---- 18 ApiVersions --------------------------------------------------------------------------


@session(18, until=2)
def api_versions_early(t: str) -> Rounds:
    return Rounds([Ask(ApiVersionsRequest())])


@session(18, since=5)
def versions_for_half_an_address(t: str) -> Rounds:
    """The cluster without the node, or the node without the cluster."""
    software = {"client_software_name": "x", "client_software_version": "1"}
    pairs = ((None, 1), (None, 99), (None, -2), ("other", -1), ("", -1), ("other", 1))
    return Rounds([Ask(ApiVersionsRequest(**software, cluster_id=c, node_id=n)) for c, n in pairs])


@session(18, since=3)
def api_versions(t: str) -> Rounds:
    software = {"client_software_name": "kproto", "client_software_version": "1.0"}
    return Rounds(
        [
            Ask(ApiVersionsRequest(**software)),
            Ask(ApiVersionsRequest(**software), broker_id=3),
            Ask(ApiVersionsRequest()),
            Ask(ApiVersionsRequest(client_software_name="a b", client_software_version="1")),
            Ask(ApiVersionsRequest(client_software_name="a", client_software_version="-")),
            Ask(ApiVersionsRequest(**software), version=3, forged=99),
        ]
    )


@session(18, since=4, shows=("A-45",))
def api_versions_not_served(t: str) -> Rounds:
    """Anything but ApiVersions, at a version the broker has not, ends the connection."""
    forged = Ask(AlterPartitionReassignmentsRequest(), version=0, broker_id=3, forged=9)
    metadata_0 = Ask(MetadataRequest(topics=[]), version=12, broker_id=3, forged=99)
    return Rounds([forged, metadata_0, Ask(ApiVersionsRequest(), version=0, broker_id=3)])


@session(18, since=4, zookeeper=True)
def apis_of_kraft(t: str) -> Rounds:
    of_4_x = AlterPartitionReassignmentsRequest(allow_replication_factor_change=False)
    return Rounds(
        [
            Ask(of_4_x, version=1, broker_id=2),
            Ask(DescribeTopicPartitionsRequest(topics=[]), version=0, broker_id=2),
            Ask(ApiVersionsRequest(), version=0, broker_id=2),
        ]
    )


# ---- 3 Metadata ------------------------------------------------------------------------------


@session(3)
def metadata_of_topics(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2], [2, 4], [4, 3]),
            create(f"{t}-b", [4], [3]),
            metadata(t),
            metadata(t, broker_id=3),
            metadata(t, t),
            metadata(f"{t}-b"),
            metadata(f"{t}-unknown"),
            metadata(f"{t}-unknown", t),
        ],
        stopped=[metadata(t), metadata(f"{t}-b"), metadata(t, broker_id=2)],
    )


@session(3)
def metadata_of_bad_names(t: str) -> Rounds:
    return Rounds([metadata(""), metadata("."), metadata("a b"), metadata("x" * 250)])


@session(3, since=1, shows=("A-53",))
def metadata_of_none_and_all(t: str) -> Rounds:
    return Rounds([create(t, [3, 1]), metadata(t), metadata(), metadata(everything=True)])


@session(3, since=8)
def metadata_with_operations(t: str) -> Rounds:
    return Rounds([create(t, [3]), metadata(t, f"{t}-unknown", operations=True)])


@session(3, since=10)
def metadata_by_id(t: str) -> Rounds:
    unknown = uuid.UUID(int=77)

    def by_id(*ids: uuid.UUID) -> MetadataRequest:
        return MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=i) for i in ids])

    return Rounds(
        [
            create(t, [1, 2]),
            metadata(t),
            Ask(lambda ids: by_id(ids[t]), eventually=True),
            Ask(lambda ids: by_id(ids[t], unknown), eventually=True),
        ]
    )


# ---- 60 DescribeCluster ----------------------------------------------------------------------


@session(60, shows=("A-53",))
def describe_cluster(t: str) -> Rounds:
    steps = [cluster(), cluster(include_cluster_authorized_operations=True)]
    return Rounds(steps, frozen=steps, stopped=steps)


@session(60, since=1)
def describe_cluster_endpoints(t: str) -> Rounds:
    return Rounds([cluster(endpoint_type=2), cluster(endpoint_type=3), cluster(endpoint_type=0)])


@session(60, since=2)
def describe_cluster_fenced(t: str) -> Rounds:
    steps = [cluster(include_fenced_brokers=True)]
    return Rounds(steps, stopped=steps)


# ---- 75 DescribeTopicPartitions --------------------------------------------------------------


@session(75)
def topic_partitions(t: str) -> Rounds:
    def ask(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> Ask:
        topics = [TopicRequest(name=name) for name in names]
        return Ask(
            DescribeTopicPartitionsRequest(
                topics=topics, response_partition_limit=limit, cursor=cursor
            ),
            eventually=True,
        )

    return Rounds(
        [
            create(t, [1, 2], [2, 4], [4, 3]),
            create(f"{t}-b", [4], [3]),
            metadata(t, f"{t}-b"),
            ask(t),
            ask(f"{t}-b", t, f"{t}-unknown"),
            ask(t, f"{t}-b", limit=2),
            ask(t, f"{t}-b", cursor=Cursor(topic_name=t, partition_index=1)),
            ask("a b"),
        ],
        stopped=[ask(t), ask(f"{t}-b")],
    )


# ---- 35 DescribeLogDirs ----------------------------------------------------------------------


@session(35)
def log_dirs(t: str) -> Rounds:
    def ask(*rows: tuple[str, list[int]], everything: bool = False, broker_id: int = 1) -> Ask:
        topics = [DescribableLogDirTopic(topic=name, partitions=list(p)) for name, p in rows]
        body = DescribeLogDirsRequest(topics=None if everything else topics)
        return Ask(body, broker_id=broker_id, eventually=True)

    return Rounds(
        [
            create(t, [1, 2], [2, 1], [3, 2]),
            ask((t, [0, 1, 2])),
            ask((t, [2]), broker_id=3),
            ask((t, [0]), broker_id=4),
            ask((t, [7]), (f"{t}-unknown", [0])),
            ask(),
            ask(everything=True),
        ]
    )
