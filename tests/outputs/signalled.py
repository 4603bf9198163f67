"""Run a command, with a signal at the rename with this number of those within a folder:
``python -m tests.outputs.signalled PROGRAM SIGNAL NUMBER FOLDER WORD...``."""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

__all__ = ["UNEXPECTED"]

UNEXPECTED: Final = 99
"""The exit code after an exception that the command does not catch."""


def run(program: str, number: int, at: int, within: str, words: Sequence[str]) -> NoReturn:
    from tests.cli.programs import MAINS

    replace, count = os.replace, 0

    def signalled(source: str, target: str) -> None:
        nonlocal count
        count += os.fspath(target).startswith(within)
        if count == at:
            signal.raise_signal(number)
        replace(source, target)

    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.replace = signalled  # type: ignore[assignment]
        MAINS[program](words)
    except Exception:
        traceback.print_exc()
        os._exit(UNEXPECTED)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
