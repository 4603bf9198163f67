"""Patterns of paths: ``*`` and ``[abc]`` within one part, and ``**`` for any number of parts."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAGIC", "divided", "regular"]

MAGIC: Final = re.compile(r"[*\[]")
_PIECE: Final = re.compile(r"\*|\[(!?[^\]]+)\]|[^*\[]+|\[")


def divided(path: str) -> tuple[str, str]:
    """Return the parts in front of the first pattern, and the rest."""
    parts = path.split("/")
    number = next((n for n, part in enumerate(parts) if MAGIC.search(part)), len(parts) - 1)
    return "/".join(parts[:number]), "/".join(parts[number:])


def regular(pattern: str) -> str:
    """Return the regular expression that paths match as a whole."""
    found = ""
    parts = pattern.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            found += ".*" if last else "(?:[^/]+/)*"
        else:
            found += _PIECE.sub(_piece, part) + ("" if last else "/")
    return found


def _piece(found: re.Match[str]) -> str:
    text = found[0]
    if text == "*":
        return "[^/]*"
    if found[1] is None:
        return re.escape(text)
    negated, members = found[1].startswith("!"), found[1].removeprefix("!")
    members = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", members)
    return f"[{'^' if negated else ''}{members}]"
