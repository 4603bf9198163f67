"""What to write from which files: the options of a command, to be passed to its processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, tzinfo
from tempfile import TemporaryDirectory

import msgspec

from kproto.outputs import unwinding
from wiredump.rows.exchange_filter import ExchangeFilter
from wiredump.tables.run import Mode

__all__ = ["Work", "passing_folder"]


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """``paths`` are those of the sources by number. ``memory`` is in bytes, for all processes
    together; ``max_decompressed`` is for each source (``open_sources``). ``run`` is the id in the
    rows (``wiredump.tables.run``); ``mode`` says what to do with other runs' (``publishing``).
    ``only`` are the exchanges that get rows (``TableRows``)."""

    out: str
    paths: dict[int, str]
    tables: tuple[str, ...]
    dialect: str = "auto"
    ports: tuple[int, ...] = (9092,)
    bodies: bool = True
    values: bool = False
    secrets: bool = False
    keylog: str | None = None
    zone: tzinfo = UTC
    memory: int | None = None
    max_decompressed: int | None = None
    run: str = ""
    mode: Mode = "error"
    only: ExchangeFilter | None = None


@contextmanager
def passing_folder() -> Iterator[str]:
    """Yield a folder for temporary tables. It is removed also at SIGTERM and SIGHUP."""
    with unwinding(), TemporaryDirectory(prefix="wiredump-") as folder:
        yield folder
