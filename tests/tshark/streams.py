"""Both directions of every TCP connection of a capture, as tshark's follow puts them together, and
as ours do."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from tests.tshark.pdml import tshark
from wiredump.readers import Capture, Data, Gap, Streams

__all__ = ["Parts", "followed", "ours"]

Parts: TypeAlias = list[bytes | int]
"""Bytes, and how many are missing between them."""

_MISSING: Final = re.compile(rb"\[(\d+) bytes missing in capture file\]\0?")


def followed(capture: Path, count: int) -> dict[tuple[int, int], Parts]:
    """By (stream, direction from the client 0 or from the server 1)."""
    arguments = [part for stream in range(count) for part in ("-z", f"follow,tcp,raw,{stream}")]
    with tshark(capture, "-q", *arguments) as process:
        assert process.stdout is not None
        text = process.stdout.read().decode()
    if process.returncode != 0:
        raise RuntimeError(f"tshark ended with status {process.returncode}")
    found: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    stream = -1
    for line in text.splitlines():
        if line.startswith("Filter: "):
            stream = int(line.rpartition(" ")[2])
        elif re.fullmatch(r"\t?[0-9a-f]+", line):
            found[stream, int(line.startswith("\t"))].append(bytes.fromhex(line.strip()))
    return {key: _split(b"".join(pieces)) for key, pieces in found.items()}


def _split(data: bytes) -> Parts:
    parts: Parts = []
    for number, piece in enumerate(_MISSING.split(data)):
        parts.append(int(piece) if number % 2 else piece)
    return _joined(parts)


def ours(capture: Path) -> dict[tuple[int, int], Parts]:
    """The same of our readers."""
    found: dict[tuple[int, int], Parts] = defaultdict(list)
    with Capture(capture) as opened:
        for event in Streams().read(opened):
            match event:
                case Data():
                    found[event.connection, event.direction].append(bytes(event.data))
                case Gap():
                    found[event.connection, event.direction].append(event.length)
    return {key: _joined(parts) for key, parts in found.items()}


def _joined(parts: Iterable[bytes | int]) -> Parts:
    """Neighbours of one kind as one, without the empty."""
    out: Parts = []
    for part in filter(None, parts):
        match (*out[-1:], part):
            case (int(last), int(new)):
                out[-1] = last + new
            case (bytes(last), bytes(new)):
                out[-1] = last + new
            case _:
                out.append(part)
    return out
