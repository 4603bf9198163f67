"""DescribeClientQuotas (48) and AlterClientQuotas (49, KIP-546).

Versions: 1 flexible.
"""

from __future__ import annotations

from kproto.messages.alter_client_quotas_request import AlterClientQuotasRequest
from kproto.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kproto.messages.alter_client_quotas_response import EntityData as AlteredEntity
from kproto.messages.alter_client_quotas_response import EntryData as AlteredEntry
from kproto.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kproto.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from mockbroker.apis.common.requirements import cluster_access, cluster_operation, controller
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.clients.quotas.client_quotas import Alteration, FilterPart
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["alter_client_quotas", "describe_client_quotas"]


@register(48, "0-1", requires=(cluster_access(AclOperation.DESCRIBE_CONFIGS),))
def describe_client_quotas(call: Call) -> DescribeClientQuotasResponse:
    request: DescribeClientQuotasRequest = call.body
    parts = [
        FilterPart(each.entity_type, each.match_type, each.match) for each in request.components
    ]
    found = call.cluster.quotas.describe(parts, strict=request.strict)
    if found.error_code:
        return DescribeClientQuotasResponse(
            error_code=found.error_code, error_message=found.text, entries=None
        )
    return DescribeClientQuotasResponse(
        error_message=None if call.release.has(facts.NULL_TEXT_OF_QUOTAS) else "",
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in found.entries
        ],
    )


@register(49, "0-1", requires=(cluster_operation(AclOperation.ALTER_CONFIGS), controller))
def alter_client_quotas(call: Call) -> AlterClientQuotasResponse:
    request: AlterClientQuotasRequest = call.body
    alterations = [
        Alteration(
            tuple({each.entity_type: each.entity_name for each in entry.entity}.items()),
            [(each.key, None if each.remove else each.value) for each in entry.ops],
        )
        for entry in request.entries
    ]
    results = call.cluster.quotas.alter(alterations, validate_only=request.validate_only)
    return AlterClientQuotasResponse(
        entries=[
            AlteredEntry(
                error_code=each.error_code,
                error_message=each.text,
                entity=[
                    AlteredEntity(entity_type=kind, entity_name=name) for kind, name in each.entity
                ],
            )
            for each in results
        ]
    )
