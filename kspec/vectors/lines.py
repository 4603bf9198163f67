"""Vectors as JSON lines, for other languages. docs/reference/vectors.md documents the file.

The first line describes the file; every other line is a vector. Bytes are lower-case hex.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import kproto
from kproto.annotate import FrameField, plain_value
from kspec.vectors.vector import Vector

__all__ = ["FORMAT_VERSION", "file_lines"]

FORMAT_VERSION: Final = 1
"""Increases when readers of the file have to change."""


def file_lines(dialect: kproto.Dialect, vectors: Iterable[Vector]) -> Iterator[str]:
    """Yield the file's lines without line ends."""
    yield _line(
        {
            "format": "kproto-vectors",
            "format_version": FORMAT_VERSION,
            "dialect": dialect.name,
            "made_by": f"kproto {kproto.__version__}",
        }
    )
    for vector in vectors:
        yield _line(_document(vector))


def _document(vector: Vector) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": vector.name,
        "message": vector.message,
        "type": vector.type,
        "api_key": vector.api_key,
        "version": vector.version,
        "header_version": vector.header_version,
        "kind": vector.kind,
        "verdict": vector.verdict,
        "data": vector.data.hex(),
        "body_at": vector.body_at,
    }
    if vector.error is not None:
        error = vector.error
        document["error"] = {"offset": error.offset, "path": error.path, "problem": error.problem}
        return document
    document["header"] = vector.header
    document["json"] = vector.json
    if vector.canonical is not None:
        document["canonical"] = vector.canonical.hex()
    document["fields"] = [_field(each) for each in vector.fields if each.leaf]
    return document


def _field(field: FrameField) -> list[Any]:
    return [field.offset, field.length, field.path, field.type, plain_value(field.value)]


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
