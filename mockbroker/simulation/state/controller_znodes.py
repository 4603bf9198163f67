"""The znodes of a ZooKeeper controller: one session, with every change recorded in the action log.

The store is authoritative. ``ClusterState.znodes`` is what the controller last read or wrote, as
the log has it; the two differ after another client writes, until the znode is read. What the znodes
mean is up to ``mockbroker.simulation.reassignment``.
"""

from __future__ import annotations

from typing import Final, Protocol

from kproto.znodes import NodeExistsError, NoNodeError, Stat, WatchedEvent, ZnodeStore
from kproto.znodes.texts import bytes_of, text_of
from mockbroker.errors import ClusterError
from mockbroker.simulation.state.actions import Change, ZnodeWritten
from mockbroker.simulation.state.cluster_state import ClusterState

__all__ = ["SEEN", "ControllerZnodes"]

SEEN: Final = "zookeeper"
"""The cause of a ``ZnodeWritten`` by another client, which is logged when it is read here."""


class ChangeRecorder(Protocol):
    """What ``ControllerZnodes`` needs of the controller."""

    @property
    def state(self) -> ClusterState: ...

    def record(self, cause: str, change: Change) -> None: ...

    def count_change(self) -> None: ...


class ControllerZnodes:
    """Reads and writes znodes as text.

    Raises ``kproto.znodes.ZnodeError`` if the connection breaks, the data is too large or a path is
    invalid.
    """

    def __init__(self, store: ZnodeStore, controller: ChangeRecorder) -> None:
        self._store = store
        self._controller = controller
        self._last_change: dict[str, int] = {}

    # ---- reading -----------------------------------------------------------------------------

    def read(self, path: str, *, watch: bool = False) -> str | None:
        """Return the current text, or None if the znode does not exist.

        ``watch`` leaves a watch in either case.
        """
        while True:
            try:
                znode = self._store.get(path, watch=watch)
            except NoNodeError:
                if watch and self._store.exists(path, watch=True) is not None:
                    continue  # created in the meantime
                self._note(path, None, None)
                return None
            text = text_of(znode.data)
            self._note(path, text, znode.stat)
            return text

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        """Return the names of the children, sorted; empty if the znode does not exist.

        ``watch`` leaves a watch only if the znode exists.
        """
        try:
            return self._store.children(path, watch=watch)
        except NoNodeError:
            return []

    def changes(self, path: str, prefix: str) -> list[str]:
        """Return the sequence znodes below ``path`` created since the last call, oldest first.

        As in Kafka's ZkNodeChangeNotificationListener, those are the znodes with a higher number
        than any before. Leaves a watch on the children.
        """
        last = self._last_change.get(path, -1)
        created: list[tuple[int, str]] = []
        for name in self.children(path, watch=True):
            number = name.removeprefix(prefix)
            if name.startswith(prefix) and number.isascii() and number.isdigit():
                created.append((int(number), name))
        found = sorted(each for each in created if each[0] > last)
        if found:
            self._last_change[path] = found[-1][0]
        return [name for _, name in found]

    def take_events(self) -> list[WatchedEvent] | None:
        """Return the watch events since the last call; None if the session has expired."""
        events = self._store.take_events()
        return None if self._store.expired else events

    def _note(self, path: str, text: str | None, stat: Stat | None) -> None:
        """Record what was read if another client has written it."""
        state = self._controller.state
        before, known = state.znodes.get(path), state.znode_stats.get(path)
        same_znode = (known and known.czxid, known and known.mzxid) == (
            stat and stat.czxid,
            stat and stat.mzxid,
        )
        if text != before or not same_znode:
            self._controller.record(SEEN, ZnodeWritten(path, before, text, stat))

    # ---- writing -----------------------------------------------------------------------------

    def put(self, cause: str, path: str, text: str | None, *, ephemeral: bool = False) -> bool:
        """Write the text, or delete the znode if ``text`` is None.

        Does nothing if the last known text is equal; returns whether it wrote. Missing parents are
        created empty and are not logged.
        """
        if text == self._controller.state.znodes.get(path):
            return False
        self._controller.count_change()
        stat = None
        if text is None:
            self._remove(path)
        else:
            stat = self._write(path, bytes_of(text), ephemeral)
        self._wrote(cause, path, text, stat)
        return True

    def set(self, cause: str, path: str, text: str | None) -> None:
        """Write as any client of ZooKeeper does.

        Writing an equal text raises the version and fires watches; deleting a missing znode raises
        ``NoNodeError``. Missing parents are created as by ``put``.
        """
        if text is None:
            self._store.delete(path)
            self._wrote(cause, path, None, None)
        else:
            self._wrote(cause, path, text, self._write(path, bytes_of(text), ephemeral=False))

    def _wrote(self, cause: str, path: str, text: str | None, stat: Stat | None) -> None:
        before = self._controller.state.znodes.get(path)
        self._controller.record(cause, ZnodeWritten(path, before, text, stat))

    def touch(self, path: str) -> None:
        """Create an empty persistent znode and its parents where they are missing."""
        self._make_parents(path + "/")

    def append(self, cause: str, prefix: str, text: str) -> str:
        """Create a persistent sequence znode and return its path."""
        self._controller.count_change()
        self._make_parents(prefix)
        path = self._store.create(prefix, bytes_of(text), sequential=True)
        stat = self._store.exists(path)
        self._controller.record(cause, ZnodeWritten(path, None, text, stat))
        return path

    def _write(self, path: str, data: bytes, ephemeral: bool) -> Stat | None:
        if not ephemeral or path in self._controller.state.znodes:
            try:
                return self._store.set(path, data)
            except NoNodeError:
                pass
        self._make_parents(path)
        try:
            self._store.create(path, data, ephemeral=ephemeral)
        except NodeExistsError:
            stat = self._store.exists(path)
            ours = stat is not None and stat.ephemeral_owner == self._store.session_id
            if ephemeral and not ours:
                raise ClusterError(
                    f"{path} already exists: another cluster uses this ZooKeeper path, or the "
                    "session of a previous one has not expired yet"
                ) from None
            return self._store.set(path, data)
        return self._store.exists(path)

    def _make_parents(self, path: str) -> None:
        names = path.split("/")[1:-1]
        for depth in range(1, len(names) + 1):
            parent = "/" + "/".join(names[:depth])
            if self._store.exists(parent) is None:
                try:
                    self._store.create(parent)
                except NodeExistsError:
                    continue

    def _remove(self, path: str) -> None:
        try:
            self._store.delete(path)
        except NoNodeError:
            return

    def remove_empty(self, path: str) -> None:
        """Delete a parent znode that is empty now; like its creation, this is not logged."""
        self._remove(path)

    @property
    def session_id(self) -> int:
        """The id of the ZooKeeper session, which ephemeral znodes have as their owner."""
        return self._store.session_id

    def renew(self) -> None:
        """Start a new session after the previous one expired."""
        self._store.renew()

    def close(self) -> None:
        """Close the session, which deletes its ephemeral znodes."""
        self._store.close()
