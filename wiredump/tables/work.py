"""What to make of which files: what a command is told, and tells the processes that do it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, tzinfo
from tempfile import TemporaryDirectory
from typing import NamedTuple

__all__ = ["Work", "passing_folder"]


class Work(NamedTuple):
    """``memory`` is in bytes, for all processes together. ``run`` names the rows
    (``wiredump.tables.run``), which with ``append`` come beside those of other runs."""

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
    append: bool = False


def passing_folder() -> AbstractContextManager[str]:
    """For tables that do not stay."""
    return TemporaryDirectory(prefix="wiredump-")
