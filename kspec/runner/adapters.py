"""Drive a client in a process of its own, or in this process.

Speaks the protocol of docs/reference/adapters.md. A client that does not answer in time is killed,
so that a hung client is a verdict and never hangs the suite.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar, Final, Protocol

import msgspec

from kspec.adapter_protocol import read_answer, read_line, shown
from kspec.answers import Answer
from kspec.errors import AdapterError, AdapterFault
from kspec.reference_client.client import Client
from kspec.results import Greeting
from kspec.runner.processes import KILL, ended, signal_group, start_process

__all__ = ["ANSWER_SECONDS", "GREETING_SECONDS", "Adapter", "LocalAdapter", "ProcessAdapter"]

GREETING_SECONDS: Final = 30.0
"""Time a process may take to start, such as a JVM on a busy machine."""
ANSWER_SECONDS: Final = 15.0
"""Time a call may take before the client counts as hung: many of its own timeouts."""
STOP_SECONDS: Final = 2.0
_COMPLAINT: Final = re.compile(r"(Error|Exception|panic|fatal)\b.*[:!]")
_REFERENCE: Final = "`kspec help adapters` describes the protocol"
_TURNS_OF_THE_LOOP: Final = 5
"""So often the event loop looks for more output, which is enough for output that is there."""
_LONGEST_LINE: Final = 16 * 1024 * 1024
_MOST_STDERR: Final = 256 * 1024


class Adapter(Protocol):
    """What a case needs of a client. ``wire_only`` is True if the client does not report its
    results, ``pid`` is that of its process, None if it has none of its own."""

    @property
    def wire_only(self) -> bool: ...

    @property
    def greeting(self) -> Greeting: ...

    @property
    def pid(self) -> int | None: ...

    async def call(self, op: str, arguments: Mapping[str, Any]) -> Answer:
        """Make a call. Raises AdapterError if the client is no longer usable, and AdapterFault if
        the adapter failed rather than the client."""

    async def stop(self) -> None:
        """Stop the client. Never raises."""


class LocalAdapter:
    """The reference client, or a wrong one, on this event loop."""

    wire_only: ClassVar[bool] = False
    pid: ClassVar[None] = None

    def __init__(self, client: Client) -> None:
        self._client = client
        self.greeting = msgspec.convert(client.greeting(), Greeting)

    async def call(self, op: str, arguments: Mapping[str, Any]) -> Answer:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reply = await self._client.call(op, arguments)
            return read_answer(op, reply)
        except AdapterFault:
            raise
        except TimeoutError:
            raise AdapterError(f"no answer to {op} in {ANSWER_SECONDS:.0f} s", hung=True) from None
        except Exception as error:  # in a process of its own, this would end it
            raise AdapterError(f"the client died of {type(error).__name__}: {error}") from error

    async def stop(self) -> None:
        with suppress(TimeoutError):  # of a wrong client
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._client.close()


class ProcessAdapter:
    """An adapter program. ``start`` makes one."""

    wire_only: ClassVar[bool] = False

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        stderr: IO[bytes],
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._process = process
        self._stderr = stderr
        self._answer_seconds = answer_seconds
        self._has_answered = False
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._reader = asyncio.create_task(self._read_lines())
        self.greeting = Greeting(client="")

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> ProcessAdapter:
        """Start the program. Raises AdapterFault if it does not start or sends no greeting."""
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        try:
            process = await start_process(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                cwd=cwd,
                environment=environment,
                limit=_LONGEST_LINE,
            )
        except OSError as error:
            stderr.close()
            raise AdapterFault(f"{command[0]} cannot be started: {error.strerror}") from None
        adapter = cls(process, stderr, answer_seconds)
        try:
            reply = await adapter._line(GREETING_SECONDS, "greeting")
            adapter.greeting = msgspec.convert(reply, Greeting)
        except msgspec.ValidationError as error:
            await adapter.stop()
            raise AdapterFault(f"not a greeting: {error}; {_REFERENCE}") from None
        except AdapterFault:
            await adapter.stop()
            raise
        except AdapterError as error:  # it ended, or was silent, before a client was made
            await adapter.stop()
            raise AdapterFault(f"{error}; {_REFERENCE}") from None
        except BaseException:
            await adapter.stop()
            raise
        return adapter

    @property
    def pid(self) -> int:
        return self._process.pid

    def stderr_from(self, start: int) -> bytes:
        """Return what the program has written to stderr, without the first ``start`` bytes.

        The process and this object share one file offset, so the read must not move it.
        """
        if os.name != "posix":
            return b""
        return os.pread(self._stderr.fileno(), _MOST_STDERR, start)

    async def call(self, op: str, arguments: Mapping[str, Any]) -> Answer:
        assert self._process.stdin is not None
        line = json.dumps({"op": op, **arguments}) + "\n"
        what = f"answer to {op}"
        if self._has_answered:
            await self._refuse_more_lines(f"before {op}")
        try:
            async with asyncio.timeout(self._answer_seconds):
                self._process.stdin.write(line.encode())
                await self._process.stdin.drain()
        except TimeoutError:
            raise self._hung(what, self._answer_seconds) from None
        except OSError:
            raise AdapterError(await self._last_words()) from None
        reply = await self._line(self._answer_seconds, what)
        self._has_answered = True
        if op == "close":
            await self._refuse_more_lines("after close")
        return read_answer(op, reply)

    async def _refuse_more_lines(self, when: str) -> None:
        """Raise AdapterFault for a line that answers nothing, as an answer that comes twice: each
        later line would be taken for the answer to the wrong call."""
        for _ in range(_TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)
        if not self._lines.empty():
            line = self._lines.get_nowait()
            if isinstance(line, bytes) and line:
                raise AdapterFault(
                    f"not a line of the protocol: it answers no call, {when}: {shown(line)}"
                )
            self._lines.put_nowait(line)

    async def _line(self, seconds: float, what: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                line = await self._lines.get()
        except TimeoutError:
            raise self._hung(what, seconds) from None
        if line is None:
            raise AdapterFault(f"the {what} is a line of more than {_LONGEST_LINE} bytes")
        if not line:
            self._lines.put_nowait(line)  # for the next call, too
            raise AdapterError(await self._last_words())
        if not line.endswith(b"\n"):
            raise AdapterFault(f"the output ends in the middle of the {what}: {shown(line)}")
        return read_line(line)

    async def _read_lines(self) -> None:
        """Queue each line of the output, b"" at its end, and None in place of one that is too
        long. No more than one line waits, and the output behind it is not read."""
        assert self._process.stdout is not None
        line: bytes | None = None
        while line != b"":
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                line = None
            await self._lines.put(line)

    def _hung(self, what: str, seconds: float) -> AdapterError:
        signal_group(self._process, KILL)
        return AdapterError(f"hung: no {what} in {seconds:.0f} s", hung=True)

    async def _last_words(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        code = self._process.returncode
        how = f" by {signal.Signals(-code).name}" if code is not None and code < 0 else ""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        # A stack trace begins with the error.
        first = next((n for n, line in enumerate(lines) if _COMPLAINT.search(line)), 0)
        words = " ".join(" ".join(lines[first:]).split())
        return f"the client's process ended{how}: {words[:300] or 'no output'}"

    async def stop(self) -> None:
        """End of input asks the program to exit. One that does not exit is killed."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        for insist in (None, signal.SIGTERM, KILL):
            if insist is not None:
                signal_group(self._process, insist)
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await self._process.wait()
                ended(self._process)
                break
        self._reader.cancel()
        self._stderr.close()
