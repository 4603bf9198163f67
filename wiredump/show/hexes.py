"""The frames of an exchange as annotated bytes. Bytes that may be secret are masked, including
those that cannot be decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rich.text import Text

from kproto.annotate import (
    FrameField,
    PartialFields,
    plain_value,
    request_fields_partly,
    response_fields_partly,
)
from kproto.framing import SIZE_LENGTH
from kproto.hexview import NOTHING, Redaction, hex_lines
from wiredump.model import Frame
from wiredump.redact import REDACTED, hidden_paths, holds_secrets
from wiredump.show.exchange_view import ExchangeView

__all__ = ["annotated", "field_rows"]

_TOKEN: Final = "sasl token"


def annotated(view: ExchangeView, *, unfold: bool = False) -> Iterator[Text]:
    """Yield the lines of the request's frame, then those of the response's."""
    for direction, frame, fields, hidden in _frames(view):
        title = f"    {direction}, {frame.size} bytes"
        if not frame.whole:
            title += f", of which {len(frame.raw)} are there"
        yield Text(title, style="bold")
        yield from hex_lines(frame.raw, fields, unfold=unfold, hidden=hidden)


def field_rows(view: ExchangeView) -> dict[str, list[dict[str, Any]]]:
    """Return the same for programs: the rows of all fields, by direction."""
    return {
        direction: [_row(row, hidden) for row in fields.rows]
        for direction, _, fields, hidden in _frames(view)
    }


def _frames(view: ExchangeView) -> Iterator[tuple[str, Frame, PartialFields, Redaction]]:
    exchange, bodies = view.exchange, view.bodies
    for direction, frame, side in (
        ("request", exchange.request, bodies.request),
        ("response", exchange.response, bodies.response),
    ):
        if frame is None or frame.json is not None:  # a request log has no bytes
            continue
        fields = _fields(view, direction, frame)
        message = side.message if side is not None else ""
        yield direction, frame, fields, NOTHING if view.secrets else _hidden(message, fields)


def _fields(view: ExchangeView, direction: str, frame: Frame) -> PartialFields:
    exchange, raw = view.exchange, frame.raw
    if frame.sasl or (direction == "response" and exchange.response_version is None):
        return _unread(frame)
    if direction == "request":
        return request_fields_partly(view.codec, raw)
    return response_fields_partly(
        view.codec, raw, api_key=exchange.api_key, api_version=exchange.response_version or 0
    )


def _unread(frame: Frame) -> PartialFields:
    """Describe a frame of which only the size can be shown, and a token."""
    raw = frame.raw
    if len(raw) < SIZE_LENGTH:
        return PartialFields([], 0, None)
    size = FrameField(0, SIZE_LENGTH, "size", "int32", frame.size - SIZE_LENGTH, True)
    if not frame.sasl or len(raw) == SIZE_LENGTH:
        return PartialFields([size], SIZE_LENGTH, None)
    token = FrameField(
        SIZE_LENGTH, len(raw) - SIZE_LENGTH, _TOKEN, "bytes", raw[SIZE_LENGTH:], True
    )
    return PartialFields([size, token], len(raw), None)


def _hidden(message: str, fields: PartialFields) -> Redaction:
    paths = hidden_paths(message, fields.rows) | {_TOKEN}
    return Redaction(paths, rest=not message or holds_secrets(message))


def _row(row: FrameField, hidden: Redaction) -> dict[str, Any]:
    return {
        "offset": row.offset,
        "length": row.length,
        "path": row.path,
        "type": row.type,
        "value": REDACTED if row.path in hidden.paths else plain_value(row.value),
    }
