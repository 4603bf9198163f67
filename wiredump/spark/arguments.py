"""Arguments that ``run`` and ``stream`` share: their defaults, and the forms in which tasks and
Spark take them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from kproto.errors import UnknownNameError
from wiredump.rows.schema import ON_REQUEST, TABLES, UNDECODED

__all__ = ["SPLIT_BYTES", "chosen_tables", "dialect_of_tasks", "hadoop_uri"]

SPLIT_BYTES: Final = 256 << 20
"""The size of the parts into which captures are split, by default."""


def chosen_tables(tables: Sequence[str] | None, bodies: bool) -> tuple[str, ...]:
    """Return the tables to write. Raises UnknownNameError."""
    possible = tuple(TABLES) if bodies else UNDECODED
    if tables is None:
        return tuple(name for name in possible if name not in ON_REQUEST)
    for name in tables:
        if name not in possible:
            needs = " needs bodies" if name in TABLES else ""
            raise UnknownNameError(f"there is no table {name!r}{needs}: {', '.join(possible)}")
    return tuple(name for name in TABLES if name in tables)


def dialect_of_tasks(name: str) -> str:
    """Return a dialect as tasks, which have other working directories, find it."""
    return os.path.abspath(name) if os.path.isdir(name) else name


def hadoop_uri(where: str) -> str:
    """Return a path or a URI as Spark's own clients take it: without a query, S3 under Hadoop's
    scheme."""
    plain = where.partition("?")[0]
    return f"s3a://{plain.removeprefix('s3://')}" if plain.startswith("s3://") else plain
