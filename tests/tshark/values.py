"""Whether tshark's text for a field says what ours does: how its display writes each type."""

import uuid
from typing import Any

from kproto.annotate import FrameField
from tests.tshark.pdml import Field

__all__ = ["says_the_same", "whole_number"]

NULL = "[ Null ]"


def says_the_same(theirs: Field, ours: FrameField) -> bool:
    value: Any = ours.value
    if value is None:
        return theirs.show in (NULL, "")
    if isinstance(value, bool):
        return theirs.show in (("1", "True") if value else ("0", "False"))
    if isinstance(value, int):
        shown = whole_number(theirs.show)
        return shown is not None and (shown - value) % (1 << (8 * ours.length)) == 0
    if isinstance(value, str):
        return theirs.show == value
    if isinstance(value, uuid.UUID):
        return theirs.raw == value.bytes
    if isinstance(value, bytes | bytearray | memoryview):
        # The length comes first: as many bytes as the type takes for it.
        shown_bytes = bytes.fromhex(theirs.show.replace(":", "")) if theirs.show else b""
        return theirs.raw.endswith(bytes(value)) and bytes(value).endswith(shown_bytes)
    return False


def whole_number(text: str) -> int | None:
    """Decimal, or hexadecimal with 0x."""
    try:
        return int(text, 0)
    except ValueError:
        return None
