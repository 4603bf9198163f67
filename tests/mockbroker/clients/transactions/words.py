"""An adapter's side: a line of words on stdin is a command, a line of words on stdout its answer.

The answer is ``ok`` and the result's words, or ``error`` and a text. The adapters in other
languages use the same lines. ``NAME`` stands for a producer that an ``open`` made::

    connect BOOTSTRAP-SERVERS                             the first command
    open NAME TRANSACTIONAL-ID TIMEOUT-MS [GROUP TOPIC]   with a consumer of committed records, too
    begin NAME
    send NAME TOPIC VALUE...          to partition 0; answered when all are acknowledged
    move NAME TARGET LAST             values of the consumer's topic up to LAST, with their offsets
    commit NAME
    abort NAME
    close NAME
    read TOPIC ISOLATION-LEVEL LAST   the values of partition 0 up to LAST
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping

__all__ = ["COMMANDS", "serve"]

COMMANDS = ("connect", "open", "begin", "send", "move", "commit", "abort", "close", "read")


def serve(commands: Mapping[str, Callable[..., Iterable[str] | None]]) -> None:
    """Answer every line of stdin."""
    for line in sys.stdin:
        name, *words = line.split()
        try:
            answer = " ".join(["ok", *(commands[name](*words) or ())])
        except Exception as error:
            traceback.print_exc()
            answer = " ".join(["error", type(error).__name__, *str(error).split()])
        print(answer, flush=True)
    os._exit(0)  # a client that is fenced might not end by itself
