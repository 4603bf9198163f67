"""Signals while an output is written: they end the block that writes, or wait for its end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final, NoReturn

__all__ = ["uninterrupted", "unwinding"]

_ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit in the block, so that it can clean up, unless the
    program handles or ignores them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    replaced = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL]
    for each in replaced:
        signal.signal(each, _exit)
    try:
        yield
    finally:
        for each in replaced:
            signal.signal(each, signal.SIG_DFL)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer SIGINT, SIGTERM and SIGHUP to the end of the block, which is to be short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {each: signal.getsignal(each) for each in _ENDING}
    for each in before:
        if before[each] is not None:  # a handler that was not installed from Python
            signal.signal(each, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        for each, handler in before.items():
            if handler is not None:
                signal.signal(each, handler)
        for each in received:
            signal.raise_signal(each)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
