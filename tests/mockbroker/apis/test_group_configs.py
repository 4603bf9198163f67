"""Configs of groups (resource type 32): the limits of the broker, and internal ones."""

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.cluster_state import GROUP
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.groups.streams import Streams

Release = tuple[int, int]
BEFORE, NEWEST = (4, 3), (4, 4)
BOTH = pytest.mark.parametrize("release", [BEFORE, NEWEST])
KINDS = pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
IN_LIMITS = {
    "heartbeat.interval.ms": "6000",
    "session.timeout.ms": "46000",
    "assignment.interval.ms": "15000",
}
STREAMS_IN_LIMITS = {
    "streams.num.standby.replicas": "2",
    "streams.initial.rebalance.delay.ms": "3600000",
}
NEWEST_IN_LIMITS = {
    "streams.assignor.name": "sticky",
    "streams.rack.aware.assignment.tags": "zone, rack",
    "streams.task.offset.interval.ms": "15000",
    "streams.num.warmup.replicas": "20",
    "streams.acceptable.recovery.lag": "7",
    "streams.assignor.offload.enable": "false",
}


def cluster(release: Release = NEWEST, **broker_configs: str) -> Cluster:
    given = {name.replace("_", "."): value for name, value in broker_configs.items()}
    return simulated_cluster(1, release=release, broker_configs=given)


def alter(at: Cluster, **values: str) -> tuple[ErrorCode, str | None]:
    """Set configs, whose dots are underscores here."""
    return set_configs(at, {name.replace("_", "."): value for name, value in values.items()})


def set_configs(at: Cluster, values: dict[str, str]) -> tuple[ErrorCode, str | None]:
    operations = [(name, 0, value) for name, value in values.items()]
    (result,) = at.config_changes.alter_incrementally([(GROUP, "g", operations)])
    return ErrorCode(result.error_code), result.error_message


def refused(text: str) -> tuple[ErrorCode, str]:
    return ErrorCode.INVALID_CONFIG, text


@BOTH
@KINDS
@pytest.mark.requirement("DP-CGH-25", "DP-SHARE-01", "DP-STREAMS-23")
def test_what_lies_within_the_limits(release: Release, kind: str) -> None:
    values = {f"{kind}.{name}": value for name, value in IN_LIMITS.items()}
    values |= STREAMS_IN_LIMITS
    if release == NEWEST:
        values |= NEWEST_IN_LIMITS
    assert set_configs(cluster(release), values) == (ErrorCode.NONE, None)


@BOTH
@KINDS
@pytest.mark.parametrize(
    ("what", "value", "side", "limit"),
    [
        ("heartbeat.interval.ms", "4999", "greater", "min"),
        ("heartbeat.interval.ms", "15001", "less", "max"),
        ("session.timeout.ms", "44999", "greater", "min"),
        ("session.timeout.ms", "60001", "less", "max"),
        ("assignment.interval.ms", "15001", "less", "max"),
    ],
)
@pytest.mark.requirement("DP-CGH-25", "DP-SHARE-01", "DP-STREAMS-23")
def test_times_out_of_limits(release, kind, what, value, side, limit):
    bounds = {
        "heartbeat.interval.ms": "5000 to 15000",
        "session.timeout.ms": "45000 to 60000",
        "assignment.interval.ms": "0 to 15000",
    }[what]
    text = f"{kind}.{what} must be in the range {bounds} inclusive."
    if release == BEFORE:
        text = f"{kind}.{what} must be {side} than or equal to group.{kind}.{limit}.{what}"
    assert set_configs(cluster(release), {f"{kind}.{what}": value}) == refused(text)


@BOTH
@pytest.mark.parametrize(
    ("what", "value", "side", "limit"),
    [
        ("delivery.count.limit", "3", "greater", "min"),
        ("delivery.count.limit", "11", "less", "max"),
        ("partition.max.record.locks", "199", "greater", "min"),
        ("partition.max.record.locks", "4001", "less", "max"),
        ("record.lock.duration.ms", "14999", "greater", "min"),
        ("record.lock.duration.ms", "60001", "less", "max"),
    ],
)
@pytest.mark.requirement("DP-SHARE-01")
def test_limits_of_share_groups(release, what, value, side, limit):
    at = cluster(
        release,
        group_share_min_delivery_count_limit="4",
        group_share_min_partition_max_record_locks="200",
    )
    bounds = {
        "delivery.count.limit": "4 to 10",
        "partition.max.record.locks": "200 to 4000",
        "record.lock.duration.ms": "15000 to 60000",
    }[what]
    text = f"share.{what} must be in the range {bounds} inclusive."
    if release == BEFORE:
        text = f"share.{what} must be {side} than or equal to group.share.{limit}.{what}"
    assert set_configs(at, {f"share.{what}": value}) == refused(text)


@BOTH
@pytest.mark.requirement("DP-STREAMS-23")
def test_too_many_standby_replicas(release: Release) -> None:
    at = cluster(release, group_streams_max_standby_replicas="1")
    limit = "1" if release == NEWEST else "group.streams.max.standby.replicas"
    text = f"streams.num.standby.replicas must be less than or equal to {limit}"
    assert alter(at, streams_num_standby_replicas="2") == refused(text)


@pytest.mark.parametrize(
    ("config", "value", "text"),
    [
        (
            "streams.task.offset.interval.ms", "14999",
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (
            "streams.num.warmup.replicas", "21",
            "streams.num.warmup.replicas must be less than or equal to 20",
        ),
        (
            "streams.acceptable.recovery.lag", "-1",
            "Invalid value -1 for configuration streams.acceptable.recovery.lag: "
            "Value must be at least 0",
        ),
        (
            "streams.assignor.name", "fair",
            "streams.assignor.name 'fair' is not a registered task assignor. "
            "Registered assignors are: [sticky].",
        ),
        (
            "streams.rack.aware.assignment.tags", "a, b,a",
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            "streams.rack.aware.assignment.tags", "a,",
            "Configuration 'streams.rack.aware.assignment.tags' values must not be empty.",
        ),
        (
            "streams.assignor.offload.enable", "x",
            "Invalid value x for configuration streams.assignor.offload.enable: "
            "Expected value to be either true or false",
        ),
    ],
)  # fmt: skip
@pytest.mark.requirement("DP-STREAMS-23")
def test_configs_of_streams_groups_since_4_4(config: str, value: str, text: str) -> None:
    assert set_configs(cluster(), {config: value}) == refused(text)
    known = set_configs(cluster(BEFORE), {config: value})
    assert known == refused(f"Unknown group config name: {config}")


@KINDS
@pytest.mark.requirement("DP-CGH-25", "DP-SHARE-01", "DP-STREAMS-23")
def test_a_session_outlives_a_heartbeat(kind: str) -> None:
    minimum = f"group_{kind}_min_session_timeout_ms"
    at = cluster(**{minimum: "1", f"group_{kind}_session_timeout_ms": "5500"})
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    text = f"{session} must be greater than {heartbeat}"
    for values in ({session: "5000"}, {heartbeat: "5500"}, {session: "7000", heartbeat: "7000"}):
        assert set_configs(at, values) == refused(text)
    assert set_configs(at, {session: "5001"}) == (ErrorCode.NONE, None)
    # A broker's own values are not checked with those of a group that sets neither.
    at = cluster(**{f"group_{kind}_heartbeat_interval_ms": "60000"})
    assert alter(at, share_auto_offset_reset="earliest") == (ErrorCode.NONE, None)


@pytest.mark.requirement("DP-STREAMS-23")
def test_internal_configs_are_shown_once_they_are_set() -> None:
    at = cluster()

    def shown() -> set[str]:
        return {each.name for each in at.configs.describe(GROUP, "g").configs}

    names = {"streams.num.warmup.replicas", "streams.acceptable.recovery.lag"}
    assert not names & shown()
    assert alter(at, streams_acceptable_recovery_lag="7") == (ErrorCode.NONE, None)
    assert names & shown() == {"streams.acceptable.recovery.lag"}


@pytest.mark.requirement("DP-STREAMS-23")
def test_members_follow_the_configs_of_task_offsets() -> None:
    at = Streams()
    result = at.join()
    assert (result.task_offset_interval_ms, result.acceptable_recovery_lag) == (60_000, 10_000)
    values = {"streams.task.offset.interval.ms": "16000", "streams.acceptable.recovery.lag": "0"}
    operations = [(name, 0, value) for name, value in values.items()]
    at.cluster.config_changes.alter_incrementally([(GROUP, "g", operations)])
    result = at.beat("a", result.member_epoch)
    assert (result.task_offset_interval_ms, result.acceptable_recovery_lag) == (16_000, 0)
