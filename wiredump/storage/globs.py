"""Patterns of names: ``*`` and ``[abc]`` within one part of a path, ``**`` for any number of parts,
and in local paths ``?``, which begins the query of a URI."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from wiredump.storage.connections import parsed
from wiredump.storage.errors import not_found
from wiredump.storage.location import Info, Location

__all__ = ["expand", "has_magic", "matches", "matching"]

_MAGIC: Final = re.compile(r"[*\[]")
_PIECE: Final = re.compile(r"\*|\[(!?[^\]]+)\]|[^*\[]+|\[")


def expand(where: str, *, paths: bool = False) -> list[str]:
    """Return the files that match a URI with a pattern, in the order of names. Anything else is
    returned unchanged: a shell has expanded paths, unless ``paths`` says that it has not. Raises
    FileNotFoundError if no file matches a URI."""
    uri = parsed(where)
    if uri is None and paths:
        return sorted(glob.glob(where)) or [where]
    if uri is None or not has_magic(where):
        return [where]
    found = [path for path, _ in matches(where)]
    if not found:
        raise not_found(uri.shown)
    return found


def has_magic(where: str) -> bool:
    """Whether a path or a URI is a pattern."""
    uri = parsed(where)
    return glob.has_magic(where) if uri is None else _MAGIC.search(uri.path) is not None


def matches(where: str) -> Iterator[tuple[str, Info]]:
    """Yield the files that match a path or a URI, in the order of names."""
    uri = parsed(where)
    if uri is None or uri.scheme == "file":
        path = where if uri is None else f"/{uri.path}"
        for each in sorted(glob.glob(path, recursive=True)):
            with suppress(FileNotFoundError):  # gone since it was listed
                yield each, Location(each).info()
        return
    fixed, pattern = _divided(uri.path)
    folder = Location(uri._replace(path=fixed).text)
    yield from ((str(folder / name), about) for name, about in matching(folder, pattern))


def matching(folder: Location, pattern: str) -> Iterator[tuple[str, Info]]:
    """Yield the files within a folder that match, by paths relative to it, sorted."""
    fixed, rest = _divided(pattern)
    place = folder / fixed if fixed else folder
    matched = re.compile(_regular(rest)).fullmatch
    for name, about in place.listed(recursive="/" in rest or "**" in rest):
        if about.is_file and matched(name):
            yield (f"{fixed}/{name}" if fixed else name), about


def _divided(path: str) -> tuple[str, str]:
    """Return the parts in front of the first pattern, and the rest."""
    parts = path.split("/")
    number = next((n for n, part in enumerate(parts) if _MAGIC.search(part)), len(parts) - 1)
    return "/".join(parts[:number]), "/".join(parts[number:])


def _regular(pattern: str) -> str:
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
