"""What to write from which files: the options of a command, to be passed to its processes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, tzinfo
from tempfile import TemporaryDirectory
from typing import NamedTuple

from wiredump.tables.run import Mode

__all__ = ["Work", "passing_folder"]


class Work(NamedTuple):
    """``memory`` is in bytes, for all processes together. ``run`` is the id in the rows
    (``wiredump.tables.run``); ``mode`` says what to do with other runs' (``publishing``)."""

    paths: tuple[str, ...]
    out: str
    tables: tuple[str, ...]
    dialect: str = "auto"
    ports: tuple[int, ...] = (9092,)
    bodies: bool = True
    values: bool = False
    secrets: bool = False
    keylog: str | None = None
    zone: tzinfo = UTC
    memory: int | None = None
    run: str = ""
    mode: Mode = "error"


def passing_folder() -> AbstractContextManager[str]:
    """Yield a folder for temporary tables."""
    return TemporaryDirectory(prefix="wiredump-")
