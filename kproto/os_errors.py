"""The text of an OSError for people: the file or address, then the reason, without its number."""

from __future__ import annotations

import os
import re
from typing import Final

__all__ = ["os_error_text"]

_NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")
_ADDRESS: Final = re.compile(r"\('([^']+)', (\d+)")
"""asyncio's texts have the address as Python prints a tuple."""


def os_error_text(error: OSError) -> str:
    """Return a text such as ``a.pcap: No such file or directory``."""
    if error.errno is None or error.strerror is None:
        return _NUMBER.sub("", str(error))
    address = _ADDRESS.search(error.strerror)
    if address is not None:
        return f"{address[1]}:{address[2]}: {os.strerror(error.errno)}"
    named = error.filename
    return error.strerror if named is None else f"{os.fsdecode(named)}: {error.strerror}"
