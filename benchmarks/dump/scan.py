"""Read a classic capture and go from record header to record header with numpy: a floor, no more.

    python -m benchmarks.dump.scan CAPTURE

Lengths have to be read one after the other, for each says where the next is; the rest of a header
is gathered in one go. Prints how many packets there are, and how many bytes of TCP payload.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

__all__ = ["scan"]

_FILE_HEADER, _HEADER, _IP = 24, 16, 14
_LENGTH = Struct("<I")


def scan(path: Path) -> dict[str, int]:
    """Ethernet and IPv4 only, little-endian."""
    data = path.read_bytes()
    starts, at, end, unpack = [], _FILE_HEADER, len(data), _LENGTH.unpack_from
    while at + _HEADER <= end:
        starts.append(at)
        at += _HEADER + unpack(data, at + 8)[0]
    octets: np.ndarray[Any, np.dtype[np.uint8]] = np.frombuffer(data, np.uint8)
    ip = np.array(starts, np.int64) + _HEADER + _IP
    words = (octets[ip] & 15).astype(np.int64) * 4
    total = octets[ip + 2].astype(np.int64) << 8 | octets[ip + 3]
    tcp = (octets[ip + words + 12] >> 4).astype(np.int64) * 4
    return {"packets": len(starts), "payload": int((total - words - tcp).sum())}


if __name__ == "__main__":
    print(json.dumps(scan(Path(sys.argv[1]))))
