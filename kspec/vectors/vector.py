"""One vector: bytes, and what a decoder should make of them. Independent of schemas and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kproto.annotate import FrameField
from kproto.errors import DecodeError

__all__ = ["Vector", "Verdict"]

Verdict = Literal["valid", "acceptable", "invalid"]
"""``valid`` must be decoded. ``invalid`` must be rejected, as Kafka's own classes do.
``acceptable`` is accepted by Kafka's own classes but rejected by a strict decoder such as ours, and
no correct peer sends it. The words are Wycheproof's."""


@dataclass(frozen=True, slots=True)
class Vector:
    """One vector.

    ``data`` is a whole frame, size included, of a request or response, and a bare body of any other
    message. The body begins at ``body_at``. Offsets in ``fields`` and ``error`` count from the
    first byte of ``data``.

    A valid vector has ``header`` (if it is a frame), ``json`` and ``fields``, and ``canonical`` if
    an encoder would write other bytes. The others have the ``error`` that kproto's decoder raises.
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
        """The bytes of the body alone."""
        return self.data[self.body_at :]
