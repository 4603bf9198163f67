"""Which paths ZooKeeper takes, and the parent of one. Knows nothing of any tree."""

from __future__ import annotations

import re

from kproto.znodes.errors import BadArgumentsError

__all__ = ["join", "parent_of", "validate"]

ROOT = "/"

# org.apache.zookeeper.common.PathUtils. Java walks UTF-16 units, and surrogates are in the first
# refused range, so that nothing beyond the basic plane is a legal name either.
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def validate(path: str) -> None:
    """Raise ``BadArgumentsError`` unless ``path`` is one that ZooKeeper accepts.

    A Java client refuses the others before sending; a server answers BadArguments.
    """
    problem = _problem(path)
    if problem:
        raise BadArgumentsError(_printable(path), problem)


def _problem(path: str) -> str:
    """One reason the path is illegal, or nothing."""
    if not path:
        return "a path has at least one character"
    if path[0] != "/":
        return "a path starts with /"
    if path == ROOT:
        return ""
    if path[-1] == "/":
        return "a path does not end with /"
    names = path[1:].split("/")
    if "" in names:
        return "a path has no empty names"
    if "." in names or ".." in names:
        return "a path has no relative names"
    refused = _REFUSED.search(path)
    if refused:
        return f"a path has no character U+{ord(refused[0]):04X}"
    return ""


def _printable(path: str) -> str:
    """The path on one line, whatever is in it."""
    return path if path.isprintable() else ascii(path)[1:-1]


def parent_of(path: str) -> str:
    """The path one name shorter; the root is its own parent."""
    return path.rpartition("/")[0] or ROOT


def join(parent: str, name: str) -> str:
    """The path of a child."""
    return ROOT + name if parent == ROOT else f"{parent}/{name}"
