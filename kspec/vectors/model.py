"""One vector: bytes, and what a decoder ought to say of them. Knows no schema and no file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kproto.annotate import FrameField
from kproto.errors import DecodeError

__all__ = ["Vector", "Verdict"]

Verdict = Literal["valid", "acceptable", "invalid"]
"""``valid``: to be decoded. ``invalid``: to be refused, as Kafka's own classes do. ``acceptable``:
Kafka's own classes take it, a strict decoder (ours is one) refuses it, and no correct peer sends
it. The words are Wycheproof's."""


@dataclass(frozen=True, slots=True)
class Vector:
    """``data`` is a whole frame, size included, of a request or response, and a bare body of any
    other message; the body begins at ``body_at``. Offsets in ``fields`` and ``error`` count from
    the first byte of ``data``.

    A valid vector has ``header`` (of a frame), ``json`` and ``fields``, and ``canonical`` where an
    encoder would write other bytes than these. One of the others has the ``error`` that kproto's
    decoder raises.
    """

    name: str
    message: str
    type: str
    api_key: int | None
    version: int
    header_version: int | None
    kind: str
    verdict: Verdict
    data: bytes
    body_at: int
    header: dict[str, Any] | None = None
    json: dict[str, Any] | None = None
    fields: tuple[FrameField, ...] = ()
    canonical: bytes | None = None
    error: DecodeError | None = None

    @property
    def body(self) -> bytes:
        return self.data[self.body_at :]
