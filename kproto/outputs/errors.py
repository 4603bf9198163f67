"""Errors of outputs: the message has the output's name and the reason."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from kproto.errors import KprotoError
from kproto.os_errors import os_error_text

__all__ = ["IncompleteFolderError", "NotEmptyError", "OutputError", "refusals"]


class OutputError(KprotoError):
    """An output cannot be written. The message has its name and the reason."""


class NotEmptyError(OutputError):
    """A file that would be overwritten."""


class IncompleteFolderError(KprotoError):
    """A folder has files of two runs, because publishing the second one was interrupted."""


@contextlib.contextmanager
def refusals(shown: str) -> Iterator[None]:
    """Turn errors of a target that cannot be used into OutputError."""
    try:
        yield
    except ValueError:
        raise OutputError(f"{shown!r}: not the name of a file") from None
    except OSError as error:
        if error.filename in (None, shown, os.path.realpath(shown)):
            reason = error.strerror or str(error)
        else:
            reason = os_error_text(error)
        raise OutputError(f"{shown}: {reason}") from None
