"""Measure the processor time and memory of a client's processes by /proc on Linux.

On other systems ``Watch.available`` is False, memory and processor time are not judged, and the
report says so.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Usage", "Watch"]

_PROC: Final = Path("/proc")
_RESET_PEAK: Final = b"5"
_STATE_AT: Final = 2  # fields of stat from the state on, which follows the name in parentheses


class Usage(NamedTuple):
    """The usage of all processes of the client.

    ``cpu`` is in seconds and includes processes that ended. ``wanted`` adds the time that their
    threads waited for a processor, so that an endless loop shows on a busy machine too. The rest is
    in bytes, for live processes: resident memory now, its peak since ``reset_peak``, and the peak
    of mapped memory.
    """

    cpu: float
    wanted: float
    resident: int
    peak: int
    mapped: int


class Watch:
    """Measures the session that ``pid`` leads."""

    def __init__(self, pid: int, *, most_memory: int | None = None) -> None:
        self.available = sys.platform == "linux" and (_PROC / str(pid) / "stat").exists()
        self._pid = pid
        if most_memory is not None and self.available:
            _limit(pid, most_memory)

    def usage(self) -> Usage:
        cpu = wanted = resident = peak = mapped = 0.0
        for pid in self._members():
            with suppress(OSError, ValueError, IndexError):
                cpu += _cpu_seconds(pid)
                wanted += _wanted_seconds(pid)
                now, most, address = _memory(pid)
                resident, peak, mapped = resident + now, peak + most, mapped + address
        return Usage(cpu, max(cpu, wanted), int(resident), int(peak), int(mapped))

    def reset_peak(self) -> None:
        for pid in self._members():
            with suppress(OSError):
                (_PROC / str(pid) / "clear_refs").write_bytes(_RESET_PEAK)

    def _members(self) -> list[int]:
        if not self.available:
            return []
        found = []
        for entry in os.listdir(_PROC):
            if entry.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    if int(_stat(int(entry))[3]) == self._pid:  # its session
                        found.append(int(entry))
        return found


def _stat(pid: int) -> list[str]:
    """Return the fields from the state on: state, parent, group, session..."""
    text = (_PROC / str(pid) / "stat").read_text()
    return text[text.rindex(")") + _STATE_AT :].split()


def _cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of the children that it has reaped."""
    return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def _wanted_seconds(pid: int) -> float:
    """Return the time that its threads ran or waited for a processor. 0.0 if the kernel does not
    count it."""
    total = 0
    for task in os.listdir(_PROC / str(pid) / "task"):
        with suppress(OSError, ValueError):
            ran, waited, _ = (_PROC / str(pid) / "task" / task / "schedstat").read_text().split()
            total += int(ran) + int(waited)
    return total / 1e9


def _memory(pid: int) -> tuple[int, int, int]:
    found = {"VmRSS": 0, "VmHWM": 0, "VmPeak": 0}
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in found:
            found[name] = int(value.split()[0]) * 1024
    return found["VmRSS"], found["VmHWM"], found["VmPeak"]


def _limit(pid: int, most: int) -> None:
    """Limit the process's memory, so that allocations beyond that fail and the machine stays
    usable."""
    import resource

    with suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))
