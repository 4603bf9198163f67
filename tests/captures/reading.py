"""The captures, read once a run and kept."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from wiredump.model import Connection, Exchange, Item
from wiredump.sources import open_sources

__all__ = ["NAMES", "Reading", "file_of", "manifest", "read"]

FOLDER: Final = Path(__file__).resolve().parent


class Reading(NamedTuple):
    """What became of a capture."""

    items: list[Item]
    connections: Mapping[int, Connection]
    account: Mapping[str, int]

    @property
    def exchanges(self) -> list[Exchange]:
        return [item for item in self.items if isinstance(item, Exchange)]


@functools.cache
def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "captures.json").read_text())
    return found


NAMES: Final = sorted(manifest())


def file_of(name: str) -> Path:
    return FOLDER / f"{name}.pcap.zst"


@functools.cache
def read(name: str) -> Reading:
    """With no hint at which end is the broker: their ports are ephemeral."""
    source = open_sources([str(file_of(name))])
    return Reading(list(source), source.connections, source.account)
