"""What IncrementalAlterConfigs makes of lists: APPEND and SUBTRACT edit a text with commas, which
each kind of controller and each release does in its own way.

Read in the classes of Kafka 2.4.1 to 4.4.0, and compared on the wire with 2.4.1, 2.8.2, 3.9.2,
4.1.2 and 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

__all__ = ["LIST_EDITS", "ListEdits"]

ListEdits: TypeAlias = Literal["parts", "sets", "texts"]


def _edited_parts(present: str, value: str, *, appends: bool) -> str:
    """KRaft's controllers drop the empty items of the former value, and append nothing twice."""
    items = [item for item in present.split(",") if item]
    changed = _split(value)
    return ",".join(dict.fromkeys([*items, *changed])) if appends else _without(items, changed)


def _edited_set(present: str, value: str, *, appends: bool) -> str:
    """Brokers since 3.3 append nothing that the former value has, but the rest as it is."""
    items, changed = _split(present) if present else [], _split(value)
    if appends:
        return ",".join([*items, *(item for item in changed if item not in items)])
    return _without(items, changed)


def _edited_text(present: str, value: str, *, appends: bool) -> str:
    """Brokers before: an empty list has one empty item, so appending adds a comma."""
    items, changed = _split(present), _split(value)
    return ",".join([*items, *changed]) if appends else _without(items, changed)


def _without(items: list[str], changed: list[str]) -> str:
    for item in changed:
        if item in items:
            items.remove(item)
    return ",".join(items)


def _split(text: str) -> list[str]:
    """Split like ``String.split(",")``: empty items at the end are dropped, but not of ""."""
    if not text:
        return [""]
    items = text.split(",")
    while items and not items[-1]:
        items.pop()
    return items


LIST_EDITS: Final[Mapping[ListEdits, Callable[..., str]]] = {
    "parts": _edited_parts, "sets": _edited_set, "texts": _edited_text
}  # fmt: skip
