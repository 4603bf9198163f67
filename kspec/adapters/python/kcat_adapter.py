"""Drive kcat (librdkafka on the command line) by the protocol of docs/reference/adapters.md, one
run per call.

Of everything a case asks for, kcat can only list metadata. Every call is a new process, so nothing
that it learned remains for the next.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from kspec.adapters.python.lines import DONE, Failure, Operation, Returned, outcome, serve
from kspec.adapters.python.values import (
    LIBRDKAFKA_NAMES,
    ascending,
    client_options,
    elements,
    get,
    librdkafka_time_outs,
)

__all__ = ["Adapter"]


def _version() -> str:
    done = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False)
    found = re.search(r"Version ([\d.]+).*?librdkafka ([\d.]+)", done.stdout, re.S)
    return f"{found[1]} (librdkafka {found[2]})" if found else "unknown"


class Adapter:
    """The command line, from ``connect`` on."""

    client = "kcat"

    def __init__(self) -> None:
        self.version = _version()
        self._command: list[str] = []
        self._seconds = 0.0

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self.describe_cluster,
            "describe_topics": self.describe_topics,
            "list_topics": self.list_topics,
        }

    def options(self) -> Mapping[str, Any]:
        return {
            "-m": "timeout_ms, in whole seconds, at least 1",
            **librdkafka_time_outs("timeout_ms"),
        }

    def connect(self, call: dict[str, Any]) -> Returned:
        self._seconds = call["timeout_ms"] / 1000
        options = {
            "client.id": call["client_id"],
            **librdkafka_time_outs(call["timeout_ms"]),
            **client_options(call, LIBRDKAFKA_NAMES),
        }
        self._command = ["kcat", "-b", call["bootstrap"], "-L", "-J"]
        # kcat takes its timeout in whole seconds.
        self._command += ["-m", str(max(int(self._seconds), 1))]
        for name, value in options.items():
            self._command += ["-X", f"{name}={value}"]
        return DONE

    def close(self) -> None:
        """Nothing is open between calls."""

    def describe_cluster(self, _call: dict[str, Any]) -> Returned:
        metadata = self._list()
        ids = [get(row, "id") for row in elements(get(metadata, "brokers"))]
        controller = get(metadata, "controllerid")
        return Returned(metadata, {"brokers": ascending(ids), "controller": controller})

    def describe_topics(self, call: dict[str, Any]) -> Returned:
        found: dict[str, Any] = {}
        raw = [self._list("-t", name) for name in call["topics"]]
        for row in (row for metadata in raw for row in elements(get(metadata, "topics"))):
            name = str(get(row, "topic"))
            if get(row, "error"):
                found[name] = outcome(Failure("kcat", None, str(get(row, "error"))))
                continue
            found[name] = {
                str(get(each, "partition")): {
                    "leader": get(each, "leader"),
                    "replicas": [get(replica, "id") for replica in elements(get(each, "replicas"))],
                    "isr": [get(replica, "id") for replica in elements(get(each, "isrs"))],
                }
                for each in elements(get(row, "partitions"))
            }
        return Returned(raw, found)

    def list_topics(self, _call: dict[str, Any]) -> Returned:
        metadata = self._list()
        return Returned(
            metadata, ascending(get(row, "topic") for row in elements(get(metadata, "topics")))
        )

    def _list(self, *more: str) -> Any:
        """Return kcat's output. A failure is named by this adapter: ``hung`` or ``died``, or
        ``kcat`` if the program exits with its own message."""
        try:
            done = subprocess.run(
                [*self._command, *more],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=5 * self._seconds,
            )
        except subprocess.TimeoutExpired:
            raise Failure("hung", None, "killed: no end after five of its own time-outs") from None
        if done.returncode < 0:
            raise Failure("died", None, f"ended by signal {-done.returncode}")
        if done.returncode:
            raise Failure("kcat", None, done.stderr.strip() or f"exit {done.returncode}")
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise Failure("kcat", None, f"its output is not JSON: {done.stdout}") from None


if __name__ == "__main__":
    serve(Adapter())
