"""Read a classic capture from record header to record header with numpy, as a lower bound.

    python -m benchmarks.dump.scan CAPTURE

Lengths are read one after the other, since each gives the position of the next record; the rest of
a header is read in bulk. Prints the number of packets, and of bytes of TCP payload.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

__all__ = ["record_bounds", "scan"]

_FILE_HEADER, _HEADER, _IP = 24, 16, 14
_LENGTH = Struct("<I")


def record_bounds(data: bytes) -> list[tuple[int, int]]:
    """Where each whole record of a little-endian capture begins and ends."""
    bounds, at, end, unpack = [], _FILE_HEADER, len(data), _LENGTH.unpack_from
    while at + _HEADER <= end:
        following = at + _HEADER + unpack(data, at + 8)[0]
        if following > end:
            break
        bounds.append((at, following))
        at = following
    return bounds


def scan(path: Path) -> dict[str, int]:
    """Ethernet and IPv4 only."""
    data = path.read_bytes()
    bounds = np.array(record_bounds(data), np.int64).reshape(-1, 2)
    octets: np.ndarray[Any, np.dtype[np.uint8]] = np.frombuffer(data, np.uint8)
    ip = bounds[:, 0] + _HEADER + _IP
    words = (octets[ip] & 15).astype(np.int64) * 4
    total = octets[ip + 2].astype(np.int64) << 8 | octets[ip + 3]
    tcp = (octets[ip + words + 12] >> 4).astype(np.int64) * 4
    return {"packets": len(bounds), "payload": int((total - words - tcp).sum())}


if __name__ == "__main__":
    print(json.dumps(scan(Path(sys.argv[1]))))
