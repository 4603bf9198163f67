"""Write output files and folders whole: readers find the old content or the new, never a part.

A file is written beside its target, synced and renamed over it. The mode of an existing file is
kept, and a symbolic link is followed. If the block of ``open_output`` fails, also by SIGINT,
SIGTERM or SIGHUP, the target is as before and the temporary file is gone. A killed process leaves
the temporary file, ``.NAME.XXXXXXXX.part``; the next output to the same target removes it.

What cannot be replaced is written to directly: devices, FIFOs, ``-`` and open files of this process
(``/dev/stdout``, ``/dev/fd/N``). A reader of these may see a part.

The files of a folder are complete in ``FOLDER/.kproto-new`` before the first one is published.
While they are renamed one by one, ``FOLDER/.kproto-incomplete`` exists; ``require_complete``
refuses a folder that still has it.
"""

from __future__ import annotations

from kproto.outputs.errors import IncompleteFolderError, NotEmptyError, OutputError
from kproto.outputs.exchange import exchange
from kproto.outputs.files import check_output, open_output, write_output
from kproto.outputs.folders import (
    INCOMPLETE,
    FolderOutput,
    check_output_folder,
    open_folder_output,
    require_complete,
)
from kproto.outputs.locks import is_locked, locked
from kproto.outputs.signals import uninterrupted, unwinding
from kproto.outputs.streams import OutputStream

__all__ = [
    "INCOMPLETE",
    "FolderOutput",
    "IncompleteFolderError",
    "NotEmptyError",
    "OutputError",
    "OutputStream",
    "check_output",
    "check_output_folder",
    "exchange",
    "is_locked",
    "locked",
    "open_folder_output",
    "open_output",
    "require_complete",
    "uninterrupted",
    "unwinding",
    "write_output",
]
