"""Items as JSON objects, one per line: everything that the lines show, and more."""

from __future__ import annotations

import json
from typing import Any

from kproto.errors import DecodeError
from wiredump.bodies import Side
from wiredump.model import Anomaly, Connection, Frame
from wiredump.show.exchange_view import ExchangeView

__all__ = ["anomaly_record", "exchange_record", "json_line"]


def json_line(record: dict[str, Any]) -> str:
    """Format as ASCII, so that a terminal is safe from whatever a peer sent."""
    return json.dumps(record, separators=(",", ":"))


def exchange_record(view: ExchangeView) -> dict[str, Any]:
    exchange, bodies = view.exchange, view.bodies
    software = exchange.software or exchange.connection.software
    return {
        "type": "exchange",
        "timestamp_ns": view.timestamp_ns,
        **_connection(exchange.connection),
        "client_id": exchange.client_id,
        "software": {"name": software.name, "version": software.version} if software else None,
        "api_key": exchange.api_key if exchange.api_key >= 0 else None,
        "api": bodies.api or None,
        "api_version": exchange.api_version if exchange.api_version >= 0 else None,
        "correlation_id": exchange.correlation_id if exchange.correlation_id >= 0 else None,
        "dialect": exchange.dialect,
        "response_version": exchange.response_version,
        "latency_ns": exchange.latency_ns,
        "expected": exchange.expected,
        "in_order": exchange.in_order,
        "request": _side(exchange.request, bodies.request),
        "response": _side(exchange.response, bodies.response),
        "errors": [error._asdict() for error in bodies.errors],
    }


def anomaly_record(anomaly: Anomaly) -> dict[str, Any]:
    connection = anomaly.connection
    return {
        "type": "anomaly",
        "timestamp_ns": anomaly.timestamp_ns,
        **(_connection(connection) if connection is not None else {}),
        "kind": anomaly.kind,
        "reason": anomaly.reason,
        "capture": anomaly.place.capture,
        "capture_offset": anomaly.place.offset,
        "direction": anomaly.direction,
        "offset": anomaly.offset,
        "size": anomaly.size,
        "missing": anomaly.missing,
    }


def _connection(connection: Connection) -> dict[str, Any]:
    return {
        "connection": connection.number,
        "client": connection.client,
        "broker": connection.broker,
    }


def _side(frame: Frame | None, side: Side | None) -> dict[str, Any] | None:
    if frame is None or side is None:
        return None
    problem: dict[str, Any] | None = None
    if side.problem:
        problem = {"problem": side.problem}
        if isinstance(side.error, DecodeError):
            problem |= {"offset": side.error.offset, "path": side.error.path}
    return {
        "message": side.message or None,
        "offset": frame.offset,
        "size": frame.size,
        "captured": len(frame.raw),
        "missing": frame.missing,
        "salvaged_batches": frame.salvaged_batches,
        "first_ns": frame.first_ns,
        "last_ns": frame.last_ns,
        "delivered_ns": frame.delivered_ns,
        "capture": frame.place.capture,
        "capture_offset": frame.place.offset,
        "sasl": frame.sasl,
        "header": side.header,
        "body": side.body,
        "error": problem,
    }
