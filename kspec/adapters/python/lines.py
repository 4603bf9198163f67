"""The adapter's side of the adapter protocol: JSON lines in on stdin, JSON lines out on stdout.

This module knows the lines and how an exception becomes an answer. docs/reference/adapters.md
documents the protocol. The adapters in Node, Java and Go use the same lines::

    -> {"op": "connect", "bootstrap": "127.0.0.1:9092", "timeout_ms": 2000, "client_id": "kspec"}
    <- {"ok": true, "result": null, "raw": "None"}
    -> {"op": "alter_reassignments", "assignments": {"foo-0": [4, 5, 6], "foo-1": null}}
    <- {"ok": true, "result": {"foo-0": null, "foo-1": {"error": "...", "code": 85, ...}}, ...}
    <- {"ok": false, "error": "KafkaTimeoutError", "code": null, "message": "..."}
    <- {"unsupported": "aiokafka has no call for it"}
    <- {"adapter_error": {"error": "KeyError", "message": "...", "at": "lines.py by_topic"}}

The first line out is the greeting. An adapter calls its client inside ``with client_call():``. An
exception raised there is the client's answer; any other is an error of the adapter.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

__all__ = [
    "DONE",
    "Adapter",
    "Failure",
    "Operation",
    "Raised",
    "Returned",
    "Unsupported",
    "answered",
    "client_call",
    "outcome",
    "serve",
]

Operation = Callable[[dict[str, Any]], "Returned"]


@dataclass(frozen=True, slots=True)
class Returned:
    """What the client returned, and the equivalent result of the adapter protocol."""

    raw: Any
    result: Any


DONE: Final = Returned(None, None)
"""The answer of a call that has no result."""


class Unsupported(Exception):
    """The client has no public call for this operation."""


class Raised(Exception):
    """The client raised ``error``. ``records`` are those that it had returned before, and
    ``partitions`` those that the error names, each with its outcome."""

    def __init__(
        self,
        error: Exception,
        records: list[dict[str, Any]] | None = None,
        partitions: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.records = records or []
        self.partitions = partitions or {}


class Failure(Exception):
    """An error that the client returned instead of raising. ``name`` is the client's own name for
    it."""

    def __init__(self, name: str, code: int | None, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.code = code


@contextmanager
def client_call() -> Iterator[None]:
    """Encloses each call of the client and nothing else: an exception raised inside is the client's
    answer."""
    try:
        yield
    except Exception as error:
        raise Raised(error) from error


class Adapter(Protocol):
    """What ``serve`` needs.

    ``connect`` makes the client and may leave connecting to the first call. ``close`` may be called
    twice, or without ``connect``. ``options`` are those that differ from the client's defaults.
    """

    client: str
    version: str

    def options(self) -> Mapping[str, Any]: ...

    def connect(self, call: dict[str, Any]) -> Returned: ...

    def close(self) -> None: ...

    def operations(self) -> Mapping[str, Operation]: ...


def serve(
    adapter: Adapter,
    described: Callable[[Exception], dict[str, Any]] | None = None,
    connects: Collection[str] = (),
    records: Collection[str] = (),
) -> None:
    """Write the greeting, then answer every line of stdin. ``described`` turns the client's
    exception into the members of an answer; ``connects`` and ``records`` name members of
    ``connect`` and of records that not every adapter has."""

    def close(_call: dict[str, Any]) -> Returned:
        adapter.close()
        return DONE

    operations: dict[str, Operation] = {
        "connect": adapter.connect,
        "close": close,
        **adapter.operations(),
    }
    _write(
        {
            "client": adapter.client,
            "version": adapter.version,
            "language": "python",
            "capabilities": sorted(adapter.operations()),
            "connect": sorted(connects),
            "records": sorted(records),
            "options": {name: str(value) for name, value in adapter.options().items()},
        }
    )
    for line in sys.stdin:
        _write(_answer(operations, json.loads(line), described or outcome))
    adapter.close()


def _answer(
    operations: Mapping[str, Operation],
    call: dict[str, Any],
    described: Callable[[Exception], dict[str, Any]],
) -> dict[str, Any]:
    operation = operations.get(call["op"])
    if operation is None:
        return {"unsupported": f"no public call for {call['op']!r}"}
    return answered(lambda: operation(call), described)


def answered(
    work: Callable[[], Returned], described: Callable[[Exception], dict[str, Any]]
) -> dict[str, Any]:
    """Return the answer to a call."""
    try:
        returned = work()
        answer = {"ok": True, "result": returned.result, "raw": repr(returned.raw)}
        json.dumps(answer)  # a result that is not JSON is the adapter's error too
        return answer
    except Unsupported as error:
        return {"unsupported": str(error)}
    except Raised as raised:
        more = {"records": raised.records, "partitions": raised.partitions}
        given = {name: value for name, value in more.items() if value}
        return {"ok": False, **described(raised.error), **given, "raw": repr(raised.error)}
    except Failure as failure:
        return {"ok": False, **outcome(failure)}
    except Exception as error:
        return {"adapter_error": outcome(error)}


def outcome(error: BaseException) -> dict[str, Any]:
    """Describe an error: its class, Kafka's code if it shows one, its message, and its cause.

    A cause that already occurred in the chain, as with ``raise error from error``, is left out.
    """
    return _outcome(error, frozenset())


def _outcome(error: BaseException, before: frozenset[int]) -> dict[str, Any]:
    if isinstance(error, Failure):
        return {"error": error.name, "code": error.code, "message": str(error)}
    outcome: dict[str, Any] = {
        "error": type(error).__name__,
        "code": _kafka_code(error),
        "message": str(error),
    }
    stack = traceback.extract_tb(error.__traceback__)
    if stack:
        outcome["at"] = f"{_short(stack[-1].filename)} {stack[-1].name}"
    seen = before | {id(error)}
    if error.__cause__ is not None and id(error.__cause__) not in seen:
        outcome["cause"] = _outcome(error.__cause__, seen)
    return outcome


def _short(path: str) -> str:
    """Return the path from an installed package's folder on, or the file's name."""
    _, installed, rest = path.replace("\\", "/").rpartition("site-packages/")
    return rest if installed else rest.rpartition("/")[2]


def _kafka_code(error: BaseException) -> int | None:
    """kafka-python and aiokafka call the code ``errno``, a name that OSError uses for its own."""
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) and not isinstance(error, OSError) else None


def _write(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
