"""Valid paths in ZooKeeper, and the parent of a path. This module knows no tree."""

from __future__ import annotations

import re

from kproto.znodes.errors import BadArgumentsError

__all__ = ["join", "parent_of", "validate"]

ROOT = "/"

# org.apache.zookeeper.common.PathUtils. Java iterates over UTF-16 units, and surrogates are in the
# first refused range, so no name outside the basic plane is valid either.
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def validate(path: str) -> None:
    """Raise ``BadArgumentsError`` unless ZooKeeper accepts ``path``.

    A Java client refuses other paths before sending; a server responds with BadArguments.
    """
    problem = _problem(path)
    if problem:
        raise BadArgumentsError(_printable(path), problem)


def _problem(path: str) -> str:
    """Return one reason why the path is invalid, or ""."""
    if not path:
        return "a path must have at least one character"
    if path[0] != "/":
        return "a path must start with /"
    if path == ROOT:
        return ""
    if path[-1] == "/":
        return "a path must not end with /"
    names = path[1:].split("/")
    if "" in names:
        return "a path must not contain empty names"
    if "." in names or ".." in names:
        return "a path must not contain relative names"
    refused = _REFUSED.search(path)
    if refused:
        return f"a path must not contain U+{ord(refused[0]):04X}"
    return ""


def _printable(path: str) -> str:
    """Return the path on one line, whatever it contains."""
    return path if path.isprintable() else ascii(path)[1:-1]


def parent_of(path: str) -> str:
    """Return the path without its last name. The root is its own parent."""
    return path.rpartition("/")[0] or ROOT


def join(parent: str, name: str) -> str:
    """Return the path of a child."""
    return ROOT + name if parent == ROOT else f"{parent}/{name}"
