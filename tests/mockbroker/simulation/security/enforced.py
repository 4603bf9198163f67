"""Clusters that enforce access rules, and asking them without sockets: for this folder's tests."""

import json
import uuid
from typing import Any

from kproto.dialects import dialect
from kproto.schema.versions import Versions
from mockbroker.apis import HANDLERS
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.security.authorizer import (
    AclOperation,
    Authorizer,
    PermissionType,
    ResourceType,
)
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

__all__ = [
    "ADMIN", "ALICE", "ENFORCED", "EVERYTHING", "FOO_0_1", "KAFKA", "SERVED", "UNKNOWN",
    "allow", "as_alice", "ask", "new_cluster", "on_topic",
]  # fmt: skip

FOO_0_1 = [{"name": "foo", "partitions": [{"partitionIndex": 0, "replicas": [2, 3, 4]},
                                          {"partitionIndex": 1, "replicas": None}]}]  # fmt: skip


KAFKA = dialect("kafka")
ADMIN, ALICE = "User:admin", "User:alice"
ENFORCED = Security(Authorizer(frozenset({ADMIN})))
EVERYTHING: dict[int, Versions | None] = {key: h.versions for key, h in HANDLERS.items()}
SERVED = [(key, version) for key, handler in HANDLERS.items() for version in handler.versions]
UNKNOWN = uuid.UUID(int=8)


def new_cluster(**options: Any) -> Cluster:
    numbers = iter(range(1, 10_000))
    return simulated_cluster(
        4,
        cluster_id="mockclusterid000000000",
        topics=["foo=1,2,3/2,3,4", "bar=2,1"],
        new_topic_id=lambda: uuid.UUID(int=next(numbers) << 64),
        **options,
    )


def as_alice(cluster: Cluster, profile: str = "kafka-4.4") -> DirectBroker:
    apis = EVERYTHING if profile == "kafka-4.4" else None
    return DirectBroker(
        cluster, profile_name=profile, apis=apis, security=ENFORCED, principal=ALICE
    )


def allow(
    cluster: Cluster,
    operation: AclOperation,
    name: str = "kafka-cluster",
    kind: ResourceType = ResourceType.CLUSTER,
) -> None:
    acl = AclBinding(kind, name, 3, ALICE, "*", operation, PermissionType.ALLOW)
    assert cluster.acls.create([acl])[0].error_code == 0


def on_topic(cluster: Cluster, operation: AclOperation, name: str) -> None:
    allow(cluster, operation, name, ResourceType.TOPIC)


def ask(asked: DirectBroker, kind: Any, version: int, **body: Any) -> Any:
    """The answer as JSON has it."""
    default = json.loads(kind().to_json(version))
    return json.loads(asked.ask(kind.from_json(default | body, version), version).to_json(version))
