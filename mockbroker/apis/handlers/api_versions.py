"""ApiVersions (18): the versions that the listener serves, and the client's software.

Versions: 1 throttle time; 3 flexible, client software name and version (KIP-511), features
(KIP-584); 4 features whose lowest level is 0 are no longer hidden; 5 the cluster and node the
client wants to reach (KIP-1242). The response header is version 0 at every version, so that a
client can decode the response before versions are negotiated.
"""

from __future__ import annotations

import re
from typing import Final

from kproto.error_codes import ErrorCode
from kproto.journal import ClientSoftware
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from mockbroker.apis.registry import Call, Session, register
from mockbroker.simulation.features.release_features import Feature

__all__ = ["API_VERSIONS", "api_versions", "identify"]

API_VERSIONS: Final = 18

_ANY_NODE: Final = -1
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""KIP-511: client software names and versions must match all of this."""


def identify(session: Session, version: int, body: ApiVersionsRequest) -> bool:
    """Store the client's software in the session. Returns False if KIP-511 forbids the name."""
    if version < 3:
        return True
    name, number = body.client_software_name, body.client_software_version
    if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(number)):
        return False
    session.software = ClientSoftware(name, number)
    return True


@register(API_VERSIONS, "0-5", cacheable=True)
def api_versions(call: Call) -> ApiVersionsResponse:
    if not identify(call.session, call.version, call.body):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if call.version >= 5 and _names_half(call.body):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if call.version >= 5 and _misrouted(call):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.lowest, max_version=versions.highest)
            for key, versions in sorted(call.advertised.items())
        ]
    )
    if call.version >= 3:
        _add_features(response, call)
    return response


def _names_half(request: ApiVersionsRequest) -> bool:
    """Whether the client names only one of the cluster and the node that it wants to reach."""
    return (request.cluster_id is None) != (request.node_id == _ANY_NODE)


def _misrouted(call: Call) -> bool:
    expected: str | None = call.body.cluster_id
    if expected is None:
        return False
    node_id: int = call.body.node_id
    return expected != call.cluster.state.cluster_id or node_id != call.session.node_id


def _add_features(response: ApiVersionsResponse, call: Call) -> None:
    features = _features(call)
    # Clients of version 3 reject a lowest level of 0 (KAFKA-17011).
    shown = [feature for feature in features if call.version >= 4 or feature.supported[0] > 0]
    response.supported_features = [
        SupportedFeatureKey(name=f.name, min_version=f.supported[0], max_version=f.supported[1])
        for f in shown
    ]
    response.finalized_features = [
        FinalizedFeatureKey(
            name=f.name, min_version_level=f.finalized, max_version_level=f.finalized
        )
        for f in features
        if f.finalized
    ]
    if features:
        view = call.cluster.controller.metadata_view(call.broker_id)
        response.finalized_features_epoch = view.offset
    elif call.profile.has_empty_finalized_features:
        # The version of the znode ``/feature``, which is never changed.
        response.finalized_features_epoch = 0


def _features(call: Call) -> list[Feature]:
    """The features that the broker supports, with the finalized levels of the cluster."""
    finalized = call.cluster.features.finalized
    return [
        Feature(name, supported, finalized.get(name, 0))
        for name, supported in call.cluster.upgrades.supported(call.broker_id).items()
    ]
