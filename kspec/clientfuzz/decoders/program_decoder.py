"""The user's own decoder: a program that reads and writes JSON lines.

    -> {"api_key": 46, "version": 0, "direction": "response", "frame": "00000004..."}
    <- {"ok": true, "json": {"throttleTimeMs": 0, ...}}    the body, as Kafka's JsonConverter has it
    <- {"ok": false, "error": "topics[0].name ends early"}

``json`` is optional; without it, only acceptance is compared. ``frame`` is the hex of a whole frame
whose size is right; others are not sent. A program that times out, exits or grows gets a verdict
and is restarted.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from kproto import Dialect
from kproto.errors import KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.partial import FrameLayout
from kspec.clientfuzz.decoders.codecs import cut
from kspec.clientfuzz.decoders.memory import Memory, is_out_of_memory
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Sample
from kspec.errors import AdapterError

__all__ = ["ProgramDecoder"]

ANSWER_SECONDS: Final = 5.0
START_SECONDS: Final = 30.0


class ProgramDecoder:
    """``name`` identifies it in verdicts. ``seconds`` is the time limit for a frame,
    ``start_seconds`` that for the first one, which includes the program's start."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        dialect: Dialect,
        *,
        seconds: float = ANSWER_SECONDS,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.name = name
        self._command = list(command)
        self._dialect = dialect
        self._seconds = seconds
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._memory: Memory | None = None
        self._fresh = True

    def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        return [self._judge(sample) for sample in samples]

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):  # what was not yet written
                        stream.close()

    def _judge(self, sample: Sample) -> Verdict:
        frame, layout, verdict = cut(self._dialect, sample)
        if layout is None:
            return Verdict("not asked", text="" if verdict is None else verdict.text)
        question = {**sample._asdict(), "frame": frame.hex()}
        try:
            line = self._reply_to(json.dumps(question))
        except TimeoutError:
            self.close()
            return Verdict("hung", text=f"no answer in {self._seconds:g} s")
        except (OSError, EOFError):
            code = None if self._process is None else self._process.wait()
            self.close()
            return Verdict("died", text=f"the program ended with status {code}")
        assert self._memory is not None
        if self._memory.has_grown():
            self.close()
            return Verdict("swelled", text="its memory grows with each frame")
        return self._verdict(line, frame, layout)

    def _reply_to(self, line: str) -> str:
        """Exchange a line. Raises TimeoutError, OSError or EOFError."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        try:
            answer = self._lines.get(timeout=self._start_seconds if self._fresh else self._seconds)
        except queue.Empty:
            raise TimeoutError from None
        if not answer:
            raise EOFError
        self._fresh = False
        return answer

    def _start(self) -> None:
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise AdapterError(f"{self._command[0]} cannot be started: {error.strerror}") from None
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(process, lines), daemon=True).start()
        self._process, self._lines = process, lines
        self._memory, self._fresh = Memory(process.pid), True

    def _verdict(self, line: str, frame: bytes, layout: FrameLayout) -> Verdict:
        try:
            answer = json.loads(line)
            took = bool(answer["ok"])
        except (ValueError, KeyError, TypeError):
            return Verdict("died", text=f"not a line of the protocol: {line[:200]!r}")
        if not took:
            error = str(answer.get("error", ""))[:200]
            return Verdict("died" if is_out_of_memory(error) else "rejected", text=error)
        if "json" not in answer:
            return Verdict("accepted")
        return _value(answer["json"], frame, layout)


def _value(body: Any, frame: bytes, layout: FrameLayout) -> Verdict:
    """Return no value if the body means the same as for us: JSON has no unknown tagged fields, so
    that it cannot be compared with the bytes that a codec writes."""
    try:
        _, at = layout.header.decode_from(frame, layout.header_version, SIZE_LENGTH)
        ours, _ = layout.body.decode_from(frame, layout.version, at)
    except KprotoError:
        return Verdict("accepted", text=json.dumps(body)[:200])
    if ours.to_json_value(layout.version) == body:
        return Verdict("accepted")
    return Verdict("accepted", json.dumps(body))


def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str]) -> None:
    """Write every line and then an empty one."""
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.put(line)
    except (OSError, ValueError):
        pass
    lines.put("")
