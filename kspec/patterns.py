"""Ranges, and patterns for JSON values. Nothing here is specific to Kafka.

A range is a number, ``"2-5"`` or ``"2+"``, both ends included, as in fault rules. A pattern is a
value:

* a mapping matches a mapping that has at least its keys, if each value matches;
* a list matches a list of the same length, item by item;
* ``"*"`` matches anything except an absent key; ``"/regex/"`` a text that contains a match;
  ``"2-5"`` a number;
* ``{"any_of": [...]}``, ``{"not": ...}``, ``{"unordered": [...]}``, ``{"contains": ...}`` (a list
  with a matching item), ``{"length": range}`` and ``{"absent": true}`` (as a key's value) match as
  their names say;
* anything else matches an equal value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["WORDS", "Range", "mismatch", "parse_range"]

_RANGE: Final = re.compile(r"(\d+)(?:-(\d+)|(\+))?")
_ABSENT: Final = object()

Problem: TypeAlias = str | None


class Range(NamedTuple):
    """A range with both ends included. ``highest`` is None if there is no upper end."""

    lowest: float
    highest: float | None

    def __contains__(self, value: object) -> bool:
        return (
            isinstance(value, int | float)
            and value >= self.lowest
            and (self.highest is None or value <= self.highest)
        )

    def __str__(self) -> str:
        if self.highest is None:
            return f"at least {self.lowest:g}"
        if self.lowest == self.highest:
            return f"exactly {self.lowest:g}"
        if self.lowest == 0:
            return f"at most {self.highest:g}"
        return f"{self.lowest:g} to {self.highest:g}"


def parse_range(text: int | str) -> Range:
    """Parse a range. Raises ValueError."""
    if isinstance(text, int):
        return Range(text, text)
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a range; write 3, 2-5 or 2+")
    low = int(found[1])
    high = None if found[3] else int(found[2] or low)
    if high is not None and low > high:
        raise ValueError(f"{text!r} is an empty range")
    return Range(low, high)


def mismatch(pattern: Any, value: Any, path: str = "") -> Problem:
    """Return the first thing that keeps ``value`` from matching, with its path; None if it
    matches."""
    if isinstance(pattern, Mapping):
        return _mapping(pattern, value, path)
    if value is _ABSENT:
        return f"{path} is absent"
    if isinstance(pattern, list):
        return _list(pattern, value, path)
    if isinstance(pattern, str):
        return _text(pattern, value, path)
    if isinstance(pattern, bool) or isinstance(value, bool) or pattern is None:
        fits = pattern is value
    else:
        fits = pattern == value
    return None if fits else _differs(path, value, repr(pattern))


def _differs(path: str, value: Any, wanted: str) -> str:
    shown = "absent" if value is _ABSENT else repr(value)
    if len(shown) > 120:
        shown = shown[:119] + "…"
    return f"{path or 'it'} is {shown}, not {wanted}"


def _mapping(pattern: Mapping[str, Any], value: Any, path: str) -> Problem:
    if len(pattern) == 1:
        ((word, argument),) = pattern.items()
        if word in WORDS:
            return WORDS[word](argument, value, path)
    if not isinstance(value, Mapping):
        return f"{path} is absent" if value is _ABSENT else _differs(path, value, "a mapping")
    for key, wanted in pattern.items():
        inner = f"{path}.{key}" if path else str(key)
        problem = mismatch(wanted, value.get(key, _ABSENT), inner)
        if problem is not None:
            return problem
    return None


def _list(pattern: list[Any], value: Any, path: str) -> Problem:
    if not isinstance(value, list) or len(value) != len(pattern):
        return _differs(path, value, repr(pattern))
    problems = (
        mismatch(wanted, item, f"{path}[{place}]")
        for place, (wanted, item) in enumerate(zip(pattern, value, strict=True))
    )
    return next((problem for problem in problems if problem is not None), None)


def _text(pattern: str, value: Any, path: str) -> Problem:
    if pattern == "*":
        return None
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        fits = isinstance(value, str) and re.search(pattern[1:-1], value) is not None
    elif isinstance(value, int | float) and _RANGE.fullmatch(pattern):
        fits = value in parse_range(pattern)
    else:
        fits = pattern == value
    return None if fits else _differs(path, value, repr(pattern))


def _any_of(argument: Any, value: Any, path: str) -> Problem:
    if any(mismatch(each, value, path) is None for each in argument):
        return None
    return _differs(path, value, f"any of {argument!r}")


def _not(argument: Any, value: Any, path: str) -> Problem:
    fits = value is not _ABSENT and mismatch(argument, value, path) is None
    return f"{path or 'it'} is {argument!r}" if fits else None


def _unordered(argument: Any, value: Any, path: str) -> Problem:
    if isinstance(value, list) and len(value) == len(argument) and _paired(argument, value):
        return None
    return _differs(path, value, f"{argument!r} in any order")


def _paired(patterns: list[Any], items: list[Any]) -> bool:
    """Return whether each pattern can be paired with an item of its own.

    Uses augmenting paths, since a pattern that matches several items must leave another pattern the
    only item that it matches.
    """
    owner: dict[int, int] = {}

    def find(pattern: int, tried: set[int]) -> bool:
        for place, item in enumerate(items):
            if place not in tried and mismatch(patterns[pattern], item) is None:
                tried.add(place)
                if place not in owner or find(owner[place], tried):
                    owner[place] = pattern
                    return True
        return False

    return all(find(pattern, set()) for pattern in range(len(patterns)))


def _contains(argument: Any, value: Any, path: str) -> Problem:
    if isinstance(value, list) and any(mismatch(argument, item) is None for item in value):
        return None
    return _differs(path, value, f"a list with {argument!r} in it")


def _length(argument: Any, value: Any, path: str) -> Problem:
    if isinstance(value, list | str | Mapping) and len(value) in parse_range(argument):
        return None
    return _differs(path, value, f"{parse_range(argument)} items")


def _absent(argument: Any, value: Any, path: str) -> Problem:
    return None if (value is _ABSENT) is bool(argument) else f"{path} is present: {value!r}"


WORDS: Final[Mapping[str, Callable[[Any, Any, str], Problem]]] = {
    "any_of": _any_of,
    "not": _not,
    "unordered": _unordered,
    "contains": _contains,
    "length": _length,
    "absent": _absent,
}
"""The keys that make a mapping with one item a condition."""
