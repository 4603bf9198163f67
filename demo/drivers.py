"""Drive the clients of the conformance suite one partition at a time, as the demo's story does.

``kspec`` has the adapters, their protocol, and the handling of their processes. This module turns a
call of the story into one of an adapter's, and the outcome of its partition into an answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kspec.answers import Answer as AdapterAnswer
from kspec.error_kinds import Failure
from kspec.errors import AdapterError
from kspec.runner.adapters import ProcessAdapter
from kspec.runner.install import Launch

__all__ = ["CLIENT_TIMEOUT_MS", "NO_OUTCOME", "Answer", "Driver", "DriverError", "drive"]

CLIENT_TIMEOUT_MS = 8_000
"""The time-out that each client is configured with."""

NO_OUTCOME = "no outcome"
"""The error of an answer without the partition that the call was about."""

DriverError = AdapterError


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call. ``code`` is Kafka's error code, if the client's error or one that it
    wraps has it."""

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
    """A running client, to be called from a thread without an event loop. ``client`` and
    ``version`` are from its greeting."""

    def __init__(self, adapter: ProcessAdapter, runner: asyncio.Runner) -> None:
        self._adapter = adapter
        self._runner = runner
        self.client = adapter.greeting.client
        self.version = adapter.greeting.version

    def call(self, op: str, **arguments: Any) -> Answer:
        """Make a call of the story: ``describe_cluster``, ``alter``, ``list`` or ``elect``. Raises
        DriverError if the client's process can no longer be used."""
        key = f"{arguments.get('topic')}-{arguments.get('partition')}"
        name, given = _translated(op, key, arguments)
        answer = self._runner.run(self._adapter.call(name, given))
        if answer.unsupported is not None:
            return Answer(ok=False, unsupported=answer.unsupported)
        if op in ("alter", "elect"):
            return _of_partition(key, answer)
        if answer.failure is not None:
            return _failed(answer.failure)
        return Answer(ok=True, result=answer.result)


def _translated(op: str, key: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if op == "alter":
        guard = {name: value for name, value in given.items() if name.startswith("allow_")}
        return "alter_reassignments", {"assignments": {key: given["replicas"]}, **guard}
    if op == "list":
        partitions = [f"{topic}-{index}" for topic, index in given["partitions"]]
        return "list_reassignments", {"partitions": partitions}
    if op == "elect":
        return "elect_leaders", {"type": "preferred", "partitions": [key]}
    return op, dict(given)


def _of_partition(key: str, answer: AdapterAnswer) -> Answer:
    """Return the outcome of the partition. A client whose outcomes lack it has not answered the
    call."""
    try:
        failure = answer.outcome(key)
    except KeyError:
        return Answer(ok=False, error=NO_OUTCOME, message=f"the client says nothing about {key}")
    return Answer(ok=True) if failure is None else _failed(failure)


def _failed(failure: Failure) -> Answer:
    codes = (each.code for each in failure.chain() if each.code is not None)
    return Answer(ok=False, error=failure.error, code=next(codes, None), message=failure.message)


@contextmanager
def drive(launch: Launch, bootstrap: str, client_id: str = "demo") -> Iterator[Driver]:
    """Start a client against ``bootstrap``, and stop its process on the way out."""
    arguments = {"bootstrap": bootstrap, "timeout_ms": CLIENT_TIMEOUT_MS, "client_id": client_id}
    with asyncio.Runner() as runner:
        adapter = runner.run(ProcessAdapter.start(launch.command, launch.cwd, launch.environment))
        try:
            answer = runner.run(adapter.call("connect", arguments))
            if answer.failure is not None:
                raise DriverError(f"the client cannot be made: {answer.failure}")
            yield Driver(adapter, runner)
        finally:
            runner.run(adapter.stop())
