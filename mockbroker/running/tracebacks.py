"""Shorten the traceback of a failed test to the test's own lines.

A mistake in a call, an assertion that failed and a wait that ended in vain say everything in their
message. The frames of this project and of the standard library behind the test's line, on another
thread at that, only push the message out of sight. All other errors keep their traceback, because
they may be defects.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

import pytest

from kproto.errors import KprotoError

__all__ = ["is_expected", "shorten"]

_OURS: Final = tuple(f"{Path(__file__).parents[2] / name}/" for name in ("mockbroker", "kproto"))
_INSTALLED: Final = sysconfig.get_path("purelib")
_STANDARD: Final = sysconfig.get_path("stdlib")


def is_expected(error: BaseException) -> bool:
    """Whether the error's message is for the author of the test."""
    kinds = (KprotoError, AssertionError, TimeoutError, TypeError, pytest.UsageError)
    return isinstance(error, kinds) and bool(str(error))


def shorten(error: BaseException) -> bool:
    """Cut the frames behind the last one of the test, if those are ours and the error is expected.
    Returns whether the traceback has no frame of the test at all: a fixture of ours raised it."""
    frames = list(_frames(error.__traceback__))
    own = [number for number, each in enumerate(frames) if not _is_internal(each)]
    behind = frames[own[-1] + 1 :] if own else frames
    if not is_expected(error) or not behind or not _file(behind[0]).startswith(_OURS):
        return False
    error.__cause__ = error.__context__ = None
    if own and not _is_of_pytest(frames[own[-1]]):
        frames[own[-1]].tb_next = None
        return False
    return True


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _file(frame: TracebackType) -> str:
    return frame.tb_frame.f_code.co_filename


def _is_internal(frame: TracebackType) -> bool:
    file = _file(frame)
    if file.startswith(_OURS) or file.startswith("<"):
        return True
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


def _is_of_pytest(frame: TracebackType) -> bool:
    module = str(frame.tb_frame.f_globals.get("__name__"))
    return module.startswith(("_pytest.", "pluggy."))
