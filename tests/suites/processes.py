"""Run a program and read its output line by line, for a bounded time."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

__all__ = ["lines_of"]

STOP_SECONDS: Final = 10.0


def lines_of(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float,
    log: IO[bytes] | None = None,
) -> Iterator[str]:
    """Yield the lines of the program's output, and copy them into ``log``.

    The program leads a process group, which is killed after ``seconds`` and when the caller leaves
    the loop, so that nothing survives. The exit status says nothing that the output does not.
    """
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    timer = threading.Timer(seconds, _kill, [process])
    timer.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if log is not None:
                log.write(line)
            yield line.decode("utf-8", "replace").rstrip("\n")
    finally:
        timer.cancel()
        _kill(process)
        process.wait(STOP_SECONDS)
        if process.stdout is not None:
            process.stdout.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Every process of the group, also where its leader has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
