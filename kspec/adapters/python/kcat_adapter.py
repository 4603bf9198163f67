"""Drives kcat (librdkafka on the command line) by the lines of docs/adapters.md: one run a call.

kcat lists metadata and nothing else that a case asks for. It is a command, so every call is a new
client: what one call learned is gone at the next.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from kspec.adapters.python.lines import Failure, Operation, serve

__all__ = ["Adapter"]


def _version() -> str:
    done = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False)
    found = re.search(r"Version ([\d.]+).*?librdkafka ([\d.]+)", done.stdout, re.S)
    return f"{found[1]} (librdkafka {found[2]})" if found else "unknown"


class Adapter:
    """A command line, from ``connect`` on."""

    client = "kcat"

    def __init__(self) -> None:
        self.version = _version()
        self._command: list[str] = []
        self._seconds = 0.0

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self.describe_cluster,
            "describe_topics": self.describe_topics,
            "list_topics": lambda _call: sorted(row["topic"] for row in self._list()["topics"]),
        }

    def connect(self, call: dict[str, Any]) -> None:
        self._seconds = call["timeout_ms"] / 1000
        options = {
            "client.id": call["client_id"],
            "socket.timeout.ms": call["timeout_ms"],
            "socket.connection.setup.timeout.ms": max(call["timeout_ms"], 1000),
        }
        sasl = call.get("sasl")
        if sasl is not None:
            options |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": sasl["mechanism"],
                "sasl.username": sasl["username"],
                "sasl.password": sasl["password"],
            }
        self._command = ["kcat", "-b", call["bootstrap"], "-L", "-J"]
        # kcat takes whole seconds for its own patience.
        self._command += ["-m", str(max(int(self._seconds), 1))]
        for name, value in options.items():
            self._command += ["-X", f"{name}={value}"]

    def close(self) -> None:
        """Nothing is open between calls."""

    def describe_cluster(self, _call: dict[str, Any]) -> dict[str, Any]:
        metadata = self._list()
        return {
            "brokers": sorted(row["id"] for row in metadata["brokers"]),
            "controller": metadata["controllerid"],
        }

    def describe_topics(self, call: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in call["topics"]:
            for row in self._list("-t", name)["topics"]:
                if row.get("error"):
                    found[name] = {"error": "kcat", "code": None, "message": row["error"]}
                    continue
                found[name] = {
                    str(each["partition"]): {
                        "leader": each["leader"],
                        "replicas": [replica["id"] for replica in each["replicas"]],
                        "isr": [replica["id"] for replica in each["isrs"]],
                    }
                    for each in row["partitions"]
                }
        return found

    def _list(self, *more: str) -> dict[str, Any]:
        try:
            done = subprocess.run(
                [*self._command, *more],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=5 * self._seconds,
            )
        except subprocess.TimeoutExpired:
            raise Failure("hung", None, "killed: no end after five of its own time-outs") from None
        if done.returncode < 0:
            raise Failure("died", None, f"ended by signal {-done.returncode}")
        if done.returncode:
            raise Failure("kcat", None, done.stderr.strip() or f"exit {done.returncode}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


if __name__ == "__main__":
    serve(Adapter())
