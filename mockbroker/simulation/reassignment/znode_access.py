"""Access to a cluster's znodes from outside its controller."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kproto.znodes import Stat, ZnodeError
from mockbroker.errors import ClusterError
from mockbroker.simulation.state.controller import Controller

__all__ = ["ZnodeAccess"]


class ZnodeAccess:
    """Reads the znodes of a cluster whose reassignment controller has this name.

    Raises ClusterError in KRaft mode, and if ZooKeeper refuses an access.
    """

    def __init__(self, controller: Controller, name: str) -> None:
        self._controller = controller
        self._name = name

    @contextlib.contextmanager
    def enclosed(self) -> Iterator[None]:
        """Enclose accesses to znodes."""
        if not self._controller.keeps_znodes:
            raise ClusterError(f"a controller of the kind {self._name!r} does not use ZooKeeper")
        try:
            yield
        except ZnodeError as error:
            raise ClusterError(str(error)) from None

    def read(self, path: str) -> tuple[str, Stat] | None:
        """Return the current text and stat of a znode; None if it does not exist."""
        with self.enclosed(), self._controller.turns.reading():
            text = self._controller.znodes.read(path)
            return None if text is None else (text, self._controller.state.znode_stats[path])

    def children(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted."""
        with self.enclosed(), self._controller.turns.reading():
            return self._controller.znodes.children(path)
