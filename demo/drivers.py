"""A driver program as an object: one call out, one answer in, and always stopped in the end.

Knows the line protocol of ``demo/clients`` and nothing of what the lines mean.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from demo.install import Launch

__all__ = ["CLIENT_TIMEOUT_MS", "Answer", "Driver", "DriverError", "drive"]

CLIENT_TIMEOUT_MS = 8_000
"""What each client is told as its own time-out."""

ANSWER_SECONDS = 30.0
"""How long a call may take before the driver counts as hung: several of the client's time-outs."""


STOP_SECONDS = 3.0


class DriverError(Exception):
    """The driver program died, hung, or said something that is not a line of the protocol."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call. ``code`` is Kafka's error code, where the client showed one."""

    ok: bool
    result: Any = None
    error: str = ""
    code: int | None = None
    message: str = ""
    unsupported: str = ""

    def __str__(self) -> str:
        if self.ok:
            return "ok" if self.result is None else json.dumps(self.result)
        if self.unsupported:
            return f"unsupported: {self.unsupported}"
        code = "" if self.code is None else f" ({self.code})"
        return f"{self.error}{code}: {self.message}"


class Driver:
    """One running driver. ``client`` and ``version`` are from its greeting."""

    def __init__(self, process: subprocess.Popen[str], stderr: IO[str]) -> None:
        self._process = process
        self._stderr = stderr
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        greeting = self._next()
        self.client: str = greeting["client"]
        self.version: str = greeting["version"]

    def call(self, op: str, **arguments: Any) -> Answer:
        """Ask for one operation and wait for its answer. DriverError where there is none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise DriverError(self._last_words()) from None
        answer = self._next()
        if "unsupported" in answer:
            return Answer(ok=False, unsupported=answer["unsupported"])
        return Answer(
            ok=answer["ok"],
            result=answer.get("result"),
            error=answer.get("error") or "",
            code=answer.get("code"),
            message=" ".join((answer.get("message") or "").split()),
        )

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise DriverError(f"no answer in {ANSWER_SECONDS:.0f} s") from None
        if line is None:
            raise DriverError(self._last_words())
        try:
            answer = json.loads(line)
        except ValueError:
            raise DriverError(f"not a line of the protocol: {line.strip()[:200]}") from None
        if not isinstance(answer, dict):
            raise DriverError(f"not a line of the protocol: {line.strip()[:200]}")
        return answer

    def _last_words(self) -> str:
        self._stderr.seek(0)
        words = " ".join(self._stderr.read().split())
        return f"the driver ended: {words[-300:] or 'without a word'}"


@contextmanager
def drive(launch: Launch, bootstrap: str) -> Iterator[Driver]:
    """Start a driver against ``bootstrap``; stop it, its own process only, on the way out."""
    with tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen(
            [*launch.command, bootstrap, str(CLIENT_TIMEOUT_MS)],
            cwd=launch.cwd,
            env={**os.environ, **launch.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
        )
        try:
            yield Driver(process, stderr)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    """End of input asks the driver to close its client; what does not go by itself is ended."""
    if process.stdin is not None:
        with suppress(OSError):  # it may be gone already
            process.stdin.close()
    for insist in (None, process.terminate, process.kill):
        if insist is not None:
            insist()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=STOP_SECONDS)
            break
