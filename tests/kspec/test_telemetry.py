"""What cases know of the metrics that clients push, and the metrics of the reference client."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.messages import (
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from kproto.records import Compression
from kproto.records.compression import compress
from kproto.telemetry.otlp import Metric, read_metrics
from kspec.case_parser import parse_case
from kspec.errors import CaseError
from kspec.model import TelemetrySpec
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.telemetry import Telemetry
from kspec.runner.stage import Stage
from kspec.telemetry_bodies import with_metrics
from mockbroker.errors import ClusterError
from tests.telemetry.protobuf import gauge, metrics_data

CASE = """
title: t
source: KIP-714
about: a
cluster: {brokers: 1, topics: ["foo=1"], telemetry: {metrics: [org.], interval_ms: 500}}
steps: [{telemetry: {}}]
may: [{says: s, requests: {api: PushTelemetry}}]
"""


def pushed(data: bytes, codec: Compression = Compression.NONE) -> Any:
    body = {"metrics": base64.b64encode(data).decode(), "compressionType": codec.value}
    return with_metrics(72, body)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_pushed_metrics_can_be_read(codec: Compression) -> None:
    data = compress(codec, metrics_data(gauge("org.x", 1.5)))
    found = pushed(data, codec)
    assert [(each["name"], each["type"]) for each in found["metrics"]] == [("org.x", "gauge")]
    assert found["metricsSize"] == len(data)


def test_metrics_that_cannot_be_read() -> None:
    (found,) = pushed(b"\x80")["metrics"]
    assert set(found) == {"problem"}
    (found,) = pushed(b"no gzip", Compression.GZIP)["metrics"]
    assert set(found) == {"problem"}
    assert pushed(b"") == {"metrics": [], "metricsSize": 0, "compressionType": 0}


@pytest.mark.parametrize(("key", "body"), [(72, {"errorCode": 0}), (71, {"metrics": ""})])
def test_other_bodies_stay_as_they_are(key: int, body: dict[str, Any]) -> None:
    assert with_metrics(key, body) is body


async def test_the_subscription_of_a_case() -> None:
    stage = Stage(parse_case(CASE, "g/001-x.yaml").case)
    await stage.start()
    try:
        (first,) = stage.mock.telemetry().subscriptions
        assert (first.metrics, first.interval_ms, first.match) == (("org.",), 500, ())
        changed = TelemetrySpec(metrics=["a", "b"], interval_ms=200, match=["client_id=c"])
        stage.set_telemetry(changed)
        (second,) = stage.mock.telemetry().subscriptions
        assert (set(second.metrics), second.interval_ms) == ({"a", "b"}, 200)
        assert second.match == ("client_id=c",)
        stage.set_telemetry(TelemetrySpec())
        assert not stage.mock.telemetry().subscriptions
        with pytest.raises(ClusterError, match="interval"):
            stage.set_telemetry(TelemetrySpec(metrics=["a"], interval_ms=1))
    finally:
        await stage.stop()


def test_a_case_without_telemetry_cannot_change_it() -> None:
    text = CASE.replace(", telemetry: {metrics: [org.], interval_ms: 500}", "")
    with pytest.raises(CaseError) as caught:
        parse_case(text, "g/001-x.yaml")
    assert caught.value.place == "steps[0].telemetry"


class Broker:
    """Stands for a connection; answers pushes with ``code``."""

    def __init__(self, code: int = 0) -> None:
        self.code, self.sent, self.closed = code, 3, None
        self.versions = {71: None}
        self.pushes: list[PushTelemetryRequest] = []

    def choose_version(self, _api_key: int) -> int:
        return 0

    async def ask(self, body: Any, _version: int) -> Any:
        self.pushes.append(body)
        return PushTelemetryResponse(error_code=self.code)


def observed(broker: Broker, **subscription: Any) -> Telemetry:
    client = ClientRules()
    client.links = {("h", 1): broker}  # type: ignore[dict-item]
    made = Telemetry(client, "producer")
    made.subscription = GetTelemetrySubscriptionsResponse(
        push_interval_ms=100, requested_metrics=["*"], **subscription
    )
    return made


def metrics_of(request: PushTelemetryRequest) -> dict[str, Metric]:
    assert request.compression_type == 0
    return {each.name: each for each in read_metrics(bytes(request.metrics))}


@pytest.mark.parametrize(
    ("is_delta", "expected"), [(True, ("delta", [3, 2])), (False, ("cumulative", [3, 5]))]
)
async def test_counters_have_the_wanted_temporality(
    is_delta: bool, expected: tuple[str, list[int]]
) -> None:
    broker = Broker()
    telemetry = observed(broker, delta_temporality=is_delta)
    await telemetry.push(broker, terminating=False)  # type: ignore[arg-type]
    broker.sent += 2
    await telemetry.push(broker, terminating=False)  # type: ignore[arg-type]
    found = [metrics_of(each)["org.apache.kafka.producer.request.total"] for each in broker.pushes]
    assert {each.temporality for each in found} == {expected[0]}
    assert [each.points[0].value for each in found] == expected[1]


@pytest.mark.parametrize(
    ("code", "goes_on"),
    [
        (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, True),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, True),
        (ErrorCode.INVALID_RECORD, False),
    ],
)
async def test_what_ends_the_pushes_of_a_subscription(code: ErrorCode, goes_on: bool) -> None:
    broker = Broker(code)
    telemetry = observed(broker)
    assert await telemetry.push_while_subscribed() is goes_on
    assert len(broker.pushes) == 1
