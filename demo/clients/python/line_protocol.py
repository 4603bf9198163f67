"""The demo's side channel: one JSON object a line on stdin, one answer a line on stdout.

Knows only lines and how an exception becomes an answer. What an operation does is the driver's;
what its answer ought to be is the demo's. The Node, Java and Go drivers speak the same lines:

    -> {"op": "alter", "topic": "foo", "partition": 0, "replicas": [4, 5, 6]}
    <- {"ok": true, "result": null}
    <- {"ok": false, "error": "NoReassignmentInProgressError", "code": 85, "message": "..."}
    <- {"unsupported": "aiokafka has no call for it"}

The first line out is the greeting, ``{"client": ..., "version": ...}``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Failure", "Operation", "Unsupported", "serve"]

Operation = Callable[[dict[str, Any]], Any]


class Unsupported(Exception):
    """The client has no public call for this operation."""


class Failure(Exception):
    """An error the client returned rather than raised; ``name`` is the client's own word for it."""

    def __init__(self, name: str, code: int | None, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.code = code


def serve(client: str, version: str, operations: Mapping[str, Operation]) -> None:
    """Greet, then answer every line of stdin until it ends."""
    _write({"client": client, "version": version})
    for line in sys.stdin:
        _write(_answer(operations, json.loads(line)))


def _answer(operations: Mapping[str, Operation], call: dict[str, Any]) -> dict[str, Any]:
    operation = operations.get(call["op"])
    if operation is None:
        return {"unsupported": f"no public call for {call['op']!r}"}
    try:
        return {"ok": True, "result": operation(call)}
    except Unsupported as why:
        return {"unsupported": str(why)}
    except Failure as failure:
        return {"ok": False, "error": failure.name, "code": failure.code, "message": str(failure)}
    except Exception as error:  # whatever the client raises is the answer, not our crash
        return {
            "ok": False,
            "error": type(error).__name__,
            "code": _kafka_code(error),
            "message": str(error),
        }


def _kafka_code(error: BaseException) -> int | None:
    """The Kafka error code an exception carries; kafka-python and aiokafka call it ``errno``."""
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) else None


def _write(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
