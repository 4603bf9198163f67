"""Direct requests to the controllers of a KRaft quorum: ``--bootstrap-controller`` (KIP-919).

Controllers do not serve Metadata. DescribeCluster with endpoint type 2 lists them and the active
one; a broker refuses that with MISMATCHED_ENDPOINT_TYPE (114).
"""

from __future__ import annotations

from typing import Any, Final

from kproto.client.calls import Attempt
from kproto.client.connection import Connection
from kproto.client.deadlines import Deadline
from kproto.client.errors import raise_for_code
from kproto.client.nodes import Address, Nodes
from kproto.client.values import ClusterDescription, Node
from kproto.schema.versions import Versions

__all__ = ["Controllers", "describe_controllers"]

_DESCRIBE_CLUSTER: Final = 60
_WITH_ENDPOINT_TYPE: Final = Versions(1, 2**15 - 1)
_CONTROLLERS: Final = 2


class Controllers(Nodes):
    """Nodes that are controllers; ``broker`` finds one by its id."""

    async def _metadata(self, connection: Connection, deadline: Deadline) -> Any:
        request: Any = self._dialect.message("DescribeClusterRequest")
        version = connection.version_for(_DESCRIBE_CLUSTER, _WITH_ENDPOINT_TYPE)
        body = request(endpoint_type=_CONTROLLERS)
        response = await connection.request(body, version, timeout=deadline.response_timeout)
        raise_for_code(response.error_code, response.error_message)
        return response

    def _take(self, response: Any) -> None:
        self._brokers = {each.broker_id: Address(each.host, each.port) for each in response.brokers}
        self._controller = response.controller_id
        self._refreshed += 1


async def describe_controllers(attempt: Attempt) -> ClusterDescription:
    """Return the controllers as the cluster's nodes."""
    request: Any = attempt.dialect.message("DescribeClusterRequest")
    version = attempt.version(_DESCRIBE_CLUSTER, _WITH_ENDPOINT_TYPE)
    response = await attempt.request(request(endpoint_type=_CONTROLLERS), version)
    raise_for_code(response.error_code, response.error_message)
    nodes = [Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers]
    return ClusterDescription(response.cluster_id, response.controller_id, nodes)
