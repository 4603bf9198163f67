"""Valid paths of znodes (``PathUtils`` of ZooKeeper's client)."""

from __future__ import annotations

import re

__all__ = ["path_problem"]

_UNPRINTABLE = "[\x01-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]"


def path_problem(path: str) -> str | None:
    """Return the text of ZooKeeper's client for an invalid path below the root; None for a valid
    one."""
    if path.endswith("/"):
        return "Path must not end with / character"
    place = 0
    for name in path.split("/")[1:]:
        place += 1
        if not name:
            reason = f"empty node name specified @{place}"
        elif name in (".", ".."):
            reason = f"relative paths not allowed @{place + len(name) - 1}"
        elif "\0" in name:
            reason = f"null character not allowed @{place + name.index(chr(0))}"
        elif found := re.search(_UNPRINTABLE, name):
            reason = f"invalid charater @{place + found.start()}"
        else:
            place += len(name)
            continue
        return f'Invalid path string "{path}" caused by {reason}'
    return None
