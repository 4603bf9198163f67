"""Durations as people write them: a number with a unit, such as ``500ms`` or ``1.5s``.

A number alone is refused, because readers guess its unit; only ``0`` needs none.
"""

from __future__ import annotations

import re
from typing import Final

from kproto.errors import KprotoError

__all__ = ["DurationError", "parse_duration"]

_UNITS: Final = {"us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}) *([a-z]*)")


class DurationError(KprotoError, ValueError):
    """A text is not a duration. The message is one line that says what to write."""


def parse_duration(text: str) -> int:
    """Return the nanoseconds of ``200us``, ``500ms``, ``1.5s``, ``2m``, ``1h`` or ``0``.

    Raises DurationError.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or found[2] not in ("", *_UNITS):
        raise DurationError(
            f"{text!r} is not a duration: use a number and a unit, as in 500ms or 2s"
        )
    number = int(found[1]) if found[1].isdigit() else float(found[1])
    if not found[2] and number:
        raise DurationError(f"{text!r} has no unit: use {found[1]}ms, {found[1]}s or {found[1]}m")
    return round(number * _UNITS[found[2] or "s"])
