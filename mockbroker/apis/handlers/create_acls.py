"""CreateAcls (30, KIP-140): add access rules, with one result per rule.

Versions: 1 pattern types (KIP-290); 2 flexible; 3 user resources. ZooKeeper brokers write rules
themselves and KRaft brokers forward the request, so no broker answers NOT_CONTROLLER.
"""

from __future__ import annotations

from kproto.messages.create_acls_request import CreateAclsRequest
from kproto.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from mockbroker.apis.common.acl_elements import known_elements
from mockbroker.apis.common.requirements import Requirement, cluster_operation
from mockbroker.apis.registry import Call, register
from mockbroker.errors import UnreadableError
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.acls import filter_element
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.results import AclBinding

__all__ = ["create_acls"]


def _read_filters(call: Call) -> int:
    if call.release.has(facts.PLAIN_ACL_CLASSES):
        for binding in _bindings(call.body):
            text = filter_element(binding)
            if text is not None:
                raise UnreadableError(text)
    return 0


def _bindings(request: CreateAclsRequest) -> list[AclBinding]:
    return [
        AclBinding(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            pattern_type=each.resource_pattern_type,
            principal=each.principal,
            host=each.host,
            operation=each.operation,
            permission_type=each.permission_type,
        )
        for each in request.creations
    ]


@register(
    30,
    "0-3",
    requires=(
        known_elements(lambda request: request.creations, "resource_type", "resource_pattern_type"),
        Requirement(_read_filters),
        cluster_operation(AclOperation.ALTER),
    ),
)
def create_acls(call: Call) -> CreateAclsResponse:
    results = call.cluster.acls.create(_bindings(call.body))
    success = None if call.release.has(facts.PLAIN_ACL_CLASSES) else ""
    return CreateAclsResponse(
        results=[
            AclCreationResult(
                error_code=each.error_code,
                error_message=each.error_message if each.error_code else success,
            )
            for each in results
        ]
    )
