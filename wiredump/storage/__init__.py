"""Files and folders by path or by URI: local ones, and those of object stores and HDFS. No other
module of wiredump knows file systems other than the local one."""

from __future__ import annotations

from wiredump.storage.errors import ChangedError, StorageError
from wiredump.storage.globs import expand, has_magic, matches
from wiredump.storage.location import Info, Location, absolute, is_uri, shown, sync_all
from wiredump.storage.ranged import RangedFile

__all__ = [
    "ChangedError", "Info", "Location", "RangedFile", "StorageError", "absolute", "expand",
    "has_magic", "is_uri", "matches", "shown", "sync_all",
]  # fmt: skip
