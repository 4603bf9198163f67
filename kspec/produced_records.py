"""The records that a case hands to a producer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kspec.errors import KspecError

__all__ = ["produced_records"]


def produced_records(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of a call of ``produce`` as the adapter gets them.

    A case lists them under ``records``, or only their values by partition under ``values``, as in
    ``{"foo-0": ["a", "b"]}``. With ``bytes`` spaces pad each value to that size. Raises KspecError.
    """
    size = arguments.get("bytes", 0)
    if ("values" in arguments) == ("records" in arguments):
        raise KspecError("produce needs either values or records")
    if set(arguments) - {"values", "records", "bytes"}:
        raise KspecError("produce has values or records, and bytes")
    if "records" in arguments:
        return [
            {**each, "value": _padded(each.get("value"), size)} for each in arguments["records"]
        ]
    found = []
    for key, values in arguments["values"].items():
        topic, hyphen, index = key.rpartition("-")
        if not hyphen or not index.isdigit():
            raise KspecError(f"{key!r} is not a partition")
        found += [
            {"topic": topic, "partition": int(index), "value": _padded(each, size)}
            for each in values
        ]
    return found


def _padded(value: str | None, size: int) -> str | None:
    return None if value is None else value.ljust(size)
