"""The adapter protocol, the program's side: JSON lines in on stdin, JSON lines out on stdout.

Knows only lines and how an exception becomes an answer; docs/adapters.md has the protocol. What a
call does is the adapter's, what its answer ought to be is the case's. The adapters in Node, Java
and Go speak the same lines::

    -> {"op": "connect", "bootstrap": "127.0.0.1:9092", "timeout_ms": 2000, "client_id": "kspec"}
    <- {"ok": true, "result": null}
    -> {"op": "alter_reassignments", "assignments": {"foo-0": [4, 5, 6], "foo-1": null}}
    <- {"ok": true, "result": {"foo-0": null, "foo-1": {"error": "...", "code": 85, ...}}}
    <- {"ok": false, "error": "KafkaTimeoutError", "code": null, "message": "..."}
    <- {"unsupported": "aiokafka has no call for it"}

The first line out is the greeting.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = [
    "Adapter",
    "Failure",
    "Operation",
    "Unsupported",
    "by_topic",
    "failed",
    "outcome",
    "serve",
]

Operation = Callable[[dict[str, Any]], Any]


class Unsupported(Exception):
    """The client has no public call for this operation."""


class Failure(Exception):
    """An error the client returned rather than raised; ``name`` is the client's own word for it."""

    def __init__(self, name: str, code: int | None, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.code = code


class Adapter(Protocol):
    """What ``serve`` needs. ``connect`` makes the client, and may leave connecting to the first
    call; ``close`` may come twice, or without a ``connect``."""

    client: str
    version: str

    def connect(self, call: dict[str, Any]) -> None: ...

    def close(self) -> None: ...

    def operations(self) -> Mapping[str, Operation]: ...


def serve(adapter: Adapter) -> None:
    """Greet, then answer every line of stdin until it ends."""
    operations: dict[str, Operation] = {
        "connect": adapter.connect,
        "close": lambda _call: adapter.close(),
        **adapter.operations(),
    }
    _write(
        {
            "client": adapter.client,
            "version": adapter.version,
            "language": "python",
            "capabilities": sorted(adapter.operations()),
        }
    )
    for line in sys.stdin:
        _write(_answer(operations, json.loads(line)))
    adapter.close()


def _answer(operations: Mapping[str, Operation], call: dict[str, Any]) -> dict[str, Any]:
    operation = operations.get(call["op"])
    if operation is None:
        return {"unsupported": f"no public call for {call['op']!r}"}
    try:
        return {"ok": True, "result": operation(call)}
    except Exception as error:  # whatever the client raises is the answer, not our crash
        return failed(error)


def failed(error: Exception) -> dict[str, Any]:
    """The answer to a call that came to this."""
    if isinstance(error, Unsupported):
        return {"unsupported": str(error)}
    return {"ok": False, **outcome(error)}


def outcome(error: BaseException) -> dict[str, Any]:
    """An error of the client's: its name, Kafka's code where it shows one, and what it says."""
    if isinstance(error, Failure):
        return {"error": error.name, "code": error.code, "message": str(error)}
    told = {"error": type(error).__name__, "code": _kafka_code(error), "message": str(error)}
    stack = traceback.extract_tb(error.__traceback__)
    return {**told, "at": f"{_short(stack[-1].filename)} {stack[-1].name}"} if stack else told


def _short(path: str) -> str:
    """From an installed package's folder on, or the file's name."""
    _, installed, rest = path.replace("\\", "/").rpartition("site-packages/")
    return rest if installed else rest.rpartition("/")[2]


def _kafka_code(error: BaseException) -> int | None:
    """kafka-python and aiokafka call the code ``errno``, as OSError does its own."""
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) and not isinstance(error, OSError) else None


def by_topic(keys: Any) -> dict[str, list[int]]:
    """``["foo-0", "foo-1"]`` as ``{"foo": [0, 1]}``."""
    found: dict[str, list[int]] = {}
    for key in keys:
        topic, _, partition = key.rpartition("-")
        found.setdefault(topic, []).append(int(partition))
    return found


def _write(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
