"""What every client must be able to do: produce with its codecs, share a group, read on from what
was committed, find offsets by time. Adapters say how a client does it."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

__all__ = ["BASE_MS", "PARTITIONS", "TOPIC", "Client", "Reader", "play"]

TOPIC: Final = "foo"
PARTITIONS: Final = 4
BASE_MS: Final = 1_700_000_000_000
PATIENCE: Final = 60.0
RECORDS: Final = 12


class Reader(ABC):
    """A consumer of a group in a thread of its own, which polls and commits until it is closed."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.assigned: frozenset[int] = frozenset()
        self.error: BaseException | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._thread.join(PATIENCE)
        if kind is None and self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            self.open()
            while not self._closing.is_set():
                values, assigned = self.poll()
                if values:
                    self.commit()
                self.values += values
                self.assigned = frozenset(assigned)
            self.close()
        except BaseException as error:
            self.error = error

    @abstractmethod
    def open(self) -> None:
        """Subscribe to the topic."""

    @abstractmethod
    def poll(self) -> tuple[list[bytes], Iterable[int]]:
        """Records of the next moments, and the partitions that the consumer has."""

    @abstractmethod
    def commit(self) -> None:
        """Commit what was polled."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group."""


class Client(ABC):
    codecs: tuple[str, ...]
    """Those that the installed client can write."""

    @abstractmethod
    def produce(self, values: list[bytes], codec: str) -> None:
        """Record number i has timestamp ``BASE_MS + i`` and goes to partition i modulo 4. Returns
        when all are acknowledged."""

    @abstractmethod
    def reader(self, group: str) -> Reader: ...

    @abstractmethod
    def offset_at(self, partition: int, timestamp: int) -> int | None:
        """The first offset with this timestamp or a later one."""


def play(client: Client) -> None:
    sent = [
        _produce(client, codec, f"{codec}-{number}") for number, codec in enumerate(client.codecs)
    ]
    everything = sorted(value for values in sent for value in values)
    with client.reader("group") as first:
        _until("read everything", first, lambda: len(first.values) >= len(everything))
        assert sorted(first.values) == everything
        with client.reader("group") as second:
            _until("share", first, lambda: len(first.assigned) == len(second.assigned) == 2)
            assert first.assigned | second.assigned == frozenset(range(PARTITIONS))
        assert second.values == []
        _until("take over", first, lambda: len(first.assigned) == PARTITIONS)
    late = _produce(client, client.codecs[0], "late")
    with client.reader("group") as third:
        _until("read on", third, lambda: len(third.values) >= len(late))
        assert sorted(third.values) == sorted(late)
    for partition in range(PARTITIONS):
        assert client.offset_at(partition, BASE_MS) == 0
        assert client.offset_at(partition, BASE_MS + partition + 1) == 1
        assert client.offset_at(partition, BASE_MS + RECORDS) is None


def _produce(client: Client, codec: str, name: str) -> list[bytes]:
    values = [b"%s-%d" % (name.encode(), i) for i in range(RECORDS)]
    client.produce(values, codec)
    return values


def _until(what: str, reader: Reader, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        if reader.error is not None:
            raise reader.error
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.01)
