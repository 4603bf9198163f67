"""A journal's lines show the metrics that a client pushes in words."""

import json
from typing import Any

import pytest

from kproto.dialects import dialect
from kproto.journal import Entry, body_value, describe
from kproto.messages import PushTelemetryRequest
from kproto.records import Compression
from kproto.records.compression import compress
from tests.telemetry.protobuf import attribute, field, fixed, gauge, metrics_data, number


def pushed(metrics: bytes, compression_type: int = 0) -> list[dict[str, Any]]:
    """The metrics of a push in a journal's line, which are those of its JSON too."""
    request = PushTelemetryRequest(
        subscription_id=7, compression_type=compression_type, metrics=metrics
    )
    frame = dialect("kafka").encode_request(request, api_version=0, correlation_id=1, client_id="c")
    entry = Entry(
        sequence=1, timestamp_ns=0, broker_id=1, connection_id=1, direction="request",
        api_key=72, api_version=0, correlation_id=1, raw=frame,
    )  # fmt: skip
    line = describe(entry, width=None)
    body = json.loads(line[line.index("{") :])
    assert body == body_value(entry.decode().body, 0)
    assert body["subscriptionId"] == 7
    found: list[dict[str, Any]] = body["metrics"]
    return found


@pytest.mark.requirement("TELEM-22")
@pytest.mark.parametrize("codec", Compression)
def test_metrics_are_decompressed_and_read(codec: Compression) -> None:
    points = field(1, fixed(3, 4) + fixed(6, -7) + attribute(7, "node", number(3, 9)))
    total = field(1, "sent") + field(3, "bytes") + field(7, points + number(2, 1))
    data = metrics_data(gauge("lag", 1.5), total)
    assert pushed(compress(codec, data), codec) == [
        {"name": "lag", "type": "gauge", "resource": {"client": "c"}, "points": [{"value": 1.5}]},
        {
            "name": "sent", "type": "sum", "unit": "bytes", "temporality": "delta",
            "resource": {"client": "c"}, "points": [{"attributes": {"node": 9}, "value": -7}],
        },
    ]  # fmt: skip


@pytest.mark.requirement("TELEM-22")
def test_what_is_wrong_with_metrics_is_shown() -> None:
    assert pushed(b"\x00") == [{"problem": "resource_metrics: field number 0 at byte 1"}]
    assert "9" in pushed(b"", 9)[0]["problem"]
    assert pushed(b"no gzip", Compression.GZIP)[0].keys() == {"problem"}
    bomb = compress(Compression.GZIP, bytes(5 << 20))
    assert pushed(bomb, Compression.GZIP)[0].keys() == {"problem"}


@pytest.mark.requirement("TELEM-22")
def test_many_metrics_and_points_are_counted() -> None:
    found = pushed(metrics_data(*(gauge(f"m{n}", n) for n in range(205))))
    assert (len(found), found[-1]) == (201, {"more": 5})
    points = b"".join(field(1, fixed(4, float(n))) for n in range(23))
    (metric,) = pushed(metrics_data(field(1, "m") + field(5, points)))
    assert (len(metric["points"]), metric["more"]) == (20, 3)


@pytest.mark.requirement("TELEM-22")
def test_numbers_that_json_lacks_are_texts() -> None:
    (metric,) = pushed(metrics_data(gauge("m", float("nan"))))
    assert metric["points"] == [{"value": "nan"}]
