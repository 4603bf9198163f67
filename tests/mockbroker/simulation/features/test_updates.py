"""UpdateFeatures: what it refuses, in which order, and what it changes."""

from collections.abc import Sequence
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.messages.update_features_response import UpdateFeaturesResponse
from mockbroker.profiles import profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.features.feature_rules import KRAFT_ROWS, Change
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

INVALID = ErrorCode.INVALID_UPDATE_VERSION
UPGRADE, SAFE, UNSAFE = 1, 2, 3
METADATA = "metadata.version"
TRANSACTION = "transaction.version"
_ALL = "The update failed for all features since the following feature had an error: "
_NEEDS_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe "
    "or unsafe downgrade."
)
_LOSES = "Refusing to perform the requested downgrade because it might delete metadata information."
_UNSAFE = "Unsafe metadata downgrade is not supported in this version."


def broker(name: str = "kafka-4.4") -> DirectBroker:
    found = profile(name)
    cluster = simulated_cluster(
        2, reassignment=found.reassignment, elections=found.elections, release=found.software
    )
    return DirectBroker(cluster, profile_name=name)


def update(
    at: DirectBroker,
    *updates: tuple[str, int, int],
    version: int = 1,
    validate_only: bool = False,
    broker_id: int = 1,
) -> UpdateFeaturesResponse:
    rows = [
        {"feature": name, "max_version_level": level, "upgrade_type": kind}
        for name, level, kind in updates
    ]
    answer = at.ask(
        "UpdateFeatures",
        version,
        feature_updates=rows,
        validate_only=validate_only,
        broker_id=broker_id,
    )
    assert isinstance(answer, UpdateFeaturesResponse)
    return answer


def refusal(at: DirectBroker, *updates: tuple[str, int, int]) -> str | None:
    """The text of the first refusal; None if the levels are set."""
    before = at.cluster.features.features
    answer = update(at, *updates)
    if at.cluster.features.refuses_all:
        code, text = answer.error_code, answer.error_message
    else:
        code, text = answer.results[0].error_code, answer.results[0].error_message
    if code == 0:
        return None
    assert code == INVALID
    assert at.cluster.features.features == before
    return (text or "").removeprefix(_ALL)


def invalid(feature: str, level: int, text: str) -> str:
    return f"Invalid update version {level} for feature {feature}. {text}"


@pytest.mark.requirement("FEAT-01")
@pytest.mark.parametrize("name", ["kafka-3.9", "kafka-4.4"])
def test_unknown_types_of_upgrades_come_first(name: str) -> None:
    text = "The controller does not support the given upgrade type."
    for kind in (-1, 0, 4):
        assert refusal(broker(name), (METADATA, -1, kind)) == invalid(METADATA, -1, text)


@pytest.mark.requirement("FEAT-02")
def test_levels_are_not_negative() -> None:
    text = "A feature version cannot be less than 0."
    assert refusal(broker(), ("unknown", -1, SAFE)) == invalid("unknown", -1, text)


@pytest.mark.requirement("FEAT-03", "FEAT-11")
def test_unknown_features() -> None:
    text = "Local controller 1 does not support this feature."
    assert refusal(broker(), ("unknown", 1, UPGRADE)) == invalid("unknown", 1, text)
    old, new = broker("kafka-3.9"), broker("kafka-4.0")
    assert refusal(old, ("unknown", 1, UPGRADE)) == invalid("unknown", 1, text)
    assert refusal(old, ("unknown", 0, UPGRADE)) is None
    assert refusal(new, ("unknown", 0, UPGRADE)) == invalid(
        "unknown", 0, "Feature unknown not found."
    )


@pytest.mark.requirement("FEAT-18")
@pytest.mark.parametrize(
    ("release", "lower", "none"),
    [
        ((3, 2), "only supports versions 1-10", None),
        ((3, 3), "does not support the given version. It supports 1 to 10.", "Broker 1 does not "),
        ((3, 6), "does not support the given version. It supports 1 to 10.", "Broker 1 does not "),
        ((3, 7), "only supports versions 1-10", None),
    ],
)
def test_brokers_that_support_lower_levels(
    release: tuple[int, int], lower: str, none: str | None
) -> None:
    """As Kafka 3.6.2 and 3.9.2 answer; by bytecode 3.3.2 is like 3.6.2, and 3.7.2 like 3.9.2."""
    rows = rows_of_release(KRAFT_ROWS, Release(release))

    def text(**about: Any) -> str | None:
        change = Change(upgrade_type=UPGRADE, current=0, controller_id=1, **about)
        apply_first(rows, change, change)
        return change.text

    brokers = {1: (1, 14), 2: (1, 10)}
    known = text(feature=METADATA, level=12, supported=(1, 14), known=True, brokers=brokers)
    assert known == invalid(METADATA, 12, f"Broker 2 {lower}")
    unknown = text(feature="x", level=0, supported=(0, 0), known=False, brokers={1: (0, 0)})
    assert unknown == (none and invalid("x", 0, f"{none}support this feature."))


@pytest.mark.requirement("FEAT-04")
@pytest.mark.parametrize(
    ("name", "level", "span"),
    [("kafka-4.4", 34, "7-33"), ("kafka-4.4", 6, "7-33"), ("kafka-3.9", 22, "1-21")],
)
def test_levels_outside_the_range(name: str, level: int, span: str) -> None:
    text = f"Local controller 1 only supports versions {span}"
    assert refusal(broker(name), (METADATA, level, UPGRADE)) == invalid(METADATA, level, text)


@pytest.mark.requirement("FEAT-05", "FEAT-06")
def test_the_type_fits_the_direction() -> None:
    at = broker()
    assert refusal(at, (TRANSACTION, 1, UPGRADE)) == invalid(TRANSACTION, 1, _NEEDS_TYPE)
    assert refusal(at, (TRANSACTION, 1, SAFE)) is None
    text = "Can't downgrade to a newer version."
    assert refusal(at, (TRANSACTION, 2, UNSAFE)) == invalid(TRANSACTION, 2, text)
    assert refusal(at, (TRANSACTION, 1, SAFE)) is None, "the present level"
    assert refusal(at, (TRANSACTION, 2, UPGRADE)) is None


@pytest.mark.requirement("FEAT-07")
def test_the_first_metadata_version() -> None:
    text = "Invalid metadata.version 3. Unable to set a metadata.version less than 3.3-IV0"
    assert refusal(broker("kafka-3.9"), (METADATA, 3, UNSAFE)) == text
    assert refusal(broker("kafka-3.3"), (METADATA, 3, SAFE)) == text
    lower = refusal(broker("kafka-3.9"), (METADATA, 4, SAFE))
    assert lower == f"Invalid metadata.version 4. {_LOSES}"


@pytest.mark.requirement("FEAT-08", "FEAT-09")
@pytest.mark.parametrize(
    ("name", "level", "before", "kept"),
    [
        ("kafka-3.9", 16, "Invalid metadata.version 16. ", 17),
        ("kafka-4.1", 22, "Invalid metadata.version 22. ", 23),
        ("kafka-4.2", 22, "Unsupported metadata.version downgrade from 29 to 22. ", 23),
        ("kafka-4.4", 32, "Unsupported metadata.version downgrade from 33 to 32. ", 33),
    ],
)
def test_downgrades_that_lose_metadata(name: str, level: int, before: str, kept: int) -> None:
    at = broker(name)
    assert refusal(at, (METADATA, level, SAFE)) == before + _LOSES
    assert refusal(at, (METADATA, level, UNSAFE)) == before + _UNSAFE
    assert refusal(at, (METADATA, kept, SAFE)) is None
    assert at.cluster.features.level(METADATA) == kept


@pytest.mark.requirement("FEAT-10")
def test_the_kraft_version_only_rises() -> None:
    text = invalid("kraft.version", 0, "Can't downgrade the version of this feature.")
    assert refusal(broker("kafka-4.1"), ("kraft.version", 0, SAFE)) == text
    assert refusal(broker("kafka-4.4"), ("kraft.version", 1, SAFE)) is None
    assert refusal(broker("kafka-4.0"), ("kraft.version", 0, SAFE)) is None
    assert refusal(broker("kafka-4.4"), ("group.version", 0, SAFE)) is None


@pytest.mark.requirement("FEAT-12")
def test_one_error_refuses_everything_since_4_0() -> None:
    at = broker("kafka-4.0")
    answer = update(at, (TRANSACTION, 1, SAFE), ("one", 1, 1), ("two", 1, 1))
    first = invalid("one", 1, "Local controller 1 does not support this feature.")
    assert (answer.error_code, answer.error_message, answer.results) == (INVALID, _ALL + first, [])
    assert at.cluster.features.level(TRANSACTION) == 2
    assert update(at, ("two", 1, 1), ("one", 1, 1)).error_message == _ALL + first


@pytest.mark.requirement("FEAT-12")
def test_each_feature_has_a_result_before_4_0() -> None:
    at = broker("kafka-3.9")
    answer = update(at, ("two", 1, 1), (METADATA, 20, SAFE), ("kraft.version", 1, 1))
    assert (answer.error_code, answer.error_message) == (0, "")
    assert [(each.feature, each.error_code) for each in answer.results] == [
        ("kraft.version", 0), (METADATA, 0), ("two", INVALID),
    ]  # fmt: skip
    assert answer.results[0].error_message is None
    assert (at.cluster.features.level(METADATA), at.cluster.features.level("kraft.version")) == (
        20,
        1,
    )


@pytest.mark.requirement("FEAT-13")
@pytest.mark.parametrize("name", ["kafka-3.9", "kafka-4.4"])
def test_only_validating(name: str) -> None:
    at = broker(name)
    before = len(at.cluster.log)
    level = at.cluster.features.level(METADATA)
    answer = update(at, ("group.version", 0, SAFE), (METADATA, level, SAFE), validate_only=True)
    assert answer.error_code == 0
    assert len(at.cluster.log) == before
    assert at.cluster.features.features == profile(name).features


def finalized(at: DirectBroker, broker_id: int = 2) -> tuple[dict[str, int], int]:
    answer = at.ask(
        "ApiVersions", 3, client_software_name="a", client_software_version="1", broker_id=broker_id
    )
    rows = answer.finalized_features
    levels = {each.name: each.max_version_level for each in rows}
    assert levels == {each.name: each.min_version_level for each in rows}
    return levels, answer.finalized_features_epoch


@pytest.mark.requirement("FEAT-14")
def test_api_versions_shows_the_levels_of_the_cluster() -> None:
    at = broker()
    before, epoch = finalized(at)
    assert update(at, (TRANSACTION, 1, SAFE), ("group.version", 0, SAFE)).error_code == 0
    after, later = finalized(at)
    expected = {**before, TRANSACTION: 1}
    del expected["group.version"]
    assert after == expected
    assert later > epoch
    cluster = at.cluster
    assert replay(cluster.state.cluster_id, cluster.log).feature_levels == {
        TRANSACTION: 1,
        "group.version": 0,
    }


@pytest.mark.requirement("REL-09", "FEAT-15")
def test_consumer_groups_need_their_feature() -> None:
    at = broker()

    def heartbeat() -> int:
        code: int = at.ask("ConsumerGroupHeartbeat", 0, group_id="g").error_code
        return code

    assert heartbeat() != ErrorCode.UNSUPPORTED_VERSION
    update(at, ("group.version", 0, SAFE))
    assert heartbeat() == ErrorCode.UNSUPPORTED_VERSION
    update(at, ("group.version", 1, UPGRADE))
    assert heartbeat() != ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.requirement("FEAT-16")
@pytest.mark.parametrize("name", ["kafka-2.7", "kafka-3.9-zk"])
def test_a_zookeeper_cluster_has_no_features(name: str) -> None:
    at = broker(name)
    version = at.dispatcher.served[57].highest

    def results(*updates: tuple[str, int, int]) -> Sequence[tuple[int, str | None]]:
        answer = update(at, *updates, version=version)
        assert (answer.error_code, answer.error_message) == (0, None)
        return [(each.error_code, each.error_message) for each in answer.results]

    refused = ErrorCode.INVALID_REQUEST
    assert results(("", 1, UPGRADE)) == [(refused, "Feature name can not be empty.")]
    assert results(("foo", 1, UPGRADE)) == [
        (
            refused,
            "Could not apply finalized feature update because the provided feature is not "
            "supported.",
        )
    ]
    assert results(("foo", 0, UPGRADE)) == [
        (
            refused,
            "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType "
            "in the request.",
        )
    ]
    assert update(at, ("foo", 1, UPGRADE), version=version, broker_id=2).error_code == 41


@pytest.mark.requirement("FEAT-16")
def test_types_of_upgrades_of_a_zookeeper_cluster() -> None:
    at = broker("kafka-3.9-zk")
    texts = [
        each.error_message
        for each in update(at, ("a", 1, 7), ("b", 0, SAFE), ("c", -1, UNSAFE)).results
    ]
    gone = "Can not delete non-existing finalized feature."
    assert texts == ["Received unknown upgrade type.", gone, gone]


@pytest.mark.requirement("FEAT-16", "FEAT-17")
def test_the_flag_of_version_0() -> None:
    row = {"feature": "foo", "max_version_level": 0, "allow_downgrade": True}
    (result,) = broker("kafka-2.8-zk").ask("UpdateFeatures", 0, feature_updates=[row]).results
    assert result.error_message == "Can not delete non-existing finalized feature."
    row = {"feature": TRANSACTION, "max_version_level": 1, "allow_downgrade": True}
    answer = broker().ask("UpdateFeatures", 0, feature_updates=[row])
    assert answer.error_message == _ALL + invalid(TRANSACTION, 1, _NEEDS_TYPE)


@pytest.mark.requirement("FEAT-17")
@pytest.mark.parametrize("version", range(3))
def test_success_lists_the_features_before_version_2(version: int) -> None:
    answer = broker().ask(
        "UpdateFeatures",
        version,
        feature_updates=[{"feature": "group.version", "max_version_level": 1}] * 2,
    )
    assert (answer.error_code, answer.error_message) == (0, None)
    listed = [(each.feature, each.error_code, each.error_message) for each in answer.results]
    assert listed == ([("group.version", 0, "NONE")] * 2 if version < 2 else [])


def test_it_needs_the_right_to_alter_the_cluster() -> None:
    at = DirectBroker(Cluster(1), security=Security(authorizer=Authorizer(frozenset())))
    answer = update(at, ("group.version", 0, SAFE))
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert at.cluster.features.level("group.version") == 1
