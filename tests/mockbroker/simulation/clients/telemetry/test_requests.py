"""GetTelemetrySubscriptions and PushTelemetry, answered by a broker without sockets."""

import uuid
import zlib
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.records.crc import crc32c_pure
from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError
from mockbroker.profiles import all_profiles, profile
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.simulation.clients.telemetry.client_instances import ClientInstances, PushedMetrics
from mockbroker.simulation.clients.telemetry.pushes import telemetry_json
from mockbroker.simulation.clients.telemetry.subscriptions import (
    ClientFacts,
    Subscription,
    shown_id,
    subscription_id,
)
from mockbroker.simulation.releases.release import NEWEST
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.clients.telemetry.test_configs import alter
from tests.support.requests import request_of
from tests.telemetry.protobuf import gauge, metrics_data

GOOD = metrics_data(gauge("org.apache.kafka.x", 2.0))
ONE = uuid.UUID("00000001-0000-0002-0000-000300000004")
MINUTE = 60_000
REFUSED, EARLY = ErrorCode.INVALID_REQUEST, ErrorCode.THROTTLING_QUOTA_EXCEEDED
UNKNOWN, CODEC = ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def broker(
    release: tuple[int, int] = (4, 4), max_bytes: int = 1_048_576, interval_ms: int = MINUTE
) -> DirectBroker:
    name = f"kafka-{release[0]}.{release[1]}"
    configs = {"telemetry.max.bytes": str(max_bytes)}
    cluster = simulated_cluster(2, release=release, broker_configs=configs, now_ms=1_000)
    at = DirectBroker(cluster, profile_name=name, apis=profile(name).optional_versions)
    assert alter(at, "s", {"metrics": "a,b", "interval.ms": str(interval_ms)})[0] == 0
    return at


def get(at: DirectBroker, instance_id: uuid.UUID = ONE) -> Any:
    return at.ask("GetTelemetrySubscriptions", 0, client_instance_id=instance_id)


def push(
    at: DirectBroker,
    metrics: bytes = GOOD,
    *,
    number: int | None = None,
    codec: int = 0,
    terminating: bool = False,
    instance_id: uuid.UUID = ONE,
) -> int:
    expected = subscription_id(("a", "b"), MINUTE, instance_id)
    answer = at.ask(
        "PushTelemetry",
        0,
        client_instance_id=instance_id,
        subscription_id=expected if number is None else number,
        terminating=terminating,
        compression_type=codec,
        metrics=metrics,
    )
    code: int = answer.error_code
    return code


@pytest.mark.requirement("TELEM-09")
def test_the_answer_to_a_client() -> None:
    at = broker(max_bytes=5_000)
    first, second = get(at, uuid.UUID(int=0)), get(at, uuid.UUID(int=0))
    assert uuid.UUID(int=0) != first.client_instance_id != second.client_instance_id
    answer = get(at)
    assert (answer.client_instance_id, answer.accepted_compression_types) == (ONE, [4, 3, 1, 2])
    assert (answer.push_interval_ms, answer.telemetry_max_bytes) == (MINUTE, 5_000)
    assert answer.delta_temporality is True
    assert answer.requested_metrics == ["a", "b"]


@pytest.mark.requirement("TELEM-10")
def test_the_subscription_id() -> None:
    folded = 0x00000001 ^ 0x00000002 ^ 0x00000003 ^ 0x00000004
    expected = crc32c_pure(b"[a, b]60000") ^ folded
    found = get(broker()).subscription_id
    assert found == subscription_id(("a", "b"), MINUTE, ONE)
    assert found % (1 << 32) == expected
    others = [subscription_id(("a",), MINUTE, ONE), subscription_id(("a", "b"), 100, ONE)]
    assert found not in others


@pytest.mark.requirement("TELEM-08")
def test_which_subscriptions_a_client_has() -> None:
    at = broker()
    patterns = {"client_id=te.*": True, "client_id=te": False, "client_software_name=x": False}
    patterns[r"client_source_address=127\.0\.0\.1,client_source_port=9"] = True
    patterns[r"client_source_address=127\.0\.0\.1,client_source_port=10"] = False
    patterns[f"client_instance_id={shown_id(ONE)}"] = True
    for pattern, matches in patterns.items():
        assert alter(at, "t", {"metrics": "b,c", "interval.ms": "100", "match": pattern})[0] == 0
        found = get(at)
        expected = (["a", "b", "c"], 100) if matches else (["a", "b"], MINUTE)
        assert (found.requested_metrics, found.push_interval_ms) == expected
    assert alter(at, "t", {"metrics": "*", "match": "", "interval.ms": "3600000"})[0] == 0
    found = get(at)
    assert (found.requested_metrics, found.push_interval_ms) == (["*"], MINUTE)


@pytest.mark.requirement("TELEM-08")
def test_the_longest_interval_and_software() -> None:
    facts = ClientFacts(ONE, None, "apache-kafka-java", "4.4.0", "::1", "7")
    match = {"match": "client_software_name=apache.*, client_software_version=4[.].*"}
    assert Subscription.of("s", match).matches(facts)
    assert not Subscription.of("s", {"match": "client_id=.*"}).matches(facts)
    assert get(broker(interval_ms=3_600_000)).push_interval_ms == 300_000


@pytest.mark.requirement("TELEM-11")
def test_getting_too_early() -> None:
    at = broker()
    assert get(at).error_code == 0
    at.cluster.turns.advance(MINUTE - 1)
    refused = get(at)
    assert (refused.error_code, refused.requested_metrics) == (EARLY, [])
    assert push(at) == 0  # the first after a GetTelemetrySubscriptions
    at.cluster.turns.advance(1)
    assert get(at).error_code == EARLY
    assert alter(at, "s", {"metrics": "a"})[0] == 0
    assert get(at).error_code == 0
    at.cluster.turns.advance(MINUTE)
    assert get(at).error_code == 0


@pytest.mark.requirement("TELEM-11")
@pytest.mark.parametrize(("number", "codec", "code"), [(7, 0, UNKNOWN), (None, 9, CODEC)])
def test_getting_at_once_after_some_errors(number: int | None, codec: int, code: int) -> None:
    for release, expected in (((4, 0), EARLY), ((4, 1), 0)):
        at = broker(release)
        assert get(at).error_code == 0
        assert push(at, number=number, codec=codec) == code
        assert get(at).error_code == expected


@pytest.mark.requirement("TELEM-12")
def test_reserved_instance_ids() -> None:
    at = broker()
    for number in (0, 1):
        assert push(at, instance_id=uuid.UUID(int=number)) == REFUSED
    assert not at.cluster.telemetry.view().clients


@pytest.mark.requirement("TELEM-13")
def test_nothing_follows_the_last_push() -> None:
    at = broker()
    get(at)
    assert push(at, terminating=True) == 0
    at.cluster.turns.advance(MINUTE)
    assert at.cluster.telemetry.view().clients[0].terminating
    assert push(at, number=7, codec=9) == REFUSED
    assert push(at) == 0  # the refused one was not said to be the last


@pytest.mark.requirement("TELEM-14")
def test_pushing_too_early() -> None:
    at = broker()
    assert push(at) == 0
    assert push(at, number=7) == EARLY
    at.cluster.turns.advance(MINUTE - 1)
    assert push(at) == EARLY
    at.cluster.turns.advance(1)
    assert push(at) == 0
    assert push(at, terminating=True) == 0


@pytest.mark.requirement("TELEM-15")
def test_another_subscription_id() -> None:
    assert push(broker(), number=7, codec=9) == UNKNOWN


@pytest.mark.requirement("TELEM-16")
def test_compression_types() -> None:
    at = broker(max_bytes=1)
    assert push(at, codec=5) == CODEC
    assert push(broker(), codec=-1) == CODEC


@pytest.mark.requirement("TELEM-17")
def test_too_large_a_push() -> None:
    assert push(broker(max_bytes=len(GOOD)), GOOD) == 0
    assert push(broker(max_bytes=len(GOOD) - 1), GOOD) == ErrorCode.TELEMETRY_TOO_LARGE


@pytest.mark.requirement("TELEM-18")
def test_decompressing_a_push() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(GOOD + bytes(4_000)) + packer.flush()
    at = broker()
    assert push(at, b"no gzip", codec=1) == ErrorCode.INVALID_RECORD
    assert at.cluster.telemetry.view().clients[0].last_error == ErrorCode.INVALID_RECORD
    assert not at.cluster.telemetry.view().pushes
    assert push(broker((4, 2), 1_000), packed, codec=1) == 0
    assert push(broker((4, 3), 1_000), packed, codec=1) == ErrorCode.INVALID_RECORD
    at = broker((4, 3))
    assert push(at, packed, codec=1) == 0
    (kept,) = at.cluster.telemetry.view().pushes
    assert (kept.compression, kept.size) == ("gzip", len(packed))
    assert kept.data == GOOD + bytes(4_000)


@pytest.mark.requirement("TELEM-19")
@pytest.mark.parametrize(("release", "known"), [((3, 9), True), ((4, 0), False)])
def test_a_closed_connection(release: tuple[int, int], known: bool) -> None:
    at = broker(release)
    get(at)
    instances = at.cluster.telemetry.broker(1)
    assert ONE in instances
    instances.connection_closed(2)
    assert ONE in instances
    instances.connection_closed(1)
    assert (ONE in instances) is known
    assert get(at).error_code == (EARLY if known else 0)


@pytest.mark.requirement("TELEM-19")
@pytest.mark.parametrize(("interval_ms", "stay_ms"), [(100, 60_000), (60_000, 180_000)])
def test_an_instance_that_stays_away(interval_ms: int, stay_ms: int) -> None:
    at = broker(interval_ms=interval_ms)
    get(at)
    at.cluster.turns.advance(stay_ms - 1)
    assert len(at.cluster.telemetry.view().clients) == 1
    at.cluster.turns.advance(1)
    assert not at.cluster.telemetry.view().clients


def test_a_broker_forgets_the_instance_that_was_away_for_longest() -> None:
    instances = ClientInstances(NEWEST, lambda: (0, ()), most=2)
    ids = [uuid.UUID(int=number) for number in (2, 3, 4)]
    pushed = PushedMetrics(0, False, 0, 0, 10)
    for place in (0, 1, 0, 2):
        facts = ClientFacts(ids[place], "c", None, None, "::1", "7")
        instances.push(facts, place, 1_000, pushed)
    assert [each.facts.instance_id for each in instances] == [ids[0], ids[2]]


def test_instances_belong_to_a_broker() -> None:
    at = broker()
    request = request_of("GetTelemetrySubscriptions", client_instance_id=ONE)
    assert get(at).error_code == 0
    assert at.ask(request, 0, broker_id=2).error_code == 0
    assert [each.broker_id for each in at.cluster.telemetry.view().clients] == [1, 2]


@pytest.mark.requirement("TELEM-20")
def test_which_brokers_advertise_the_requests() -> None:
    for each in all_profiles():
        has = each.mode == "kraft" and each.line >= (3, 7)
        assert not each.versions.keys() & {71, 72}
        if has:
            mock = MockCluster(1, profile=each, client_telemetry=True)
            assert mock.served.keys() >= {71, 72}
        else:
            with pytest.raises(ClusterError, match="takes no metrics of clients"):
                MockCluster(1, profile=each, client_telemetry=True)
        assert not MockCluster(1, profile=each).served.keys() & {71, 72}


def test_single_apis_can_be_served() -> None:
    apis = {71: Versions(0, 0)}
    assert MockCluster(1, profile="kafka-3.7", apis=apis).served[71] == Versions(0, 0)
    for name in ("kafka-3.6", "kafka-3.9-zk"):
        with pytest.raises(ClusterError, match="GET_TELEMETRY_SUBSCRIPTIONS"):
            MockCluster(1, profile=name, apis=apis)


@pytest.mark.requirement("TELEM-21")
def test_what_a_tester_reads() -> None:
    at = broker()
    assert push(at) == 0
    at.cluster.turns.advance(MINUTE)
    assert push(at, b"\x0a\x05ab") == 0
    at.cluster.turns.advance(MINUTE)
    assert push(at, metrics_data(gauge("n", float("nan")))) == 0
    at.cluster.turns.advance(MINUTE)
    assert push(at, b"") == 0  # nothing to keep
    seen = telemetry_json(at.cluster.telemetry.view())
    assert seen["subscriptions"] == [
        {"name": "s", "metrics": ("a", "b"), "interval_ms": MINUTE, "match": ()}
    ]
    assert [each["client_id"] for each in seen["clients"]] == ["test"]
    good, bad, nan = seen["pushes"]
    assert good["metrics"][0]["name"] == "org.apache.kafka.x"
    assert good["problem"] is None
    assert bad["problem"] == "resource_metrics: field 1 has 5 bytes, 2 are left"
    assert nan["metrics"][0]["points"][0]["value"] == "nan"


def test_the_oldest_pushes_go() -> None:
    at = broker(max_bytes=20 << 20)
    for _ in range(3):
        assert push(at, bytes(9 << 20)) == 0
        at.cluster.turns.advance(MINUTE)
    assert [each.number for each in at.cluster.telemetry.view().pushes] == [3]


@pytest.mark.slow
def test_a_bomb_is_stopped_at_the_limit() -> None:
    """Where the release has no limit of its own, too."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(bytes((64 << 20) + 1)) + packer.flush()
    assert push(broker((4, 2)), packed, codec=1) == ErrorCode.INVALID_RECORD
