"""Sessions over ApiVersions (18), Metadata (3) and DescribeCluster (60)."""

from __future__ import annotations

import uuid

from kproto.messages import (
    ApiVersionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
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


@session(3, since=1)
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


@session(60)
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
