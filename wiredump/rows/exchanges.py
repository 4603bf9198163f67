"""Turn an exchange or an anomaly into its rows: frames, requests, bodies, negotiations, anomalies.

Each function depends on the item alone, so the rows depend neither on the caller nor on the order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kproto.dialects import Dialect
from wiredump.bodies import Bodies, read, without_records
from wiredump.dialects import codec_of
from wiredump.model import Anomaly, Exchange, Frame, Item
from wiredump.redact import redacted

__all__ = ["Row", "anomaly_row", "rows_of"]

Row = tuple[str, tuple[Any, ...]]
"""A table's name and the values of a row's columns, in order."""

_API_VERSIONS: Final = 18
_UNSUPPORTED_VERSION: Final = 35
_RANGE: Final = ("apiKey", "minVersion", "maxVersion")

_WITH_FLOATS: Final = frozenset({"AlterClientQuotasRequest", "DescribeClientQuotasResponse"})


def rows_of(
    item: Item,
    codec: Dialect | None = None,
    *,
    bodies: bool = True,
    values: bool = False,
    secrets: bool = False,
    said: Bodies | None = None,
) -> Iterator[Row]:
    """Return the rows that depend only on the item. Without ``bodies`` the frames are not decoded,
    and what needs that is left out: ``bodies``, ``negotiations``, and the errors in ``requests``.
    ``values`` keeps records in bodies, ``secrets`` keeps passwords, tokens and keys. ``said`` has
    the decoded bodies, if there are any yet."""
    if isinstance(item, Anomaly):
        yield anomaly_row(item)
        return
    for frame in (item.request, item.response):
        if frame is not None:
            yield "frames", _frame(item, frame)
    read_bodies = (said or read(item, codec)) if bodies else None
    yield "requests", _request(item, read_bodies)
    if read_bodies is not None:
        yield from (("bodies", row) for row in _bodies(item, read_bodies, codec, values, secrets))
        yield from (("negotiations", row) for row in _negotiations(item, read_bodies))


def anomaly_row(item: Anomaly) -> Row:
    """Return the row of an anomaly."""
    number = item.connection.id if item.connection is not None else None
    return "anomalies", (
        number, item.direction, item.offset, item.kind, item.reason, item.timestamp_ns,
        item.place.capture, item.place.offset, item.size, item.missing,
    )  # fmt: skip


def _known(value: int) -> int | None:
    return None if value < 0 else value


def _version(item: Exchange, frame: Frame) -> int | None:
    if frame.direction == "response":
        return item.response_version
    return _known(item.api_version)


def _correlation_id(item: Exchange, frame: Frame) -> int | None:
    """Negative ids are unusual but legal; only a frame without an id has none."""
    return None if frame.sasl or len(frame.raw) < 8 else item.correlation_id


def _size(frame: Frame | None) -> int | None:
    """A request log does not have the size."""
    return None if frame is None or not frame.size else frame.size


def _frame(item: Exchange, frame: Frame) -> tuple[Any, ...]:
    return (
        item.connection.id, frame.direction, frame.offset, _size(frame), frame.missing,
        frame.first_ns, frame.last_ns, frame.place.capture, frame.place.offset,
        _known(item.api_key), _version(item, frame), _correlation_id(item, frame), frame.sasl,
    )  # fmt: skip


def _request(item: Exchange, bodies: Bodies | None) -> tuple[Any, ...]:
    asked, answered, connection = item.request, item.response, item.connection
    frame = asked or answered
    assert frame is not None
    software = item.software
    return (
        connection.id,
        asked.offset if asked else None,
        answered.offset if answered else None,
        asked.first_ns if asked else None,
        answered.delivered_ns if answered else None,
        answered.last_ns if answered else None,
        item.latency_ns,
        _known(item.api_key),
        bodies.api if bodies else None,
        _known(item.api_version),
        item.response_version,
        item.dialect,
        _correlation_id(item, frame),
        item.client_id,
        software.name if software else None,
        software.version if software else None,
        connection.client,
        connection.broker,
        _size(asked),
        _size(answered),
        item.expected,
        item.in_order,
        sorted({error.name for error in bodies.errors}) if bodies else [],
        _throttle_time_ms(bodies),
        _problem(bodies),
    )


def _throttle_time_ms(bodies: Bodies | None) -> int | None:
    response = bodies.response if bodies is not None else None
    return response.body.get("throttleTimeMs") if response and response.body else None


def _problem(bodies: Bodies | None) -> str | None:
    if bodies is None:
        return None
    sides = [("request", bodies.request), ("response", bodies.response)]
    told = [f"{name}: {side.problem}" for name, side in sides if side and side.problem]
    return "; ".join(told) or None


def _bodies(
    item: Exchange, bodies: Bodies, codec: Dialect | None, values: bool, secrets: bool
) -> Iterator[tuple[Any, ...]]:
    pairs = [(item.request, bodies.request), (item.response, bodies.response)]
    using = codec_of(item, codec)
    for frame, side in pairs:
        if frame is not None and side is not None:
            body = side.body if values else without_records(side, using)
            yield (
                item.connection.id, frame.direction, frame.offset, _known(item.api_key),
                side.message or None, _known(side.version), _correlation_id(item, frame),
                _json(side.header), _body(frame, side.message, body, secrets),
                side.problem or None,
            )  # fmt: skip


def _body(frame: Frame, message: str, body: Any, secrets: bool) -> str | None:
    shown = body if secrets else redacted(message, body)
    if frame.json is not None or message in _WITH_FLOATS:
        return None if shown is None else _dumps(shown)
    return _json(shown)


def _json(value: Any) -> str | None:
    """Return the result of ``_dumps``, several times as fast. msgspec writes floats differently,
    and a source without bytes may have invalid Unicode, or numbers that are too large."""
    if value is None:
        return None
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeError:
        return _dumps(value)


_dumps: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _negotiations(item: Exchange, bodies: Bodies) -> Iterator[tuple[Any, ...]]:
    if item.request is None or item.response is None:
        return
    software = item.software
    who = (
        item.connection.id,
        item.request.offset,
        item.request.first_ns,
        item.connection.client,
        item.connection.broker,
        item.client_id,
        software.name if software else None,
        software.version if software else None,
    )
    body = bodies.response.body if bodies.response and bodies.response.body else {}
    if item.api_key == _API_VERSIONS:
        refused = body.get("errorCode") == _UNSUPPORTED_VERSION
        event = "fell back" if refused else "offered"
        told = False
        for range_ in body.get("apiKeys") or ():
            key, lowest, highest = (range_.get(name) for name in _RANGE)
            if (
                highest is None
            ):  # the response was cut inside this range, so that nothing is known about it
                continue
            told = told or key == _API_VERSIONS
            asked = item.api_version if key == _API_VERSIONS else None
            yield (*who, event, key, asked, lowest, highest)
        if refused and not told:  # older brokers do not state the versions that they support
            yield (*who, "refused", _API_VERSIONS, item.api_version, None, None)
    elif any(error.code == _UNSUPPORTED_VERSION for error in bodies.errors):
        yield (*who, "unsupported", item.api_key, item.api_version, None, None)
