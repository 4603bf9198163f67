"""A codec in a process of its own, timed slice by slice: the parent's side of a line protocol.

A worker is started with what names the message, its version, and a file that holds its body. It
checks that the body round-trips, prints one line that says what it is, and then answers each line
``OPERATION LOOPS`` with the nanoseconds of processor time a call took. It ends with its input.
Which codec, in which language, is not known here; the parent decides how often to ask, so that
a worker's rounds are interleaved with everybody else's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from types import TracebackType

from benchmarks.timing import Case, loops_to_fill

__all__ = ["OPERATIONS", "Worker", "WorkerError"]

OPERATIONS = ("decode", "encode")
"""What every worker knows; some know more."""
STOP_SECONDS = 30.0


class WorkerError(RuntimeError):
    """The worker ended, or said something else than a number; its own words are on stderr."""


class Worker:
    """A started worker. ``warm_up``: seconds of each operation to spend before any is timed."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        operations: Sequence[str] = OPERATIONS,
        warm_up: float = 0.0,
    ) -> None:
        self._command = list(command)
        self._operations = operations
        self._warm_up = warm_up
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self.release = self._read()
        except WorkerError:
            self.close()
            raise

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=STOP_SECONDS)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()

    def cases(self) -> dict[str, Case]:
        """Calibrated cases by operation. Every operation is warmed up before one is calibrated."""
        for operation in self._operations:
            self._warm(operation)
        return {operation: self._case(operation) for operation in self._operations}

    def ask(self, operation: str, loops: int) -> float:
        """Nanoseconds a call, over ``loops`` of them. Raises WorkerError."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{operation} {loops}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        line = self._read()
        try:
            return float(line)
        except ValueError:
            raise WorkerError(f"{self._command[0]} answered {line!r}, which is no number") from None

    def _case(self, operation: str) -> Case:
        loops = loops_to_fill(lambda count: self.ask(operation, count))
        return lambda: self.ask(operation, loops)

    def _warm(self, operation: str) -> None:
        left, loops = self._warm_up * 1e9, 1
        while left > 0:
            taken = self.ask(operation, loops) * loops
            left -= max(taken, 1.0)
            # Calls get faster as they warm up: ask for about a tenth of what is left at a time.
            loops = max(1, min(loops * 2, int(left / 10 / max(taken / loops, 1.0))))

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        return line.strip()

    def _ended(self) -> WorkerError:
        return WorkerError(f"the worker {self._command[0]} ended; its error is above")
