"""The demo's part on data: a producer and a consumer of kafka-python on one mock cluster.

Each step compares what the client saw with what the log holds. The third one shows the requests of
a retry, byte by byte. The last one loses a record that was acknowledged, by an unclean election,
and shows that the consumer notices.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from demo.wire import PRODUCE
from kproto.journal import Entry
from mockbroker.running.threaded import ThreadedCluster

__all__ = ["DATA_STEPS", "DataStep", "differs", "play_data", "played"]

_SECONDS: Final = 10


@dataclass(slots=True)
class _Run:
    kafka: Any
    mock: ThreadedCluster
    producer: Any
    consumer: Any
    wire: Callable[[Sequence[Entry]], None]

    @property
    def foo(self) -> Any:
        return self.kafka.TopicPartition("foo", 0)

    def send(self, value: bytes) -> int:
        offset: int = self.producer.send("foo", value).get(_SECONDS).offset
        return offset

    def read(self, count: int) -> list[bytes]:
        return [next(self.consumer).value for _ in range(count)]

    def log(self) -> list[bytes | None]:
        return [each.value for each in self.mock.records("foo")]

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show what the producer sends, and what it receives."""
        before = self.mock.journal.last_sequence
        yield
        self.wire([each for each in self.mock.journal.newer(before) if each.api_key == PRODUCE])


@dataclass(frozen=True, slots=True)
class DataStep:
    """``run`` returns None, or what differed."""

    title: str
    run: Callable[[_Run], str | None]


def differs(what: str, seen: object, right: object) -> str | None:
    """None if both are equal, else a text for the screen."""
    return None if seen == right else f"{what} is {seen}, right is {right}"


def _produce(run: _Run) -> str | None:
    offsets = [run.send(b"one"), run.send(b"two")]
    return differs("offsets", offsets, [0, 1]) or differs("the log", run.log(), [b"one", b"two"])


def _consume(run: _Run) -> str | None:
    return differs("what the consumer read", run.read(2), [b"one", b"two"])


def _retry(run: _Run) -> str | None:
    run.mock.fault(api="Produce", disconnect="after", times=1)
    with run.shown():
        offset = run.send(b"three")
    return differs("the offset", offset, 2) or differs(
        "the log", run.log(), [b"one", b"two", b"three"]
    )


def _lose(run: _Run) -> str | None:
    run.mock.leave_isr("foo-0", 2)
    run.send(b"four")
    read = run.read(2)
    run.mock.unclean_election("foo-0", 2)
    problem = differs("what the consumer read", read, [b"three", b"four"])
    try:
        next(run.consumer)
    except run.kafka.errors.LogTruncationError as error:
        found = error.divergent_offsets[run.foo]
        return problem or differs("the end of the log", found.offset, 3)
    return problem or "the consumer did not notice"


DATA_STEPS: Final[Sequence[DataStep]] = (
    DataStep("an idempotent producer appends two records", _produce),
    DataStep("a consumer reads them", _consume),
    DataStep("an answer is lost: the retry makes no duplicate", _retry),
    DataStep("an acknowledged record is lost: the consumer learns of it", _lose),
)


def play_data(show: Callable[[str], None], wire: Callable[[Sequence[Entry]], None]) -> bool | None:
    """Play the steps and show a line for each, and the frames of one of them; return whether all
    were right, and None if kafka-python is not installed here."""
    try:
        import kafka
        import kafka.errors
    except ImportError:
        show("Produce and consume: kafka-python is not installed")
        return None
    show(f"Produce and consume with kafka-python {kafka.__version__}")
    with _quiet("kafka"), ThreadedCluster(topics=["foo=1,2,3"], profile="kafka-4.4") as mock:
        run = _Run(
            kafka,
            mock,
            kafka.KafkaProducer(
                bootstrap_servers=mock.bootstrap, client_id="demo", enable_idempotence=True
            ),
            kafka.KafkaConsumer(bootstrap_servers=mock.bootstrap, auto_offset_reset="none"),
            wire,
        )
        run.consumer.assign([run.foo])
        run.consumer.seek(run.foo, 0)
        right = played(DATA_STEPS, run, show)
        run.producer.close()
        run.consumer.close()
    return right


class _Playable(Protocol):
    @property
    def title(self) -> str: ...
    @property
    def run(self) -> Callable[[Any], str | None]: ...


def played(steps: Sequence[_Playable], run: object, show: Callable[[str], None]) -> bool:
    """Play steps and show a line for each; return whether all were right."""
    problems = []
    for step in steps:
        problem = _problem(step, run)
        problems += [] if problem is None else [problem]
        show(f"  {'✓' if problem is None else '✗'} {step.title}"
             + ("" if problem is None else f": {problem}"))  # fmt: skip
    return not problems


def _problem(step: _Playable, run: object) -> str | None:
    try:
        return step.run(run)
    except Exception as error:  # a client may raise anything
        return f"{type(error).__name__}: {error}"


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """The client logs the errors that the steps provoke."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
