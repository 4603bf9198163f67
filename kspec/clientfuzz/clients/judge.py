"""Judge a client's behaviour in a case: observations in, a verdict out. No processes, no sockets.

``FINDINGS`` are defects worth reporting; ``OBSERVATIONS`` are reported but fail no run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import kproto
from kproto.errors import KprotoError
from kspec.answers import Answer
from kspec.clientfuzz.clients.case import Case
from kspec.clientfuzz.clients.expected_results import differs, meaning, same
from kspec.clientfuzz.process_usage import Usage
from kspec.error_kinds import Failure

__all__ = [
    "FINDINGS",
    "IDLE_SHARE",
    "OBSERVATIONS",
    "Limits",
    "Observation",
    "Outcome",
    "is_healthy",
    "judge",
]

FINDINGS: Final[Mapping[str, str]] = {
    "crash": "the client's process ended",
    "hang": "a call did not return within many of the client's own timeouts",
    "memory": "far more memory than the answer's bytes can hold",
    "cpu": "endless use of processor time",
    "stuck": "a new client in the same process fails on a healthy cluster",
    "wrong": "a result that contradicts the answer's bytes",
}
OBSERVATIONS: Final[Mapping[str, str]] = {
    "wedged": "the client that received the answer fails on a healthy cluster; a new one does not",
    "internal-error": "the caller gets an internal error of the client instead of one about "
    "the answer",
    "background-error": "a stack trace on stderr; calls still work",
    "refuses": "a valid answer is rejected",
    "lenient": "an invalid answer is accepted, and the result is right",
}

IDLE_SHARE: Final = 0.5
"""Share of a processor that an idle client may use."""

_SLIPS: Final = frozenset(
    {
        "TypeError", "AttributeError", "IndexError", "KeyError", "AssertionError", "error",
        "UnicodeDecodeError", "OverflowError", "RecursionError", "UnboundLocalError", "NameError",
        "RangeError", "ReferenceError", "ERR_OUT_OF_RANGE", "ERR_BUFFER_OUT_OF_BOUNDS",
        "NullPointerException", "IndexOutOfBoundsException", "ArrayIndexOutOfBoundsException",
        "BufferUnderflowException", "NegativeArraySizeException", "ClassCastException",
        "StackOverflowError", "IllegalArgumentException", "InvalidStateError", "StructError",
    }
)  # fmt: skip
"""Errors of a language or its library. ``error`` is Python's ``struct.error``."""
_ENDED: Final = {"died": "crash", "hung": "hang"}
_NO_MEMORY: Final = re.compile(
    r"MemoryError|OutOfMemory|out of memory|cannot allocate|allocation failed|bad_alloc", re.I
)
_TRACE: Final = re.compile(
    r"Traceback \(most recent|Exception in thread|^panic:|Uncaught|UnhandledPromise"
    r"|never retrieved",
    re.M,
)
_ACCEPTABLE: Final = frozenset(
    {
        "trailing", "length-negative", "presence", "text-invalid", "tag-twice", "tag-order",
        "tag-size", "tag-count",
    }
)  # fmt: skip
"""Kinds that Kafka's own classes accept, or may accept, so that no result of a client is wrong."""
_UNREAD: Final = frozenset({"size", "short", "correlation-id"})
"""Kinds after which it is unknown whether the client read the answer."""
_VALID: Final = frozenset({"tag-unknown", "varint-padded", "split", "split_delay"})
"""Kinds that no client has a reason to reject."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one case: growth of ``memory`` and ``mapped`` address space in bytes, each plus 64
    times the frame, and ``cpu`` seconds."""

    memory: int = 192 << 20
    mapped: int = 1 << 30
    cpu: float = 4.0


@dataclass(slots=True)
class Observation:
    """What happened in a case.

    ``healthy`` and ``probe`` are the client's earlier answers on a healthy cluster. ``same_client``
    and ``new_client`` are its answers to the probe after the case, None if there was no probe.
    ``sent`` holds the altered frames. ``answers`` counts the answers of that API from the first
    altered one on, during the call. If there are more than were altered, the result may come from
    an unaltered one.
    """

    healthy: Answer
    probe: Answer
    answer: Answer | None = None
    same_client: Answer | None = None
    new_client: Answer | None = None
    broken: str = ""
    hung: bool = False
    call: str = ""
    stderr: str = ""
    before: Usage | None = None
    after: Usage | None = None
    idle_cpu: float = 0.0
    sent: Sequence[bytes] = ()
    answers: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """``verdict`` is a finding, an observation, ``fine``, or ``void`` if the client never requested
    the answer. ``at`` is the place in the client's code, if known."""

    verdict: str
    message: str = ""
    at: str = ""
    answered: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_finding(self) -> bool:
        return self.verdict in FINDINGS

    @property
    def is_observation(self) -> bool:
        return self.verdict in OBSERVATIONS


def judge(case: Case, seen: Observation, limits: Limits) -> Outcome:
    """Return the worst verdict that applies."""
    answered = "" if seen.answer is None else str(seen.answer)[:300]
    for look in (_broken, _usage, _after, _result):
        found = look(case, seen, limits)
        if found is not None:
            verdict, message, at = found
            return Outcome(verdict, message, at, answered)
    return Outcome("fine" if seen.sent else "void", answered=answered)


_Found = tuple[str, str, str] | None


def _broken(_case: Case, seen: Observation, _limits: Limits) -> _Found:
    if not seen.broken:
        # A client that is run for each call, such as kcat, ends with the call.
        failure = None if seen.answer is None else seen.answer.failure
        if failure is None or failure.error not in _ENDED:
            return None
        return _ENDED[failure.error], failure.message, ""
    at = top_frame(seen.stderr)
    if seen.hung:
        return "hang", f"{seen.call}: {seen.broken}", at
    verdict = "memory" if _NO_MEMORY.search(seen.stderr + seen.broken) else "crash"
    return verdict, f"{seen.call}: {seen.broken}", at


def _usage(_case: Case, seen: Observation, limits: Limits) -> _Found:
    for answer in (seen.answer, seen.same_client):
        failure = None if answer is None else answer.failure
        if failure is not None and _NO_MEMORY.search(str(failure)):
            return "memory", str(failure)[:300], failure.at
    if seen.before is None or seen.after is None:
        return None
    frame = sum(map(len, seen.sent))
    grown = seen.after.peak - seen.before.resident
    if grown > limits.memory + 64 * frame:
        what = f"{grown >> 20} MiB more at its peak, for {frame} bytes of answers"
        return "memory", what, ""
    mapped = seen.after.mapped - seen.before.mapped
    if mapped > limits.mapped + 64 * frame:
        return "memory", f"{mapped >> 20} MiB of address space for {frame} bytes of answers", ""
    spent = seen.after.cpu - seen.before.cpu
    if spent > limits.cpu:
        return "cpu", f"{spent:.1f} s of processor time in {seen.milliseconds / 1000:.1f} s", ""
    if seen.idle_cpu:
        return "cpu", f"{seen.idle_cpu:.0%} of a processor while idle", ""
    return None


def _after(_case: Case, seen: Observation, _limits: Limits) -> _Found:
    if seen.new_client is not None and not is_healthy(seen.new_client, seen.probe):
        return "stuck", f"after reconnecting: {str(seen.new_client)[:300]}", ""
    return None


def is_healthy(answer: Answer, right: Answer) -> bool:
    """Return whether the answer contains the one from before any fault. It may contain more, such
    as a topic that the case's call created."""
    if answer.failure is not None or answer.unsupported is not None:
        return False
    got, want = answer.result, right.result
    if isinstance(got, list) and isinstance(want, list):
        return set(want) <= set(got)
    if isinstance(got, Mapping) and isinstance(want, Mapping):
        return all(name in got and got[name] == each for name, each in want.items())
    return bool(got == want)


def _alike(one: Answer, other: Answer) -> bool:
    return one.result == other.result and (one.failure is None) == (other.failure is None)


def _result(case: Case, seen: Observation, _limits: Limits) -> _Found:
    answer, kinds = seen.answer, set(case.kinds)
    if answer is None or not seen.sent:
        return None
    whole = answer.failure is None and answer.unsupported is None
    refused = _refused(case, seen.sent[-1])
    alone = seen.answers == len(seen.sent)
    if whole and alone and not _alike(answer, seen.healthy):
        problem = _wrong_result(case, seen, answer, refused)
        if problem is not None:
            return problem
    slip = None if answer.failure is None else _slip(answer.failure)
    if slip is not None:
        return "internal-error", str(slip)[:300], slip.at
    if _TRACE.search(seen.stderr):
        return "background-error", last_line(seen.stderr), top_frame(seen.stderr)
    if seen.same_client is not None and not is_healthy(seen.same_client, seen.probe):
        return "wedged", f"at the next call: {str(seen.same_client)[:300]}", ""
    if answer.failure is not None and kinds <= _VALID:
        return "refuses", str(answer.failure)[:300], answer.failure.at
    if whole and alone and refused and not kinds & _UNREAD:
        return "lenient", refused, ""
    return None


def _slip(failure: Failure) -> Failure | None:
    """Return the client's internal error among the error and those it wraps."""
    return next(
        (
            each
            for each in failure.chain()
            if each.error in _SLIPS or "runtime error" in each.message
        ),
        None,
    )


def _wrong_result(case: Case, seen: Observation, answer: Answer, refused: str) -> _Found:
    """Judge a result that differs from the healthy one."""
    if refused:
        if not differs(answer.result, seen.healthy.result):
            return None  # it reports for each partition that the answer is unreadable
        verdict = "lenient" if set(case.kinds) & _ACCEPTABLE else "wrong"
        return verdict, f"{refused}; the client: {answer}"[:300], ""
    body = _body(case, seen.sent[-1])
    expected = None if body is None else meaning(case.op, case.api_key, body)
    if expected is None or same(case.op, answer.result, expected):
        return None
    return "wrong", f"the bytes say {expected}; the client: {answer}"[:400], ""


def _refused(case: Case, frame: bytes) -> str:
    """Return the error of strict decoding; empty if the frame is valid."""
    whole = _own(frame)
    try:
        kproto.decode_response(whole, api_key=case.api_key, api_version=case.version)
    except KprotoError as error:
        return f"strictly: {error}"
    return "" if "correlation-id" not in case.kinds else "strictly: unknown correlation id"


def _body(case: Case, frame: bytes) -> Any:
    try:
        return kproto.decode_response(_own(frame), api_key=case.api_key, api_version=case.version)[
            1
        ]
    except KprotoError:
        return None


def _own(frame: bytes) -> bytes:
    """Return the frame without the bytes behind it."""
    size = int.from_bytes(frame[:4], "big", signed=True)
    return frame[: 4 + size] if 0 <= size < len(frame) - 4 else frame


# ---- stack traces --------------------------------------------------------------------------------

_ASSERTED: Final = re.compile(r"(\w+\.[ch]c?):\d+: (?:(\w+): )?Assertion")
_PYTHON: Final = re.compile(r'^\s*File "([^"]+)", line \d+,? in (.+?)\s*$', re.M)
_JAVA: Final = re.compile(r"^\s+at ([\w.$/<>]+)\(.*\)$", re.M)
_NODE: Final = re.compile(
    r"^\s+at (?:async )?(?:new )?([\w.<>\[\] ]+?) \((?!node:)(.+?):\d+:\d+\)", re.M
)
_GO: Final = re.compile(r"^([\w./*()\[\]{}-]+\.[\w.*()\[\]{}-]+)\([^)]*\)$", re.M)


def top_frame(text: str) -> str:
    """Return the innermost function of a stack trace, without line numbers."""
    asserted = _ASSERTED.search(text)
    if asserted is not None:
        return f"{asserted[1]} {asserted[2] or ''}".strip()
    if "most recent call first" in text:  # from faulthandler, which does not know C threads
        text = text.partition("Current thread")[2].partition("\n\n")[0]
        frames = _PYTHON.findall(text)
        return f"{_short(frames[0][0])} {frames[0][1]}" if frames else ""
    frames = _PYTHON.findall(text)
    if frames:
        return f"{_short(frames[-1][0])} {frames[-1][1]}"
    found = _NODE.search(text)
    if found is not None:
        return f"{_short(found[2])} {found[1]}"
    found = _JAVA.search(text)
    if found is not None:
        return found[1]
    for name in _GO.findall(text):
        if not name.startswith(("runtime.", "panic", "main.")):
            return str(name)
    return ""


def _short(path: str) -> str:
    """Return the path from the package's folder on, or the file's name."""
    parts = re.split(r"site-packages/|node_modules/|lib/python[\d.]+/", path)
    return parts[-1] if len(parts) > 1 else path.replace("\\", "/").rpartition("/")[2]


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    problem = [line for line in lines if re.search(r"(Error|Exception|panic|error)\b", line)]
    return (problem or lines or [""])[-1][:300]
