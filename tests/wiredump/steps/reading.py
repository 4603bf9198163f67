"""Ways to read a capture to its end, whose steps are counted."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Final

from tests.wiredump.steps.arrangements import Arrangement
from wiredump import native
from wiredump.readers import Capture, Limits, Streams
from wiredump.sources.captures import CaptureItems
from wiredump.sources.quick import QuickStreams, walks

__all__ = ["WAYS", "reader_of"]


def _in_python(capture: bytes, alone: bool) -> None:
    items, streams = CaptureItems(), Streams(Limits(alone=alone))
    for _ in items.read(streams.read(Capture(io.BytesIO(capture), read_size=1 << 14))):
        pass
    items.account.check()


def _quickly(capture: bytes) -> None:
    items = CaptureItems()
    with native.using(native.built()):
        streams = QuickStreams(items, Limits(alone=True), None, None)
        read = Capture(io.BytesIO(capture), read_size=1 << 14, walks=walks())
        for _ in streams.read(read):
            pass
    items.account.check()


WAYS: Final[dict[str, Callable[[bytes], None]]] = {
    "python": partial(_in_python, alone=True),
    "followed": partial(_in_python, alone=False),
    "extension": _quickly,
}


def reader_of(arrangement: Arrangement, way: str, size: int) -> Callable[[], None]:
    """Return what reads a capture of this arrangement."""
    return partial(WAYS[way], arrangement.capture(size))
