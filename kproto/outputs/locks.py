"""Locks on files and folders, which tell a process that still writes from one that was killed."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from typing import Any

__all__ = ["has_locks", "is_locked", "is_same", "lock", "locked"]

_locks: Any = None
with contextlib.suppress(ImportError):  # Windows, which does not remove a file that is open
    _locks = importlib.import_module("fcntl")


def has_locks() -> bool:
    """Whether this system locks files."""
    return _locks is not None


def lock(number: int, *, wait: bool = False) -> bool:
    """Lock an open file or folder; returns whether this succeeded."""
    if _locks is None:
        return True
    try:
        _locks.flock(number, _locks.LOCK_EX | (0 if wait else _locks.LOCK_NB))
    except OSError:  # another process has it, or the file system has no locks
        return False
    return True


@contextlib.contextmanager
def locked(path: str, *, wait: bool = False) -> Iterator[bool]:
    """Lock a file or folder for the block; yields whether this succeeded. The end of the process
    unlocks it, however it ends."""
    if _locks is None:
        yield False
        return
    number = os.open(path, os.O_RDONLY)
    try:
        yield lock(number, wait=wait)
    finally:
        os.close(number)


def is_locked(path: str) -> bool:
    """Whether a process has locked a file or folder (``locked``)."""
    if _locks is None:
        return False
    try:
        number = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        _locks.flock(number, _locks.LOCK_EX | _locks.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the file system has no locks
        return False
    finally:
        os.close(number)
    return False


def is_same(number: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(number), os.stat(path))
    except FileNotFoundError:
        return False
