"""The demo's part on Kafka's own tools: each writes to a mock cluster or reads from it.

Each step compares what the tool prints with what the log holds. The tools are those of a release;
``kspec.runner.kafka_tools`` installs them where Java and Maven are.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from demo.data import differs, played
from kproto.errors import AbsentError
from kspec.runner.kafka_tools import RELEASE, installed_tools, tool_command
from mockbroker.running.threaded import ThreadedCluster

__all__ = ["TOOL_STEPS", "ToolStep", "play_tools"]

_SECONDS: Final = 60
_RECORDS: Final = 1000
_TOOLS: Final = "org.apache.kafka.tools."


@dataclass(slots=True)
class _Run:
    jars: str
    mock: ThreadedCluster

    def tool(self, name: str, *arguments: str, text: str = "") -> str:
        """What a tool prints. Raises an error with its messages if it fails."""
        done = subprocess.run(
            [*tool_command(self.jars, _TOOLS + name), *arguments,
             "--bootstrap-server", self.mock.bootstrap],
            input=text, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def events(self, name: str, *arguments: str) -> list[dict[str, Any]]:
        """The JSON objects that a verifiable client prints."""
        lines = self.tool(name, *arguments).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def written(self, topic: str) -> int:
        return len(self.mock.records(topic))


@dataclass(frozen=True, slots=True)
class ToolStep:
    """``run`` returns None, or what differed."""

    title: str
    run: Callable[[_Run], str | None]


def _console_producer(run: _Run) -> str | None:
    run.tool(
        "ConsoleProducer", "--topic", "foo", "--reader-property", "parse.key=true",
        "--reader-property", "key.separator=:", text="a:one\nb:two\na:three\n",
    )  # fmt: skip
    log = [(each.key, each.value) for each in run.mock.records("foo")]
    return differs("the log", log, [(b"a", b"one"), (b"b", b"two"), (b"a", b"three")])


def _console_consumer(run: _Run) -> str | None:
    printed = run.tool(
        "consumer.ConsoleConsumer", "--topic", "foo", "--group", "console", "--from-beginning",
        "--max-messages", "3", "--formatter-property", "print.offset=true",
    )  # fmt: skip
    lines = ["Offset:0\tone", "Offset:1\ttwo", "Offset:2\tthree"]
    return differs("what it printed", printed.splitlines(), lines)


def _verifiable_producer(run: _Run) -> str | None:
    *_, last = run.events("VerifiableProducer", "--topic", "bar", "--max-messages", str(_RECORDS))
    return differs("acknowledged", last["acked"], _RECORDS) or differs(
        "the log's length", run.written("bar"), _RECORDS
    )


def _verifiable_consumer(run: _Run) -> str | None:
    events = run.events(
        "VerifiableConsumer", "--topic", "bar", "--group-id", "verified",
        "--group-protocol", "consumer", "--max-messages", str(_RECORDS),
    )  # fmt: skip
    read = sum(each["count"] for each in events if each["name"] == "records_consumed")
    committed = run.mock.committed("verified").get(("bar", 0))
    return differs("records read", read, _RECORDS) or differs(
        "the committed offset", committed, _RECORDS
    )


def _performance(run: _Run) -> str | None:
    printed = run.tool(
        "ProducerPerformance", "--topic", "baz", "--num-records", str(_RECORDS),
        "--record-size", "100", "--throughput", "-1",
    )  # fmt: skip
    first = printed.splitlines()[-1].partition(" records sent")[0]
    return differs("records sent", first, str(_RECORDS)) or differs(
        "the log's length", run.written("baz"), _RECORDS
    )


TOOL_STEPS: Final[Sequence[ToolStep]] = (
    ToolStep("the console producer writes three lines with keys", _console_producer),
    ToolStep("the console consumer prints them with their offsets", _console_consumer),
    ToolStep("the verifiable producer has 1,000 records acknowledged", _verifiable_producer),
    ToolStep(
        "the verifiable consumer reads and commits them, by the consumer protocol",
        _verifiable_consumer,
    ),
    ToolStep("the performance test of producers sends 1,000 records", _performance),
)


def play_tools(show: Callable[[str], None]) -> bool | None:
    """Play the steps and show a line for each; return whether all were right, and None if the
    tools cannot be had here."""
    try:
        jars = installed_tools()
    except AbsentError as error:
        show(f"Kafka's tools: {error}")
        return None
    show(f"Kafka's tools {RELEASE}")
    topics = ["foo=1,2,3", "bar=1,2,3", "baz=1,2,3"]
    with ThreadedCluster(topics=topics, profile="kafka-4.4") as mock:
        return played(TOOL_STEPS, _Run(str(jars), mock), show)
