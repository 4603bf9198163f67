"""Parse and write a field's ``default``. Depends on the field's kind, never on versions.

Kafka writes defaults as strings (``"-1"``, ``"0x7fffffff"``, ``"null"``). JSON numbers and booleans
are accepted too, as in Kafka's own reader.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import uuid
from typing import Any, Final

from kproto.schema.model import ZERO_UUID, Default, Kind, NewStruct

__all__ = ["INTEGER_RANGES", "implicit_default", "parse_default", "spell_default"]

INTEGER_RANGES: Final[dict[str, tuple[int, int]]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

_INTEGER: Final = re.compile(r"[+-]?\d{1,20}|0[xX][0-9a-fA-F]{1,16}", re.ASCII)
_FLOAT: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(NaN|Infinity)", re.ASCII)


def implicit_default(kind: Kind) -> Default:
    """Return the default of a field without a ``default``: Java's zero of the type (null for
    records)."""
    if kind in INTEGER_RANGES:
        return 0
    simple: dict[str, Default] = {
        "bool": False, "float64": 0.0, "uuid": ZERO_UUID, "string": "", "bytes": b"",
        "records": None, "struct": NewStruct(), "array": (),
    }  # fmt: skip
    return simple[kind]


def parse_default(kind: Kind, value: Any) -> Default:
    """Parse ``value`` from JSON; None means that the schema has no ``default``.

    Raises ValueError with the text ``problem; remedy``.
    """
    if value is None or value == "":
        return implicit_default(kind)
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, int | float):
        value = repr(value)
    elif not isinstance(value, str):
        raise ValueError("default must be a string, number or boolean; put it in quotes")
    shown = ascii(value) if len(value) <= 60 else ascii(value[:57]) + "..."
    if kind in INTEGER_RANGES:
        return _integer(kind, value, shown)
    if kind == "bool":
        if value.lower() not in ("true", "false"):
            raise ValueError(f'default {shown} is not a boolean; write "true" or "false"')
        return bool(value.lower() == "true")
    if kind == "float64":
        if not _FLOAT.fullmatch(value):
            raise ValueError(f'default {shown} is not a number; write it as "1.5"')
        return float(value)
    if kind == "uuid":
        return _uuid(value, shown)
    if kind == "string":
        return _string(value)
    if value != "null":
        raise ValueError(f'default {shown} is not possible for {kind}; only "null" or none at all')
    return None


def _integer(kind: Kind, value: str, shown: str) -> int:
    lowest, highest = INTEGER_RANGES[kind]
    if not _INTEGER.fullmatch(value):
        raise ValueError(f'default {shown} is not an integer; write it as "12" or "0x0c"')
    number = int(value, 16) if value[:2] in ("0x", "0X") else int(value)
    if not lowest <= number <= highest:
        raise ValueError(f"default {shown} does not fit {kind}; it holds {lowest} to {highest}")
    return number


def _uuid(value: str, shown: str) -> uuid.UUID:
    problem = f"default {shown} is not a uuid; write 22 characters of URL-safe base64"
    if not re.fullmatch(r"[A-Za-z0-9_-]{22}(==)?", value, re.ASCII):
        raise ValueError(problem)
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(value[:22] + "=="))
    except (binascii.Error, ValueError):
        raise ValueError(problem) from None


def _string(value: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("default is not valid Unicode; remove the lone surrogate") from None
    return None if value == "null" else value


def spell_default(kind: Kind, default: Default) -> str | None:
    """Return the shortest ``default`` that ``parse_default`` parses to the same value, or None if
    none is needed."""
    implied = implicit_default(kind)
    same_sign = not isinstance(default, float) or math.copysign(1, default) > 0
    if default == implied and type(default) is type(implied) and same_sign:
        return None
    if default is None:
        return "null"
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, float):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(
            default, "NaN" if math.isnan(default) else repr(default)
        )
    if isinstance(default, uuid.UUID):
        return base64.urlsafe_b64encode(default.bytes).decode().rstrip("=")
    return str(default)
