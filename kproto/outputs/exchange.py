"""Exchange two folders by one call of the system, so that both names exist at any time."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any, Final

__all__ = ["exchange"]

_HERE: Final = -100
"""``AT_FDCWD``: paths are relative to the working directory."""
_EXCHANGE: Final = 2
"""``RENAME_EXCHANGE`` of Linux."""


def exchange(one: str, other: str) -> None:
    """Exchange two files or folders of one file system. Raises OSError; with ENOSYS on systems
    without ``renameat2``, with EINVAL on file systems that cannot exchange."""
    call: Any = None
    if os.name == "posix":
        call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), one, None, other)
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), one, None, other)
