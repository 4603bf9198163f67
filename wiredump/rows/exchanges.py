"""Turn an exchange or an anomaly into its rows: frames, requests, bodies, negotiations, anomalies.

Each function depends on the item alone, so the rows depend neither on the caller nor on the order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from kproto import error_codes
from kproto.dialects import Dialect
from kproto.journal import ClientSoftware
from wiredump.body_texts import API_VERSIONS, BodyTexts, texts_of
from wiredump.model import Anomaly, Connection, Exchange, Frame, Item

__all__ = ["API_VERSIONS", "Row", "anomaly_row", "error_names", "negotiation_rows", "rows_of"]

Row = tuple[str, tuple[Any, ...]]
"""A table's name and the values of a row's columns, in order."""

_UNSUPPORTED_VERSION: Final = 35


def rows_of(
    item: Item,
    codec: Dialect | None = None,
    *,
    bodies: bool = True,
    values: bool = False,
    secrets: bool = False,
    texts: BodyTexts | None = None,
) -> list[Row]:
    """Return the rows that depend only on the item. Without ``bodies`` the frames are not decoded,
    and what needs that is left out: ``bodies``, ``negotiations``, and the errors in ``requests``.
    ``values`` keeps records in bodies, ``secrets`` keeps passwords, tokens and keys. ``texts`` has
    the bodies as text, if they were made before."""
    if isinstance(item, Anomaly):
        return [anomaly_row(item)]
    rows: list[Row] = [
        ("frames", _frame(item, frame))
        for frame in (item.request, item.response)
        if frame is not None
    ]
    if bodies and texts is None:
        texts = texts_of(item, codec, values=values, secrets=secrets)
    rows.append(("requests", _request(item, texts)))
    if texts is not None:
        _add_bodies(rows, item, texts)
        if item.api_key == API_VERSIONS or _UNSUPPORTED_VERSION in texts.codes:
            rows += _negotiations(item, texts)
    return rows


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


def _request(item: Exchange, texts: BodyTexts | None) -> tuple[Any, ...]:
    request, response, connection = item.request, item.response, item.connection
    frame = request or response
    assert frame is not None
    software = item.software
    return (
        connection.id,
        request.offset if request else None,
        response.offset if response else None,
        request.first_ns if request else None,
        response.delivered_ns if response else None,
        response.last_ns if response else None,
        item.latency_ns,
        _known(item.api_key),
        texts.api if texts else None,
        _known(item.api_version),
        item.response_version,
        item.dialect,
        _correlation_id(item, frame),
        item.client_id,
        software.name if software else None,
        software.version if software else None,
        connection.client,
        connection.broker,
        _size(request),
        _size(response),
        item.expected,
        item.in_order,
        error_names(texts.codes) if texts else [],
        texts.throttle_time_ms if texts else None,
        _problem(texts),
    )


def error_names(codes: Iterable[int]) -> list[str]:
    """Return the names of error codes, each once, in order."""
    return sorted(set(map(error_codes.name, codes)))


def _problem(texts: BodyTexts | None) -> str | None:
    if texts is None:
        return None
    sides = [("request", texts.request), ("response", texts.response)]
    problems = [f"{name}: {side.problem}" for name, side in sides if side and side.problem]
    return "; ".join(problems) or None


def _add_bodies(rows: list[Row], item: Exchange, texts: BodyTexts) -> None:
    connection, key = item.connection.id, _known(item.api_key)
    for frame, side in ((item.request, texts.request), (item.response, texts.response)):
        if frame is not None and side is not None:
            row = (
                connection, frame.direction, frame.offset, key, side.message or None,
                _known(side.version), _correlation_id(item, frame), side.header, side.body,
                side.problem or None,
            )  # fmt: skip
            rows.append(("bodies", row))


def _negotiations(item: Exchange, texts: BodyTexts) -> Iterable[Row]:
    if item.request is None or item.response is None:
        return ()
    return negotiation_rows(
        item.connection, item.connection.id, item.request.offset, item.request.first_ns,
        item.client_id, item.software, item.api_key, item.api_version,
        texts.response.body if texts.response is not None else None,
    )  # fmt: skip


def negotiation_rows(
    connection: Connection, id_: int, offset: int, requested_ns: int, client_id: str | None,
    software: ClientSoftware | None, key: int, version: int, response: str | None,
) -> list[Row]:  # fmt: skip
    """Return the rows of an exchange in which versions were offered or refused; ``response`` is
    the JSON text of its body."""
    who = (
        id_, offset, requested_ns, connection.client, connection.broker, client_id,
        software.name if software else None, software.version if software else None,
    )  # fmt: skip
    ranges: Iterable[_Range] = (("unsupported", key, version, None, None),)
    if key == API_VERSIONS:
        ranges = _ranges(response, version)
    return [("negotiations", (*who, *each)) for each in ranges]


_Range = tuple[str, int | None, int | None, int | None, int | None]
"""The event, the api key, the version that was asked for, the lowest and the highest version."""


@lru_cache(maxsize=64)
def _ranges(response: str | None, version: int) -> tuple[_Range, ...]:
    """Return what an ApiVersions response says. A broker says the same on each connection."""
    body = {} if response is None else json.loads(response)
    refused = body.get("errorCode") == _UNSUPPORTED_VERSION
    event = "fell back" if refused else "offered"
    found: list[_Range] = []
    for range_ in body.get("apiKeys") or ():
        key, lowest, highest = map(range_.get, ("apiKey", "minVersion", "maxVersion"))
        if highest is not None:  # else the response was cut inside this range
            requested = version if key == API_VERSIONS else None
            found.append((event, key, requested, lowest, highest))
    if refused and all(key != API_VERSIONS for _, key, *_ in found):
        # Older brokers do not state the versions that they support.
        found.append(("refused", API_VERSIONS, version, None, None))
    return tuple(found)
