"""What a ZooKeeper controller reads and writes: one session, and every change in the action log.

The store holds the truth; ``ClusterState.znodes`` is what this process knows of it, which is what
the log says. The two part where somebody else writes, until the znode is read. Which znodes there
are, and what they mean, is for ``mockbroker.reassignment``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kproto.znodes import (
    NodeExistsError,
    NoNodeError,
    Stat,
    WatchedEvent,
    ZnodeStore,
)
from mockbroker.errors import ClusterError
from mockbroker.state.actions import ZnodeWritten

if TYPE_CHECKING:
    from mockbroker.state.controller import Controller

__all__ = ["SEEN", "ControllerZnodes", "bytes_of", "text_of"]

SEEN: Final = "zookeeper"
"""The cause of a ``ZnodeWritten`` that somebody else wrote, logged when it was read here."""


def text_of(data: bytes) -> str:
    """A znode's data as text, also where it is no UTF-8: Kafka's are JSON, a user's may not be."""
    return data.decode(errors="surrogateescape")


def bytes_of(text: str) -> bytes:
    """The other way; also of text that no bytes would give, as a command may hold."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


class ControllerZnodes:
    """Texts by path. Raises ``kproto.znodes.ZnodeError`` where ZooKeeper says no for a reason that
    is no part of the question: the connection broke, the data is too large, a path is none."""

    def __init__(self, store: ZnodeStore, controller: Controller) -> None:
        self._store = store
        self._controller = controller
        self._last_change: dict[str, int] = {}

    # ---- reading -----------------------------------------------------------------------------

    def read(self, path: str, *, watch: bool = False) -> str | None:
        """The text there now, None without a znode; a watch is left either way."""
        while True:
            try:
                znode = self._store.get(path, watch=watch)
            except NoNodeError:
                if watch and self._store.exists(path, watch=True) is not None:
                    continue  # it came meanwhile
                self._note(path, None, None)
                return None
            text = text_of(znode.data)
            self._note(path, text, znode.stat)
            return text

    def children(self, path: str, *, watch: bool = False) -> list[str]:
        """Names, sorted; none where there is no such znode (and then no watch is left)."""
        try:
            return self._store.children(path, watch=watch)
        except NoNodeError:
            return []

    def changes(self, path: str, prefix: str) -> list[str]:
        """The sequence znodes below ``path`` that came since the last call, oldest first: those
        with a greater number than any before, as Kafka's ZkNodeChangeNotificationListener has it.
        A watch is left on the children."""
        last = self._last_change.get(path, -1)
        news: list[tuple[int, str]] = []
        for name in self.children(path, watch=True):
            number = name.removeprefix(prefix)
            if name.startswith(prefix) and number.isascii() and number.isdigit():
                news.append((int(number), name))
        found = sorted(each for each in news if each[0] > last)
        if found:
            self._last_change[path] = found[-1][0]
        return [name for _, name in found]

    def take_events(self) -> list[WatchedEvent]:
        return self._store.take_events()

    def _note(self, path: str, text: str | None, stat: Stat | None) -> None:
        """Somebody else may have written it; then the log says what was found."""
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
        """Make the znode say this; None removes it. Whether there was anything to do, as far as
        is known here. Znodes above it are made where they lack, empty and unlogged."""
        if text == self._controller.state.znodes.get(path):
            return False
        self._controller.spend_life()
        stat = None
        if text is None:
            self._remove(path)
        else:
            stat = self._write(path, bytes_of(text), ephemeral)
        self._wrote(cause, path, text, stat)
        return True

    def set(self, cause: str, path: str, text: str | None) -> None:
        """Write as a client of ZooKeeper does: the same text again is a new version and fires
        watches, and deleting what is not there is NoNode. The parents are made as by ``put``."""
        if text is None:
            self._store.delete(path)
            self._wrote(cause, path, None, None)
        else:
            self._wrote(cause, path, text, self._write(path, bytes_of(text), ephemeral=False))

    def _wrote(self, cause: str, path: str, text: str | None, stat: Stat | None) -> None:
        before = self._controller.state.znodes.get(path)
        self._controller.record(cause, ZnodeWritten(path, before, text, stat))

    def touch(self, path: str) -> None:
        """Have an empty, persistent znode there, and those above it."""
        self._make_parents(path + "/")

    def append(self, cause: str, prefix: str, text: str) -> str:
        """A persistent sequence znode; its path."""
        self._controller.spend_life()
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
                    f"{path} is there already: another cluster is at this ZooKeeper path, or one "
                    "that ended just now is still being waited for"
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
        """Remove a znode that held only others, unlogged as it came; quietly, if it is gone."""
        self._remove(path)

    @property
    def session_id(self) -> int:
        return self._store.session_id

    @property
    def expired(self) -> bool:
        """Whether the session has ended without having been closed."""
        return self._store.expired

    def renew(self) -> None:
        """Begin a new session after one that expired."""
        self._store.renew()

    def close(self) -> None:
        self._store.close()
