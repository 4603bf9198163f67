"""The memory that a process takes during a play, from Linux's ``/proc``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["MemoryGauge"]

_KIB: Final = re.compile(r"^(VmHWM|VmRSS):\s+(\d+) kB$", re.MULTILINE)
_RESET_PEAK: Final = "5"
"""Written to ``clear_refs``, it sets the peak to the resident size (proc(5))."""


class MemoryGauge:
    """Measures by how much a process outgrew its resident size of now."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        self._before: int | None = None
        try:
            (self._folder / "clear_refs").write_text(_RESET_PEAK, "ascii")
            self._before = self._sizes()["VmRSS"]
        except (OSError, KeyError):  # it has ended, or this is not Linux
            return

    def growth(self) -> int | None:
        """Return the growth up to the peak in bytes; None where it is unknown."""
        if self._before is None:
            return None
        try:
            return max(0, self._sizes()["VmHWM"] - self._before)
        except (OSError, KeyError):
            return None

    def _sizes(self) -> dict[str, int]:
        status = (self._folder / "status").read_text("ascii", "replace")
        return {name: int(size) * 1024 for name, size in _KIB.findall(status)}
