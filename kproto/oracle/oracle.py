"""A release's own Java message classes, queried over a pipe. ``Oracle.java`` documents the format.

This module starts the program, sends questions and knows the names of each release's classes. It
knows nothing of our codec: the tests decide what the answers should be.
"""

from __future__ import annotations

import queue
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import IO, NamedTuple, TypeAlias

from kproto.oracle.build import class_path
from kproto.schema.versions import Versions

__all__ = [
    "RELEASES",
    "Answer",
    "JavaMessage",
    "Op",
    "Oracle",
    "OracleStopped",
    "Question",
    "Refusal",
    "recoded",
]

RELEASES = ("3.9.2", "4.4.0")
"""The last release with the oldest versions, and the newest release."""

STOP_SECONDS = 10.0


class Op(IntEnum):
    LIST = 0
    ENCODE = 1
    """Kafka's JSON -> bytes."""
    RECODE = 2
    """Bytes -> decoded and encoded again; see ``recoded``."""
    TO_JSON = 3
    """Bytes -> Kafka's JSON."""
    REWRITE = 4
    """An int16 version, then bytes -> the message written at that version."""


class JavaMessage(NamedTuple):
    """A generated class: its simple name, its package, and the versions it reads and writes."""

    name: str
    package: str
    versions: Versions


class Question(NamedTuple):
    op: Op
    message: str
    """The Java class's simple name."""
    version: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Java threw an exception: its simple name and message."""

    text: str


Answer: TypeAlias = bytes | Refusal


class OracleStopped(Exception):
    """The program ended or could not start. The text contains its output."""


def recoded(answer: Answer) -> tuple[int, bytes]:
    """Return how many bytes Java read and what it wrote back. Raises if Java refused the bytes."""
    assert isinstance(answer, bytes), answer
    return struct.unpack_from(">i", answer)[0], answer[4:]


_HEADER = struct.Struct(">bihi")
_STATUS = struct.Struct(">bi")
_INT = struct.Struct(">i")

_Job: TypeAlias = tuple[bytes, int, "Future[list[Answer]]"]


class Oracle:
    """One JVM with the classes of one Kafka release; a context manager.

    A thread of this object answers batches in order, so that Java works while the caller prepares
    the next batch.
    """

    def __init__(
        self, release: str, *, class_path: str | None = None, jars: str = r"kafka-.*\.jar"
    ) -> None:
        """``class_path`` is that of ``release`` by default. Messages are looked for in those jars
        whose names match ``jars`` whole."""
        self.release = release
        self._class_path = class_path
        self._jars = jars
        self.messages: dict[str, JavaMessage] = {}
        self._numbers: dict[str, int] = {}
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"oracle-{release}", daemon=True)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def __enter__(self) -> Oracle:
        self._process = subprocess.Popen(
            ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx512m",
             f"-Doracle.jars={self._jars}", "-cp", self._class_path or class_path(self.release),
             "Oracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )  # fmt: skip
        self._thread.start()
        try:
            self._list()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the program. Unanswered batches and later questions fail with OracleStopped."""
        self._closed = True
        self._jobs.put(None)
        process = self._process
        if process is not None:
            assert process.stdin is not None
            try:
                process.stdin.close()
                process.wait(STOP_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                process.kill()
                process.wait()
            self._thread.join(STOP_SECONDS)
            assert process.stdout is not None
            process.stdout.close()
        self._errors.close()

    def kill(self) -> None:
        """Kill a program that no longer answers."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def submit(self, questions: Iterable[Question]) -> Future[list[Answer]]:
        """Ask all of ``questions`` as one batch and return the answers in the same order.

        Raises OracleStopped after ``close``.
        """
        parts = [b"", b""]
        for op, message, version, data in questions:
            parts.append(_HEADER.pack(op, self._numbers[message], version, len(data)))
            parts.append(data)
        return self._send(parts)

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        return self.submit(questions).result()

    def _send(self, parts: list[bytes]) -> Future[list[Answer]]:
        if self._closed:
            raise OracleStopped(f"the oracle of {self.release} was closed")
        count = (len(parts) - 2) // 2
        parts[1] = _INT.pack(count)
        parts[0] = _INT.pack(sum(map(len, parts)))
        future: Future[list[Answer]] = Future()
        self._jobs.put((b"".join(parts), count, future))
        return future

    def _list(self) -> None:
        answer = self._send([b"", b"", _HEADER.pack(Op.LIST, 0, 0, 0), b""]).result()[0]
        assert isinstance(answer, bytes), answer
        release, *rows = answer.decode().splitlines()
        assert release == self.release, f"{release} on the class path meant for {self.release}"
        for number, row in enumerate(rows):
            name, package, lowest, highest = row.split("\t")
            assert name not in self.messages, f"two classes called {name}"
            versions = Versions(int(lowest), int(highest))
            self.messages[name] = JavaMessage(name, package, versions)
            self._numbers[name] = number

    def _work(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        while (job := self._jobs.get()) is not None:
            batch, count, future = job
            try:
                # The program reads a whole batch before it answers, so neither side can block the
                # other by writing.
                process.stdin.write(batch)
                process.stdin.flush()
                size = _INT.unpack(_read(process.stdout, 4))[0]
                future.set_result(_answers(_read(process.stdout, size), count))
            except Exception as error:
                future.set_exception(OracleStopped(f"{error}\n{self._printed()}"))

    def _printed(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-4000:]


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError(f"the program ended within a reply ({len(data)} of {size} bytes)")
    return data


def _answers(reply: bytes, count: int) -> list[Answer]:
    assert _INT.unpack_from(reply)[0] == count
    at = 4
    answers: list[Answer] = []
    for _ in range(count):
        failed, length = _STATUS.unpack_from(reply, at)
        at += _STATUS.size
        data = reply[at : at + length]
        at += length
        answers.append(Refusal(data.decode()) if failed else data)
    assert at == len(reply)
    return answers
