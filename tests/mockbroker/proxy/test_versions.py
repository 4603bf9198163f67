"""What clients see of the upstream's versions and features."""

from typing import Any

import pytest

from kproto.dialects import dialect
from kproto.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kproto.schema.versions import Versions
from mockbroker.profiles import profile
from mockbroker.proxy.versions import Clamp, consequences

KAFKA = dialect("kafka")
VENDORS_KEY = 10_000


def upstream(name: str = "kafka-4.4", **more: Any) -> ApiVersionsResponse:
    """What a broker of that release answers, with one API of a vendor."""
    found = profile(name)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=each.lowest, max_version=each.highest)
            for key, each in {**found.versions, VENDORS_KEY: Versions(0, 3)}.items()
        ],
        supported_features=[
            SupportedFeatureKey(name=f.name, min_version=f.supported[0], max_version=f.supported[1])
            for f in found.features
        ],
        finalized_features=[
            FinalizedFeatureKey(
                name=f.name, min_version_level=f.finalized, max_version_level=f.finalized
            )
            for f in found.features
        ],
        **more,
    )


def rows(body: ApiVersionsResponse) -> dict[int, Versions]:
    return {row.api_key: Versions(row.min_version, row.max_version) for row in body.api_keys}


@pytest.mark.requirement("DP-PROXY-22", "DP-PROXY-53", "DP-PROXY-54")
def test_versions_are_those_that_both_have() -> None:
    clamp, body = Clamp(KAFKA), upstream()
    known = {key: versions for key, versions in rows(body).items() if key != VENDORS_KEY}
    # As from a release after those that we know: Metadata, which is read here, and Heartbeat.
    for row in body.api_keys:
        if row.api_key in (3, 12):
            row.max_version += 5
    clamp.cut(body)
    found = rows(body)
    assert found[3] == known[3]
    assert found[12].highest == known[12].highest + 5
    assert found[VENDORS_KEY] == Versions(0, 3)
    # An older upstream is not shown with more than it has.
    old = upstream("kafka-2.4")
    before = rows(old)
    clamp.cut(old)
    assert rows(old) == before


@pytest.mark.requirement("DP-PROXY-22", "DP-PROXY-54")
@pytest.mark.parametrize(("unknown", "passes"), [("pass", True), ("hide", False)])
def test_keys_without_a_schema(unknown: Any, passes: bool) -> None:
    clamp, body = Clamp(KAFKA, unknown_keys=unknown), upstream()
    clamp.cut(body)
    assert (VENDORS_KEY in rows(body)) is passes
    assert clamp.accepts(VENDORS_KEY, 2) is passes


@pytest.mark.requirement("DP-PROXY-23")
def test_the_lowest_version_of_produce_stays() -> None:
    body = upstream()
    assert rows(body)[0].lowest == 0
    Clamp(KAFKA, profile=profile("kafka-4.0")).cut(body)
    assert rows(body)[0] == Versions(0, 12)


@pytest.mark.requirement("DP-PROXY-24", "DP-PROXY-25")
def test_a_profile_limits_versions() -> None:
    release = profile("kafka-2.4")
    clamp, body = Clamp(KAFKA, profile=release), upstream()
    theirs = rows(body)
    clamp.cut(body)
    common = {key: theirs[key].intersect(release.versions[key])
              for key in theirs.keys() & release.versions.keys()}  # fmt: skip
    expected = {key: versions for key, versions in common.items() if versions}
    assert {key: each for key, each in rows(body).items() if key != VENDORS_KEY} == expected
    assert (body.supported_features, body.finalized_features) == ([], [])
    assert not clamp.accepts(68, 0)
    assert clamp.accepts(1, 11)
    assert not clamp.accepts(1, 12)


@pytest.mark.requirement("DP-PROXY-23")
def test_features_are_lowered() -> None:
    body = upstream()
    names = [each.name for each in body.supported_features]
    Clamp(KAFKA, features={"transaction.version": 1, "group.version": 0}).cut(body)
    supported = {each.name: each.max_version for each in body.supported_features}
    finalized = {each.name: each.max_version_level for each in body.finalized_features}
    assert supported["transaction.version"] == finalized["transaction.version"] == 1
    assert "group.version" not in finalized
    assert set(names) - set(supported) == {"group.version"}
    body.encode(4)


@pytest.mark.requirement("DP-PROXY-23", "DP-PROXY-24")
def test_a_profile_lowers_the_features_with_the_versions() -> None:
    body = upstream()
    Clamp(KAFKA, profile=profile("kafka-3.9")).cut(body)
    names = {each.name for each in body.finalized_features}
    assert "transaction.version" not in names
    levels = {each.name: each.max_version_level for each in body.finalized_features}
    assert levels["metadata.version"] == 21


@pytest.mark.requirement("DP-PROXY-24")
def test_consequences_are_those_of_the_profile_and_the_upstream() -> None:
    assert consequences(Clamp(KAFKA)) == []
    old = consequences(Clamp(KAFKA, profile=profile("kafka-2.4")))
    assert any("topic ids" in each for each in old)
    assert any("KIP-848" in each for each in old)
    assert any("KIP-890" in each for each in old)
    assert not any("sessions" in each for each in old)
    oldest = consequences(Clamp(KAFKA, profile=profile("kafka-1.0")))
    assert any("sessions" in each for each in oldest)
    assert any("stable offsets" in each for each in oldest)
    # What the upstream has not got either is not lost.
    same = consequences(Clamp(KAFKA, profile=profile("kafka-2.4")), profile("kafka-2.4").versions)
    assert same == []
