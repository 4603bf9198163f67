"""The watches of each session, and the events that a write causes.

Watches are one-shot and per session: a session that watches a path twice gets one event. get and
exists set data watches (exists also on a missing znode); children sets child watches. Events are
queued per session in the order of the writes until the session takes them.
"""

from __future__ import annotations

from collections import defaultdict, deque

from kproto.znodes import paths
from kproto.znodes.model import EventType, WatchedEvent
from kproto.znodes.transaction import ZnodeWrite

__all__ = ["Watches"]

_DATA_EVENTS = {
    "create": EventType.NODE_CREATED,
    "set": EventType.NODE_DATA_CHANGED,
    "delete": EventType.NODE_DELETED,
}


class Watches:
    """The watches of all sessions, and the events that they have not taken yet."""

    def __init__(self) -> None:
        self._data: defaultdict[str, set[int]] = defaultdict(set)
        self._children: defaultdict[str, set[int]] = defaultdict(set)
        self._queues: dict[int, deque[WatchedEvent]] = {}

    def open(self, session: int) -> None:
        self._queues[session] = deque()

    def end(self, session: int) -> None:
        """Remove the session's watches; its last event reports its end."""
        for table in (self._data, self._children):
            for path in [path for path, watchers in table.items() if session in watchers]:
                table[path].discard(session)
                if not table[path]:
                    del table[path]
        self._queues[session].append(WatchedEvent(EventType.SESSION_EXPIRED, ""))

    def watch_data(self, session: int, path: str) -> None:
        self._data[path].add(session)

    def watch_children(self, session: int, path: str) -> None:
        self._children[path].add(session)

    def take(self, session: int) -> list[WatchedEvent]:
        """Return the session's events so far, oldest first, and remove them from the queue."""
        queue = self._queues[session]
        events = list(queue)
        queue.clear()
        return events

    def fire(self, write: ZnodeWrite) -> set[int]:
        """Queue the events of one write. Returns the sessions that have new events."""
        notified = self._send(self._data, write.path, _DATA_EVENTS[write.op], set())
        if write.op == "set":
            return notified
        if write.op == "delete":
            # A session that watched both the data and the children gets one event of the deletion.
            notified |= self._send(self._children, write.path, EventType.NODE_DELETED, notified)
        parent = paths.parent_of(write.path)
        return notified | self._send(self._children, parent, EventType.NODE_CHILDREN_CHANGED, set())

    def _send(
        self, table: dict[str, set[int]], path: str, kind: EventType, notified: set[int]
    ) -> set[int]:
        watchers = table.pop(path, set())
        for session in watchers - notified:
            self._queues[session].append(WatchedEvent(kind, path))
        return watchers
