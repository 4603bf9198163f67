"""What kind of file a source is, recognised by its first bytes."""

from __future__ import annotations

import io
import sys
import time
from typing import Final, Literal, TypeAlias

from wiredump.readers import pcap, pcapng
from wiredump.readers.compressed import CannotInflate, inflater_for
from wiredump.storage import Location

__all__ = ["Kind", "kind_of", "known_kind", "open_file", "recognise"]

Kind: TypeAlias = Literal["capture", "journal", "request log", "hexadecimal"]

_HEAD: Final = 64 * 1024
_PAUSE: Final = 0.1
"""Seconds between two checks of a file that may grow."""


def kind_of(path: str) -> Kind:
    """Return the kind of a file. Raises OSError."""
    with open_file(path) as file:
        return recognise(file, follow=False)


def open_file(path: str) -> io.BufferedReader:
    """Open a file by path or URI; ``-`` is standard input."""
    if path == "-":
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False), _HEAD)
    return Location(path).open()


def known_kind(path: str) -> Kind | None:
    """Return the kind of a file; None if it is of no kind. Raises OSError."""
    with open_file(path) as file:
        return _kind_of(file.peek(_HEAD))


def recognise(file: io.BufferedReader, follow: bool) -> Kind:
    """Recognise a file by its first bytes. Anything unknown is taken for a capture, whose reader
    reports what is wrong with it."""
    head = file.peek(_HEAD)
    while follow and len(head) < 4:
        time.sleep(_PAUSE)
        head = file.peek(_HEAD)
    return _kind_of(head) or "capture"


def _kind_of(head: bytes) -> Kind | None:
    inflater = inflater_for(head[:4])
    if inflater is not None:
        try:
            head = next(iter(inflater.feed(head)), b"")
        except CannotInflate:
            return "capture"
    if pcap.begins(head) or pcapng.begins(head):
        return "capture"
    from wiredump.sources.hexadecimal import is_hexadecimal
    from wiredump.sources.request_logs import MARK

    text = head.decode("ascii", errors="replace")
    if text.lstrip().startswith("{") and '"sequence"' in text:
        return "journal"
    if MARK in text:
        return "request log"
    return "hexadecimal" if is_hexadecimal(text) else None
