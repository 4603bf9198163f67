"""Regular expressions of subscriptions: RE2 syntax, matched against whole topic names.

google-re2 reads them, in time that grows with the text alone whatever a client sends. It is part of
the extra ``mock``; without it no expression is valid.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

__all__ = ["library", "matching_names", "regex_problem"]

_TEXTS: Final = {
    "invalid character class range": "invalid character class range",
    "invalid character class": "invalid character class",
    "invalid escape sequence": "invalid escape sequence",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
}
"""Texts of RE2's errors, and those of the Java library that Kafka's brokers use."""

_NAMED: Final = re.compile(r"(?<!\\)\(\?P?<(\w+)>")
"""Names of groups, which may repeat in C++."""
_ABSENT: Final = "this mock cluster reads none without google-re2, which kproto[mock] installs"


@cache
def library() -> Any:
    """The module of google-re2; None without it."""
    try:
        return importlib.import_module("re2")
    except ImportError:
        return None


def _compiled(text: str) -> Any:
    options = library().Options()
    options.log_errors = False
    return library().compile(text, options)


def regex_problem(text: str) -> str | None:
    """Return what is wrong with a regular expression in Kafka's words; None if it is valid."""
    if library() is None:
        return _ABSENT
    try:
        _compiled(text)
    except library().error as error:
        reported = error.args[0]
        words = reported.decode("utf-8", "replace") if isinstance(reported, bytes) else reported
        return next((ours for theirs, ours in _TEXTS.items() if words.startswith(theirs)), words)
    names = _NAMED.findall(text)
    return "duplicate capture group name" if len(names) != len(set(names)) else None


def matching_names(text: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a valid regular expression matches from beginning to end."""
    pattern = _compiled(text)
    return frozenset(name for name in names if pattern.fullmatch(name))
