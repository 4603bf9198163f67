"""Files by a pattern, as a path or a URI: ``patterns``, and in local paths ``?``, which begins the
query of a URI."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import suppress

from wiredump.storage.connections import parsed
from wiredump.storage.errors import not_found
from wiredump.storage.location import Info, Location
from wiredump.storage.patterns import MAGIC, divided

__all__ = ["expand", "has_magic", "matches"]


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
    return glob.has_magic(where) if uri is None else MAGIC.search(uri.path) is not None


def matches(where: str) -> Iterator[tuple[str, Info]]:
    """Yield the files that match a path or a URI, in the order of names."""
    uri = parsed(where)
    if uri is None or uri.scheme == "file":
        path = where if uri is None else f"/{uri.path}"
        for each in sorted(glob.glob(path, recursive=True)):
            with suppress(FileNotFoundError):  # gone since it was listed
                yield each, Location(each).info()
        return
    fixed, pattern = divided(uri.path)
    folder = Location(uri._replace(path=fixed).text)
    yield from ((str(folder / name), about) for name, about in folder.matching(pattern))
