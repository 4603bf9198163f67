"""UpdateFeatures (57, KIP-584): changes the finalized levels of features.

Versions: 0 has a flag for downgrades, which KRaft controllers ignore; 1 has types of upgrades and
only validates if asked (KIP-778); 2 answers with one error for the whole request (KIP-1022).
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode, message
from kproto.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kproto.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from mockbroker.apis.common.requirements import cluster_operation, controller
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.features.feature_rules import SAFE_DOWNGRADE, UPGRADE
from mockbroker.simulation.features.feature_updates import FeatureUpdate
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["update_features"]

_FAILED = "The update failed for all features since the following feature had an error: "
_RESULTS_UNTIL = 1
"""The last version whose response lists the features."""


@register(57, "0-2", requires=(cluster_operation(AclOperation.ALTER), controller))
def update_features(call: Call) -> UpdateFeaturesResponse:
    request: UpdateFeaturesRequest = call.body
    updates = request.feature_updates
    if call.cluster.controller.keeps_znodes:
        # For each update Kafka looks up the first one of that feature.
        first = {each.feature: each for each in reversed(updates)}
        updates = [first[each.feature] for each in updates]
    results = call.cluster.features.update(
        [
            FeatureUpdate(each.feature, each.max_version_level, _upgrade_type(call, each))
            for each in updates
        ],
        validate_only=request.validate_only,
    )
    if not call.cluster.features.refuses_all:
        return UpdateFeaturesResponse(
            # Only controllers of ZooKeeper clusters set it.
            error_message="" if call.profile.forwarding else None,
            results=[
                UpdatableFeatureResult(
                    feature=each.feature, error_code=each.error_code, error_message=each.text
                )
                for each in results
            ],
        )
    for each in results:
        if each.error_code:
            text = f"{_FAILED}{each.text}"
            return UpdateFeaturesResponse(error_code=each.error_code, error_message=text)
    listed = request.feature_updates if call.version <= _RESULTS_UNTIL else []
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=each.feature, error_message=message(ErrorCode.NONE))
            for each in listed
        ],
    )


def _upgrade_type(call: Call, update: FeatureUpdateKey) -> int:
    """Only controllers of ZooKeeper clusters read the flag of version 0."""
    if call.version == 0 and not call.profile.forwarding:
        return SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    return update.upgrade_type
