"""What the Python programs of the captures share: what is produced, and how they end."""

import json
import sys
from collections.abc import Callable
from typing import Final

__all__ = ["CODECS", "RECORDS", "SECONDS", "attempt", "report", "value"]

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS: Final = 12
SECONDS: Final = 20.0

_failed: dict[str, str] = {}


def value(number: int) -> str:
    """Text that every codec makes smaller."""
    return f"value {number}: " + "so it goes, " * 12


def attempt(what: str, act: Callable[[], object]) -> None:
    """Do it; where that fails, go on, and say so at the end."""
    try:
        act()
    except Exception as error:  # whatever a client raises
        _failed[what] = f"{type(error).__name__}: {error}"[:120]


def report(client: str, version: str) -> None:
    """The one line on standard output."""
    json.dump({"client": client, "version": version, "failed": _failed}, sys.stdout)
    print(flush=True)
