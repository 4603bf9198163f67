"""Files and folders by path or by URI: local ones, and those of object stores and HDFS. No other
module of wiredump knows file systems other than the local one."""

from __future__ import annotations

from wiredump.storage.errors import ChangedError, StorageError
from wiredump.storage.globs import expand
from wiredump.storage.location import Location, absolute, is_uri, shown
from wiredump.storage.ranged import RangedFile

__all__ = [
    "ChangedError",
    "Location",
    "RangedFile",
    "StorageError",
    "absolute",
    "expand",
    "is_uri",
    "shown",
]
