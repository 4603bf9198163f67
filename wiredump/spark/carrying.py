"""One task of a micro-batch: it reads the packets of its share of the connections, continues their
state from the previous batch, and leaves it to the next.

The state is sorted by the two ends, as packets are, so both are read side by side, and the state of
one pair of ends is held at a time. State without new packets stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from wiredump.readers import Anomaly
from wiredump.readers.tcp import STALE_NS
from wiredump.spark.columns import ANOMALY
from wiredump.spark.connections import ConnectionTask, Group, Options
from wiredump.spark.state import Entry, State, StateReader, StateWriter, dump, load
from wiredump.storage import Location
from wiredump.tables.deferred_merge import Names
from wiredump.tables.deferred_rows import DeferredRows
from wiredump.tables.parts import Manifest
from wiredump.tables.publishing import STAGING

__all__ = ["LATE_NS", "STATE", "Carrying", "Kept", "carry_connections"]

STATE: Final = "state"
LATE_NS: Final = 600_000_000_000
"""How far behind the newest file's first packet a packet may be and still find its connection, if
that has ended."""


class Carrying(msgspec.Struct, frozen=True, kw_only=True):
    """What the tasks of a batch need beside ``Options``: its number, the state of the previous
    batch by task, the folder of data files, the first time of the newest file, and the file of
    topic names. A connection that was silent for ``idle_ns`` has ended; None: it never has.
    ``ending``: nothing follows. ``learnt``: the previous batch showed ports of brokers, which may
    decide what connections are that wait."""

    batch: int
    before: dict[int, State]
    data: str
    newest_ns: int
    names: str | None
    ending: bool
    idle_ns: int | None = None
    learnt: bool = False

    def data_of(self, task: int) -> Callable[[int], str]:
        """Return the path of a task's data file of a batch."""
        folder = Location(self.data)
        return lambda batch: str(folder / f"{batch:06d}" / f"part-{task:05d}")


class Kept(Manifest):
    """The result of a task of a batch. ``fed`` counts the bytes of payload in its rows."""

    state: State | None = None
    fed: int = 0
    task: int = 0


def carry_connections(
    batches: Iterable[pa.RecordBatch], options: Options, carrying: Carrying, task: int
) -> Kept:
    """Write rows and state of all connections in ``batches``, or in the previous state."""
    state, newest_ns = carrying.before.get(task), carrying.newest_ns
    with StateReader(state, carrying.data_of(task), newest_ns) as before:
        return _Carrying(options, carrying, task, before).keep(batches)


class _Carrying(ConnectionTask):
    def __init__(
        self, options: Options, carrying: Carrying, task: int, before: StateReader
    ) -> None:
        super().__init__(options, task)
        if carrying.names is not None:
            self._deferred = DeferredRows(
                options.tables, known=Names(Location(carrying.names)).name
            )
        self._ending = carrying.ending
        self._learnt = carrying.learnt
        self._forgotten_ns = carrying.newest_ns - LATE_NS - STALE_NS
        idle_ns = carrying.idle_ns
        self._idle_since_ns = 0 if idle_ns is None else carrying.newest_ns - idle_ns
        self._task = task
        self._before = before
        self._old = carrying.before.get(task)
        self._emptied = before.emptied
        self._entries = iter(before)
        self._next = next(self._entries, None)
        self._fed = 0
        place = Location(options.out) / STAGING / STATE
        place.mkdir()
        name = f"{task:05d}-{uuid4().hex}"
        index, data = place / f"index-{name}", place / f"data-{name}"
        self._after = StateWriter(index, data, carrying.batch)

    def keep(self, batches: Iterable[pa.RecordBatch]) -> Kept:
        """All of it."""
        try:
            done = self.run(batches)
            state = self._after.close(self._old)
        finally:
            self._after.close_files()
        fields = {name: getattr(done, name) for name in done.__struct_fields__}
        kept = None if self._ending else state
        return Kept(**fields, state=kept, fed=self._fed, task=self._task)

    def take(self, batch: pa.RecordBatch) -> None:
        self._fed += pc.sum(batch.column("payload_size")).as_py() or 0
        super().take(batch)

    def other(self, kind: int, payload: bytes) -> None:
        super().other(kind, payload)
        if kind == ANOMALY:
            self._fed += msgspec.msgpack.decode(payload, type=Anomaly).length

    def begin(self, key: bytes) -> Group:
        self._pass(key)
        entry = self._next
        if entry is None or entry.key != key:
            return super().begin(key)
        self._next = next(self._entries, None)
        return self._resumed(entry)

    def _resumed(self, entry: Entry) -> Group:
        return Group(self, load(self._before.rest(entry), self.codec), entry.key)

    def finish(self, key: bytes, group: Group) -> None:
        if self._ending:
            super().finish(key, group)
            return
        is_open, at_ns, ended, rows = group.pause()
        self.add(rows, ended)
        self._after.add(key, is_open, at_ns, dump(group.carried, self.codec))

    def _pass(self, key: bytes | None) -> None:
        """What stands in front of ``key``, or all that is left."""
        while self._next is not None and (key is None or self._next.key < key):
            entry, self._next = self._next, next(self._entries, None)
            until_ns = self._idle_since_ns if entry.is_open else self._forgotten_ns
            if self._ending or entry.at_ns < until_ns:
                super().finish(entry.key, self._resumed(entry))
            elif entry.is_open and self._learnt:
                self.finish(entry.key, self._resumed(entry))
            elif entry.batch in self._emptied:
                rest = self._before.rest(entry)
                self._after.add(entry.key, entry.is_open, entry.at_ns, rest)
            else:
                self._after.keep(entry)

    def end(self) -> Manifest:
        self.end_group()
        self._pass(None)
        return super().end()
