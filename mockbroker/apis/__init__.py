"""One module an api key: what the mock broker answers. Importing this registers all of them."""

from __future__ import annotations

from mockbroker.apis import (
    alter_partition_reassignments,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    find_coordinator,
    incremental_alter_configs,
    list_partition_reassignments,
    metadata,
    sasl,
)
from mockbroker.apis.registry import HANDLERS, Call, Handler, Session, register

__all__ = [
    "HANDLERS",
    "Call",
    "Handler",
    "Session",
    "alter_partition_reassignments",
    "api_versions",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_topics",
    "describe_acls",
    "describe_cluster",
    "describe_configs",
    "describe_log_dirs",
    "describe_producers",
    "describe_topic_partitions",
    "elect_leaders",
    "find_coordinator",
    "incremental_alter_configs",
    "list_partition_reassignments",
    "metadata",
    "register",
    "sasl",
]
